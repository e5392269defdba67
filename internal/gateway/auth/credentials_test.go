package auth_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth/authtest"
)

// Every kind of bad token is refused before the handler, and says why without saying what.
func TestTokens(t *testing.T) {
	issuer := authtest.NewIssuer(t)
	key := authtest.NewRSAKey(t, "rsa", 2048)
	issuer.Use(key)
	g := start(t, auth.Config{OIDC: issuer.Config()}, nil)
	conn := g.dial(nil)

	sign := func(changes map[string]any) string { return issuer.Token("ann", changes) }
	good := sign(nil)
	parts := strings.Split(good, ".")
	public, err := x509.MarshalPKIXPublicKey(key.Private.Public())
	if err != nil {
		t.Fatal(err)
	}
	publicPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
	now := time.Now()

	for name, tc := range map[string]struct {
		token string
		want  codes.Code
		says  string
	}{
		"good":                         {good, codes.OK, ""},
		"no credential":                {"", codes.Unauthenticated, "this gateway takes a bearer token of " + issuer.URL()},
		"signature of another token":   {parts[0] + "." + parts[1] + "." + strings.Split(sign(map[string]any{"sub": "bob"}), ".")[2], codes.Unauthenticated, "signature is wrong"},
		"payload of another token":     {parts[0] + "." + strings.Split(sign(map[string]any{"sub": "bob"}), ".")[1] + "." + parts[2], codes.Unauthenticated, "signature is wrong"},
		"another key under this name":  {authtest.Sign(t, authtest.NewRSAKey(t, "", 2048).Private, jose.RS256, "rsa", issuer.Claims("ann", nil)), codes.Unauthenticated, "signature is wrong"},
		"no signature":                 {parts[0] + "." + parts[1] + ".", codes.Unauthenticated, "invalid token"},
		"alg none":                     {authtest.Unsigned(t, "rsa", issuer.Claims("ann", nil)), codes.Unauthenticated, "not signed with an algorithm"},
		"HMAC with the public key":     {authtest.Sign(t, publicPEM, jose.HS256, "rsa", issuer.Claims("ann", nil)), codes.Unauthenticated, "not signed with an algorithm"},
		"HMAC with the DER public key": {authtest.Sign(t, public, jose.HS256, "rsa", issuer.Claims("ann", nil)), codes.Unauthenticated, "not signed with an algorithm"},
		"another algorithm of the key": {authtest.Sign(t, key.Private, jose.PS256, "rsa", issuer.Claims("ann", nil)), codes.Unauthenticated, "for this algorithm"},
		"unknown key":                  {authtest.Sign(t, key.Private, jose.RS256, "other", issuer.Claims("ann", nil)), codes.Unauthenticated, "not signed with a key that the issuer publishes"},
		"no key named":                 {authtest.Sign(t, key.Private, jose.RS256, "", issuer.Claims("ann", nil)), codes.Unauthenticated, "(kid)"},
		"wrong issuer":                 {sign(map[string]any{"iss": "https://elsewhere.example"}), codes.Unauthenticated, "another issuer"},
		"issuer with a slash":          {sign(map[string]any{"iss": issuer.URL() + "/"}), codes.OK, ""},
		"no issuer":                    {sign(map[string]any{"iss": nil}), codes.Unauthenticated, "another issuer"},
		"wrong audience":               {sign(map[string]any{"aud": "another-service"}), codes.Unauthenticated, `takes tokens for "openshell-cli"`},
		"several audiences":            {sign(map[string]any{"aud": []string{"another-service", "openshell-cli"}}), codes.OK, ""},
		"no audience":                  {sign(map[string]any{"aud": nil}), codes.Unauthenticated, "audience"},
		"expired":                      {sign(map[string]any{"exp": now.Add(-2 * time.Minute).Unix()}), codes.Unauthenticated, "expired"},
		"no expiry":                    {sign(map[string]any{"exp": nil}), codes.Unauthenticated, "without an expiry"},
		"not yet valid":                {sign(map[string]any{"nbf": now.Add(2 * time.Minute).Unix()}), codes.Unauthenticated, "not valid yet"},
		"made in the future":           {sign(map[string]any{"iat": now.Add(2 * time.Minute).Unix()}), codes.Unauthenticated, "not valid yet"},
		"no subject":                   {sign(map[string]any{"sub": nil}), codes.Unauthenticated, "without a subject"},
		"claims of wrong types":        {sign(map[string]any{"sub": 7}), codes.Unauthenticated, "malformed"},
		"malformed":                    {"not-a-token", codes.Unauthenticated, "malformed"},
		"empty":                        {" ", codes.Unauthenticated, "malformed"},
		"far too long":                 {strings.Repeat("x", 17<<10), codes.Unauthenticated, "longer than"},
		"no roles":                     {sign(map[string]any{"realm_access": nil}), codes.PermissionDenied, `role "openshell-user"`},
		"roles elsewhere":              {sign(map[string]any{"realm_access": nil, "roles": []string{"openshell-user"}}), codes.PermissionDenied, `role "openshell-user"`},
		"roles in a string":            {sign(map[string]any{"realm_access": map[string]any{"roles": "openshell-user"}}), codes.PermissionDenied, `role "openshell-user"`},
		"admin role without user role": {sign(map[string]any{"realm_access": map[string]any{"roles": []string{"openshell-admin"}}}), codes.OK, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := call(t, conn, "/openshell.v1.OpenShell/ListWorkspaces", tc.token)
			wantCode(t, err, tc.want)
			if text := status.Convert(err).Message(); !strings.Contains(text, tc.says) {
				t.Errorf("says %q, want %q", text, tc.says)
			}
			if reached := len(g.hits()) > 0; reached != (tc.want == codes.OK) {
				t.Errorf("handler reached: %v", reached)
			}
		})
	}
}

// The authorization entry is read as RFC 6750 has it, and two of them are one too many.
func TestAuthorizationEntry(t *testing.T) {
	issuer := authtest.NewIssuer(t)
	conn := start(t, auth.Config{OIDC: issuer.Config()}, nil).dial(nil)
	good := issuer.Token("ann", nil)
	for name, tc := range map[string]struct {
		entries []string
		want    codes.Code
	}{
		"bearer":          {[]string{"Bearer " + good}, codes.OK},
		"lower case":      {[]string{"bearer " + good}, codes.OK},
		"other scheme":    {[]string{"Basic " + good}, codes.Unauthenticated},
		"no scheme":       {[]string{good}, codes.Unauthenticated},
		"no token":        {[]string{"Bearer"}, codes.Unauthenticated},
		"the same twice":  {[]string{"Bearer " + good, "Bearer " + good}, codes.Unauthenticated},
		"a second scheme": {[]string{"Basic x", "Bearer " + good}, codes.Unauthenticated},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			for _, entry := range tc.entries {
				ctx = metadata.AppendToOutgoingContext(ctx, "authorization", entry)
			}
			_, err := openshellv1.NewOpenShellClient(conn).GetCurrentUser(ctx, &openshellv1.GetCurrentUserRequest{})
			wantCode(t, err, tc.want)
		})
	}
}

// Each provider's identity reaches the handler as the contract has it.
func TestIdentities(t *testing.T) {
	issuer := authtest.NewIssuer(t)
	ca := authtest.NewCA(t, "clients")
	files := authtest.WriteFiles(t, ca.Server(), ca)
	server, err := auth.NewTLS(auth.TLSConfig{CertFile: files.Cert, KeyFile: files.Key, ClientCAFile: files.ClientCA})
	if err != nil {
		t.Fatal(err)
	}
	scoped := issuer.ScopedConfig()
	certificate := &tls.Config{RootCAs: ca.Pool(), Certificates: []tls.Certificate{ca.Client("build", "openshell-user", "ci").Certificate()}}

	for name, tc := range map[string]struct {
		cfg            auth.Config
		server, client *tls.Config
		token          string
		want           *openshellv1.GetCurrentUserResponse
	}{
		"local development": {
			cfg: auth.Config{Unauthenticated: auth.FromLoopback},
			want: &openshellv1.GetCurrentUserResponse{
				Subject: "unauthenticated-local-dev", DisplayName: "Unauthenticated Local Dev", IdentityProvider: "local_dev",
				Roles: []string{"openshell-user", "openshell-admin"}, Scopes: []string{"openshell:all"},
			},
		},
		"local development ignores a token": {
			cfg: auth.Config{Unauthenticated: auth.FromLoopback}, token: "whatever",
			want: &openshellv1.GetCurrentUserResponse{
				Subject: "unauthenticated-local-dev", DisplayName: "Unauthenticated Local Dev", IdentityProvider: "local_dev",
				Roles: []string{"openshell-user", "openshell-admin"}, Scopes: []string{"openshell:all"},
			},
		},
		"certificate": {
			cfg: auth.Config{ClientCertificates: true}, server: server, client: certificate,
			want: &openshellv1.GetCurrentUserResponse{
				Subject: "build", DisplayName: "build", IdentityProvider: "mtls", Roles: []string{"ci", "openshell-user"},
			},
		},
		"token": {
			cfg: auth.Config{OIDC: scoped}, token: issuer.Token("ann", map[string]any{
				"preferred_username": "Ann", "scope": "openid sandbox:read profile config:read email offline_access",
			}),
			want: &openshellv1.GetCurrentUserResponse{
				Subject: "ann", DisplayName: "Ann", IdentityProvider: "oidc",
				Roles: []string{"openshell-user"}, Scopes: []string{"sandbox:read", "config:read"},
			},
		},
		"token without a scopes claim configured": {
			cfg: auth.Config{OIDC: issuer.Config()}, token: issuer.Token("ann", map[string]any{"scope": "sandbox:read"}),
			want: &openshellv1.GetCurrentUserResponse{Subject: "ann", DisplayName: "ann", IdentityProvider: "oidc", Roles: []string{"openshell-user"}},
		},
		"a token counts before a certificate": {
			cfg: auth.Config{OIDC: issuer.Config(), ClientCertificates: true}, server: server, client: certificate,
			token: issuer.Token("ann", nil),
			want:  &openshellv1.GetCurrentUserResponse{Subject: "ann", DisplayName: "ann", IdentityProvider: "oidc", Roles: []string{"openshell-user"}},
		},
		"without a token the certificate counts": {
			cfg: auth.Config{OIDC: issuer.Config(), ClientCertificates: true}, server: server, client: certificate,
			want: &openshellv1.GetCurrentUserResponse{Subject: "build", DisplayName: "build", IdentityProvider: "mtls", Roles: []string{"ci", "openshell-user"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := start(t, tc.cfg, tc.server)
			got, err := openshellv1.NewOpenShellClient(g.dial(tc.client)).
				GetCurrentUser(withToken(t.Context(), tc.token), &openshellv1.GetCurrentUserRequest{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, protocmp.Transform()); diff != "" {
				t.Error(diff)
			}
			if seen := g.seen(); len(seen) != 1 || seen[0].Subject != got.GetSubject() {
				t.Errorf("observed %v", seen)
			}
		})
	}
}

// A bad token is the answer even where a good certificate, or none at all, would have done.
func TestBadTokenDoesNotFallThrough(t *testing.T) {
	issuer := authtest.NewIssuer(t)
	ca := authtest.NewCA(t, "clients")
	files := authtest.WriteFiles(t, ca.Server(), ca)
	server, err := auth.NewTLS(auth.TLSConfig{CertFile: files.Cert, KeyFile: files.Key, ClientCAFile: files.ClientCA})
	if err != nil {
		t.Fatal(err)
	}
	g := start(t, auth.Config{OIDC: issuer.Config(), ClientCertificates: true, Unauthenticated: auth.FromAnywhere}, server)
	conn := g.dial(&tls.Config{RootCAs: ca.Pool(), Certificates: []tls.Certificate{ca.Client("build").Certificate()}})
	wantCode(t, call(t, conn, getCurrentUser, issuer.Token("ann", map[string]any{"exp": 1})), codes.Unauthenticated)
	wantCode(t, call(t, conn, getCurrentUser, ""), codes.OK)
}

// Local development access is for plaintext on the loopback interface, unless everybody is let in on purpose.
func TestLocalDevelopmentIsNotForTLS(t *testing.T) {
	ca := authtest.NewCA(t, "clients")
	files := authtest.WriteFiles(t, ca.Server())
	for name, tc := range map[string]struct {
		from auth.Unauthenticated
		want codes.Code
	}{
		"from loopback": {auth.FromLoopback, codes.Unauthenticated},
		"from anywhere": {auth.FromAnywhere, codes.OK},
	} {
		t.Run(name, func(t *testing.T) {
			server, err := auth.NewTLS(auth.TLSConfig{CertFile: files.Cert, KeyFile: files.Key})
			if err != nil {
				t.Fatal(err)
			}
			conn := start(t, auth.Config{Unauthenticated: tc.from}, server).dial(&tls.Config{RootCAs: ca.Pool()})
			wantCode(t, call(t, conn, getCurrentUser, ""), tc.want)
		})
	}
}

// Without a credential one must be on the machine itself.
func TestLocalDevelopmentIsForLoopback(t *testing.T) {
	gate, err := auth.New(t.Context(), auth.Config{Services: []*grpc.ServiceDesc{&openshellv1.OpenShell_ServiceDesc}, Unauthenticated: auth.FromLoopback})
	if err != nil {
		t.Fatal(err)
	}
	from := func(address net.Addr) context.Context { return peer.NewContext(t.Context(), &peer.Peer{Addr: address}) }
	for name, tc := range map[string]struct {
		ctx  context.Context
		want codes.Code
	}{
		"IPv4 loopback": {from(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}), codes.OK},
		"IPv6 loopback": {from(&net.TCPAddr{IP: net.IPv6loopback}), codes.OK},
		"socket file":   {from(&net.UnixAddr{Name: "@", Net: "unix"}), codes.OK},
		"the network":   {from(&net.TCPAddr{IP: net.IPv4(10, 0, 0, 7)}), codes.Unauthenticated},
		"nowhere":       {from(&net.TCPAddr{}), codes.Unauthenticated},
		"another kind":  {from(&net.IPAddr{IP: net.IPv4(127, 0, 0, 1)}), codes.Unauthenticated},
		"no connection": {t.Context(), codes.Unauthenticated},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := gate.UnaryInterceptor(tc.ctx, nil, &grpc.UnaryServerInfo{FullMethod: getCurrentUser},
				func(context.Context, any) (any, error) { return nil, nil })
			wantCode(t, err, tc.want)
		})
	}
}
