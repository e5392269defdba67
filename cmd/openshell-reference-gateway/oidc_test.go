package main

import (
	"context"
	"crypto/tls"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth/authtest"
)

func withToken(t *testing.T, token string) context.Context {
	t.Helper()
	if token == "" {
		return call(t)
	}
	return metadata.AppendToOutgoingContext(call(t), "authorization", "Bearer "+token)
}

// Who is who on a gateway that takes tokens, for every combination with the other ways of access.
func TestOIDCAccess(t *testing.T) {
	issuer := authtest.NewIssuer(t)
	ca := authtest.NewCA(t, "ours")
	files := authtest.WriteFiles(t, ca.Server(), ca)
	withCertificate := credentials.NewTLS(&tls.Config{RootCAs: ca.Pool(), Certificates: []tls.Certificate{ca.Client("me", "openshell-user").Certificate()}})
	without := credentials.NewTLS(&tls.Config{RootCAs: ca.Pool()})
	server := []string{"--tls-cert", files.Cert, "--tls-key", files.Key}
	clientCA := append(slices.Clone(server), "--tls-client-ca", files.ClientCA)
	const anyone, nobody, dangerous = "unauthenticated-local-dev", "", "--dangerously-allow-unauthenticated"

	type caller struct {
		transport credentials.TransportCredentials
		token     string
		subject   string // "" when it is not let in
	}
	for name, tc := range map[string]struct {
		flags   []string
		callers map[string]caller
	}{
		"plaintext from everywhere": {[]string{"--disable-tls", "--bind-address", "0.0.0.0"}, map[string]caller{
			"token": {insecure.NewCredentials(), issuer.Token("ann", nil), "ann"},
			"none":  {insecure.NewCredentials(), "", nobody},
		}},
		"plaintext on loopback": {[]string{"--disable-tls"}, map[string]caller{
			"none": {insecure.NewCredentials(), "", nobody},
		}},
		"TLS": {server, map[string]caller{
			"token": {without, issuer.Token("ann", nil), "ann"},
			"none":  {without, "", nobody},
		}},
		"a client CA, for the transport only": {clientCA, map[string]caller{
			"token":                {without, issuer.Token("ann", nil), "ann"},
			"certificate":          {withCertificate, "", nobody},
			"token, certificate":   {withCertificate, issuer.Token("ann", nil), "ann"},
			"no token, no nothing": {without, "", nobody},
		}},
		"certificates as well": {append(clientCA, "--enable-mtls-auth"), map[string]caller{
			"token":                  {without, issuer.Token("ann", nil), "ann"},
			"certificate":            {withCertificate, "", "me"},
			"token, certificate":     {withCertificate, issuer.Token("ann", nil), "ann"},
			"bad token, certificate": {withCertificate, issuer.Token("ann", map[string]any{"exp": 1}), nobody},
		}},
		"everybody as well": {append(slices.Clone(server), dangerous), map[string]caller{
			"token":     {without, issuer.Token("ann", nil), "ann"},
			"none":      {without, "", anyone},
			"bad token": {without, issuer.Token("ann", map[string]any{"aud": "other"}), nobody},
		}},
		"another audience": {[]string{"--disable-tls", "--oidc-audience", "other"}, map[string]caller{
			"for it":     {insecure.NewCredentials(), issuer.Token("ann", map[string]any{"aud": "other"}), "ann"},
			"for others": {insecure.NewCredentials(), issuer.Token("ann", nil), nobody},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			endpoint, _ := started(t, append([]string{"--port", "0", "--db-url", "sqlite::memory:", "--oidc-issuer", issuer.URL()}, tc.flags...)...)
			endpoint = strings.Replace(endpoint, "[::]", "127.0.0.1", 1)
			for name, caller := range tc.callers {
				user, err := client(t, endpoint, caller.transport).GetCurrentUser(withToken(t, caller.token), &openshellv1.GetCurrentUserRequest{})
				want := codes.OK
				if caller.subject == nobody {
					want = codes.Unauthenticated
				}
				if user.GetSubject() != caller.subject || status.Code(err) != want {
					t.Errorf("%s: %v, %v", name, user, err)
				}
			}
		})
	}
}

// What roles and scopes say, with claims and roles of the operator's choice.
func TestOIDCRolesAndScopes(t *testing.T) {
	issuer := authtest.NewIssuer(t)
	token := func(groups []string, scp string) string {
		return issuer.Token("ann", map[string]any{"realm_access": nil, "groups": groups, "scp": scp})
	}
	claims := []string{"--oidc-roles-claim", "groups", "--oidc-admin-role", "boss", "--oidc-user-role", "staff"}
	for name, tc := range map[string]struct {
		flags []string
		token string
		want  codes.Code
	}{
		"the admin role":        {claims, token([]string{"boss"}, ""), codes.OK},
		"the user role":         {claims, token([]string{"staff"}, ""), codes.PermissionDenied},
		"another role":          {claims, token([]string{"openshell-admin"}, ""), codes.PermissionDenied},
		"scope asked for":       {append(slices.Clone(claims), "--oidc-scopes-claim", "scp"), token([]string{"boss"}, "config:read"), codes.OK},
		"other scope":           {append(slices.Clone(claims), "--oidc-scopes-claim", "scp"), token([]string{"boss"}, "config:write"), codes.PermissionDenied},
		"no roles, no scopes":   {[]string{"--oidc-admin-role=", "--oidc-user-role="}, token(nil, ""), codes.OK},
		"no roles, other scope": {[]string{"--oidc-admin-role=", "--oidc-user-role=", "--oidc-scopes-claim", "scp"}, token(nil, "config:write"), codes.PermissionDenied},
	} {
		t.Run(name, func(t *testing.T) {
			endpoint, _ := started(t, append([]string{"--port", "0", "--db-url", "sqlite::memory:", "--disable-tls", "--oidc-issuer", issuer.URL()}, tc.flags...)...)
			_, err := client(t, endpoint, insecure.NewCredentials()).GetGatewayInfo(withToken(t, tc.token), &openshellv1.GetGatewayInfoRequest{})
			if status.Code(err) != tc.want {
				t.Errorf("%v, want %v", err, tc.want)
			}
		})
	}
}

func TestOIDCFlags(t *testing.T) {
	clearEnvironment(t)
	f, err := parse([]string{"--oidc-issuer", "https://issuer.example"}, io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	want := auth.OIDCConfig{
		Issuer: "https://issuer.example", Audience: "openshell-cli", JWKSTTL: auth.DefaultJWKSTTL, RolesClaim: "realm_access.roles",
		AdminRole: "openshell-admin", UserRole: "openshell-user", Leeway: auth.DefaultLeeway,
	}
	if got := *f.oidc(); !equal(got, want) {
		t.Errorf("by default %+v", got)
	}
	file := filepath.Join(t.TempDir(), "gateway.toml")
	text := "oidc_issuer = \"https://file.example\"\noidc_jwks_ttl = 30\noidc-jwks-allowed-origins = [\"https://x.example\", \"https://y.example\"]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if f, err = parse([]string{"--config", file}, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	if got := f.oidc(); got.Issuer != "https://file.example" || got.JWKSTTL != 30*time.Second ||
		!slices.Equal(got.JWKSOrigins, []string{"https://x.example", "https://y.example"}) {
		t.Errorf("from a file %+v", got)
	}
	for name, value := range map[string]string{
		"ISSUER": "https://other.example", "AUDIENCE": "a", "JWKS_TTL": "60", "JWKS_ALLOWED_ORIGINS": "https://b.example,https://c.example",
		"ROLES_CLAIM": "d", "ADMIN_ROLE": "e", "USER_ROLE": "f", "SCOPES_CLAIM": "g",
	} {
		t.Setenv("OPENSHELL_OIDC_"+name, value)
	}
	if f, err = parse(nil, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	want = auth.OIDCConfig{
		Issuer: "https://other.example", Audience: "a", JWKSTTL: time.Minute, JWKSOrigins: []string{"https://b.example", "https://c.example"},
		RolesClaim: "d", AdminRole: "e", UserRole: "f", ScopesClaim: "g", Leeway: auth.DefaultLeeway,
	}
	if got := *f.oidc(); !equal(got, want) {
		t.Errorf("from variables %+v", got)
	}
}

func equal(a, b auth.OIDCConfig) bool {
	same := slices.Equal(a.JWKSOrigins, b.JWKSOrigins)
	a.JWKSOrigins, b.JWKSOrigins = nil, nil
	return same && a.Issuer == b.Issuer && a.Audience == b.Audience && a.JWKSTTL == b.JWKSTTL && a.RolesClaim == b.RolesClaim &&
		a.AdminRole == b.AdminRole && a.UserRole == b.UserRole && a.ScopesClaim == b.ScopesClaim && a.Leeway == b.Leeway
}

func TestBadOIDCFlagsAreNamed(t *testing.T) {
	clearEnvironment(t)
	for want, args := range map[string][]string{
		"--oidc-audience":    {"--oidc-audience="},
		"--oidc-jwks-ttl":    {"--oidc-jwks-ttl=0"},
		"set both":           {"--oidc-user-role="},
		"set both to":        {"--oidc-admin-role="},
		"--oidc-roles-claim": {"--oidc-roles-claim="},
	} {
		args = append([]string{"--disable-tls", "--port", "0", "--db-url", "sqlite::memory:", "--oidc-issuer", "http://127.0.0.1:1"}, args...)
		if said := refused(t, exitUsage, args...); !strings.Contains(said, want) {
			t.Errorf("%v: it says %q, not %q", args, said, want)
		}
	}
	said := refused(t, exitFailed, "--disable-tls", "--port", "0", "--db-url", "sqlite::memory:", "--oidc-issuer", "http://issuer.example")
	if !strings.Contains(said, "must be https") {
		t.Errorf("it says %q", said)
	}
}
