package fuzz

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"testing"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/changes"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/driver"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/driver/simulated"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/lifecycle"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/server"
)

// callTimeout ends a call that waits for something that never happens here.
const callTimeout = time.Second

// errWire says that bytes are not the request of a method.
var errWire = errors.New("no such message")

// gateway answers calls as a gateway on its store does, without a network in between.
type gateway struct {
	*memory
	methods []method // by name
	unary   grpc.UnaryServerInterceptor
	stream  []grpc.StreamServerInterceptor
}

// method is a method with the bytes of its request.
type method struct {
	name string
	call func(ctx context.Context, wire []byte) (any, error)
}

// newGateway makes a gateway that lets everybody in.
func newGateway(tb testing.TB, m *memory) *gateway {
	tb.Helper()
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	gate, err := auth.New(tb.Context(), auth.Config{
		Services:        []*grpc.ServiceDesc{&openshellv1.OpenShell_ServiceDesc, &conditionalv1.ConditionalSandboxes_ServiceDesc},
		Unauthenticated: auth.FromAnywhere, Members: server.Members(m), Logger: log,
	})
	if err != nil {
		tb.Fatal(err)
	}
	manager := lifecycle.New(m, prompt{}, log)
	tb.Cleanup(func() { manager.Close(context.Background()) })
	unary, stream := server.Interceptors(log)
	g := &gateway{memory: m, unary: chained(append(unary, gate.UnaryInterceptor)), stream: append(stream, gate.StreamInterceptor)}
	s := server.New(server.Config{Store: m, Driver: prompt{}, Lifecycle: manager, Changes: &changes.Changes{}, Version: "fuzz", Watches: 1})
	s.Register(g)
	s.RegisterConditional(g)
	slices.SortFunc(g.methods, func(a, b method) int { return cmp.Compare(a.name, b.name) })
	return g
}

// prompt is the simulated driver, but does and takes everything at once.
type prompt struct{ simulated.Driver }

func (prompt) Create(context.Context, driver.Instance) error { return nil }

func (prompt) Delete(context.Context, driver.Instance) (driver.Deletion, error) {
	return driver.Deletion{Gone: true}, nil
}

// RegisterService implements [grpc.ServiceRegistrar].
func (g *gateway) RegisterService(service *grpc.ServiceDesc, impl any) {
	for _, m := range service.Methods {
		name := "/" + service.ServiceName + "/" + m.MethodName
		g.methods = append(g.methods, method{name, func(ctx context.Context, wire []byte) (any, error) {
			return m.Handler(impl, grpc.NewContextWithServerTransportStream(ctx, transport(name)), func(req any) error { return parse(wire, req) }, g.unary)
		}})
	}
	for _, m := range service.Streams {
		name := "/" + service.ServiceName + "/" + m.StreamName
		g.methods = append(g.methods, method{name, func(ctx context.Context, wire []byte) (any, error) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			handler, info := m.Handler, &grpc.StreamServerInfo{FullMethod: name, IsServerStream: true}
			for _, interceptor := range slices.Backward(g.stream) {
				next := handler
				handler = func(srv any, stream grpc.ServerStream) error { return interceptor(srv, stream, info, next) }
			}
			stream := &oneMessage{ctx: ctx, wire: wire, cancel: cancel}
			err := handler(impl, stream)
			return nil, cmp.Or(stream.unread, err)
		}})
	}
}

func parse(wire []byte, req any) error {
	if m, ok := req.(proto.Message); !ok || proto.Unmarshal(wire, m) != nil {
		return errWire
	}
	return nil
}

func chained(interceptors []grpc.UnaryServerInterceptor) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		for _, interceptor := range slices.Backward(interceptors) {
			next := handler
			handler = func(ctx context.Context, req any) (any, error) { return interceptor(ctx, req, info, next) }
		}
		return handler(ctx, req)
	}
}

// transport is the method of a call.
type transport string

func (t transport) Method() string               { return string(t) }
func (t transport) SetHeader(metadata.MD) error  { return nil }
func (t transport) SendHeader(metadata.MD) error { return nil }
func (t transport) SetTrailer(metadata.MD) error { return nil }

// oneMessage is a stream whose client leaves after the first answer.
type oneMessage struct {
	grpc.ServerStream
	ctx    context.Context
	cancel context.CancelFunc
	wire   []byte
	unread error
}

func (s *oneMessage) Context() context.Context { return s.ctx }
func (s *oneMessage) RecvMsg(req any) error    { s.unread = parse(s.wire, req); return s.unread }
func (s *oneMessage) SendMsg(any) error        { s.cancel(); return nil }

// call makes a call by the name of its method, on a store with the same in it as before.
func (g *gateway) call(t testing.TB, name string, req proto.Message) (any, error) {
	t.Helper()
	wire, err := proto.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	i, found := slices.BinarySearchFunc(g.methods, name, func(m method, name string) int { return cmp.Compare(m.name, name) })
	if !found {
		t.Fatalf("there is no method %s", name)
	}
	return g.methods[i].call(t.Context(), wire)
}

// wantShown holds an error to being one that a client can do something about, in words: the gateway itself never fails here.
func wantShown(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	st := status.Convert(err)
	switch st.Code() {
	case codes.Unknown, codes.Internal, codes.DataLoss, codes.Unavailable, codes.OK:
		t.Errorf("code %v: %v", st.Code(), err)
	}
	if st.Message() == "" || !utf8.ValidString(st.Message()) {
		t.Errorf("message %q", st.Message())
	}
}
