package acceptance_test

import (
	"fmt"
	"testing"

	"github.com/openshell-iac/terraform-provider-openshell/internal/acceptance/cli"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

var everything = []string{
	`image = "example.com/agent:1"`, `command = ["sleep", "infinity"]`, `tty = false`, `environment = { A = "b" }`, `labels = { team = "a" }`,
	`annotations = { note = "x" }`, `log_level = "debug"`, `restart_policy = "on_failure"`, `running = true`, `wait_for = "ready"`,
	`driver_config = jsonencode({ simulated = { ready_after = "10ms" } })`, `timeouts = { delete = "1m" }`,
	`policy = yamlencode({ version = 1, network_policies = { git = { endpoints = [{ host = "example.com", port = 443 }], binaries = [{ path = "/usr/bin/git" }] } } })`,
}

// After every apply the next plan is empty, whatever the gateway and others have written to the sandbox meanwhile.
func TestT24T27SecondPlanIsEmpty(t *testing.T) {
	t.Parallel()
	test := func(t *testing.T, c cli.CLI, arguments []string) {
		t.Helper()
		g := gatewaytest.Start(t)
		s := set(t, c, g, arguments...)
		s.up()
		s.empty()
		g.Annotate(t, "web", "example.com/foreign", "note")
		g.Annotate(t, "web", "internal.openshell.ai/auth-epoch", "7")
		sb, _ := g.Get(t, "web")
		g.TouchVersion(t, "web", sb.GetMetadata().GetResourceVersion()+10)
		g.ResetCalls()
		s.empty()
		readsOnly(t, g)
	}
	for name, arguments := range map[string][]string{"minimal": nil, "stopped": {`running = false`}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, cli.Require(t), arguments)
		})
	}
	t.Run("everything", func(t *testing.T) {
		onEach(t, func(t *testing.T, c cli.CLI) { test(t, c, everything) })
	})
}

// What Terraform does not manage others may change: a sandbox that they stop and start again is no change.
func TestT24StopsOfOthersAreQuiet(t *testing.T) {
	t.Parallel()
	g := gatewaytest.Start(t)
	s := set(t, cli.Require(t), g)
	ours := s.up()
	if _, err := g.OpenShell().StopSandbox(t.Context(), &openshellv1.StopSandboxRequest{Name: "web", WorkspaceScope: gatewaytest.Default()}); err != nil {
		t.Fatal(err)
	}
	g.WaitPhase(t, ours, openshellv1.SandboxPhase_SANDBOX_PHASE_STOPPED)
	s.empty()
	if _, err := g.OpenShell().StartSandbox(t.Context(), &openshellv1.StartSandboxRequest{Name: "web", WorkspaceScope: gatewaytest.Default()}); err != nil {
		t.Fatal(err)
	}
	g.WaitPhase(t, ours, openshellv1.SandboxPhase_SANDBOX_PHASE_READY)
	s.empty()
}

// An error or an unknown phase out of band is a warning, never a reason to replace the sandbox.
func TestO11ErrorPhaseReplacesNothing(t *testing.T) {
	t.Parallel()
	g := gatewaytest.Start(t)
	s := set(t, cli.Require(t), g)
	ours := s.up()
	for _, phase := range []openshellv1.SandboxPhase{openshellv1.SandboxPhase_SANDBOX_PHASE_ERROR, openshellv1.SandboxPhase_SANDBOX_PHASE_UNKNOWN} {
		g.SetPhase(t, "web", phase)
		s.expect(s.Plan(t.Context(), ""), 0, cli.Warning, ours, "not well")
	}
}

// A finished job is finished: no plan runs it again.
func TestO12FinishedJob(t *testing.T) {
	t.Parallel()
	g := gatewaytest.Start(t)
	s := set(t, cli.Require(t), g, `wait_for = "completed"`, `running = true`, `driver_config = jsonencode({ simulated = { exit_after = "10ms" } })`)
	s.up()
	if r := s.resource(); r.AttributeValues["phase"] != "completed" || fmt.Sprint(r.AttributeValues["exit_code"]) != "0" {
		t.Errorf("state %v", r.AttributeValues)
	}
	s.empty()
	s.must(s.Apply(t.Context(), ""))
	s.must(s.Destroy(t.Context()))
}
