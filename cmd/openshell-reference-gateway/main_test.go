package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth/authtest"
)

const timeout = 30 * time.Second

// clearEnvironment keeps the variables of whoever runs the tests out of them.
func clearEnvironment(t *testing.T) {
	t.Helper()
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "OPENSHELL_") {
			unset(t, name)
		}
	}
}

func unset(t *testing.T, name string) {
	t.Helper()
	t.Setenv(name, "") // so that it is as before when the test ends
	if err := os.Unsetenv(name); err != nil {
		t.Fatal(err)
	}
}

// started runs the command until the test ends or stop is called, which returns its exit code, and gives the endpoint it
// says it listens on.
func started(t *testing.T, args ...string) (endpoint string, stop func() int) {
	t.Helper()
	clearEnvironment(t)
	ctx, cancel := context.WithCancel(context.Background())
	out, in := io.Pipe()
	var stderr bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, args, in, &stderr)
		_ = in.Close()
	}()
	line := make([]byte, 1024)
	n, err := out.Read(line)
	if err != nil {
		cancel()
		t.Fatalf("exit code %d: %s", <-ended, stderr.String())
	}
	_, endpoint, ok := strings.Cut(strings.TrimSpace(string(line[:n])), " listens on ")
	if !ok {
		t.Errorf("it says %q", line[:n])
	}
	code := -1
	stop = func() int {
		if cancel(); code < 0 {
			code = <-ended
		}
		return code
	}
	t.Cleanup(func() { stop() })
	return endpoint, stop
}

func client(t *testing.T, endpoint string, transport credentials.TransportCredentials) openshellv1.OpenShellClient {
	t.Helper()
	return openshellv1.NewOpenShellClient(dial(t, endpoint, transport))
}

func dial(t *testing.T, endpoint string, transport credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()
	_, address, _ := strings.Cut(endpoint, "://")
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(transport))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func call(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	t.Cleanup(cancel)
	return ctx
}

func TestServesAndDrains(t *testing.T) {
	db := filepath.Join(t.TempDir(), "a.db")
	endpoint, stop := started(t, "--disable-tls", "--port", "0", "--db-url", "sqlite:"+db)
	if !strings.HasPrefix(endpoint, "http://127.0.0.1:") || strings.HasSuffix(endpoint, ":0") {
		t.Errorf("endpoint %s", endpoint)
	}
	health, err := client(t, endpoint, insecure.NewCredentials()).Health(call(t), &openshellv1.HealthRequest{})
	if err != nil || health.GetVersion() != "0.1.5+reference.dev" {
		t.Errorf("%v, %v", health, err)
	}
	if code := stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if _, err := os.Stat(db); err != nil {
		t.Error(err)
	}
}

func TestOwnFlags(t *testing.T) {
	plain := &openshellv1.DeleteSandboxRequest{
		Name: "web", WorkspaceScope: &datamodelv1.WorkspaceSelector{Selection: &datamodelv1.WorkspaceSelector_Workspace{Workspace: "default"}},
	}
	conditional := &conditionalv1.ConditionalDeleteSandboxRequest{Request: plain}
	for flag, want := range map[string]struct{ plain, conditional codes.Code }{
		"--require-precondition": {codes.FailedPrecondition, codes.InvalidArgument},
		"--without-conditional":  {codes.NotFound, codes.Unimplemented},
	} {
		endpoint, _ := started(t, "--disable-tls", "--port=0", "--db-url=sqlite::memory:", flag)
		conn := dial(t, endpoint, insecure.NewCredentials())
		if _, err := openshellv1.NewOpenShellClient(conn).DeleteSandbox(call(t), plain); status.Code(err) != want.plain {
			t.Errorf("%s: %v", flag, err)
		}
		if _, err := conditionalv1.NewConditionalSandboxesClient(conn).DeleteSandbox(call(t), conditional); status.Code(err) != want.conditional {
			t.Errorf("%s: %v", flag, err)
		}
	}
}

// What it takes to be let in, for every combination of flags that lets somebody in.
func TestAccess(t *testing.T) {
	ca := authtest.NewCA(t, "ours")
	files := authtest.WriteFiles(t, ca.Server(), ca)
	with := func(pairs ...authtest.Pair) credentials.TransportCredentials {
		cfg := &tls.Config{RootCAs: ca.Pool()}
		for _, pair := range pairs {
			cfg.Certificates = append(cfg.Certificates, pair.Certificate())
		}
		return credentials.NewTLS(cfg)
	}
	ours, strangers := ca.Client("me", "dev"), authtest.NewCA(t, "theirs").Client("me", "dev")
	server := []string{"--tls-cert", files.Cert, "--tls-key", files.Key}
	for name, tc := range map[string]struct {
		flags     []string
		transport credentials.TransportCredentials
		subject   string // "" when the caller is not let in
	}{
		"client certificate":            {append(server, "--tls-client-ca", files.ClientCA), with(ours), "me"},
		"another's certificate":         {append(server, "--tls-client-ca", files.ClientCA), with(strangers), ""},
		"no certificate":                {append(server, "--tls-client-ca", files.ClientCA), with(), ""},
		"plaintext to TLS":              {append(server, "--tls-client-ca", files.ClientCA), insecure.NewCredentials(), ""},
		"everybody over TLS":            {append(server, "--dangerously-allow-unauthenticated"), with(), "unauthenticated-local-dev"},
		"everybody, certificate or not": {append(server, "--tls-client-ca", files.ClientCA, "--dangerously-allow-unauthenticated"), with(), "unauthenticated-local-dev"},
		"everybody, with one":           {append(server, "--tls-client-ca", files.ClientCA, "--dangerously-allow-unauthenticated"), with(ours), "me"},
		"one that is no identity": {
			append(server, "--tls-client-ca", files.ClientCA, "--no-enable-mtls-auth", "--dangerously-allow-unauthenticated"), with(ours), "unauthenticated-local-dev",
		},
		"plaintext from everywhere": {[]string{"--disable-tls", "--bind-address", "0.0.0.0", "--dangerously-allow-unauthenticated"}, insecure.NewCredentials(), "unauthenticated-local-dev"},
	} {
		t.Run(name, func(t *testing.T) {
			endpoint, _ := started(t, append([]string{"--port", "0", "--db-url", "sqlite::memory:"}, tc.flags...)...)
			endpoint = strings.Replace(endpoint, "[::]", "127.0.0.1", 1)
			user, err := client(t, endpoint, tc.transport).GetCurrentUser(call(t), &openshellv1.GetCurrentUserRequest{})
			if user.GetSubject() != tc.subject || (err == nil) != (tc.subject != "") {
				t.Errorf("%v, %v", user, err)
			}
		})
	}
}

// refused runs the command with flags that do not do, and returns what it says.
func refused(t *testing.T, wantCode int, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if code := run(call(t), args, &stdout, &stderr); code != wantCode {
		t.Errorf("%v: exit code %d, want %d: %s", args, code, wantCode, stderr.String())
	}
	return stderr.String()
}

func TestBadFlagsAreNamed(t *testing.T) {
	clearEnvironment(t)
	for want, args := range map[string][]string{
		"--port":                   {"--port", "65536"},
		"--log-level: must be":     {"--log-level", "loud"},
		"--without-conditional":    {"--disable-tls", "--require-precondition", "--without-conditional"},
		"--server-san":             {"--disable-tls", "--server-san", "a.example.com,*."},
		"unknown flag --nonsense":  {"--nonsense"},
		"--bind-address":           {"--disable-tls", "--bind-address", "localhost"},
		"loopback address":         {"--disable-tls", "--bind-address", "0.0.0.0"},
		"not 192.0.2.1":            {"--disable-tls", "--bind-address", "192.0.2.1"},
		"--tls-cert and --tls-key": {},
		"--health-port":            {"--disable-tls", "--port", "7", "--health-port", "7"},
		"--metrics-port":           {"--disable-tls", "--health-port", "7", "--metrics-port", "7"},
		"contradicts":              {"--disable-tls", "--tls-cert", "x"},
		"--enable-mtls-auth":       {"--tls-cert", "x", "--tls-key", "y", "--enable-mtls-auth"},
		"nobody could call":        {"--tls-cert", "x", "--tls-key", "y"},
		"--db-url: names no":       {"--disable-tls", "--db-url", ""},
		"--oidc-scopes-claim: ne":  {"--disable-tls", "--oidc-scopes-claim", "scope"},
		"--oidc-audience: needs":   {"--disable-tls", "--oidc-audience", "a"},
		"--oidc-jwks-ttl: needs":   {"--disable-tls", "--oidc-jwks-ttl", "60"},
		"nobody could":             {"--tls-cert", "x", "--tls-key", "y", "--tls-client-ca", "z", "--no-enable-mtls-auth"},
	} {
		if said := refused(t, exitUsage, args...); !strings.Contains(said, want) {
			t.Errorf("%v: it says %q, not %q", args, said, want)
		}
	}
	t.Setenv("OPENSHELL_SERVER_PORT", "many")
	if said := refused(t, exitUsage); !strings.Contains(said, "OPENSHELL_SERVER_PORT") {
		t.Errorf("it says %q", said)
	}
}

func TestFailures(t *testing.T) {
	clearEnvironment(t)
	endpoint, _ := started(t, "--disable-tls", "--port", "0", "--db-url", "sqlite:"+filepath.Join(t.TempDir(), "a.db"))
	port := endpoint[strings.LastIndexByte(endpoint, ':')+1:]
	for want, args := range map[string][]string{
		"--port " + port: {"--disable-tls", "--port", port, "--db-url", "sqlite::memory:"},
		"sqlite:PATH":    {"--disable-tls", "--port", "0", "--db-url", "mysql://user:canary@host/db"},
		"names no file":  {"--disable-tls", "--port", "0", "--db-url", "sqlite:"},
		"--oidc-issuer":  {"--disable-tls", "--port", "0", "--db-url", "sqlite::memory:", "--oidc-issuer", "http://login.example.com"},
		"--tls-cert":     {"--tls-cert", "/none/crt", "--tls-key", "/none/key", "--tls-client-ca", "/none/ca", "--port", "0", "--db-url", "sqlite::memory:"},
		"no such file":   {"--tls-cert", "/none/crt", "--tls-key", "/none/key", "--tls-client-ca", "/none/ca", "--port", "0", "--db-url", "sqlite::memory:"},
	} {
		said := refused(t, exitFailed, args...)
		if !strings.Contains(said, want) || strings.Contains(said, "canary") {
			t.Errorf("%v: it says %q, not %q", args, said, want)
		}
	}
}

func TestVersionAndHelp(t *testing.T) {
	for want, arg := range map[string]string{"dev\n": "--version", "--without-conditional": "--help"} {
		var stdout, stderr bytes.Buffer
		if code := run(context.Background(), []string{arg}, &stdout, &stderr); code != 0 || !strings.Contains(stdout.String(), want) {
			t.Errorf("%s: exit code %d, %q", arg, code, stdout.String())
		}
	}
}

// The help says what holds without a flag.
func TestHelpShowsDefaults(t *testing.T) {
	clearEnvironment(t)
	t.Setenv("XDG_STATE_HOME", "/state")
	var stdout bytes.Buffer
	if code := run(t.Context(), []string{"--help"}, &stdout, io.Discard); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{
		`--bind-address="127.0.0.1"`, "--port=17670", `--db-url="sqlite:/state/openshell-reference-gateway/gateway.db"`, "--oidc-jwks-ttl=3600",
	} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("no word of %s", want)
		}
	}
}

func TestConfigFile(t *testing.T) {
	clearEnvironment(t)
	write := func(text string) string {
		path := filepath.Join(t.TempDir(), "gateway.toml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	parsed := func(args ...string) flags {
		t.Helper()
		f, err := parse(args, io.Discard, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	path := write("port = 1111\nbind-address = \"::1\"\ndisable_tls = true\nlog_level = \"warn\"\nenable_mtls_auth = false\n")
	f := parsed("--config", path)
	if f.Port != 1111 || f.BindAddress != "::1" || !f.DisableTLS || f.LogLevel.String() != "WARN" || f.EnableMTLSAuth == nil || *f.EnableMTLSAuth {
		t.Errorf("%+v", f)
	}
	if f := parsed("--config", path, "--port", "3333"); f.Port != 3333 {
		t.Errorf("a flag gives way: %+v", f)
	}
	t.Setenv("OPENSHELL_SERVER_PORT", "2222")
	if f := parsed("--config", path); f.Port != 2222 || f.BindAddress != "::1" {
		t.Errorf("a variable gives way: %+v", f)
	}
	unset(t, "OPENSHELL_SERVER_PORT")
	t.Setenv("OPENSHELL_GATEWAY_CONFIG", path)
	if f := parsed(); f.Port != 1111 {
		t.Errorf("the file that a variable names: %+v", f)
	}
	unset(t, "OPENSHELL_GATEWAY_CONFIG")

	for want, text := range map[string]string{
		`unknown key "prot"`: "prot = 1", `unknown key "config"`: "config = \"x\"", `unknown key "gateway"`: "[gateway]\nport = 1",
		"twice": "bind-address = \"::1\"\nbind_address = \"::1\"", "--port": "port = \"many\"", "--config": "port = ",
	} {
		said := refused(t, exitUsage, "--config", write(text))
		if !strings.Contains(said, want) || !strings.Contains(said, "gateway.toml") {
			t.Errorf("%q: it says %q, not %q", text, said, want)
		}
	}
	if said := refused(t, exitUsage, "--config", "/none/gateway.toml"); !strings.Contains(said, "/none/gateway.toml") {
		t.Errorf("it says %q", said)
	}
}

// The guide has every flag with its variable.
func TestGuideListsTheFlags(t *testing.T) {
	text, err := os.ReadFile("../../templates/guides/reference-gateway.md")
	if err != nil {
		t.Fatal(err)
	}
	parser, err := kong.New(&flags{}, vars())
	if err != nil {
		t.Fatal(err)
	}
	guide := string(text)
	for _, f := range parser.Model.Flags {
		if f.Name == "help" || f.Name == "version" {
			continue
		}
		line := regexp.MustCompile("(?m)^\\|[^|]*`--" + f.Name + "`.*$").FindString(guide)
		if line == "" {
			t.Errorf("no word of --%s", f.Name)
		}
		for _, name := range f.Envs {
			if !strings.Contains(line, "`"+name+"`") {
				t.Errorf("no word of %s beside --%s", name, f.Name)
			}
		}
	}
}

func TestDefaultDatabase(t *testing.T) {
	clearEnvironment(t)
	t.Setenv("XDG_STATE_HOME", "/state")
	f, err := parse(nil, io.Discard, io.Discard)
	if err != nil || f.DBURL != "sqlite:/state/openshell-reference-gateway/gateway.db" || f.Port != 17670 || f.BindAddress != "127.0.0.1" {
		t.Errorf("%+v, %v", f, err)
	}
}
