package acceptance_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

// Faults are made between the provider and the gateway.

// before makes something happen in front of every call of a method, by the end of its name. An error replaces the call.
func before(method string, happens func() error) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		if strings.HasSuffix(info.FullMethod, method) {
			if err := happens(); err != nil {
				return nil, err
			}
		}
		return handle(ctx, req)
	}
}

// refuse makes methods fail, by the end of their names.
func refuse(code codes.Code, methods ...string) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		if slices.ContainsFunc(methods, func(m string) bool { return strings.HasSuffix(info.FullMethod, m) }) {
			return nil, status.Error(code, "refused in a test")
		}
		return handle(ctx, req)
	}
}

// shown changes what GetSandbox answers.
func shown(edit func(*openshellv1.Sandbox)) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		reply, err := handle(ctx, req)
		if r, ok := reply.(*openshellv1.SandboxResponse); ok && err == nil && strings.HasSuffix(info.FullMethod, "/GetSandbox") {
			r = proto.CloneOf(r)
			edit(r.GetSandbox())
			return r, nil
		}
		return reply, err
	}
}

// lose drops the first answer of a method, after it took effect and something else happened.
func lose(method string, happens func()) grpc.UnaryServerInterceptor {
	var lost atomic.Bool
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		reply, err := handle(ctx, req)
		if err != nil || !strings.HasSuffix(info.FullMethod, method) || !lost.CompareAndSwap(false, true) {
			return reply, err
		}
		happens()
		return nil, status.Error(codes.Unavailable, "lost in a test")
	}
}

// both applies two interceptors to different methods.
func both(one, other grpc.UnaryServerInterceptor) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		return one(ctx, req, info, func(ctx context.Context, req any) (any, error) { return other(ctx, req, info, handle) })
	}
}
