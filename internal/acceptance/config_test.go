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
	s.providerWith(`endpoint = terraform_data.gateway.output`)
	gateway := func(g *gatewaytest.Gateway) {
		s.write("gateway.tf", fmt.Sprintf("resource \"terraform_data\" \"gateway\" {\n  input = %q\n}\n", g.Endpoint()))
	}
	gateway(g)
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

	// What there is cannot be read from a gateway that is not known; an apply of what it comes from alone can go ahead.
	gateway(tempting)
	state := s.raw()
	s.expect(s.Plan(t.Context(), ""), 1, cli.Error, "provider's endpoint will be known only after an apply", "-target", "kept as it was")
	s.stateIs(state)
	gateway(g)
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
	s.providerWith()
	s.sandbox(`name = "web"`)
	s.expect(s.Apply(t.Context(), ""), 1, cli.Error, `workspace "elsewhere"`)
	s.sandbox(`name = "web"`, `workspace = "default"`)
	s.up()
	s.empty()
}
