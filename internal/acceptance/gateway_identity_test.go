package acceptance_test

import (
	"net/url"
	"strconv"
	"testing"

	"github.com/openshell-iac/terraform-provider-openshell/internal/acceptance/cli"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// The endpoint now leads to another gateway, empty or with a web of its own. What it shows says nothing about our sandbox:
// plan, apply and destroy fail, the state stays as it was, and neither gateway is asked to change anything.
func TestO20AnotherGateway(t *testing.T) {
	t.Parallel()
	for name, has := range map[string]bool{"empty": false, "with a web of its own": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, other := gatewaytest.Start(t), gatewaytest.Start(t)
			s := set(t, cli.Require(t), g)
			ours := s.up()
			s.must(s.Plan(t.Context(), savedPlan, "-destroy"))
			mine, _ := g.GetByID(t, ours)
			var theirs *openshellv1.Sandbox
			if has {
				theirs = other.MustCreate(t, "web")
			}
			g.ResetCalls()
			s.provider(other)
			state := s.raw()
			says := []string{"another one, or its database was rebuilt", ours, "terraform state rm", "kept as it was"}
			for _, r := range []cli.Result{
				s.Plan(t.Context(), ""), s.Apply(t.Context(), ""), s.Destroy(t.Context()), s.Destroy(t.Context(), "-refresh=false"),
			} {
				s.expect(r, 1, cli.Error, says...)
				s.stateIs(state)
			}
			unchanged(t, g, mine)
			if n := len(g.AllCalls()); n > 0 {
				t.Errorf("%d calls to the first gateway", n)
			}
			if has {
				unchanged(t, other, theirs)
			} else if n := len(sandboxes(t, other)); n > 0 {
				t.Errorf("%d sandboxes on the empty gateway", n)
			}
			neverByName(t, other)
			if n := len(other.Calls(openshellv1.OpenShell_CreateSandbox_FullMethodName)); n > 0 {
				t.Errorf("%d creates", n)
			}
		})
	}
}

// A gateway whose database was rebuilt at the same address is another gateway.
func TestO20RebuiltGateway(t *testing.T) {
	t.Parallel()
	g := gatewaytest.Start(t)
	s := set(t, cli.Require(t), g)
	ours := s.up()
	endpoint := g.Endpoint()
	g.Stop(t)
	rebuilt := gatewaytest.Start(t, gatewaytest.WithPort(portOf(t, endpoint)))
	theirs := rebuilt.MustCreate(t, "web")
	state := s.raw()
	s.expect(s.Destroy(t.Context(), "-refresh=false"), 1, cli.Error, "its database was rebuilt", ours)
	s.stateIs(state)
	unchanged(t, rebuilt, theirs)
}

func portOf(t *testing.T, endpoint string) int {
	t.Helper()
	u, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	return port
}
