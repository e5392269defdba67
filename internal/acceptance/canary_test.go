package acceptance_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/openshell-iac/terraform-provider-openshell/internal/acceptance/cli"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth/authtest"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// secretConfig has three providers, one for each way to a token, each with a sandbox.
const secretConfig = `
variable "token" {
  ephemeral = true
}
variable "header" {
  ephemeral = true
}
variable "key" {
  ephemeral = true
}
variable "client_secret" {
  ephemeral = true
}

locals {
  tls = {
    ca_cert_file    = %[1]q
    client_cert_pem = %[2]q
  }
}

provider "openshell" {
  alias    = "token"
  endpoint = %[3]q
  token    = var.token
  headers  = { x-proxy-key = var.header }
  tls      = merge(local.tls, { client_key_pem = var.key })
}

provider "openshell" {
  alias      = "file"
  endpoint   = %[3]q
  token_file = %[4]q
  tls        = { ca_cert_file = local.tls.ca_cert_file }
}

provider "openshell" {
  alias    = "oidc"
  endpoint = %[3]q
  oidc     = { issuer = %[5]q, client_id = "terraform", client_secret = var.client_secret }
  tls      = { ca_cert_file = local.tls.ca_cert_file }
}
`

// canaries are pieces of secrets, by what they are secrets of, that quoting and wrapping leave whole.
type canaries map[string]string

// absent checks that nothing that a command showed or logged holds one.
func (c canaries) absent(t *testing.T, shown ...string) {
	t.Helper()
	for name, canary := range c {
		for _, text := range shown {
			if at := strings.Index(text, canary); at >= 0 {
				t.Errorf("the %s is in …%s…", name, text[max(0, at-300):min(len(text), at+100)])
			}
		}
	}
}

// withSecrets prepares a run whose provider logs everything. Its secrets are in variables, but for the token in a file.
func withSecrets(t *testing.T, c cli.CLI, secrets map[string]string, tokenFile string, issuer *authtest.Issuer, g *gatewaytest.Gateway, certificate []byte) (*stage, canaries) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	writeFile(t, path, tokenFile)
	pieces := canaries{"token in the file": canaryOf(tokenFile)}
	env := []string{"TF_LOG_PROVIDER=TRACE"}
	for name, value := range secrets {
		env = append(env, "TF_VAR_"+name+"="+value)
		pieces[name] = canaryOf(value)
	}
	s := &stage{WorkingDir: cli.InTest(t, c, env...), t: t, g: g}
	config := cli.RequiredProviders
	config += fmt.Sprintf(secretConfig, g.TLS().CACert, certificate, g.Endpoint(), path, issuer.URL())
	for _, alias := range []string{"token", "file", "oidc"} {
		config += fmt.Sprintf("\nresource \"openshell_sandbox\" %[1]q {\n  provider = openshell.%[1]s\n  name     = %[1]q\n}\n", alias)
	}
	s.write("main.tf", config)
	return s, pieces
}

// canaryOf is the longest run of letters and digits of a secret: quoting and wrapping leave it whole.
func canaryOf(secret string) (longest string) {
	for _, run := range regexp.MustCompile(`[A-Za-z0-9]+`).FindAllString(secret, -1) {
		if len(run) > len(longest) {
			longest = run
		}
	}
	return longest
}

// Secrets of the provider's configuration, given by ephemeral values, are in no plan, message, state or log, whether all is
// well, the gateway refuses them and repeats what it was sent, or they are invalid.
func TestT32SecretsOfTheConfiguration(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, c cli.CLI) {
		issuer, g := withIssuer(t, gatewaytest.WithTLS())
		client := authtest.NewCA(t, "clients").Client("terraform")
		secrets := map[string]string{
			"token": issuer.Token("ann", admin), "header": "header7c41e", "key": string(client.Key), "client_secret": clientSecret,
		}
		s, pieces := withSecrets(t, c, secrets, issuer.Token("ben", admin), issuer, g, client.Cert)
		run := func(errors int, r cli.Result, more ...string) {
			t.Helper()
			if len(r.Errors()) != errors || (r.Err() == nil) != (errors == 0) {
				t.Errorf("%v: exit code %d, %d errors, want %d: %v", r.Args, r.ExitCode, len(r.Errors()), errors, r.Errors())
			}
			if !strings.Contains(r.Stderr, "[TRACE]") {
				t.Errorf("%v: no log", r.Args)
			}
			pieces.absent(t, append(more, r.Stdout, r.Stderr)...)
		}
		g.Intercept(wantsHeader(secrets["header"]))
		run(0, s.Run(t.Context(), "plan", "-no-color", "-out="+savedPlan))
		shown := s.Run(t.Context(), "show", "-json", savedPlan)
		s.must(shown)
		pieces.absent(t, withoutInputs(t, shown.Stdout))
		run(0, s.Apply(t.Context(), savedPlan))
		pieces.absent(t, string(s.raw()))
		g.Intercept(echo)
		run(3, s.Plan(t.Context(), ""))
		g.Intercept(nil)

		for name, value := range secrets {
			secrets[name] = "bad" + value[len(value)/2:] + "\nline"
		}
		s, pieces = withSecrets(t, c, secrets, issuer.Token("ben", admin)+" more", issuer, g, client.Cert)
		run(2, s.Plan(t.Context(), ""))
		run(1, s.Apply(t.Context(), "", "-target=openshell_sandbox.oidc")) // the issuer says so, and repeats it
	})
}

// withoutInputs is a plan in JSON without the parts that hold what was put in.
func withoutInputs(t *testing.T, plan string) string {
	t.Helper()
	var document map[string]json.RawMessage
	if err := json.Unmarshal([]byte(plan), &document); err != nil {
		t.Fatal(err)
	}
	delete(document, "configuration")
	delete(document, "variables")
	rest, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	return string(rest)
}

// wantsHeader refuses the program and Ann without the proxy's key, so that it is shown to be sent.
func wantsHeader(value string) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		sent := metadata.ValueFromIncomingContext(ctx, "x-proxy-key")
		if len(sent) > 0 && sent[0] != value {
			return nil, status.Error(codes.PermissionDenied, "another key")
		}
		return handle(ctx, req)
	}
}

// echo refuses everything and repeats what it was sent, as some servers do.
func echo(ctx context.Context, _ any, info *grpc.UnaryServerInfo, _ grpc.UnaryHandler) (any, error) {
	sent, _ := metadata.FromIncomingContext(ctx)
	return nil, status.Errorf(codes.PermissionDenied, "%s refused: you sent %q", info.FullMethod, map[string][]string(sent))
}
