package server

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/google/uuid"
	grpclogging "github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/logging"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth"
)

// Interceptors are those that every call goes through, outermost first: an id for the request, a line in the log, and
// errors with a status.
func Interceptors(log *slog.Logger) ([]grpc.UnaryServerInterceptor, []grpc.StreamServerInterceptor) {
	panicked := recovery.WithRecoveryHandlerContext(func(_ context.Context, p any) error {
		return fmt.Errorf("panic: %v\n%s", p, debug.Stack())
	})
	logUnary, logStream := logging(log)
	return []grpc.UnaryServerInterceptor{identifyUnary, logUnary, statusUnary(log), recovery.UnaryServerInterceptor(panicked)},
		[]grpc.StreamServerInterceptor{identifyStream, logStream, statusStream(log), recovery.StreamServerInterceptor(panicked)}
}

// Observe adds the caller to the log line of a call, as soon as the caller is known.
func Observe(ctx context.Context, caller auth.Identity) {
	grpclogging.AddFields(ctx, grpclogging.Fields{"caller", caller.Subject, "identity_provider", string(caller.Provider)})
}

// requestIDHeader is in every response: the caller's value, or else one made here.
const requestIDHeader = "x-request-id"

// maxRequestID keeps a caller from filling the log.
const maxRequestID = 256

type requestIDKey struct{}

func requestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// identify finds or makes the id of a request and sends it back in the header.
func identify(ctx context.Context) context.Context {
	id := uuid.NewString()
	if given := metadata.ValueFromIncomingContext(ctx, requestIDHeader); len(given) > 0 && given[0] != "" && len(given[0]) <= maxRequestID {
		id = given[0]
	}
	_ = grpc.SetHeader(ctx, metadata.Pairs(requestIDHeader, id)) // fails only once headers are sent, which is later
	return context.WithValue(ctx, requestIDKey{}, id)
}

func identifyUnary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	return handler(identify(ctx), req)
}

func identifyStream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	return handler(srv, &streamWithContext{stream, identify(stream.Context())})
}

type streamWithContext struct {
	grpc.ServerStream
	ctx context.Context
}

// Context implements [grpc.ServerStream].
func (s *streamWithContext) Context() context.Context { return s.ctx }

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
