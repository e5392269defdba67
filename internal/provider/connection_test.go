package provider

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth/authtest"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// The tls keys reach the connection, as files and as texts; skipping the verification keeps the client certificate.
func TestTLSConnection(t *testing.T) {
	read := func(path string) string { return contentOf(t, path) }
	g := gatewaytest.Start(t, gatewaytest.WithClientCertificate())
	files, there := g.TLS(), []string{"no such sandbox"}
	for name, tc := range map[string]struct {
		tls  values
		says []string
	}{
		"files":                            {values{"ca_cert_file": str(files.CACert), "client_cert_file": str(files.ClientCert), "client_key_file": str(files.ClientKey)}, there},
		"texts":                            {values{"ca_cert_pem": str(read(files.CACert)), "client_cert_pem": str(read(files.ClientCert)), "client_key_pem": str(read(files.ClientKey))}, there},
		"not verified, with a certificate": {values{"insecure_skip_verify": boolean(true), "client_cert_file": str(files.ClientCert), "client_key_file": str(files.ClientKey)}, there},
		"another name":                     {values{"ca_cert_file": str(files.CACert), "server_name": str("elsewhere.example.com"), "client_cert_file": str(files.ClientCert), "client_key_file": str(files.ClientKey)}, []string{"UNAVAILABLE", g.Endpoint(), "tls.server_name"}},
		"no client certificate":            {values{"ca_cert_file": str(files.CACert)}, []string{"UNAUTHENTICATED", "client certificate"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			if diags := s.configure(t.Context(), values{"endpoint": str(g.Endpoint()), "tls": s.tls(tc.tls)}); len(diags) > 0 {
				t.Fatal(diags)
			}
			_, diags := s.importState(t.Context(), "nope", nil)
			expect(t, "error", diags.errors(), tc.says...)
		})
	}
}

// Every way to register a gateway against every kind of gateway: it works, or the message names what does not fit. No mode
// falls through to another one.
func TestO23Modes(t *testing.T) {
	config := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", config)
	issuer := authtest.NewIssuer(t)
	gateways := map[string]*gatewaytest.Gateway{
		"plaintext": gatewaytest.Start(t), "tls": gatewaytest.Start(t, gatewaytest.WithTLS()),
		"mtls": gatewaytest.Start(t, gatewaytest.WithClientCertificate()),
		"oidc": gatewaytest.Start(t, gatewaytest.WithTLS(), gatewaytest.WithOIDC(issuer)),
	}
	token := issuer.Token("ann", map[string]any{"realm_access": map[string]any{"roles": []string{"openshell-admin"}}})
	const works, noCredential = "no such sandbox", "UNAUTHENTICATED"
	for _, tc := range []struct{ mode, gateway, says string }{
		{"plaintext", "plaintext", works}, {"plaintext", "tls", "http:// or https://"},
		{"none", "plaintext", "does not speak TLS"}, {"none", "tls", works}, {"none", "mtls", noCredential}, {"none", "oidc", noCredential},
		{"mtls", "tls", works}, {"mtls", "mtls", works}, {"mtls", "oidc", noCredential},
		{"oidc", "tls", works}, {"oidc", "mtls", "a client certificate"}, {"oidc", "oidc", works},
		{"cloudflare_jwt", "tls", "auth_mode cloudflare_jwt"}, {"cloudflare_jwt", "oidc", "auth_mode cloudflare_jwt"},
	} {
		name := tc.mode + "-to-" + tc.gateway
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, scheme := gateways[tc.gateway], "https://"
			if tc.mode == "plaintext" {
				scheme = "http://"
			}
			folder := filepath.Join(config, "openshell", "gateways", name)
			write(t, filepath.Join(folder, "metadata.json"), fmt.Sprintf(`{"gateway_endpoint": %q, "auth_mode": %q}`, scheme+g.Address(), tc.mode))
			if tc.gateway != "plaintext" && tc.mode != "plaintext" {
				files := g.TLS()
				copied := map[string]string{"ca.crt": files.CACert}
				if tc.mode == "mtls" {
					copied["tls.crt"], copied["tls.key"] = files.ClientCert, files.ClientKey
				}
				for to, from := range copied {
					write(t, filepath.Join(folder, "mtls", to), contentOf(t, from))
				}
			}
			write(t, filepath.Join(folder, "edge_token"), token)
			write(t, filepath.Join(folder, "oidc_token.json"), fmt.Sprintf(`{"access_token": %q}`, token))
			s := newServer(t)
			diags := s.configure(t.Context(), values{"gateway": str(name)})
			if len(diags) == 0 {
				_, diags = s.importState(t.Context(), "nope", nil)
			}
			expect(t, "error", diags.errors(), tc.says)
		})
	}
}

func contentOf(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
