package auth_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth/authtest"
)

// The issuer changes its keys: tokens of the new one are taken at once, those of the old one not any longer.
func TestRotation(t *testing.T) {
	issuer := authtest.NewIssuer(t)
	conn := start(t, auth.Config{OIDC: issuer.Config()}, nil).dial(nil)
	old := issuer.Token("ann", nil)
	wantCode(t, call(t, conn, getCurrentUser, old), codes.OK)
	issuer.Rotate()
	wantCode(t, call(t, conn, getCurrentUser, old), codes.OK) // still known here
	wantCode(t, call(t, conn, getCurrentUser, issuer.Token("ann", nil)), codes.OK)
	wantCode(t, call(t, conn, getCurrentUser, old), codes.Unauthenticated)
}

// A token that was verified before is still looked at: it runs out.
func TestKnownTokenExpires(t *testing.T) {
	now := newClock()
	issuer := authtest.NewIssuer(t)
	cfg := issuer.Config()
	conn := start(t, auth.Config{OIDC: cfg, Now: now.Now}, nil).dial(nil)
	token := issuer.Token("ann", map[string]any{"exp": now.Now().Add(time.Minute).Unix()})
	wantCode(t, call(t, conn, getCurrentUser, token), codes.OK)
	now.Advance(time.Minute + cfg.Leeway - 2*time.Second)
	wantCode(t, call(t, conn, getCurrentUser, token), codes.OK)
	now.Advance(4 * time.Second)
	wantCode(t, call(t, conn, getCurrentUser, token), codes.Unauthenticated)
}

// A key that is withdrawn without another call for a new one is out after the TTL.
func TestKeysAreFetchedAgainAfterTheTTL(t *testing.T) {
	now := newClock()
	issuer := authtest.NewIssuer(t)
	cfg := issuer.Config()
	cfg.JWKSTTL = 10 * time.Minute
	conn := start(t, auth.Config{OIDC: cfg, Now: now.Now}, nil).dial(nil)
	old := issuer.Token("ann", nil)
	wantCode(t, call(t, conn, getCurrentUser, old), codes.OK)
	issuer.Rotate()
	now.Advance(9*time.Minute - 1) // before they are fetched ahead of time
	wantCode(t, call(t, conn, getCurrentUser, old), codes.OK)
	now.Advance(time.Minute + 1)
	wantCode(t, call(t, conn, getCurrentUser, old), codes.Unauthenticated)
	if calls := issuer.KeyCalls(); calls != 2 {
		t.Errorf("fetched the keys %d times, want 2", calls)
	}
}

// An issuer that is away when the gateway starts, in whatever way, is asked again later. Until then nobody is told that
// the token is bad, and nobody without a token is told anything else than always.
func TestIssuerIsDownAtTheStart(t *testing.T) {
	for name, trouble := range map[string]http.HandlerFunc{
		"refuses": authtest.Down,
		"is busy": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "busy", http.StatusServiceUnavailable) },
		"babbles": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "<html>"+strings.Repeat("canary-page ", 1000))
		},
		"is endless": func(w http.ResponseWriter, r *http.Request) {
			for written := 0; r.Context().Err() == nil; written += 1 << 16 {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
				if written > 64<<20 { // far more than a connection buffers
					t.Error("the gateway swallows whatever it is given")
					return
				}
			}
		},
		"has no keys": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, `{"issuer":"http://`+r.Host+`","jwks_uri":"http://`+r.Host+`/keys","keys":[]}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			now := newClock()
			issuer := authtest.NewIssuer(t)
			issuer.Answer(trouble)
			g := start(t, auth.Config{OIDC: issuer.Config(), Now: now.Now}, nil)
			conn := g.dial(nil)
			err := call(t, conn, getCurrentUser, issuer.Token("ann", nil))
			wantCode(t, err, codes.Unavailable)
			if !strings.Contains(status.Convert(err).Message(), issuer.URL()) {
				t.Errorf("says %v", err)
			}
			wantCode(t, call(t, conn, getCurrentUser, ""), codes.Unauthenticated)
			wantCode(t, call(t, conn, "/openshell.v1.OpenShell/Health", ""), codes.OK)

			issuer.Answer(nil)
			now.Advance(15 * time.Second)
			wantCode(t, call(t, conn, getCurrentUser, issuer.Token("ann", nil)), codes.OK)
			if log := g.log.String(); !strings.Contains(log, "cannot be fetched") || len(log) > 4000 {
				t.Errorf("the log has %d bytes: %.500s", len(log), log)
			}
		})
	}
}

// An issuer that answers, but is somebody else or keeps its keys somewhere else, does not start the server.
func TestWrongIssuer(t *testing.T) {
	elsewhere := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(elsewhere.Close)
	for name, tc := range map[string]struct {
		announce map[string]any
		says     string
	}{
		"somebody else":    {map[string]any{"issuer": "https://elsewhere.example"}, `it calls itself "https://elsewhere.example"`},
		"a path more":      {map[string]any{"issuer": elsewhere.URL + "/realm"}, "it calls itself"},
		"keys elsewhere":   {map[string]any{"jwks_uri": elsewhere.URL + "/keys"}, "not its own origin"},
		"keys of no place": {map[string]any{"jwks_uri": nil}, "not its own origin"},
	} {
		t.Run(name, func(t *testing.T) {
			issuer := authtest.NewIssuer(t)
			issuer.Announce(tc.announce)
			_, err := auth.New(t.Context(), auth.Config{OIDC: issuer.Config(), Members: members{}})
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want it to say %q", err, tc.says)
			}
		})
	}
}

// Keys may be at another origin when the configuration says so, and a trailing slash makes no difference anywhere.
func TestAllowedIssuers(t *testing.T) {
	keys := authtest.NewIssuer(t)
	issuer := authtest.NewIssuer(t)
	keys.Use(issuer.Key())
	issuer.Announce(map[string]any{"issuer": issuer.URL() + "/", "jwks_uri": keys.URL() + "/keys"})
	cfg := issuer.Config()
	cfg.Issuer += "/"
	cfg.JWKSOrigins = []string{keys.URL()}
	conn := start(t, auth.Config{OIDC: cfg}, nil).dial(nil)
	wantCode(t, call(t, conn, getCurrentUser, issuer.Token("ann", nil)), codes.OK)
	if keys.KeyCalls() != 1 {
		t.Error("the keys were not fetched from where they are")
	}
}

// Redirects are not followed, neither for discovery nor for the keys.
func TestRedirects(t *testing.T) {
	for _, path := range []string{"/.well-known/openid-configuration", "/keys"} {
		t.Run(path, func(t *testing.T) {
			attacker := authtest.NewIssuer(t)
			issuer := authtest.NewIssuer(t)
			attacker.Announce(map[string]any{"issuer": issuer.URL(), "jwks_uri": issuer.URL() + "/keys"})
			issuer.Answer(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == path {
					http.Redirect(w, r, attacker.URL()+r.URL.Path, http.StatusFound)
					return
				}
				_, _ = io.WriteString(w, `{"issuer":"`+issuer.URL()+`","jwks_uri":"`+issuer.URL()+`/keys"}`)
			})
			conn := start(t, auth.Config{OIDC: issuer.Config()}, nil).dial(nil)
			forged := attacker.Token("ann", map[string]any{"iss": issuer.URL()})
			wantCode(t, call(t, conn, getCurrentUser, forged), codes.Unavailable)
		})
	}
}

// Which published keys are used, and with which algorithm.
func TestPublishedKeys(t *testing.T) {
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rsa2048, p256 := authtest.NewRSAKey(t, "", 2048), authtest.NewECKey(t, "")
	shared := []byte("canary-shared-secret-of-32-bytes")
	publish := func(key any, change func(*jose.JSONWebKey)) jose.JSONWebKey {
		jwk := jose.JSONWebKey{KeyID: "k", Key: key}
		if change != nil {
			change(&jwk)
		}
		return jwk
	}
	for name, tc := range map[string]struct {
		published jose.JSONWebKey
		private   any
		algorithm jose.SignatureAlgorithm
		want      codes.Code
	}{
		"RSA":                      {publish(rsa2048.Private.Public(), nil), rsa2048.Private, jose.RS256, codes.OK},
		"RSA, algorithm not said":  {publish(rsa2048.Private.Public(), nil), rsa2048.Private, jose.RS512, codes.Unauthenticated},
		"RSA with PS512":           {publish(rsa2048.Private.Public(), func(k *jose.JSONWebKey) { k.Algorithm = "PS512" }), rsa2048.Private, jose.PS512, codes.OK},
		"RSA with PS512, as RS256": {publish(rsa2048.Private.Public(), func(k *jose.JSONWebKey) { k.Algorithm = "PS512" }), rsa2048.Private, jose.RS256, codes.Unauthenticated},
		"P-256":                    {publish(p256.Private.Public(), nil), p256.Private, jose.ES256, codes.OK},
		"P-384":                    {publish(p384.Public(), nil), p384, jose.ES384, codes.OK},
		"Ed25519":                  {publish(edwards.Public(), nil), edwards, jose.EdDSA, codes.OK},
		"for signatures":           {publish(p256.Private.Public(), func(k *jose.JSONWebKey) { k.Use = "sig" }), p256.Private, jose.ES256, codes.OK},
		"for encryption":           {publish(p256.Private.Public(), func(k *jose.JSONWebKey) { k.Use = "enc" }), p256.Private, jose.ES256, codes.Unauthenticated},
		"of a strange algorithm":   {publish(p256.Private.Public(), func(k *jose.JSONWebKey) { k.Algorithm = "RS256" }), p256.Private, jose.ES256, codes.Unauthenticated},
		"a private one":            {publish(p256.Private, nil), p256.Private, jose.ES256, codes.Unauthenticated},
		"shared":                   {publish(shared, nil), shared, jose.HS256, codes.Unauthenticated},
		"without a name":           {publish(p256.Private.Public(), func(k *jose.JSONWebKey) { k.KeyID = "" }), p256.Private, jose.ES256, codes.Unauthenticated},
	} {
		t.Run(name, func(t *testing.T) {
			issuer := authtest.NewIssuer(t)
			issuer.Publish(issuer.Key().JWK(), tc.published)
			conn := start(t, auth.Config{OIDC: issuer.Config()}, nil).dial(nil)
			token := authtest.Sign(t, tc.private, tc.algorithm, "k", issuer.Claims("ann", nil))
			wantCode(t, call(t, conn, getCurrentUser, token), tc.want)
			wantCode(t, call(t, conn, getCurrentUser, issuer.Token("ann", nil)), codes.OK) // the good one beside it
		})
	}
}
