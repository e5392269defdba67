package acceptance_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/openshell-iac/terraform-provider-openshell/internal/acceptance/cli"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// The main promise. A destroy that was planned while the name meant our sandbox, and runs when it means a stranger's,
// leaves the stranger alone, even one at the very resource version that ours had.
func TestO1DestroyLeavesAStrangerAlone(t *testing.T) {
	t.Parallel()
	for name, destroy := range map[string]func(*stage) func() cli.Result{
		"saved plan": func(s *stage) func() cli.Result {
			s.must(s.Plan(s.t.Context(), savedPlan, "-destroy"))
			return func() cli.Result { return s.Apply(s.t.Context(), savedPlan) }
		},
		"refresh=false": func(s *stage) func() cli.Result {
			return func() cli.Result { return s.Destroy(s.t.Context(), "-refresh=false") }
		},
		"allow_unconditional_delete": func(s *stage) func() cli.Result { // says nothing about gateways that have the service
			s.provider(s.g, "allow_unconditional_delete = true")
			return func() cli.Result { return s.Destroy(s.t.Context(), "-refresh=false") }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, c cli.CLI) {
				g := gatewaytest.Start(t)
				s := set(t, c, g)
				ours := s.up()
				now := destroy(s)
				mine, _ := g.GetByID(t, ours)
				stranger := replaceAtVersion(t, g, mine.GetMetadata().GetResourceVersion())

				r := now()
				s.expect(r, 0, cli.Warning, ours, stranger.GetMetadata().GetId())
				unchanged(t, g, stranger)
				neverByName(t, g)
				if id := s.id(); id != "" {
					t.Errorf("the state still has %s", id)
				}
			})
		})
	}
}

// A plain destroy finds the replacement in its refresh. The command line drops what a refresh before a destroy warns of, as
// the documentation says; with -refresh-only it shows the warning.
func TestO1PlainDestroy(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, c cli.CLI) {
		g := gatewaytest.Start(t)
		s := set(t, c, g)
		ours := s.up()
		stranger := g.Replace(t, "web")
		s.expect(s.Plan(t.Context(), "", "-refresh-only"), 2, cli.Warning, ours, stranger.GetMetadata().GetId())
		s.must(s.Destroy(t.Context()))
		unchanged(t, g, stranger)
		if id := s.id(); id != "" {
			t.Errorf("the state still has %s", id)
		}
	})
}

// replaceAtVersion puts a stranger under the name, with the resource version that ours had.
func replaceAtVersion(t *testing.T, g *gatewaytest.Gateway, version uint64) *openshellv1.Sandbox {
	t.Helper()
	if stranger := g.Replace(t, "web"); stranger.GetMetadata().GetResourceVersion() == version {
		return stranger
	}
	return g.TouchVersion(t, "web", version)
}

// The race proper: the replacement happens between the provider's last look and the gateway's handling of the delete.
func TestO1DestroyRacesAReplacement(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, c cli.CLI) {
		g := gatewaytest.Start(t)
		s := set(t, c, g)
		ours := s.up()
		var stranger *openshellv1.Sandbox
		g.Intercept(gatewaytest.Before(conditional, func() error {
			if stranger == nil {
				stranger = g.Replace(t, "web")
			}
			return nil
		}))
		r := s.Destroy(t.Context())
		s.expect(r, 0, cli.Warning, ours, stranger.GetMetadata().GetId())
		unchanged(t, g, stranger)
		neverByName(t, g)
	})
}

// on_identity_mismatch = "error" makes refresh and destroy fail, with the state as it was.
func TestO1MismatchAsError(t *testing.T) {
	t.Parallel()
	g := gatewaytest.Start(t)
	s := set(t, cli.Require(t), g)
	s.provider(g, `on_identity_mismatch = "error"`)
	ours := s.up()
	stranger := g.Replace(t, "web")
	state := s.raw()
	s.expect(s.Plan(t.Context(), ""), 1, cli.Error, ours, stranger.GetMetadata().GetId())
	s.expect(s.Destroy(t.Context(), "-refresh=false"), 1, cli.Error, ours, stranger.GetMetadata().GetId(), "kept")
	s.stateIs(state)
	unchanged(t, g, stranger)
}

// A refresh after a replacement plans a create and never takes the stranger's id into the state, whether the state was
// written with an identity or without one. The apply fails with the ways out, and the stranger can then be imported.
func TestT1RefreshNeverAdopts(t *testing.T) {
	t.Parallel()
	for _, identity := range []string{"as written", "T6 without identity"} {
		t.Run(identity, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, c cli.CLI) {
				g := gatewaytest.Start(t)
				s := set(t, c, g)
				ours := s.up()
				if identity != "as written" {
					s.dropIdentity()
					s.empty()
				}
				stranger := g.Replace(t, "web")
				theirs := stranger.GetMetadata().GetId()

				r := s.Plan(t.Context(), savedPlan)
				s.expect(r, 2, cli.Warning, ours, theirs)
				if actions := s.actions(savedPlan); !actions.Create() {
					t.Errorf("planned %v", actions)
				}
				r = s.Apply(t.Context(), savedPlan)
				s.expect(r, 1, cli.Error, "ALREADY_EXISTS", theirs, "choose another name", "terraform import ADDRESS 'default/web@"+theirs+"'")
				if text := r.Stdout + r.Stderr; strings.Contains(text, "Missing Resource Identity") || strings.Contains(text, "Unexpected Identity") {
					t.Error(text)
				}
				if bytes.Contains(s.raw(), []byte(theirs)) || s.id() != "" {
					t.Errorf("the state is\n%s", s.raw())
				}
				s.must(s.Import(t.Context(), web, "default/web@"+theirs))
				s.empty()
				unchanged(t, g, stranger)
				neverByName(t, g)
			})
		})
	}
}
