package gateway

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec that is wrapped here
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/telemetry"
)

// gRPC refuses a unary call whose request cannot be decoded before any interceptor sees it, and so before its caller is
// authenticated. Here such a request is decoded as nothing, and the call refused where its handler would begin, as streams
// and upstream's gateway have it.

// request is what a unary request is decoded into: the message, or why it is none.
type request struct {
	message any
	problem error
}

// Decoded implements [telemetry.Payload].
func (r *request) Decoded() any {
	if r.problem != nil {
		return nil
	}
	return r.message
}

// codec is gRPC's for messages.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2("proto")} }

// Unmarshal implements [encoding.CodecV2].
func (c codec) Unmarshal(data mem.BufferSlice, into any) error {
	r, unary := into.(*request)
	if !unary {
		return c.explained(data, into)
	}
	r.problem = c.explained(data, r.message)
	if m, ok := r.message.(proto.Message); ok && r.problem != nil {
		proto.Reset(m) // what could be read of it
	}
	return nil
}

// explained tells the client what was expected, since the most likely one is of another version of OpenShell.
func (c codec) explained(data mem.BufferSlice, into any) error {
	err := c.CodecV2.Unmarshal(data, into)
	if m, ok := into.(proto.Message); err != nil && ok {
		return fmt.Errorf("it is no %s of OpenShell %s; clients of OpenShell 0.0 send another: %w", m.ProtoReflect().Descriptor().FullName(), APIVersion, err)
	}
	return err
}

// registrar is a gRPC server for services to register with. Of their unary calls, those with a request that cannot be decoded
// come as far as others, and the replies to all of them, those that gRPC refuses by itself included, carry the id of the request.
type registrar struct{ *grpc.Server }

// RegisterService implements [grpc.ServiceRegistrar].
func (r registrar) RegisterService(desc *grpc.ServiceDesc, impl any) {
	with := *desc
	with.Methods = slices.Clone(desc.Methods)
	for i, m := range with.Methods {
		with.Methods[i].Handler = func(srv any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
			telemetry.SendRequestID(ctx)
			var req request
			into := func(message any) error {
				req.message = message
				return decode(&req)
			}
			return m.Handler(srv, ctx, into, req.refusing(interceptor))
		}
	}
	r.Server.RegisterService(&with, impl)
}

// refusing has an interceptor refuse the request if it is none, with the code that gRPC has for it, unless the interceptor
// itself refuses the call.
func (r *request) refusing(interceptor grpc.UnaryServerInterceptor) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, message any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		return interceptor(ctx, message, info, func(ctx context.Context, message any) (any, error) {
			if r.problem != nil {
				return nil, status.Errorf(codes.Internal, "the request cannot be decoded: %v", r.problem)
			}
			return handler(ctx, message)
		})
	}
}
