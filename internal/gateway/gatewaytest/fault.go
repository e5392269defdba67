package gatewaytest

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Faults for [Gateway.Intercept]. Methods are named by the end of their full names.

// Refuse makes methods fail.
func Refuse(code codes.Code, methods ...string) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		if slices.ContainsFunc(methods, func(m string) bool { return strings.HasSuffix(info.FullMethod, m) }) {
			return nil, status.Error(code, "refused in a test")
		}
		return handle(ctx, req)
	}
}

// Before makes something happen in front of every call of a method. An error replaces the call.
func Before(method string, happens func() error) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		if strings.HasSuffix(info.FullMethod, method) {
			if err := happens(); err != nil {
				return nil, err
			}
		}
		return handle(ctx, req)
	}
}

// Lose drops the first answer of a method, after it took effect and something else happened; nil for nothing else.
func Lose(method string, happens func()) grpc.UnaryServerInterceptor {
	var lost atomic.Bool
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		reply, err := handle(ctx, req)
		if err != nil || !strings.HasSuffix(info.FullMethod, method) || !lost.CompareAndSwap(false, true) {
			return reply, err
		}
		if happens != nil {
			happens()
		}
		return nil, status.Error(codes.Unavailable, "lost in a test")
	}
}

// Chain makes one interceptor of several, the first of which is the outermost.
func Chain(interceptors ...grpc.UnaryServerInterceptor) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		for _, interceptor := range slices.Backward(interceptors) {
			next := handle
			handle = func(ctx context.Context, req any) (any, error) { return interceptor(ctx, req, info, next) }
		}
		return handle(ctx, req)
	}
}
