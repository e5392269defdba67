package gateway

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/telemetry"
)

// readyTimeout bounds how long the store may take to answer a gateway that is to be ready.
const readyTimeout = 2 * time.Second

// HealthHandler serves /healthz and /readyz over HTTP. It asks for no credential.
func (g *Gateway) HealthHandler() http.Handler { return telemetry.Health(g.ready) }

// MetricsHandler serves the metrics over HTTP. It asks for no credential.
func (g *Gateway) MetricsHandler() http.Handler { return g.telemetry.Metrics() }

var (
	errDraining = errors.New("the gateway is shutting down")
	errNoStore  = errors.New("the database does not answer")
)

// ready says why the gateway should get no calls, if so.
func (g *Gateway) ready(ctx context.Context) error {
	if g.draining.Err() != nil {
		return errDraining
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if _, err := g.store.Workspace(ctx, store.DefaultWorkspace); err != nil {
		g.log.WarnContext(ctx, "not ready, because the store does not answer", "error", err)
		return errNoStore
	}
	return nil
}

// observe tells the telemetry who is calling.
func observe(ctx context.Context, caller auth.Identity) {
	telemetry.Caller(ctx, caller.Subject, string(caller.Provider))
}
