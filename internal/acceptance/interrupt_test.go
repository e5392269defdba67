package acceptance_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openshell-iac/terraform-provider-openshell/internal/acceptance/cli"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// An interrupt while the apply waits, or while the gateway has not even answered the create: the id is in the state,
// tainted, and the next apply ends with one sandbox.
func TestT18T19InterruptedCreate(t *testing.T) {
	t.Parallel()
	for moment, driver := range map[string]string{"waiting": `{ never_ready = true }`, "creating": `{ create_takes = "3s" }`} {
		t.Run("Ctrl-C while "+moment, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, c cli.CLI) {
				interruptCreate(t, c, driver, (*cli.Process).Interrupt)
			})
		})
		t.Run("SIGTERM while "+moment, func(t *testing.T) {
			t.Parallel()
			interruptCreate(t, cli.Require(t), driver, (*cli.Process).Terminate)
		})
	}
}

func interruptCreate(t *testing.T, c cli.CLI, driver string, send func(*cli.Process) error) {
	t.Helper()
	g := gatewaytest.Start(t)
	s := set(t, c, g, `driver_config = jsonencode({ simulated = `+driver+` })`)
	p, err := s.Start(t.Context(), "apply", "-json", "-auto-approve")
	if err != nil {
		t.Fatal(err)
	}
	// With create_takes the sandbox is there long before the reply; without, the reply has come when it is polled.
	waitFor(t, func() bool {
		_, there := g.Get(t, "web")
		return there && (strings.Contains(driver, "create_takes") || polled(g))
	})
	if err := send(p); err != nil {
		t.Fatal(err)
	}
	r := p.Wait()
	id := s.id()
	s.expect(r, 1, cli.Error, id, "tainted")
	for _, name := range []string{"name", "workspace", "workspace_id"} { // T19: without where it is, the id is worth nothing
		if value, _ := s.attribute(web, name).(string); value == "" {
			t.Errorf("%s is not in the state", name)
		}
	}
	if all := sandboxes(t, g); id == "" || !s.resource().Tainted || len(all) != 1 || all[0].GetMetadata().GetId() != id {
		t.Fatalf("state %q, gateway %v", id, all)
	}
	s.sandbox(`name = "web"`)
	again := s.up()
	if all := sandboxes(t, g); again == id || len(all) != 1 || all[0].GetMetadata().GetId() != again {
		t.Errorf("state %q, gateway %v", again, all)
	}
}

// polled tells that the provider has its reply and waits.
func polled(g *gatewaytest.Gateway) bool {
	return slices.ContainsFunc(g.AllCalls(), func(c gatewaytest.Call) bool { return c.Method == openshellv1.OpenShell_GetSandbox_FullMethodName })
}

// waitFor polls for what another process brings about.
func waitFor(t *testing.T, happened func() bool) {
	t.Helper()
	deadline := time.NewTimer(gatewaytest.Timeout)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !happened() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatal("it did not happen in time")
		}
	}
}

// An interrupted destroy keeps the state; the next one joins the delete that the gateway goes on with.
func TestT13InterruptedDestroy(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, c cli.CLI) {
		g := gatewaytest.Start(t)
		s := set(t, c, g, `driver_config = jsonencode({ simulated = { delete_after = "3s" } })`)
		ours := s.up()
		p, err := s.Start(t.Context(), "destroy", "-json", "-auto-approve")
		if err != nil {
			t.Fatal(err)
		}
		g.WaitPhase(t, ours, openshellv1.SandboxPhase_SANDBOX_PHASE_DELETING)
		g.ResetCalls()
		waitFor(t, func() bool { return polled(g) })
		if err := p.Interrupt(); err != nil {
			t.Fatal(err)
		}
		s.expect(p.Wait(), 1, cli.Error, ours, "phase deleting", "kept as it was")
		if s.id() != ours {
			t.Fatalf("the state has %q", s.id())
		}
		r := s.Destroy(t.Context())
		if err := r.Err(); err != nil {
			t.Fatal(err)
		}
		if _, ok := g.GetByID(t, ours); ok || s.id() != "" {
			t.Error("still there")
		}
	})
}
