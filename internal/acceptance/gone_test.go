package acceptance_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/openshell-iac/terraform-provider-openshell/internal/acceptance/cli"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth/authtest"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// A sandbox that somebody deleted by hand is planned anew, and is no obstacle to a destroy.
func TestT7GoneByHand(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, c cli.CLI) {
		g := gatewaytest.Start(t)
		s := set(t, c, g)
		ours := s.up()
		s.must(s.Plan(t.Context(), savedPlan, "-destroy"))
		g.MustDelete(t, "web")

		s.expect(s.Plan(t.Context(), "create.tfplan"), 2, cli.Warning, ours, "is gone")
		if actions := s.actions("create.tfplan"); !actions.Create() {
			t.Errorf("planned %v", actions)
		}
		s.must(s.Apply(t.Context(), savedPlan))
		if s.id() != "" {
			t.Error("still in the state")
		}
		if again := s.up(); again == ours {
			t.Error("the id was used again")
		}
		g.MustDelete(t, "web")
		s.must(s.Destroy(t.Context()))
		neverByName(t, g)
	})
}

// A gateway gives the same NOT_FOUND for a lack of access and for a missing workspace. Neither proves that the sandbox is
// gone: plan and destroy fail, and the state stays.
func TestT8NotFoundProvesNothing(t *testing.T) {
	t.Parallel()
	notFound := []string{"/GetSandbox", conditional}
	for name, fault := range map[string]grpc.UnaryServerInterceptor{
		"no access":             gatewaytest.Chain(gatewaytest.Refuse(codes.NotFound, notFound...), gatewaytest.Refuse(codes.PermissionDenied, "/GetWorkspace", "/ListSandboxes")),
		"no workspace":          gatewaytest.Refuse(codes.NotFound, append(notFound, "/GetWorkspace", "/ListSandboxes")...),
		"no answer on that now": gatewaytest.Chain(gatewaytest.Refuse(codes.NotFound, notFound...), gatewaytest.Refuse(codes.Internal, "/GetWorkspace")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := gatewaytest.Start(t)
			s := set(t, cli.Require(t), g)
			ours := s.up()
			mine, _ := g.GetByID(t, ours)
			state := s.raw()
			g.Intercept(fault)
			s.expect(s.Plan(t.Context(), ""), 1, cli.Error, ours, "proves nothing", "kept as it was")
			s.expect(s.Destroy(t.Context(), "-refresh=false"), 1, cli.Error, ours, "proves nothing", "kept as it was")
			s.stateIs(state)
			g.Intercept(nil)
			s.empty()
			unchanged(t, g, mine)
		})
	}
}

// No refusal of a read is an absence. One sandbox for each: the plan fails, the state stays, and none is planned anew.
func TestT8O8O9RefusedReads(t *testing.T) {
	t.Parallel()
	g := gatewaytest.Start(t)
	s := set(t, cli.Require(t), g)
	refusals := map[string]codes.Code{
		"unauthenticated": codes.Unauthenticated, "denied": codes.PermissionDenied, "unavailable": codes.Unavailable,
		"too-late": codes.DeadlineExceeded, "internal": codes.Internal, "unknown": codes.Unknown, "unimplemented": codes.Unimplemented,
		"failed": codes.FailedPrecondition, "data-loss": codes.DataLoss,
	}
	arguments := map[string]string{}
	for name := range refusals {
		arguments[name] = `timeouts = { read = "5s" }`
	}
	s.write("web.tf", resources(arguments))
	s.must(s.Apply(t.Context(), ""))
	state := s.raw()
	g.Intercept(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		if r, ok := req.(*openshellv1.GetSandboxRequest); ok {
			return nil, status.Error(refusals[r.GetName()], "sandbox not found")
		}
		return handle(ctx, req)
	})
	r := s.Plan(t.Context(), "")
	for name := range refusals {
		s.expectAt(r, "openshell_sandbox."+name, "", "could not be read", "kept as it was")
	}
	if n := len(r.Errors()); r.ExitCode != 1 || n != len(refusals) {
		t.Errorf("exit code %d, %d errors", r.ExitCode, n)
	}
	s.stateIs(state)
	g.Intercept(nil)
	s.empty()
}

// Something on the way answers in the gateway's place: a web server, or a proxy whose page is no answer to anything.
func TestT8AnswersOfAProxy(t *testing.T) {
	t.Parallel()
	g := gatewaytest.Start(t)
	s := set(t, cli.Require(t), g, `timeouts = { read = "5s", delete = "5s" }`)
	ours := s.up()
	mine, _ := g.GetByID(t, ours)
	state := s.raw()
	for protocol, code := range map[string]int{"HTTP/1.1": http.StatusOK, "HTTP/2": http.StatusNotFound} {
		proxy := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(code)
			_, _ = w.Write([]byte("<html>not found</html>"))
		}))
		proxy.Config.Protocols = new(http.Protocols)
		proxy.Config.Protocols.SetHTTP1(protocol == "HTTP/1.1")
		proxy.Config.Protocols.SetUnencryptedHTTP2(protocol == "HTTP/2")
		proxy.Start()
		t.Cleanup(proxy.Close)
		s.providerAt(proxy.URL, "allow_unconditional_delete = true")
		s.expect(s.Plan(t.Context(), ""), 1, cli.Error, ours, "Health", "kept as it was")
		s.expect(s.Destroy(t.Context(), "-refresh=false"), 1, cli.Error, ours, "kept as it was")
		s.stateIs(state)
	}
	s.provider(g)
	s.empty()
	unchanged(t, g, mine)
}

// A membership that was taken away hides the sandbox behind NOT_FOUND, for delete with allow_missing too. With the
// membership everything is as before.
func TestT8O9MembershipRevoked(t *testing.T) {
	t.Parallel()
	issuer := authtest.NewIssuer(t)
	g := gatewaytest.Start(t, gatewaytest.WithOIDC(issuer))
	root := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+issuer.Token("root", admin))
	member := func() {
		t.Helper()
		if _, err := g.OpenShell().AddWorkspaceMember(root, &openshellv1.AddWorkspaceMemberRequest{
			WorkspaceScope: gatewaytest.Default(), PrincipalSubject: "ann", Role: openshellv1.WorkspaceRole_WORKSPACE_ROLE_USER,
		}); err != nil {
			t.Fatal(err)
		}
	}
	member()
	s := set(t, cli.Require(t), g)
	s.provider(g, fmt.Sprintf("token = %q", issuer.Token("ann", nil)))
	ours := s.up()
	mine, _ := g.GetByID(t, ours)
	state := s.raw()
	if _, err := g.OpenShell().RemoveWorkspaceMember(root, &openshellv1.RemoveWorkspaceMemberRequest{
		WorkspaceScope: gatewaytest.Default(), PrincipalSubject: "ann",
	}); err != nil {
		t.Fatal(err)
	}
	s.expect(s.Plan(t.Context(), ""), 1, cli.Error, ours, "proves nothing", "kept as it was")
	s.expect(s.Destroy(t.Context(), "-refresh=false"), 1, cli.Error, ours, "kept as it was")
	s.stateIs(state)
	member()
	s.empty()
	unchanged(t, g, mine)
	s.must(s.Destroy(t.Context()))
	s.gone(ours)
}

// A caller whose scopes do not let it read the workspace can still destroy: that it may list the sandboxes stands in for
// the workspace's id, with a warning.
func TestT8WithoutTheScopeForTheWorkspace(t *testing.T) {
	t.Parallel()
	g := gatewaytest.Start(t)
	s := set(t, cli.Require(t), g)
	ours := s.up()
	g.Intercept(gatewaytest.Refuse(codes.PermissionDenied, "/GetWorkspace"))
	r := s.Destroy(t.Context())
	s.expect(r, 0, cli.Warning, "workspace:read", ours)
	if _, ok := g.GetByID(t, ours); ok || strings.Contains(string(s.raw()), ours) {
		t.Error("still there")
	}
}
