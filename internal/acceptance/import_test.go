package acceptance_test

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"

	"github.com/openshell-iac/terraform-provider-openshell/internal/acceptance/cli"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// An import in each form gives the same state. The plan after it is empty, or an update that needs no call; never a
// replacement.
func TestT5Import(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, c cli.CLI) {
		g := gatewaytest.Start(t)
		s := set(t, c, g, everything...)
		ours := s.up()
		var first map[string]any
		for _, form := range []string{"web", "default/web", "default/web@" + ours} {
			s.must(s.Run(t.Context(), "state", "rm", web))
			s.must(s.Import(t.Context(), web, form))
			got := s.resource().AttributeValues
			if first == nil {
				first = got
			}
			if got["id"] != ours || !reflect.DeepEqual(got, first) {
				t.Errorf("%s: imported %v, want %v", form, got, first)
			}
		}
		s.callFree() // running, wait_for and timeouts are Terraform's own
		s.empty()
	})
}

// callFree applies a plan that must be an update in place, and for which the gateway must not be asked to change anything.
func (s *stage) callFree() {
	s.t.Helper()
	s.g.ResetCalls()
	s.must(s.Plan(s.t.Context(), savedPlan))
	if actions := s.actions(savedPlan); !actions.Update() {
		s.t.Errorf("planned %v", actions)
	}
	s.must(s.Apply(s.t.Context(), savedPlan))
	readsOnly(s.t, s.g)
}

// A minimal configuration for a minimal sandbox has nothing to update after the import.
func TestT5ImportMinimal(t *testing.T) {
	t.Parallel()
	g := gatewaytest.Start(t)
	sb := g.MustCreate(t, "web")
	s := set(t, cli.Require(t), g)
	s.must(s.Import(t.Context(), web, "web"))
	s.empty()
	unchanged(t, g, sb)
}

// The configuration that the command line generates has no environment, since that is sensitive. It neither replaces the
// sandbox nor brings the secret into the state; an environment of the configuration's own is a change as ever.
func TestT5ImportGeneratedConfig(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, c cli.CLI) {
		g := gatewaytest.Start(t)
		sb := g.MustCreate(t, "web", gatewaytest.Request(func(r *openshellv1.CreateSandboxRequest) {
			r.Spec.Environment = map[string]string{"SECRET": canary}
		}))
		s := set(t, c, g)
		s.write("web.tf", fmt.Sprintf("import {\n  to = %s\n  id = \"web\"\n}\n", web))
		says := []string{"imported environment is left to the sandbox", sb.GetMetadata().GetId()}
		s.expect(s.Plan(t.Context(), "", "-generate-config-out=generated.tf"), 2, cli.Warning, says...)
		s.expect(s.Plan(t.Context(), savedPlan), 2, cli.Warning, says...)
		if actions := s.actions(savedPlan); !actions.Update() {
			t.Errorf("planned %v", actions)
		}
		g.ResetCalls()
		s.expect(s.Apply(t.Context(), savedPlan), 0, cli.Warning, says...)
		readsOnly(t, g)
		unchanged(t, g, sb)
		s.empty()
		if bytes.Contains(s.raw(), []byte(canary)) {
			t.Error("the secret is in the state")
		}
		s.write("generated.tf", "")
		s.sandbox(`name = "web"`, `environment = { SECRET = "another" }`)
		s.must(s.Plan(t.Context(), savedPlan))
		if actions := s.actions(savedPlan); !actions.Replace() {
			t.Errorf("planned %v", actions)
		}
	})
}

// An id that is not that of the sandbox under the name is refused.
func TestT5ImportRefusesAnotherID(t *testing.T) {
	t.Parallel()
	g := gatewaytest.Start(t)
	s := set(t, cli.Require(t), g)
	ours := s.up()
	s.must(s.Run(t.Context(), "state", "rm", web))
	stranger := g.Replace(t, "web")
	r := s.Import(t.Context(), web, "default/web@"+ours)
	if r.ExitCode != 1 || s.id() != "" {
		t.Errorf("exit code %d, state %q\n%s", r.ExitCode, s.id(), r.Text())
	}
	unchanged(t, g, stranger)
}

// Import by identity, with and without the id; another id is refused.
func TestT5ImportByIdentity(t *testing.T) {
	t.Parallel()
	c := cli.RequireIdentity(t)
	g := gatewaytest.Start(t)
	sb := g.MustCreate(t, "web")
	id := sb.GetMetadata().GetId()
	block := func(identity string) string {
		return fmt.Sprintf("import {\n  to = %s\n  identity = {\n    %s\n  }\n}\n", web, identity)
	}
	for name, identity := range map[string]string{
		"all three": fmt.Sprintf("workspace = \"default\"\n    name = \"web\"\n    id = %q", id),
		"no id":     "workspace = \"default\"\n    name = \"web\"",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := set(t, c, g)
			s.write("import.tf", block(identity))
			if s.up() != id {
				t.Errorf("imported %s", s.id())
			}
			s.write("import.tf", "")
			s.empty()
			s.must(s.Run(t.Context(), "state", "rm", web))
		})
	}
	t.Run("another id", func(t *testing.T) {
		t.Parallel()
		s := set(t, c, g)
		s.write("import.tf", block("workspace = \"default\"\n    name = \"web\"\n    id = \"0b5c6a5e-98a5-4a44-a3a5-6d1b5a6a0009\""))
		s.expect(s.Apply(t.Context(), ""), 1, cli.Error, id, "0b5c6a5e-98a5-4a44-a3a5-6d1b5a6a0009", "belongs to another sandbox")
	})
	t.Cleanup(func() { unchanged(t, g, sb) })
}
