package gateway_test

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/protobuf/proto"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth/authtest"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// What a stock gateway says to the conditional calls, in each way of access: first to the caller, then to the scope, and
// only then that it does not know the method. Health and reflection it does not know either, whoever asks.
func TestStockGateway(t *testing.T) {
	issuer := authtest.NewIssuer(t)
	oidcAccess := func(scopesClaim string) auth.Config {
		config := issuer.Config()
		config.ScopesClaim = scopesClaim
		return auth.Config{OIDC: config}
	}
	type options = []gatewaytest.Option
	oidc := func(scopesClaim string) options {
		return options{gatewaytest.WithAccess(oidcAccess(scopesClaim))}
	}
	unauthenticated := func(from auth.Unauthenticated) options {
		return options{gatewaytest.WithAccess(auth.Config{Unauthenticated: from})}
	}
	mTLS := options{gatewaytest.WithClientCertificate()}
	// Certificates are checked, and are an identity as well as tokens or not.
	both := func(scopesClaim string, identity bool) options {
		access := oidcAccess(scopesClaim)
		access.ClientCertificates = identity
		return options{gatewaytest.WithClientCertificate(), gatewaytest.WithAccess(access)}
	}
	token := func(role, scope string) string {
		return issuer.Token("ann", map[string]any{"realm_access": map[string]any{"roles": []string{role}}, "scope": scope})
	}
	const user, admin = auth.DefaultUserRole, auth.DefaultAdminRole
	for name, tc := range map[string]struct {
		access      options
		certificate bool
		token       string
		want        codes.Code
	}{
		"local development":                    {unauthenticated(auth.FromLoopback), false, "", codes.Unimplemented},
		"everybody":                            {unauthenticated(auth.FromAnywhere), false, "", codes.Unimplemented},
		"mTLS":                                 {mTLS, true, "", codes.Unimplemented},
		"mTLS, no certificate":                 {mTLS, false, "", codes.Unauthenticated},
		"OIDC, no token":                       {oidc(""), false, "", codes.Unauthenticated},
		"OIDC, bad token":                      {oidc(""), false, "bad", codes.Unauthenticated},
		"OIDC, user":                           {oidc(""), false, token(user, ""), codes.Unimplemented},
		"OIDC, no role":                        {oidc(""), false, token("other", ""), codes.PermissionDenied},
		"OIDC with scopes, no token":           {oidc("scope"), false, "", codes.Unauthenticated},
		"OIDC with scopes, write":              {oidc("scope"), false, token(user, "sandbox:write config:write"), codes.PermissionDenied},
		"OIDC with scopes, an admin's write":   {oidc("scope"), false, token(admin, "sandbox:write config:write"), codes.PermissionDenied},
		"OIDC with scopes, all":                {oidc("scope"), false, token(user, "openshell:all"), codes.Unimplemented},
		"OIDC with scopes, all but not a user": {oidc("scope"), false, token("other", "openshell:all"), codes.PermissionDenied},
		"OIDC, a certificate alone":            {both("", false), true, "", codes.Unauthenticated},
		"OIDC or mTLS, neither":                {both("", true), false, "", codes.Unauthenticated},
		"OIDC or mTLS, a certificate":          {both("", true), true, "", codes.Unimplemented},
		"OIDC or mTLS, a token":                {both("", true), false, token(user, ""), codes.Unimplemented},
		"OIDC or mTLS, a bad token beside":     {both("", true), true, "bad", codes.Unauthenticated},
		"OIDC with scopes or mTLS":             {both("scope", true), true, "", codes.PermissionDenied}, // a certificate has none
	} {
		t.Run(name, func(t *testing.T) {
			g := gatewaytest.Start(t, append(tc.access, gatewaytest.WithoutConditional())...)
			conn := dial(t, g.Address(), transport(t, g, tc.certificate))
			for _, m := range everyMethod(t) {
				if m.descriptor.Parent().FullName() == "openshell.conditional.v1.ConditionalSandboxes" {
					if wantCode(t, invoke(t, conn, m, tc.token), tc.want); t.Failed() {
						t.Fatal(m.name)
					}
				}
			}
			ctx := call(t)
			if tc.token != "" {
				ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+tc.token)
			}
			wantCode(t, conn.Invoke(ctx, "/no.such.Service/Method", &openshellv1.HealthRequest{}, &openshellv1.HealthResponse{}), tc.want)
			for _, service := range []string{"", "openshell.v1.OpenShell", conditionalv1.ConditionalSandboxes_ServiceDesc.ServiceName} {
				_, err := healthv1.NewHealthClient(conn).Check(call(t), &healthv1.HealthCheckRequest{Service: service})
				wantCode(t, err, codes.Unimplemented)
			}
			watch, err := healthv1.NewHealthClient(conn).Watch(call(t), &healthv1.HealthCheckRequest{})
			if err == nil {
				_, err = watch.Recv()
			}
			wantCode(t, err, codes.Unimplemented)
			stream, err := reflectionv1.NewServerReflectionClient(conn).ServerReflectionInfo(call(t))
			if err == nil {
				_, err = stream.Recv()
			}
			wantCode(t, err, codes.Unimplemented)
			if _, err := openshellv1.NewOpenShellClient(conn).Health(call(t), &openshellv1.HealthRequest{}); err != nil {
				t.Errorf("OpenShell/Health answers everybody, but %v", err)
			}
		})
	}
}

// A stock gateway does nothing of what a conditional call asks, even where the id is right; the plain call goes as ever.
func TestStockGatewayDoesNothing(t *testing.T) {
	g := gatewaytest.Start(t, gatewaytest.WithoutConditional())
	web := g.MustCreate(t, "web")
	id := web.GetMetadata().GetId()
	request := &openshellv1.DeleteSandboxRequest{Name: "web", WorkspaceScope: gatewaytest.Default(), AllowMissing: true}
	_, err := g.Conditional().DeleteSandbox(call(t), &conditionalv1.ConditionalDeleteSandboxRequest{
		Precondition: &conditionalv1.SandboxPrecondition{Id: &id}, Request: request,
	})
	wantCode(t, err, codes.Unimplemented)
	if now, _ := g.GetByID(t, id); !proto.Equal(web, now) {
		t.Errorf("it was %v, and is %v", web, now)
	}
	if reply, err := g.OpenShell().DeleteSandbox(call(t), request); err != nil || reply.GetSandboxId() != id {
		t.Errorf("the plain delete: %v, %v", reply, err)
	}
}

// trusted are the authorities of a gateway's certificate.
func trusted(t *testing.T, g *gatewaytest.Gateway) *x509.CertPool {
	t.Helper()
	ca, err := os.ReadFile(g.TLS().CACert)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	return pool
}

// transport is how to connect to a gateway, with the certificate that it takes or without.
func transport(t *testing.T, g *gatewaytest.Gateway, certificate bool) credentials.TransportCredentials {
	t.Helper()
	if g.Endpoint() == "http://"+g.Address() {
		return insecure.NewCredentials()
	}
	cfg := &tls.Config{RootCAs: trusted(t, g)}
	if certificate {
		pair, err := tls.LoadX509KeyPair(g.TLS().ClientCert, g.TLS().ClientKey)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return credentials.NewTLS(cfg)
}
