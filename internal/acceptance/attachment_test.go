package acceptance_test

import (
	"slices"
	"testing"

	"github.com/openshell-iac/terraform-provider-openshell/internal/acceptance/cli"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/apierr"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// attached checks which providers a sandbox has.
func attached(t *testing.T, g *gatewaytest.Gateway, name string, want ...string) {
	t.Helper()
	sb, _ := g.Get(t, name)
	if got := slices.Sorted(slices.Values(sb.GetSpec().GetProviders())); !slices.Equal(got, want) {
		t.Errorf("%s has the providers %q, want %q", name, got, want)
	}
}

// Providers change in place. What somebody else attaches after the plan is not undone by the apply; the next plan shows it.
func TestO16AttachInPlace(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, c cli.CLI) {
		g := gatewaytest.Start(t)
		for _, name := range []string{"one", "two", "three"} {
			g.MustProvider(t, name)
		}
		s := set(t, c, g, `providers = ["one"]`)
		ours := s.up()
		s.sandbox(`name = "web"`, `providers = ["two"]`)
		s.must(s.Plan(t.Context(), savedPlan))
		if actions := s.actions(savedPlan); !actions.Update() {
			t.Errorf("planned %v", actions)
		}
		g.Attach(t, "web", "three")
		conflicts := 0
		g.Intercept(gatewaytest.Before("ConditionalSandboxes/AttachSandboxProvider", func() error { // somebody else's write got in between
			if conflicts++; conflicts > 1 {
				return nil
			}
			return &apierr.VersionConflict{}
		}))
		s.must(s.Apply(t.Context(), savedPlan))
		attached(t, g, "web", "three", "two")
		s.must(s.Plan(t.Context(), savedPlan))
		if actions := s.actions(savedPlan); !actions.Update() {
			t.Errorf("planned %v", actions)
		}
		if again := s.up(); again != ours {
			t.Errorf("%s after %s", again, ours)
		}
		attached(t, g, "web", "two")

		// O15: with the sandbox goes the attachment.
		s.must(s.Destroy(t.Context()))
		if _, err := g.OpenShell().DeleteProvider(t.Context(), &openshellv1.DeleteProviderRequest{Name: "two", WorkspaceScope: gatewaytest.Default()}); err != nil {
			t.Errorf("delete provider: %v", err)
		}
	})
}

// Providers are attached to the sandbox that was planned for, and to no other.
func TestO16AttachToAStranger(t *testing.T) {
	t.Parallel()
	g := gatewaytest.Start(t)
	g.MustProvider(t, "one")
	s := set(t, cli.Require(t), g, `providers = []`)
	ours := s.up()
	s.sandbox(`name = "web"`, `providers = ["one"]`)
	var stranger *openshellv1.Sandbox
	g.Intercept(gatewaytest.Before("ConditionalSandboxes/AttachSandboxProvider", func() error {
		if stranger == nil {
			stranger = g.Replace(t, "web")
		}
		return nil
	}))
	s.expect(s.Apply(t.Context(), ""), 1, cli.Error, ours, stranger.GetMetadata().GetId(), "kept as it was")
	unchanged(t, g, stranger)
	if s.id() != ours {
		t.Errorf("the state has %q", s.id())
	}
}
