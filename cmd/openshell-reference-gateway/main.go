// Command openshell-reference-gateway serves the part of the OpenShell API that the Terraform provider uses, and the
// conditional service. Its compute driver is a simulation that runs nothing.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway"
)

// version is set by the linker.
var version = "dev"

// Exit codes.
const (
	exitFailed = 1 // it could not serve
	exitUsage  = 2 // flags, environment or configuration file
)

// drainTimeout is how long calls under way have to end after SIGTERM, SIGINT or SIGHUP. A second signal does not wait.
const drainTimeout = 20 * time.Second

func main() {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		signal.Notify(signals, syscall.SIGHUP)
	}
	go func() {
		<-signals
		signal.Stop(signals) // a second signal ends the process
		cancel()
	}()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is main but for the process. It returns the exit code once ctx has ended and the gateway is drained.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == auditCommand {
		return printAudit(ctx, args[1:], stdout, stderr)
	}
	f, err := parse(args, stdout, stderr)
	if errors.Is(err, errHelped) {
		return 0
	}
	if err == nil {
		err = f.check()
	}
	if err != nil {
		fmt.Fprintf(stderr, "openshell-reference-gateway: %v\n", err)
		return exitUsage
	}
	log := slog.New(slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: f.LogLevel.Level}))
	if err := serve(ctx, f, log, stdout); err != nil {
		fmt.Fprintf(stderr, "openshell-reference-gateway: %v\n", err)
		return exitFailed
	}
	return 0
}

func serve(ctx context.Context, f flags, log *slog.Logger, stdout io.Writer) (err error) {
	cfg, err := f.config(log)
	if err != nil {
		return err
	}
	cfg.Store, err = gateway.OpenStore(ctx, f.DBURL)
	if err != nil {
		return fmt.Errorf("--db-url: %w", err)
	}
	defer func() { err = errors.Join(err, cfg.Store.Close()) }()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", f.address())
	if err != nil {
		return fmt.Errorf("--bind-address %s --port %d: %w", f.BindAddress, f.Port, err)
	}
	g, err := gateway.New(ctx, cfg)
	if err != nil {
		if f.OIDCIssuer != "" {
			err = fmt.Errorf("--oidc-issuer, --oidc-jwks-allowed-origins: %w", err)
		}
		return errors.Join(err, listener.Close())
	}
	stop, err := f.serveOperations(ctx, g, log)
	if err != nil {
		shutDown(ctx, g, log)
		return errors.Join(err, listener.Close())
	}
	defer stop() // after the gateway has drained, so that it can be seen to do so

	ctx, cancel := context.WithCancel(ctx)
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		<-ctx.Done()
		log.Info("draining")
		shutDown(ctx, g, log)
	}()
	endpoint := f.scheme() + "://" + listener.Addr().String()
	log.Info("listening", "endpoint", endpoint, "version", version, "database", gateway.StoreName(f.DBURL),
		"conditional", !f.WithoutConditional, "require_precondition", f.RequirePrecondition)
	fmt.Fprintf(stdout, "openshell-reference-gateway %s listens on %s\n", version, endpoint)
	err = g.Serve(listener)
	cancel() // it may have ended by itself
	<-drained
	return err
}

// shutDown drains a gateway, although ctx has ended.
func shutDown(ctx context.Context, g *gateway.Gateway, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	g.Shutdown(ctx)
	if ctx.Err() != nil {
		log.Warn("calls under way did not end in time and were broken off; their work goes on with the next gateway on the database",
			"waited_seconds", drainTimeout.Seconds())
	}
}

// serveOperations serves health and metrics where flags ask for it.
func (f flags) serveOperations(ctx context.Context, g *gateway.Gateway, log *slog.Logger) (stop func(), err error) {
	stopHealth, err := f.serveHTTP(ctx, "--health-port", f.HealthPort, g.HealthHandler(), log)
	if err != nil {
		return nil, err
	}
	stopMetrics, err := f.serveHTTP(ctx, "--metrics-port", f.MetricsPort, g.MetricsHandler(), log)
	if err != nil {
		stopHealth()
		return nil, err
	}
	return func() { stopMetrics(); stopHealth() }, nil
}
