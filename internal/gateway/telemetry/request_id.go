package telemetry

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// SendRequestID has the reply to a call carry the id of the request. Unary calls need it before their request is read: a
// message that is too long is refused before any interceptor runs.
func SendRequestID(ctx context.Context) {
	_ = grpc.SetHeader(ctx, metadata.Pairs(RequestIDHeader, RequestID(ctx))) // fails only once headers are sent, which is later
}

// StreamRequestID is SendRequestID for streams and for methods that are not registered: a [grpc.StreamServerInterceptor], to
// be outermost.
func StreamRequestID(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	SendRequestID(stream.Context())
	return handler(srv, stream)
}
