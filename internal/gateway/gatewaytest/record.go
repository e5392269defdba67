package gatewaytest

import (
	"context"
	"slices"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/telemetry"
)

// Call is a call that a client made.
type Call struct {
	// Method is its full name, such as /openshell.v1.OpenShell/GetSandbox.
	Method string
	// Request is a copy of the message; nil for methods the gateway does not have, and for streams.
	Request proto.Message
	// Workspace and Name are those of the sandbox it is about, in a conditional call too.
	Workspace, Name string
	// Answered says that the call has ended, with Code.
	Answered bool
	Code     codes.Code
}

// recorder keeps the calls, and lets tests come between them.
type recorder struct {
	mu          sync.Mutex
	calls       []*Call
	interceptor grpc.UnaryServerInterceptor
}

// AllCalls are the calls so far, in the order of their arrival.
func (r *recorder) AllCalls() []Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	calls := make([]Call, 0, len(r.calls))
	for _, c := range r.calls {
		calls = append(calls, *c)
	}
	return calls
}

// Calls are the calls so far of one method, by its full name.
func (r *recorder) Calls(method string) []Call {
	return slices.DeleteFunc(r.AllCalls(), func(c Call) bool { return c.Method != method })
}

// ResetCalls forgets the calls so far.
func (r *recorder) ResetCalls() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = nil
}

// Intercept has every unary call go through fn, around all that the gateway does: fn can hold a call, act as another
// client before or after it, answer in the handler's place, or drop an answer. nil takes it off.
func (r *recorder) Intercept(fn grpc.UnaryServerInterceptor) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.interceptor = fn
}

func (r *recorder) record(method string, req any) (*Call, grpc.UnaryServerInterceptor) {
	call := &Call{Method: method}
	if m, ok := req.(proto.Message); ok {
		call.Request = proto.Clone(m)
		call.Workspace, call.Name = telemetry.About(m)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, call)
	return call, r.interceptor
}

func (r *recorder) answered(call *Call, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	call.Answered, call.Code = true, status.Code(err)
}

func (r *recorder) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if isOther(ctx) {
		return handler(ctx, req)
	}
	call, interceptor := r.record(info.FullMethod, req)
	if interceptor == nil {
		interceptor = func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			return handler(ctx, req)
		}
	}
	reply, err := interceptor(ctx, req, info, handler)
	r.answered(call, err)
	return reply, err
}

func (r *recorder) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	if isOther(stream.Context()) {
		return handler(srv, stream)
	}
	call, _ := r.record(info.FullMethod, nil)
	err := handler(srv, stream)
	r.answered(call, err)
	return err
}

// otherHeader marks the calls of the other client.
const otherHeader = "x-gatewaytest-other"

func asOther(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	return invoker(metadata.AppendToOutgoingContext(ctx, otherHeader, "1"), method, req, reply, cc, opts...)
}

func isOther(ctx context.Context) bool {
	return len(metadata.ValueFromIncomingContext(ctx, otherHeader)) > 0
}
