package acceptance_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/openshell-iac/terraform-provider-openshell/internal/acceptance/cli"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// Somebody selects another gateway in the command line between a plan and its apply. A gateway that is named is not
// affected. The active one is used only when asked for; then the new one is asked, which says nothing about our sandbox
// and is not changed.
func TestO21ActiveGatewayChanges(t *testing.T) {
	t.Parallel()
	first, second := gatewaytest.Start(t), gatewaytest.Start(t)
	theirs := second.MustCreate(t, "web")
	config := t.TempDir()
	for name, g := range map[string]*gatewaytest.Gateway{"first": first, "second": second} {
		registered(t, config, name, fmt.Sprintf(`{"name": %q, "gateway_endpoint": %q, "is_remote": false, "gateway_port": 0}`, name, g.Endpoint()))
	}
	selects := func(name string) { writeFile(t, filepath.Join(config, "openshell", "active_gateway"), name+"\n") }
	s := &stage{WorkingDir: cli.InTest(t, cli.Require(t), "XDG_CONFIG_HOME="+config), t: t, g: first}
	s.sandbox(`name = "web"`)

	selects("first")
	s.providerWith()
	s.expect(s.Plan(t.Context(), ""), 1, cli.Error, "no gateway is configured", "use_active_gateway")
	s.providerWith(`gateway = "first"`)
	s.must(s.Plan(t.Context(), savedPlan))
	selects("second")
	s.must(s.Apply(t.Context(), savedPlan))
	ours := s.id()
	s.empty()
	if calls := second.AllCalls(); len(calls) > 0 {
		t.Errorf("calls to the gateway that is active: %+v", calls)
	}

	selects("first")
	s.providerWith(`use_active_gateway = true`)
	s.empty()
	s.must(s.Plan(t.Context(), savedPlan, "-destroy"))
	selects("second")
	state := s.raw()
	s.expect(s.Apply(t.Context(), savedPlan), 1, cli.Error, "another one, or its database was rebuilt", second.Endpoint(), ours)
	s.expect(s.Plan(t.Context(), ""), 1, cli.Error, "another one, or its database was rebuilt", second.Endpoint(), ours)
	s.stateIs(state)
	unchanged(t, second, theirs)
	selects("first")
	s.must(s.Destroy(t.Context()))
	s.gone(ours)
}
