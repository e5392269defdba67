package acceptance_test

import (
	"strings"
	"testing"

	"github.com/openshell-iac/terraform-provider-openshell/internal/acceptance/cli"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// Whatever hangs on the sandbox hangs on its id, and so learns of a replacement under the same name.
func TestT3DependantsSeeTheNewID(t *testing.T) {
	t.Parallel()
	g := gatewaytest.Start(t)
	s := set(t, cli.Require(t), g)
	const dependant = "terraform_data.dependant"
	s.write("dependant.tf", "resource \"terraform_data\" \"dependant\" {\n  triggers_replace = openshell_sandbox.web.id\n}\n")
	s.up()
	s.sandbox(`name = "web"`, `image = "example.com/agent:2"`)
	s.must(s.Plan(t.Context(), savedPlan))
	for _, address := range []string{web, dependant} {
		if actions := s.actionsAt(savedPlan, address); !actions.Replace() {
			t.Errorf("%s is planned as %v", address, actions)
		}
	}
}

// A state that does not say which sandbox it means leads to no delete: only that nobody has the name ends it (O27).
func TestT4O27StateWithoutID(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, c cli.CLI) {
		for name, id := range map[string]string{"null": `null`, "empty": `""`, "the name": `"web"`} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				g := gatewaytest.Start(t)
				s := set(t, c, g)
				ours := s.up()
				mine, _ := g.GetByID(t, ours)
				s.write("terraform.tfstate", strings.Replace(string(s.raw()), `"id": "`+ours+`"`, `"id": `+id, 1))
				state := s.raw()
				says := []string{"does not say which sandbox", ours, "terraform state rm", "terraform import ADDRESS 'default/web@" + ours + "'", "kept as it was"}
				for _, r := range []cli.Result{s.Plan(t.Context(), ""), s.Destroy(t.Context(), "-refresh=false")} {
					s.expect(r, 1, cli.Error, says...)
					s.stateIs(state)
				}
				unchanged(t, g, mine)
				neverByName(t, g)
				if n := s.deletes(); n > 0 {
					t.Errorf("%d deletes", n)
				}
				g.MustDelete(t, "web")
				s.must(s.Destroy(t.Context(), "-refresh=false"))
				if s.id() != "" {
					t.Error("still in the state")
				}
			})
		}
	})
}

// The same name in two workspaces is two sandboxes. When the destroy of one is over it is really gone, so that its
// workspace can go right away (O6); the other is not touched.
func TestO3O6SameNameInTwoWorkspaces(t *testing.T) {
	t.Parallel()
	g := gatewaytest.Start(t)
	if _, err := g.OpenShell().CreateWorkspace(t.Context(), &openshellv1.CreateWorkspaceRequest{Name: "team"}); err != nil {
		t.Fatal(err)
	}
	ours := set(t, cli.Require(t), g).up()
	mine, _ := g.GetByID(t, ours)
	s := set(t, cli.Require(t), g, simulated(`delete_after = "2s"`))
	s.provider(g, `workspace = "team"`)
	theirs := s.up()
	s.must(s.Destroy(t.Context()))
	s.gone(theirs)
	unchanged(t, g, mine)
	if _, err := g.OpenShell().DeleteWorkspace(t.Context(), &openshellv1.DeleteWorkspaceRequest{Name: "team"}); err != nil {
		t.Errorf("the workspace is not empty: %v", err)
	}
}
