// Package gateway is the reference gateway: the part of the OpenShell API that the provider uses, and the conditional
// service, over a store and a compute driver.
package gateway

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"

	"golang.org/x/net/netutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/changes"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/driver"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/driver/simulated"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/lifecycle"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/server"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/telemetry"
)

// APIVersion is the version of OpenShell whose API is served. What Health reports begins with it.
const APIVersion = "0.1.5"

// Version is what Health reports for a build: the version of OpenShell that it speaks, then its own.
func Version(build string) string { return APIVersion + "+reference." + build }

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
	// Access says who may call. Its services, members, observer and logger are the gateway's.
	Access auth.Config
	// Limits bound what callers can take.
	Limits Limits
	// RequirePrecondition refuses the plain forms of delete, stop and start.
	RequirePrecondition bool
	// WithoutConditional makes the gateway behave like a stock one: no conditional service, health or reflection.
	WithoutConditional bool
	// ServiceDomain is the domain of the URLs of services; empty means [server.DefaultServiceDomain].
	ServiceDomain string
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
	server    *server.Server
	health    *health.Server
	gate      *auth.Gate
	lifecycle *lifecycle.Manager
	telemetry *telemetry.Telemetry
	store     store.Store
	limits    Limits
	log       *slog.Logger
	draining  context.Context // ends when the gateway begins to shut down
	drain     context.CancelFunc
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
	cfg.Limits = cfg.Limits.withDefaults()
	observed := telemetry.New(cfg.Logger, cfg.Version)
	made := &changes.Changes{}
	cfg.Store = made.Store(observed.Store(cfg.Store))
	access := cfg.Access
	access.Services, access.Members, access.Observe, access.Logger = services(cfg), server.Members(cfg.Store), observe, cfg.Logger
	gate, err := auth.New(ctx, access)
	if err != nil {
		return nil, err
	}
	draining, drain := context.WithCancel(context.WithoutCancel(ctx))
	g := &Gateway{
		grpc:      grpc.NewServer(options(draining, cfg, gate, observed)...),
		health:    health.NewServer(),
		gate:      gate,
		lifecycle: lifecycle.New(cfg.Store, cfg.Driver, cfg.Logger),
		telemetry: observed,
		store:     cfg.Store,
		limits:    cfg.Limits,
		log:       cfg.Logger,
		draining:  draining,
		drain:     drain,
	}
	g.register(cfg, made)
	observed.Know(g.grpc.GetServiceInfo())
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
func (g *Gateway) register(cfg Config, made *changes.Changes) {
	g.server = server.New(server.Config{
		Store: cfg.Store, Driver: cfg.Driver, Lifecycle: g.lifecycle, Changes: made,
		Version: cfg.Version, RequirePrecondition: cfg.RequirePrecondition,
		TLS: cfg.TLS != nil, Watches: cfg.Limits.Watches, ServiceDomain: cmp.Or(cfg.ServiceDomain, server.DefaultServiceDomain),
	})
	registrar := registrar{g.grpc}
	g.server.Register(registrar)
	if cfg.WithoutConditional {
		return
	}
	g.server.RegisterConditional(registrar)
	healthv1.RegisterHealthServer(registrar, g.health)
	reflection.Register(registrar)
	for _, service := range services(cfg) {
		g.health.SetServingStatus(service.ServiceName, healthv1.HealthCheckResponse_SERVING)
	}
}

func options(draining context.Context, cfg Config, gate *auth.Gate, observed *telemetry.Telemetry) []grpc.ServerOption {
	var unary []grpc.UnaryServerInterceptor
	stream := []grpc.StreamServerInterceptor{telemetry.StreamRequestID}
	if cfg.UnaryInterceptor != nil {
		unary = append(unary, cfg.UnaryInterceptor)
	}
	if cfg.StreamInterceptor != nil {
		stream = append(stream, cfg.StreamInterceptor)
	}
	statusUnary, statusStream := server.Interceptors(cfg.Logger)
	unary, stream = append(unary, cfg.Limits.boundUnary), append(stream, cfg.Limits.boundStream(draining))
	unary, stream = append(unary, statusUnary...), append(stream, statusStream...)
	unary, stream = append(unary, gate.UnaryInterceptor, server.ObservePreconditions), append(stream, gate.StreamInterceptor)
	opts := append(cfg.Limits.options(),
		grpc.ChainUnaryInterceptor(unary...),
		grpc.ChainStreamInterceptor(stream...),
		grpc.UnknownServiceHandler(gate.UnknownService),
		grpc.ForceServerCodecV2(newCodec()),
		grpc.StatsHandler(observed),
		grpc.WaitForHandlers(true),
	)
	if cfg.TLS != nil {
		opts = append(opts, grpc.Creds(loggedHandshakes{credentials.NewTLS(cfg.TLS), cfg.Logger}))
	}
	return opts
}

// Serve takes calls from a listener until Shutdown, which closes it.
func (g *Gateway) Serve(listener net.Listener) error {
	g.server.ListensOn(listener.Addr())
	listener = netutil.LimitListener(listener, g.limits.Connections)
	if err := g.grpc.Serve(listener); !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil
}

// Shutdown says that it is not ready any more, takes no more calls, ends the streams, and waits for the other calls
// under way and for the work they left behind. When ctx ends it breaks them off: the work is in the store, and goes on with the next gateway there.
func (g *Gateway) Shutdown(ctx context.Context) {
	g.health.Shutdown() // first, so that who watches the health is told
	g.drain()
	defer context.AfterFunc(ctx, g.grpc.Stop)()
	g.grpc.GracefulStop()
	g.gate.Close()
	g.lifecycle.Close(ctx)
}
