package acceptance_test

import (
	"fmt"
	"testing"

	"github.com/openshell-iac/terraform-provider-openshell/internal/acceptance/cli"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// An endpoint that another resource gives is not known when planning. Nothing is asked then, of that gateway or of the one
// that a variable names; the apply works.
func TestT29EndpointKnownAfterApply(t *testing.T) {
	t.Parallel()
	g, tempting := gatewaytest.Start(t), gatewaytest.Start(t)
	s := &stage{WorkingDir: cli.InTest(t, cli.Require(t), "OPENSHELL_GATEWAY_ENDPOINT="+tempting.Endpoint()), t: t, g: g}
	s.write("provider.tf", fmt.Sprintf("terraform {\n  required_providers {\n    openshell = {\n      source = %q\n    }\n  }\n}\n\nresource \"terraform_data\" \"gateway\" {\n  input = %q\n}\n\nprovider \"openshell\" {\n  endpoint = terraform_data.gateway.output\n}\n",
		cli.Address, g.Endpoint()))
	s.sandbox(`name = "web"`)
	s.must(s.Plan(t.Context(), savedPlan))
	if n := len(g.AllCalls()); n > 0 {
		t.Errorf("%d calls during the plan", n)
	}
	s.must(s.Apply(t.Context(), savedPlan))
	if s.id() == "" || len(sandboxes(t, g)) != 1 {
		t.Errorf("state %q, gateway %v", s.id(), sandboxes(t, g))
	}
	s.empty()
	s.must(s.Destroy(t.Context()))
	if n := len(tempting.AllCalls()); n > 0 {
		t.Errorf("%d calls to the gateway of the environment", n)
	}
}

// The environment stands in for what the configuration does not say.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	g := gatewaytest.Start(t)
	s := &stage{WorkingDir: cli.InTest(t, cli.Require(t), "OPENSHELL_GATEWAY_ENDPOINT="+g.Endpoint(), "OPENSHELL_WORKSPACE=elsewhere"), t: t, g: g}
	s.write("provider.tf", fmt.Sprintf("terraform {\n  required_providers {\n    openshell = {\n      source = %q\n    }\n  }\n}\n", cli.Address))
	s.sandbox(`name = "web"`)
	s.expect(s.Apply(t.Context(), ""), 1, cli.Error, `workspace "elsewhere"`)
	s.sandbox(`name = "web"`, `workspace = "default"`)
	s.up()
	s.empty()
}
