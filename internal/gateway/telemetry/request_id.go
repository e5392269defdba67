package telemetry

import (
	"context"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// Server is a gRPC server for services to register with, so that their replies carry the id of the request. Calls of
// methods that are not registered, and streams, get it from [StreamRequestID].
//
// The unary ones cannot have it from an interceptor: a message that is too long, or is none, is refused before.
type Server struct{ *grpc.Server }

// RegisterService implements [grpc.ServiceRegistrar].
func (s Server) RegisterService(desc *grpc.ServiceDesc, impl any) {
	with := *desc
	with.Methods = slices.Clone(desc.Methods)
	for i, m := range with.Methods {
		with.Methods[i].Handler = func(srv any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
			sendRequestID(ctx)
			return m.Handler(srv, ctx, decode, interceptor)
		}
	}
	s.Server.RegisterService(&with, impl)
}

// StreamRequestID is a [grpc.StreamServerInterceptor], to be outermost.
func StreamRequestID(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	sendRequestID(stream.Context())
	return handler(srv, stream)
}

func sendRequestID(ctx context.Context) {
	_ = grpc.SetHeader(ctx, metadata.Pairs(RequestIDHeader, RequestID(ctx))) // fails only once headers are sent, which is later
}
