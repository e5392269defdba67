package auth_test

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth"
)

const (
	getCurrentUser = "/openshell.v1.OpenShell/GetCurrentUser"
	getSandbox     = "/openshell.v1.OpenShell/GetSandbox"
)

// gateway is a server on the loopback interface with a gate before a dummy service.
type gateway struct {
	t       *testing.T
	address string
	log     *buffer

	mu      sync.Mutex
	reached []string // methods whose handlers were called
	callers []auth.Identity
}

// start runs a server until the test ends. It serves both services unless cfg names others.
func start(t *testing.T, cfg auth.Config, transport *tls.Config) *gateway {
	t.Helper()
	g := &gateway{t: t, log: &buffer{}}
	if cfg.Services == nil {
		cfg.Services = []*grpc.ServiceDesc{&openshellv1.OpenShell_ServiceDesc, &conditionalv1.ConditionalSandboxes_ServiceDesc}
	}
	if cfg.Members == nil {
		cfg.Members = members{}
	}
	cfg.Logger = slog.New(slog.NewJSONHandler(g.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	cfg.Observe = func(_ context.Context, caller auth.Identity) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.callers = append(g.callers, caller)
	}
	gate, err := auth.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(gate.Close) // after the server has stopped
	options := []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(gate.UnaryInterceptor, func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			g.reach(info.FullMethod)
			return next(ctx, req)
		}),
		grpc.ChainStreamInterceptor(gate.StreamInterceptor, func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
			g.reach(info.FullMethod)
			return next(srv, stream)
		}),
		grpc.UnknownServiceHandler(gate.UnknownService),
	}
	if transport != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(transport)))
	}
	server := grpc.NewServer(options...)
	for _, service := range cfg.Services {
		switch service {
		case &openshellv1.OpenShell_ServiceDesc:
			openshellv1.RegisterOpenShellServer(server, dummy{})
		case &conditionalv1.ConditionalSandboxes_ServiceDesc:
			conditionalv1.RegisterConditionalSandboxesServer(server, conditionalv1.UnimplementedConditionalSandboxesServer{})
		}
	}
	if err := gate.CheckServer(server.GetServiceInfo()); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g.address = listener.Addr().String()
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return g
}

func (g *gateway) reach(method string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reached = append(g.reached, method)
}

// hits tells which handlers were called since the last time, and forgets them.
func (g *gateway) hits() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	hits := g.reached
	g.reached = nil
	return hits
}

// seen lists whom the gate has recognised.
func (g *gateway) seen() []auth.Identity {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.callers)
}

// dial connects in plaintext, or with TLS.
func (g *gateway) dial(transport *tls.Config) *grpc.ClientConn {
	g.t.Helper()
	creds := insecure.NewCredentials()
	if transport != nil {
		creds = credentials.NewTLS(transport)
	}
	conn, err := grpc.NewClient(g.address, grpc.WithTransportCredentials(creds))
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// call makes a unary call with an empty request, which is a request of any method.
func call(t *testing.T, conn *grpc.ClientConn, method, token string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(withToken(t.Context(), token), 20*time.Second)
	defer cancel()
	return conn.Invoke(ctx, method, &emptypb.Empty{}, &emptypb.Empty{})
}

func withToken(ctx context.Context, token string) context.Context {
	if token == "" {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
}

func wantCode(t *testing.T, err error, want codes.Code) {
	t.Helper()
	if status.Code(err) != want {
		t.Errorf("got %v, want %v", err, want)
	}
}

// loopback is the context of a call from this machine, for what is tested without a connection.
func loopback(ctx context.Context) context.Context {
	return peer.NewContext(ctx, &peer.Peer{Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}})
}
