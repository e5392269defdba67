package gatewaytest

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth/authtest"
)

// WithAccess says who may call, instead of everybody on this machine. The other client shows no credential.
func WithAccess(access auth.Config) Option { return func(o *options) { o.access = &access } }

// WithOIDC takes tokens of an issuer, and nobody without one; claims and roles are the stock ones, without scopes.
func WithOIDC(issuer *authtest.Issuer) Option {
	return WithAccess(auth.Config{OIDC: issuer.Config()})
}

// WithLogger takes the gateway's log, which is thrown away otherwise.
func WithLogger(log *slog.Logger) Option { return func(o *options) { o.logger = log } }

// Metrics is what the gateway shows at /metrics.
func (g *Gateway) Metrics(t testing.TB) string {
	t.Helper()
	answer := httptest.NewRecorder()
	g.gateway.MetricsHandler().ServeHTTP(answer, httptest.NewRequestWithContext(timeout(t), http.MethodGet, "/metrics", nil))
	if answer.Code != http.StatusOK {
		t.Fatalf("/metrics: %d %s", answer.Code, answer.Body)
	}
	return answer.Body.String()
}
