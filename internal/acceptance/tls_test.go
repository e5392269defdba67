package acceptance_test

import (
	"fmt"
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openshell-iac/terraform-provider-openshell/internal/acceptance/cli"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth/authtest"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// The gateway gets a new authority between a plan and its apply. That is found before anything is made, at once, and the
// message says what to set.
func TestO19AuthorityChanges(t *testing.T) {
	t.Parallel()
	first := gatewaytest.Start(t, gatewaytest.WithTLS())
	s := &stage{WorkingDir: cli.InTest(t, cli.Require(t)), t: t, g: first}
	s.provider(first, fmt.Sprintf("tls = { ca_cert_file = %q }", first.TLS().CACert))
	s.sandbox(`name = "web"`)
	s.must(s.Plan(t.Context(), savedPlan))
	first.Stop(t)
	second := gatewaytest.Start(t, gatewaytest.WithTLS(), gatewaytest.WithPort(portOf(t, first.Endpoint())))
	start := time.Now()
	s.expect(s.Apply(t.Context(), savedPlan), 1, cli.Error, "unknown authority", "tls.ca_cert_file", "has got a new one", second.Endpoint(), "nothing was written")
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("took %v", took)
	}
	if calls := second.AllCalls(); len(calls) > 0 {
		t.Errorf("calls %+v", calls)
	}
	s.provider(second, fmt.Sprintf("tls = { ca_cert_file = %q }", second.TLS().CACert))
	s.up()
}

// Not to verify the gateway's certificate is not to show none: whether an argument or the variable says so.
func TestO22InsecureKeepsTheClientCertificate(t *testing.T) {
	t.Parallel()
	g := gatewaytest.Start(t, gatewaytest.WithClientCertificate())
	certificate := fmt.Sprintf("client_cert_file = %q, client_key_file = %q", g.TLS().ClientCert, g.TLS().ClientKey)
	s := &stage{WorkingDir: cli.InTest(t, cli.Require(t), "OPENSHELL_GATEWAY_INSECURE=true"), t: t, g: g}
	s.provider(g, "tls = { "+certificate+" }")
	s.sandbox(`name = "web"`)
	s.up()
	s.provider(g, "tls = { insecure_skip_verify = true, "+certificate+" }")
	s.empty()
	s.provider(g, "tls = { insecure_skip_verify = false, "+certificate+" }")
	s.expect(s.Plan(t.Context(), ""), 1, cli.Error, "unknown authority", "tls.ca_cert_file")
}

// Everything that can be wrong with a connection in one run: each message stands on its argument or names it, says what to
// do, and shows no key; and all of it takes seconds.
func TestT30BadConnections(t *testing.T) {
	t.Parallel()
	secure, plain := gatewaytest.Start(t, gatewaytest.WithClientCertificate()), gatewaytest.Start(t)
	old := gatewaytest.Start(t, gatewaytest.WithVersion("0.0.111"))
	files, other := secure.TLS(), authtest.NewCA(t, "other").Client("other")
	dir := t.TempDir()
	key, notPEM, ca := filepath.Join(dir, "other.key"), filepath.Join(dir, "not.pem"), files.CACert
	writeFile(t, key, string(other.Key))
	writeFile(t, notPEM, "canary-no-pem")
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()

	type bad struct{ arguments, says string }
	tls := func(endpoint, arguments, says string) bad {
		return bad{fmt.Sprintf("endpoint = %q\n  tls = { %s }", endpoint, arguments), says}
	}
	cases := []bad{
		{`endpoint = "127.0.0.1:17670"`, "must look like https://"},
		{`endpoint = "http://gateway.example.com"` + "\n  token = var.token", "sent unencrypted to gateway.example.com"},
		{`gateway = "nope"`, "no gateway \"nope\" is registered"},
		{fmt.Sprintf("endpoint = %q\n  token_file = \"/nonexistent/token\"", plain.Endpoint()), "/nonexistent/token"},
		tls(plain.Endpoint(), "insecure_skip_verify = true", "no effect with a plaintext endpoint"),
		tls(secure.Endpoint(), `ca_cert_file = "/nonexistent/ca.pem"`, "/nonexistent/ca.pem"),
		tls(secure.Endpoint(), fmt.Sprintf("ca_cert_file = %q", notPEM), "no PEM certificate"),
		tls(secure.Endpoint(), fmt.Sprintf("ca_cert_file = %q, client_key_file = %q", ca, key), "needs its certificate"),
		tls(secure.Endpoint(), fmt.Sprintf("ca_cert_file = %q, client_cert_file = %q, client_key_file = %q", ca, files.ClientCert, key), "not the key of the client certificate"),
		tls(secure.Endpoint(), fmt.Sprintf("client_cert_file = %q, client_key_file = %q", files.ClientCert, files.ClientKey), "tls.ca_cert_file"),
		tls(secure.Endpoint(), fmt.Sprintf("ca_cert_file = %q, server_name = \"elsewhere\"", ca), "tls.server_name"),
		tls(secure.Endpoint(), fmt.Sprintf("ca_cert_file = %q", ca), "client certificate"),
		{fmt.Sprintf("endpoint = %q", strings.Replace(plain.Endpoint(), "http://", "https://", 1)), "does not speak TLS"},
		{fmt.Sprintf("endpoint = %q", strings.Replace(secure.Endpoint(), "https://", "http://", 1)), "that http:// or https:// is what it speaks"},
		{fmt.Sprintf("endpoint = %q", old.Endpoint()), "version 0.0.111; OpenShell 0.0.x is not supported"},
		{fmt.Sprintf("endpoint = \"http://%s\"", closed.Addr()), "that the gateway is up"},
		{fmt.Sprintf("endpoint = \"https://%s\"", silent.Addr()), "that the gateway is up"},
	}
	config := cli.RequiredProviders
	config += "\nvariable \"token\" {\n  sensitive = true\n}\n"
	for i, c := range cases {
		config += fmt.Sprintf("\nprovider \"openshell\" {\n  alias = \"p%02d\"\n  %s\n}\n\ndata \"openshell_gateway\" \"d%02d\" {\n  provider = openshell.p%02d\n}\n", i, c.arguments, i, i)
	}
	s := &stage{WorkingDir: cli.InTest(t, cli.Require(t), "TF_VAR_token=canary-token"), t: t}
	s.write("main.tf", config)
	start := time.Now()
	r := s.Plan(t.Context(), "", "-parallelism=50")
	if took := time.Since(start); r.ExitCode != 1 || took > time.Minute {
		t.Errorf("exit code %d after %v", r.ExitCode, took)
	}
	if len(r.Errors()) != len(cases) {
		t.Errorf("%d errors for %d cases", len(r.Errors()), len(cases))
	}
	for _, c := range cases {
		if !slices.ContainsFunc(r.Errors(), func(d cli.Diagnostic) bool {
			return strings.Contains(d.Detail, c.says) && strings.Contains(d.Detail, "What to do: ")
		}) {
			t.Errorf("nothing says %q for\n  %s", c.says, c.arguments)
		}
	}
	if t.Failed() {
		t.Log(r.Errors())
	}
	if text := r.Stdout + r.Stderr; regexp.MustCompile(`canary|PRIVATE KEY-----\\n[A-Za-z0-9]`).MatchString(text) {
		t.Errorf("a secret in\n%s", text)
	}
	if calls := slices.Concat(secure.AllCalls(), plain.AllCalls(), old.AllCalls()); slices.ContainsFunc(calls, func(c gatewaytest.Call) bool {
		return !strings.HasSuffix(c.Method, "/Health") && !strings.HasSuffix(c.Method, "/GetCurrentUser")
	}) {
		t.Errorf("calls %+v", calls)
	}
}
