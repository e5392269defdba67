package auth_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth/authtest"
)

// The leeway is there for clocks that differ, and ends where it ends.
func TestLeeway(t *testing.T) {
	const leeway = 30 * time.Second
	now := newClock()
	base := time.Unix(now.Now().Unix(), 0)
	issuer := authtest.NewIssuer(t)
	cfg := issuer.Config()
	cfg.Leeway = leeway
	conn := start(t, auth.Config{OIDC: cfg, Now: now.Now}, nil).dial(nil)
	for name, tc := range map[string]struct {
		claims map[string]any
		at     time.Duration
		want   codes.Code
	}{
		"expiry, at the end of the leeway":           {map[string]any{"exp": base.Unix()}, leeway, codes.OK},
		"expiry, past the leeway":                    {map[string]any{"exp": base.Unix()}, leeway + 1, codes.Unauthenticated},
		"not before, at the beginning of the leeway": {map[string]any{"nbf": base.Unix()}, -leeway, codes.OK},
		"not before, ahead of the leeway":            {map[string]any{"nbf": base.Unix()}, -leeway - 1, codes.Unauthenticated},
		"issued, at the beginning of the leeway":     {map[string]any{"iat": base.Unix()}, -leeway, codes.OK},
		"issued, ahead of the leeway":                {map[string]any{"iat": base.Unix()}, -leeway - 1, codes.Unauthenticated},
	} {
		t.Run(name, func(t *testing.T) {
			claims := issuer.Claims("ann", map[string]any{"iat": nil, "exp": base.Add(time.Hour).Unix()})
			for name, value := range tc.claims {
				claims[name] = value
			}
			key := issuer.Key()
			now.Set(base.Add(tc.at))
			wantCode(t, call(t, conn, getCurrentUser, authtest.Sign(t, key.Private, key.Algorithm, key.ID, claims)), tc.want)
		})
	}
}

// Roles and scopes are found by path, and a claim whose own name has dots by that name.
func TestClaimPaths(t *testing.T) {
	issuer := authtest.NewIssuer(t)
	user := []string{"openshell-user"}
	for name, tc := range map[string]struct {
		roles, scopes string
		claims        map[string]any
		want          codes.Code
	}{
		"Keycloak":              {"realm_access.roles", "scope", map[string]any{"realm_access": map[string]any{"roles": user}, "scope": "openid sandbox:read"}, codes.OK},
		"Entra ID":              {"roles", "scp", map[string]any{"roles": user, "scp": "sandbox:read"}, codes.OK},
		"Okta":                  {"groups", "scp", map[string]any{"groups": user, "scp": []string{"sandbox:read"}}, codes.OK},
		"Auth0":                 {"https://example.com/roles", "scope", map[string]any{"https://example.com/roles": user, "scope": "sandbox:read"}, codes.OK},
		"deep":                  {"a.b.c", "d.e", map[string]any{"a": map[string]any{"b": map[string]any{"c": user}}, "d": map[string]any{"e": "sandbox:read"}}, codes.OK},
		"wrong path":            {"realm_access.role", "scope", map[string]any{"scope": "sandbox:read"}, codes.PermissionDenied},
		"path through a string": {"preferred_username.roles", "scope", map[string]any{"scope": "sandbox:read"}, codes.PermissionDenied},
		"scopes elsewhere":      {"realm_access.roles", "scp", map[string]any{"scope": "sandbox:read"}, codes.PermissionDenied},
		"scope of another kind": {"realm_access.roles", "scope", map[string]any{"scope": "sandbox:write provider:read"}, codes.PermissionDenied},
		"part of a scope":       {"realm_access.roles", "scope", map[string]any{"scope": "sandbox:readwrite"}, codes.PermissionDenied},
		"scope as a number":     {"realm_access.roles", "scope", map[string]any{"scope": 7}, codes.PermissionDenied},
		"roles not all text":    {"roles", "scope", map[string]any{"roles": []any{7, "openshell-user"}, "scope": "sandbox:read"}, codes.OK},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := issuer.Config()
			cfg.RolesClaim, cfg.ScopesClaim = tc.roles, tc.scopes
			g := start(t, auth.Config{OIDC: cfg}, nil)
			reached, code := g.reaches(g.dial(nil), getSandbox, issuer.Token("ann", tc.claims))
			if reached != (tc.want == codes.OK) {
				t.Errorf("reached the handler: %v (%v), want %v", reached, code, tc.want)
			}
		})
	}
}

// The context of New bounds its first attempt, so that an issuer that says nothing does not hold up the start.
func TestStartDoesNotWaitForASilentIssuer(t *testing.T) {
	issuer := authtest.NewIssuer(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	release := make(chan struct{})
	issuer.Answer(func(http.ResponseWriter, *http.Request) { cancel(); <-release })
	defer close(release)
	began := time.Now()
	if _, err := auth.New(ctx, auth.Config{OIDC: issuer.Config(), Members: members{}}); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("waited for %v", took)
	}
}
