package provider

import (
	"os"
	"testing"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// The tls keys reach the connection, as files and as texts; skipping the verification keeps the client certificate.
func TestTLSConnection(t *testing.T) {
	read := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
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
