package acceptance_test

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/openshell-iac/terraform-provider-openshell/internal/acceptance/cli"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// A sandbox that somebody deleted by hand is planned anew, and is no obstacle to a destroy.
func TestT7GoneByHand(t *testing.T) {
	t.Parallel()
	g := gatewaytest.Start(t)
	s := set(t, cli.Require(t), g)
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
}

// A gateway gives the same NOT_FOUND for a lack of access and for a missing workspace. Neither proves that the sandbox is
// gone: plan and destroy fail, and the state stays.
func TestT8NotFoundProvesNothing(t *testing.T) {
	t.Parallel()
	notFound := []string{"/GetSandbox", conditional}
	for name, fault := range map[string]grpc.UnaryServerInterceptor{
		"no access":             both(refuse(codes.NotFound, notFound...), refuse(codes.PermissionDenied, "/GetWorkspace", "/ListSandboxes")),
		"no workspace":          refuse(codes.NotFound, append(notFound, "/GetWorkspace", "/ListSandboxes")...),
		"no answer on that now": both(refuse(codes.NotFound, notFound...), refuse(codes.Internal, "/GetWorkspace")),
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

// both applies two interceptors to different methods.
func both(one, other grpc.UnaryServerInterceptor) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		return one(ctx, req, info, func(ctx context.Context, req any) (any, error) { return other(ctx, req, info, handle) })
	}
}

// A caller whose scopes do not let it read the workspace can still destroy: that it may list the sandboxes stands in for
// the workspace's id, with a warning.
func TestT8WithoutTheScopeForTheWorkspace(t *testing.T) {
	t.Parallel()
	g := gatewaytest.Start(t)
	s := set(t, cli.Require(t), g)
	ours := s.up()
	g.Intercept(refuse(codes.PermissionDenied, "/GetWorkspace"))
	r := s.Destroy(t.Context())
	s.expect(r, 0, cli.Warning, "workspace:read", ours)
	if _, ok := g.GetByID(t, ours); ok || strings.Contains(string(s.raw()), ours) {
		t.Error("still there")
	}
}
