package server

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
	"google.golang.org/grpc"
)

// Interceptors give every error a status; outermost first.
func Interceptors(log *slog.Logger) ([]grpc.UnaryServerInterceptor, []grpc.StreamServerInterceptor) {
	panicked := recovery.WithRecoveryHandlerContext(func(_ context.Context, p any) error {
		return fmt.Errorf("panic: %v\n%s", p, debug.Stack())
	})
	return []grpc.UnaryServerInterceptor{statusUnary(log), recovery.UnaryServerInterceptor(panicked)},
		[]grpc.StreamServerInterceptor{statusStream(log), recovery.StreamServerInterceptor(panicked)}
}

func statusUnary(log *slog.Logger) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		reply, err := handler(ctx, req)
		if err != nil {
			return nil, toStatus(ctx, log, err)
		}
		return reply, nil
	}
}

func statusStream(log *slog.Logger) grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		if err := handler(srv, stream); err != nil {
			return toStatus(stream.Context(), log, err)
		}
		return nil
	}
}
