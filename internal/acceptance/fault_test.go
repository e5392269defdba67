package acceptance_test

import (
	"context"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

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
