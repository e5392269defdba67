package acceptance_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/openshell-iac/terraform-provider-openshell/internal/acceptance/cli"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth/authtest"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

const clientSecret = "canary-secret-0c1b"

// admin are the claims of somebody who may do everything.
var admin = map[string]any{"realm_access": map[string]any{"roles": []string{auth.DefaultAdminRole}}}

// withIssuer starts an issuer that knows the program terraform, and a gateway that takes its tokens.
func withIssuer(t *testing.T, opts ...gatewaytest.Option) (*authtest.Issuer, *gatewaytest.Gateway) {
	t.Helper()
	issuer := authtest.NewIssuer(t)
	issuer.Register(authtest.Program{ID: "terraform", Secret: clientSecret, Claims: admin})
	return issuer, gatewaytest.Start(t, append(opts, gatewaytest.WithOIDC(issuer))...)
}

// program are the provider's arguments for that program.
func program(issuer *authtest.Issuer) string {
	return fmt.Sprintf("oidc = { issuer = %q, client_id = \"terraform\", client_secret = %q }", issuer.URL(), clientSecret)
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// registered writes what the command line keeps of a gateway.
func registered(t *testing.T, config, name, metadata string) (folder string) {
	t.Helper()
	folder = filepath.Join(config, "openshell", "gateways", name)
	writeFile(t, filepath.Join(folder, "metadata.json"), metadata)
	return folder
}

func login(token string, end time.Time) string {
	return fmt.Sprintf(`{"access_token": %q, "refresh_token": "r", "expires_at": %d, "issuer": "i", "client_id": "c"}`, token, end.Unix())
}

// dying are tokens that stop being taken as soon as a sandbox was created with them. Then happens what a test wants.
func dying(then func()) grpc.UnaryServerInterceptor {
	var mu sync.Mutex
	dead := ""
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		token := strings.Join(metadata.ValueFromIncomingContext(ctx, "authorization"), "")
		mu.Lock()
		defer mu.Unlock()
		if token == dead && token != "" {
			return nil, status.Error(codes.Unauthenticated, "the token "+token+" was revoked")
		}
		reply, err := handle(ctx, req)
		if info.FullMethod == openshellv1.OpenShell_CreateSandbox_FullMethodName && dead == "" {
			dead = token
			then()
		}
		return reply, err
	}
}

// A token that dies during an apply, with the sandbox created and not ready yet, is replaced, whatever it comes from.
func TestT28O18TokenDiesDuringTheApply(t *testing.T) {
	t.Parallel()
	issuer, g := withIssuer(t)
	home := t.TempDir()
	token := func() string { return issuer.Token("ann", admin) }
	first, second := token(), issuer.Token("ann", map[string]any{"jti": "2", "realm_access": admin["realm_access"]})
	tokenFile := filepath.Join(home, "token")
	folder := registered(t, home, "prod", fmt.Sprintf(`{"gateway_endpoint": %q, "auth_mode": "oidc"}`, g.Endpoint()))
	store := func(token string) {
		writeFile(t, tokenFile, token+"\n")
		writeFile(t, filepath.Join(folder, "oidc_token.json"), login(token, time.Now().Add(time.Hour)))
	}
	for name, arguments := range map[string][]string{
		"oidc":       {fmt.Sprintf("endpoint = %q", g.Endpoint()), program(issuer)},
		"token file": {fmt.Sprintf("endpoint = %q", g.Endpoint()), fmt.Sprintf("token_file = %q", tokenFile)},
		"login":      {`gateway = "prod"`},
	} {
		store(first)
		g.Intercept(dying(func() { store(second) }))
		s := &stage{WorkingDir: cli.InTest(t, cli.Require(t), "XDG_CONFIG_HOME="+home), t: t, g: g}
		s.providerWith(arguments...)
		s.sandbox(`name = "web"`, `driver_config = jsonencode({ simulated = { ready_after = "300ms" } })`)
		ours := s.up()
		if creates := g.Calls(openshellv1.OpenShell_CreateSandbox_FullMethodName); len(creates) != 1 {
			t.Errorf("%s: %d creates", name, len(creates))
		}
		g.Intercept(nil)
		s.must(s.Destroy(t.Context()))
		s.gone(ours)
		g.ResetCalls()
	}
	if n := len(issuer.Grants()); n < 2 {
		t.Errorf("%d tokens given", n)
	}
}

// When no new token can be had, the apply ends early and the state has the sandbox. With one, things go on from there.
func TestT28TokenCannotBeReplaced(t *testing.T) {
	t.Parallel()
	issuer, g := withIssuer(t)
	s := set(t, cli.Require(t), g, `driver_config = jsonencode({ simulated = { never_ready = true } })`, `timeouts = { create = "5m" }`)
	s.provider(g, program(issuer))
	g.Intercept(dying(func() {
		issuer.Answer(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, clientSecret, http.StatusInternalServerError)
		})
	}))
	start := time.Now()
	r := s.Apply(t.Context(), "")
	s.expect(r, 1, cli.Error, "valid token", issuer.URL(), "HTTP status 500", "marked as tainted")
	if took := time.Since(start); took > time.Minute {
		t.Errorf("took %v", took)
	}
	ours := s.id()
	if _, ok := g.GetByID(t, ours); !ok {
		t.Errorf("state %q", ours)
	}
	state := s.raw()
	s.expect(s.Destroy(t.Context(), "-refresh=false"), 1, cli.Error, "valid token", ours, "kept as it was")
	s.stateIs(state)
	issuer.Answer(nil)
	s.must(s.Destroy(t.Context()))
	s.gone(ours)
}

// Without a token nothing is sent, not even a question.
func TestO17NoTokenBeforeTheCreate(t *testing.T) {
	t.Parallel()
	issuer, g := withIssuer(t)
	home := t.TempDir()
	folder := registered(t, home, "prod", fmt.Sprintf(`{"gateway_endpoint": %q, "auth_mode": "oidc"}`, g.Endpoint()))
	stored := filepath.Join(folder, "oidc_token.json")
	s := &stage{WorkingDir: cli.InTest(t, cli.Require(t), "XDG_CONFIG_HOME="+home), t: t, g: g}
	s.sandbox(`name = "web"`)

	s.provider(g, program(issuer))
	s.must(s.Plan(t.Context(), savedPlan))
	issuer.Answer(authtest.Down)
	s.expect(s.Apply(t.Context(), savedPlan), 1, cli.Error, "valid token", issuer.URL(), "nothing was written")
	issuer.Answer(nil)
	issuer.Register(authtest.Program{ID: "terraform", Secret: "another"})
	r := s.Apply(t.Context(), "")
	s.expect(r, 1, cli.Error, "valid token", "invalid_client", "nothing was written")
	if strings.Contains(r.Stdout+r.Stderr, clientSecret) {
		t.Errorf("the secret is in %s", r.Stdout)
	}

	s.providerWith(`gateway = "prod"`)
	s.expect(s.Plan(t.Context(), ""), 1, cli.Error, "there is no login", "openshell gateway login prod")
	writeFile(t, stored, login(issuer.Token("ann", admin), time.Now().Add(-time.Minute)))
	r = s.Plan(t.Context(), "")
	s.expect(r, 1, cli.Error, "expired", "openshell gateway login prod")
	if errs := r.Errors(); len(errs) != 1 || errs[0].Attribute != "gateway" {
		t.Errorf("errors %v", errs)
	}
	if calls := g.AllCalls(); len(calls) > 0 {
		t.Errorf("calls %+v", calls)
	}
	writeFile(t, stored, login(issuer.Token("ann", admin), time.Now().Add(time.Hour)))
	s.up()
}
