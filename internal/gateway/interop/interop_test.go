package interop

import (
	"encoding/json"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth/authtest"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
	"github.com/openshell-iac/terraform-provider-openshell/internal/testproc"
)

// pythonVariable names the interpreter of the virtual environment that OpenShell's Python package is installed in.
const pythonVariable = "OPENSHELL_INTEROP_PYTHON"

const clientSecret = "secret-of-the-robot"

// OpenShell's own Python package gets along with gateways of every kind, and what they do not serve is what the guide says.
func TestPythonPackage(t *testing.T) {
	python := os.Getenv(pythonVariable)
	if python == "" {
		t.Skipf("%s is not set; `make interop` installs the package and sets it", pythonVariable)
	}
	issuer := authtest.NewIssuer(t)
	issuer.Register(authtest.Program{ID: "robot", Secret: clientSecret, Claims: adminClaims()})
	plaintext := gatewaytest.Start(t)
	gateways := map[string]*gatewaytest.Gateway{
		"plaintext": plaintext,
		"guarded":   gatewaytest.Start(t, gatewaytest.RequirePrecondition()),
		"mtls":      gatewaytest.Start(t, gatewaytest.WithClientCertificate()),
		"oidc":      gatewaytest.Start(t, gatewaytest.WithTLS(), gatewaytest.WithAccess(auth.Config{OIDC: issuer.ScopedConfig()})),
	}
	config := t.TempDir()
	for name, g := range gateways {
		register(t, filepath.Join(config, "openshell"), name, g, issuer)
	}
	write(t, filepath.Join(config, "openshell", "active_gateway"), []byte("plaintext\n"))

	cmd := exec.CommandContext(t.Context(), python, filepath.Join("testdata", "drive.py"))
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, "OPENSHELL_") }),
		"XDG_CONFIG_HOME="+config, "PYTHONUNBUFFERED=1", "PYTHONDONTWRITEBYTECODE=1",
		"INTEROP_CLIENT_SECRET="+clientSecret,
		"INTEROP_TOKEN_ADMIN="+issuer.Token("admin", adminClaims()),
		"INTEROP_TOKEN_READER="+issuer.Token("reader", map[string]any{"scope": "sandbox:read"}),
		"INTEROP_TOKEN_STRANGER="+issuer.Token("stranger", map[string]any{"scope": "openshell:all"}),
		"INTEROP_TOKEN_EXPIRED="+issuer.Token("admin", map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}),
	)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	ended, err := testproc.Start(cmd, syscall.SIGKILL)
	if err != nil {
		t.Fatal(err)
	}
	if <-ended; !cmd.ProcessState.Success() {
		t.Fatalf("drive.py: %s", cmd.ProcessState)
	}
	if diff := cmp.Diff(documented(t), unserved(plaintext)); diff != "" {
		t.Errorf("what the guide says is not served (-), and what is not served (+):\n%s", diff)
	}
}

// register writes down how to reach a gateway, as OpenShell's command line does.
func register(t *testing.T, root, name string, g *gatewaytest.Gateway, issuer *authtest.Issuer) {
	t.Helper()
	dir := filepath.Join(root, "gateways", name)
	metadata := map[string]any{"name": name, "gateway_endpoint": g.Endpoint(), "is_remote": false, "gateway_port": 0, "auth_mode": "plaintext"}
	if name == "mtls" || name == "oidc" {
		metadata["auth_mode"] = name
		certificates := map[string]string{"ca.crt": g.TLS().CACert}
		if name == "mtls" {
			certificates["tls.crt"], certificates["tls.key"] = g.TLS().ClientCert, g.TLS().ClientKey
		}
		for file, from := range certificates {
			content, err := os.ReadFile(from)
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, "mtls", file), content)
		}
	}
	if name == "oidc" {
		metadata["oidc_issuer"], metadata["oidc_client_id"], metadata["oidc_audience"] = issuer.URL(), "robot", auth.DefaultAudience
		write(t, filepath.Join(dir, "oidc_token.json"), marshal(t, map[string]any{
			"access_token": issuer.Token("admin", adminClaims()), "expires_at": time.Now().Add(time.Hour).Unix(), "issuer": issuer.URL(), "client_id": "openshell-cli",
		}))
	}
	write(t, filepath.Join(dir, "metadata.json"), marshal(t, metadata))
}

func adminClaims() map[string]any {
	return map[string]any{"realm_access": map[string]any{"roles": []string{auth.DefaultAdminRole}}, "scope": "openshell:all"}
}

// unserved are the methods of the API that a gateway said it does not have, in order.
func unserved(g *gatewaytest.Gateway) []string {
	var names []string
	for _, call := range g.AllCalls() {
		if call.Code == codes.Unimplemented {
			names = append(names, path.Base(call.Method))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// documented are the methods that the guide says are not served, in order.
func documented(t *testing.T) []string {
	t.Helper()
	guide, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "guides", "reference-gateway.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(guide), "\n## What Is Not Served\n")
	if !found {
		t.Fatal("the guide does not say what is not served")
	}
	text, _, _ = strings.Cut(text, "\n## ")
	var names []string
	for _, match := range regexp.MustCompile("`([A-Z][a-z][A-Za-z]+)`").FindAllStringSubmatch(text, -1) {
		names = append(names, match[1])
	}
	slices.Sort(names)
	return names
}

func marshal(t *testing.T, value any) []byte {
	t.Helper()
	content, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}
