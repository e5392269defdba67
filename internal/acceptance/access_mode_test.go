package acceptance_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/openshell-iac/terraform-provider-openshell/internal/acceptance/cli"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// Ways of access are said, never tried one after the other: each works with the gateways that are made for it, and says at
// others what is missing. All of it in one run, with a provider for each.
func TestO23WaysOfAccess(t *testing.T) {
	t.Parallel()
	plain, secure := gatewaytest.Start(t), gatewaytest.Start(t, gatewaytest.WithTLS())
	mutual := gatewaytest.Start(t, gatewaytest.WithClientCertificate())
	issuer, oidc := withIssuer(t)
	home := t.TempDir()
	registered(t, home, "edge", fmt.Sprintf(`{"gateway_endpoint": %q, "auth_mode": "cloudflare_jwt"}`, plain.Endpoint()))
	registered(t, home, "open", fmt.Sprintf(`{"gateway_endpoint": %q, "auth_mode": "plaintext"}`, oidc.Endpoint()))
	token := fmt.Sprintf("token = %q", issuer.Token("ann", admin))
	at := func(g *gatewaytest.Gateway, arguments ...string) string {
		return strings.Join(append([]string{fmt.Sprintf("endpoint = %q", g.Endpoint())}, arguments...), "\n  ")
	}
	certificate := func(g *gatewaytest.Gateway) string {
		return fmt.Sprintf("tls = { ca_cert_file = %q, client_cert_file = %q, client_key_file = %q }", g.TLS().CACert, g.TLS().ClientCert, g.TLS().ClientKey)
	}
	authority := func(g *gatewaytest.Gateway) string { return fmt.Sprintf("tls = { ca_cert_file = %q }", g.TLS().CACert) }
	cases := map[string]struct{ arguments, says string }{
		"plain":              {at(plain), ""},
		"tls":                {at(secure, authority(secure)), ""},
		"certificate":        {at(mutual, certificate(mutual)), ""},
		"no-certificate":     {at(mutual, authority(mutual)), "client certificate"},
		"token-for-mutual":   {at(mutual, authority(mutual), token), "UNAUTHENTICATED"},
		"token":              {at(oidc, token), ""},
		"program":            {at(oidc, program(issuer)), ""},
		"no-token":           {at(oidc), "UNAUTHENTICATED"},
		"registered-as-open": {`gateway = "open"`, "UNAUTHENTICATED"},
		"edge":               {`gateway = "edge"`, "cloudflare_jwt"},
	}
	config := cli.RequiredProviders
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		config += fmt.Sprintf("\nprovider \"openshell\" {\n  alias = %[1]q\n  %[2]s\n}\n\ndata \"openshell_gateway\" %[1]q {\n  provider = openshell.%[1]s\n}\n", name, cases[name].arguments)
	}
	s := &stage{WorkingDir: cli.InTest(t, cli.Require(t), "XDG_CONFIG_HOME="+home), t: t}
	s.write("main.tf", config)
	r := s.Plan(t.Context(), "", "-parallelism=20")
	failures := 0
	for name, c := range cases {
		if c.says == "" {
			continue
		}
		failures++
		if !slices.ContainsFunc(r.Errors(), func(d cli.Diagnostic) bool {
			return (d.Address == "data.openshell_gateway."+name || name == "edge") && strings.Contains(d.Detail, c.says)
		}) {
			t.Errorf("%s: nothing says %q", name, c.says)
		}
	}
	if len(r.Errors()) != failures || t.Failed() {
		t.Errorf("%d errors, want %d: %v", len(r.Errors()), failures, r.Errors())
	}
}
