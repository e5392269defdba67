package provider

import (
	"testing"

	"google.golang.org/grpc/codes"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

func switches(g *gatewaytest.Gateway) (stops, starts, plain int) {
	const conditional = "/openshell.conditional.v1.ConditionalSandboxes/"
	return len(g.Calls(conditional + "StopSandbox")), len(g.Calls(conditional + "StartSandbox")),
		len(g.Calls(openshellv1.OpenShell_StopSandbox_FullMethodName)) + len(g.Calls(openshellv1.OpenShell_StartSandbox_FullMethodName))
}

// Running is switched in place, by id, and the sandbox stays the same.
func TestUpdateRunning(t *testing.T) {
	g := gatewaytest.Start(t, gatewaytest.RequirePrecondition())
	s := connected(t, g, nil)
	config := func(running bool) values { return values{"name": str("web"), "running": boolean(running)} }
	state := s.created(config(true))
	id := state.text("id")
	for _, running := range []bool{false, true, false, true} {
		planned, after := s.plan(t.Context(), state, config(running))
		if len(planned.RequiresReplace) > 0 || after["phase"].IsKnown() || after.text("id") != id {
			t.Fatalf("plan %v", after)
		}
		var diags diagnostics
		if state, diags = s.change(t.Context(), state, config(running)); len(diags) > 0 {
			t.Fatal(diags)
		}
		if want := map[bool]string{false: "stopped", true: "ready"}[running]; state.text("phase") != want || state.text("id") != id || idIn(t, g, "web") != id {
			t.Errorf("state %v", state)
		}
		if left, diags := s.refresh(t.Context(), state); len(diags) > 0 || !sameState(left, state) {
			t.Errorf("refreshed %v\n%s", left, diags)
		}
	}
	if stops, starts, plain := switches(g); stops != 2 || starts != 2 || plain != 0 {
		t.Errorf("%d stops, %d starts, %d plain", stops, starts, plain)
	}
}

// A job that has ended by itself is not run again, and no value of running asks for a change for ever.
func TestUpdateRunningFinished(t *testing.T) {
	for _, running := range []bool{true, false} {
		g := gatewaytest.Start(t)
		s := connected(t, g, nil)
		config := values{"name": str("web"), "wait_for": str("completed"), "driver_config": str(`{"simulated":{"exit_after":"10ms"}}`)}
		state := s.created(config)
		config["running"], config["wait_for"] = boolean(running), str("ready")
		state, diags := s.change(t.Context(), state, config)
		if len(diags) > 0 || state.text("phase") != "completed" {
			t.Errorf("state %v\n%s", state, diags)
		}
		left, diags := s.refresh(t.Context(), state)
		if len(diags) > 0 || !sameState(left, state) {
			t.Errorf("running = %v: refreshed %v\n%s", running, left, diags)
		}
		if stops, starts, plain := switches(g); stops+starts+plain != 0 {
			t.Errorf("%d stops, %d starts, %d plain", stops, starts, plain)
		}
	}
}

// Nothing is sent to a stranger, another gateway or one that cannot bind the call to an id; the state stays.
func TestUpdateSparesStrangers(t *testing.T) {
	stop := values{"name": str("web"), "running": boolean(false)}
	check := func(t *testing.T, g *gatewaytest.Gateway, s *server, state values, says ...string) {
		t.Helper()
		left, diags := s.change(t.Context(), state, stop)
		if !sameState(left, state) {
			t.Errorf("state %v", left)
		}
		expect(t, "error", diags.errors(), append(says, "kept as it was")...)
		if sb, ok := g.Get(t, "web"); ok && sb.GetStatus().GetPhase() != openshellv1.SandboxPhase_SANDBOX_PHASE_READY {
			t.Error("it was stopped")
		}
		if _, _, plain := switches(g); plain != 0 {
			t.Error("a plain call was made")
		}
	}
	config := values{"name": str("web"), "running": boolean(true)}
	t.Run("replaced", func(t *testing.T) {
		g := gatewaytest.Start(t)
		s := connected(t, g, nil)
		state := s.created(config)
		stranger := g.Replace(t, "web").GetMetadata().GetId()
		check(t, g, s, state, "was not stopped", state.text("id"), stranger, "terraform plan")
		if stops, _, _ := switches(g); stops != 0 {
			t.Error("a stop was sent")
		}
	})
	t.Run("replaced between read and call", func(t *testing.T) {
		g := gatewaytest.Start(t)
		s := connected(t, g, nil)
		state := s.created(config)
		replaced := false
		g.Intercept(gatewaytest.Before("ConditionalSandboxes/StopSandbox", func() error {
			if !replaced {
				replaced = true
				g.Replace(t, "web")
			}
			return nil
		}))
		check(t, g, s, state, "was not stopped", state.text("id"), "is gone")
	})
	t.Run("elsewhere", func(t *testing.T) {
		g, other := gatewaytest.Start(t), gatewaytest.Start(t)
		state := connected(t, g, nil).created(config)
		other.MustCreate(t, "web")
		check(t, other, connected(t, other, nil), state, "was not stopped", "another one", "terraform state rm")
	})
	t.Run("no access any more", func(t *testing.T) {
		g := gatewaytest.Start(t)
		s := connected(t, g, nil)
		state := s.created(config)
		g.Intercept(gatewaytest.Refuse(codes.NotFound, "/GetSandbox", "/GetWorkspace"))
		check(t, g, s, state, "was not stopped", "proves nothing")
	})
	t.Run("no answer", func(t *testing.T) {
		g := gatewaytest.Start(t)
		s := connected(t, g, nil)
		state := s.created(config)
		g.Intercept(gatewaytest.Refuse(codes.Unavailable, "ConditionalSandboxes/StopSandbox"))
		check(t, g, s, state, "is not known", "not answered", "may yet take effect", "terraform plan")
	})
	t.Run("unaware gateway, opted in for deletes", func(t *testing.T) {
		g := gatewaytest.Start(t, gatewaytest.WithoutConditional())
		s := connected(t, g, values{"allow_unconditional_delete": boolean(true)})
		check(t, g, s, s.created(config), "was not stopped", "openshell.conditional.v1")
	})
}
