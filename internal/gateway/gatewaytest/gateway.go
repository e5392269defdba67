// Package gatewaytest starts the real gateway in a test, on a loopback port, with its requests recorded and hooks between
// them.
//
// [Gateway.OpenShell], [Gateway.Conditional] and the helpers below are another client, who acts behind the back of the one
// under test: their calls are neither recorded nor intercepted.
package gatewaytest

import (
	"context"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth"
)

// Timeout bounds everything that a helper waits for.
const Timeout = 30 * time.Second

// Option changes how a gateway is started.
type Option func(*options)

type options struct {
	withoutConditional, requirePrecondition bool
	databaseURL, version                    string
	port                                    int
	tls                                     *authority
	clientCertificate                       bool
	access                                  *auth.Config
	logger                                  *slog.Logger
}

// WithoutConditional makes it behave like a stock gateway.
func WithoutConditional() Option { return func(o *options) { o.withoutConditional = true } }

// RequirePrecondition makes it refuse the plain forms of delete, stop and start.
func RequirePrecondition() Option { return func(o *options) { o.requirePrecondition = true } }

// WithDBPath keeps its database in a file that outlives it; without, the file goes with the test.
func WithDBPath(path string) Option { return WithDatabase("sqlite:" + path) }

// WithDatabase keeps its database at a URL, as [gateway.OpenStore] takes it.
func WithDatabase(url string) Option { return func(o *options) { o.databaseURL = url } }

// WithVersion sets what Health reports.
func WithVersion(version string) Option { return func(o *options) { o.version = version } }

// WithPort sets the port; without, it is any that is free.
func WithPort(port int) Option { return func(o *options) { o.port = port } }

// Gateway is a gateway under test. It ends with the test.
type Gateway struct {
	recorder
	connections *connections
	opts        options
	store       *observedStore
	gateway     *gateway.Gateway
	served      chan error
	conn        *grpc.ClientConn
}

// Start starts a gateway.
func Start(t testing.TB, opts ...Option) *Gateway {
	t.Helper()
	g := &Gateway{opts: options{version: gateway.APIVersion, logger: slog.New(slog.NewTextHandler(io.Discard, nil))}}
	for _, opt := range opts {
		opt(&g.opts)
	}
	if g.opts.databaseURL == "" {
		g.opts.databaseURL = "sqlite:" + filepath.Join(t.TempDir(), "gateway.db")
	}
	if g.opts.tls != nil {
		g.opts.tls.issue(t)
	}
	g.start(t)
	t.Cleanup(func() { g.Stop(t) })
	return g
}

func (g *Gateway) start(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	store, err := gateway.OpenStore(ctx, g.opts.databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	g.store = &observedStore{Store: store}
	g.connections = &connections{open: map[string]bool{}, others: map[string]bool{}}
	listening, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(g.opts.port)))
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(listening.Addr().String())
	if err == nil {
		g.opts.port, err = strconv.Atoi(port)
	}
	if err != nil {
		t.Fatal(err)
	}
	cfg := gateway.Config{
		Store:               g.store,
		Version:             g.opts.version,
		RequirePrecondition: g.opts.requirePrecondition,
		WithoutConditional:  g.opts.withoutConditional,
		Logger:              g.opts.logger,
		UnaryInterceptor:    g.unary,
		StreamInterceptor:   g.stream,
	}
	cfg.Access.Unauthenticated = auth.FromLoopback
	transport := insecure.NewCredentials()
	if g.opts.tls != nil {
		cfg.TLS = g.opts.tls.server(g.opts.clientCertificate)
		cfg.Access = auth.Config{ClientCertificates: g.opts.clientCertificate}
		if !g.opts.clientCertificate {
			cfg.Access.Unauthenticated = auth.FromAnywhere
		}
		transport = credentials.NewTLS(g.opts.tls.client())
	}
	if g.opts.access != nil {
		cfg.Access = *g.opts.access
	}
	if g.gateway, err = gateway.New(ctx, cfg); err != nil {
		t.Fatal(err)
	}
	g.served = make(chan error, 1)
	go func() { g.served <- g.gateway.Serve(listener{listening, g.connections}) }()
	g.conn, err = grpc.NewClient("passthrough:///"+listening.Addr().String(), grpc.WithContextDialer(g.connections.dial),
		grpc.WithTransportCredentials(transport), grpc.WithUnaryInterceptor(asOther))
	if err != nil {
		t.Fatal(err)
	}
}

// Stop shuts the gateway down, calls under way included. It does nothing when that has happened.
func (g *Gateway) Stop(t testing.TB) {
	t.Helper()
	if g.gateway == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	g.stop(ctx, t)
}

// Kill breaks off whatever is under way. Unlike SIGKILL, it lets the database close.
func (g *Gateway) Kill(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	g.stop(ctx, t)
}

func (g *Gateway) stop(ctx context.Context, t testing.TB) {
	t.Helper()
	g.gateway.Shutdown(ctx)
	if err := <-g.served; err != nil {
		t.Errorf("serve: %v", err)
	}
	if err := g.conn.Close(); err != nil {
		t.Error(err)
	}
	if err := g.store.Close(); err != nil {
		t.Errorf("close the store: %v", err)
	}
	g.gateway = nil
}

// Restart stops the gateway and starts it again on the same port and database.
func (g *Gateway) Restart(t testing.TB) {
	t.Helper()
	g.Stop(t)
	g.start(t)
}

// Endpoint is the URL to connect to.
func (g *Gateway) Endpoint() string {
	scheme := "http"
	if g.opts.tls != nil {
		scheme = "https"
	}
	return scheme + "://" + g.Address()
}

// Address is the host and port to connect to.
func (g *Gateway) Address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(g.opts.port)) }

// OpenShell is the plain service, as another client calls it.
func (g *Gateway) OpenShell() openshellv1.OpenShellClient {
	return openshellv1.NewOpenShellClient(g.conn)
}

// Conditional is the conditional service, as another client calls it.
func (g *Gateway) Conditional() conditionalv1.ConditionalSandboxesClient {
	return conditionalv1.NewConditionalSandboxesClient(g.conn)
}
