// Package gateway is the reference gateway: the part of the OpenShell API that the provider uses, and the conditional
// service, over a store and a compute driver.
package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/driver"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/driver/simulated"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/lifecycle"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/server"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// APIVersion is the version of OpenShell whose API is served. What Health reports begins with it.
const APIVersion = "0.1.5"

// maxMessage is the largest request in bytes (upstream-contract, size limits).
const maxMessage = 1 << 20

// Keepalive and streams as upstream has them (upstream-contract, transport).
const (
	keepaliveTime    = 20 * time.Second
	keepaliveTimeout = 10 * time.Second
	minPingInterval  = 5 * time.Second // clients ping every 10 s
	maxStreams       = 1024
)

// Config is what a gateway is made of.
type Config struct {
	// Store is the caller's to close, after Shutdown.
	Store store.Store
	// Driver runs the sandboxes; nil means the simulated one.
	Driver driver.Driver
	// Version is what Health reports.
	Version string
	// TLS is nil for plaintext.
	TLS *tls.Config
	// Access says who may call. Its services, observer and logger are the gateway's.
	Access auth.Config
	// RequirePrecondition refuses the plain forms of delete, stop and start.
	RequirePrecondition bool
	// WithoutConditional makes the gateway behave like a stock one: no conditional service, health or reflection.
	WithoutConditional bool
	// Logger takes a line a call; nil means slog.Default().
	Logger *slog.Logger
	// UnaryInterceptor and StreamInterceptor, when set, are outermost: they see a call before anything else does, and
	// its status as the client will get it.
	UnaryInterceptor  grpc.UnaryServerInterceptor
	StreamInterceptor grpc.StreamServerInterceptor
}

// Gateway serves the API until it is shut down.
type Gateway struct {
	grpc      *grpc.Server
	health    *health.Server
	lifecycle *lifecycle.Manager
}

// New makes a gateway and takes up the work that is due in its store. It must be shut down. ctx bounds what is asked of
// others before it can serve.
func New(ctx context.Context, cfg Config) (*Gateway, error) {
	if cfg.Driver == nil {
		cfg.Driver = simulated.Driver{}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	access := cfg.Access
	access.Services, access.Observe, access.Logger = services(cfg), server.Observe, cfg.Logger
	gate, err := auth.New(ctx, access)
	if err != nil {
		return nil, err
	}
	g := &Gateway{
		grpc:      grpc.NewServer(options(cfg, gate)...),
		health:    health.NewServer(),
		lifecycle: lifecycle.New(cfg.Store, cfg.Driver, cfg.Logger),
	}
	g.register(cfg)
	if err := gate.CheckServer(g.grpc.GetServiceInfo()); err != nil {
		g.Shutdown(ctx)
		return nil, err
	}
	return g, nil
}

// services are those that callers are authorized for.
func services(cfg Config) []*grpc.ServiceDesc {
	if cfg.WithoutConditional {
		return []*grpc.ServiceDesc{&openshellv1.OpenShell_ServiceDesc}
	}
	return []*grpc.ServiceDesc{&openshellv1.OpenShell_ServiceDesc, &conditionalv1.ConditionalSandboxes_ServiceDesc}
}

// register puts the services on the gRPC server. What a stock gateway does not have is left out on demand.
func (g *Gateway) register(cfg Config) {
	s := server.New(server.Config{
		Store: cfg.Store, Driver: cfg.Driver, Lifecycle: g.lifecycle,
		Version: cfg.Version, RequirePrecondition: cfg.RequirePrecondition,
	})
	s.Register(g.grpc)
	if cfg.WithoutConditional {
		return
	}
	s.RegisterConditional(g.grpc)
	healthv1.RegisterHealthServer(g.grpc, g.health)
	reflection.Register(g.grpc)
	for _, service := range services(cfg) {
		g.health.SetServingStatus(service.ServiceName, healthv1.HealthCheckResponse_SERVING)
	}
}

func options(cfg Config, gate *auth.Gate) []grpc.ServerOption {
	unary, stream := server.Interceptors(cfg.Logger)
	unary, stream = append(unary, gate.UnaryInterceptor), append(stream, gate.StreamInterceptor)
	if cfg.UnaryInterceptor != nil {
		unary = append([]grpc.UnaryServerInterceptor{cfg.UnaryInterceptor}, unary...)
	}
	if cfg.StreamInterceptor != nil {
		stream = append([]grpc.StreamServerInterceptor{cfg.StreamInterceptor}, stream...)
	}
	opts := []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(unary...),
		grpc.ChainStreamInterceptor(stream...),
		grpc.UnknownServiceHandler(gate.UnknownService),
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: keepaliveTime, Timeout: keepaliveTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPingInterval, PermitWithoutStream: true}),
		grpc.WaitForHandlers(true),
	}
	if cfg.TLS != nil {
		opts = append(opts, grpc.Creds(credentials.NewTLS(cfg.TLS)))
	}
	return opts
}

// Serve takes calls from a listener until Shutdown, which closes it.
func (g *Gateway) Serve(listener net.Listener) error {
	if err := g.grpc.Serve(listener); !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil
}

// Shutdown takes no more calls and waits for those under way and for the work they left behind. When ctx ends it breaks
// them off: the work is in the store, and goes on with the next gateway there.
func (g *Gateway) Shutdown(ctx context.Context) {
	g.health.Shutdown()
	defer context.AfterFunc(ctx, g.grpc.Stop)()
	g.grpc.GracefulStop()
	g.lifecycle.Close(ctx)
}
