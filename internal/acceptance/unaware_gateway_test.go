package acceptance_test

import (
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/openshell-iac/terraform-provider-openshell/internal/acceptance/cli"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// A gateway without the conditional service: destroy fails, sends no delete it would carry out, and keeps the state.
func TestO2UnawareGateway(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, c cli.CLI) {
		g := gatewaytest.Start(t, gatewaytest.WithoutConditional())
		s := set(t, c, g)
		ours := s.up()
		mine, _ := g.GetByID(t, ours)
		state := s.raw()
		s.expect(s.Destroy(t.Context(), "-refresh=false"), 1, cli.Error, ours, "allow_unconditional_delete = true", "kept as it was")
		s.stateIs(state)
		unchanged(t, g, mine)
		neverByName(t, g)

		// Opted in, it deletes, and says at what risk.
		s.provider(g, "allow_unconditional_delete = true")
		s.expect(s.Destroy(t.Context()), 0, cli.Warning, ours, "deleted by name")
		if _, ok := g.GetByID(t, ours); ok || s.id() != "" {
			t.Errorf("still there: %v, in the state: %q", ok, s.id())
		}
	})
}

// Opted in, a stranger that took the name before the look is left alone; one that takes it after the look is lost, and
// the reply that names it makes the destroy fail.
func TestO2Replacement(t *testing.T) {
	t.Parallel()
	t.Run("before the look", func(t *testing.T) {
		t.Parallel()
		g := gatewaytest.Start(t, gatewaytest.WithoutConditional())
		s := set(t, cli.Require(t), g)
		s.provider(g, "allow_unconditional_delete = true")
		ours := s.up()
		stranger := g.Replace(t, "web")
		s.expect(s.Destroy(t.Context(), "-refresh=false"), 0, cli.Warning, ours, stranger.GetMetadata().GetId())
		unchanged(t, g, stranger)
		neverByName(t, g)
	})
	t.Run("after the look", func(t *testing.T) {
		t.Parallel()
		g := gatewaytest.Start(t, gatewaytest.WithoutConditional())
		s := set(t, cli.Require(t), g)
		s.provider(g, "allow_unconditional_delete = true")
		ours := s.up()
		var stranger *openshellv1.Sandbox
		g.Intercept(gatewaytest.Before(openshellv1.OpenShell_DeleteSandbox_FullMethodName, func() error {
			if stranger == nil {
				stranger = g.Replace(t, "web")
			}
			return nil
		}))
		state := s.raw()
		s.expect(s.Destroy(t.Context()), 1, cli.Error, "ANOTHER", ours, stranger.GetMetadata().GetId())
		s.stateIs(state)
		g.WaitGone(t, stranger.GetMetadata().GetId())
		s.must(s.Destroy(t.Context())) // ours is gone, so this ends it
		if s.id() != "" {
			t.Error("still in the state")
		}
	})
}

// A fleet that is being upgraded: the gateway says that it has the service and yet does not know the method. That is
// never a reason to delete by name.
func TestO2MixedFleet(t *testing.T) {
	t.Parallel()
	g := gatewaytest.Start(t)
	s := set(t, cli.Require(t), g)
	s.provider(g, "allow_unconditional_delete = true")
	ours := s.up()
	g.Intercept(gatewaytest.Refuse(codes.Unimplemented, conditional))
	state := s.raw()
	s.expect(s.Destroy(t.Context()), 1, cli.Error, ours, "UNIMPLEMENTED", "kept as it was")
	s.stateIs(state)
	neverByName(t, g)
	g.Intercept(nil)
	s.must(s.Destroy(t.Context()))
	if _, ok := g.GetByID(t, ours); ok {
		t.Error("still there")
	}
}
