package acceptance_test

import (
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/openshell-iac/terraform-provider-openshell/internal/acceptance/cli"
	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// simulated steers a sandbox by keys of the simulated driver.
func simulated(keys string) string {
	return `driver_config = jsonencode({ simulated = { ` + keys + ` } })`
}

// An apply is over when the sandbox is ready, at once when it will never be, and without a look when told so.
func TestT26O10O12WaitsForTheEndOfTheStart(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, c cli.CLI) {
		g := gatewaytest.Start(t)
		s := set(t, c, g, simulated(`ready_after = "2s"`))
		s.write("more.tf", resources(map[string]string{
			"unwaited": simulated(`never_ready = true`) + "\n  wait_for = \"none\"",
			"finished": simulated(`exit_after = "0s"`) + "\n  wait_for = \"completed\"",
			"short":    simulated(`exit_after = "0s"`), // a job that is done sooner than anybody looks
			"failed":   simulated(`exit_after = "0s", exit_code = 3`) + "\n  wait_for = \"completed\"",
			"refused":  simulated(`create_error = "no such image"`),
		}))
		start := time.Now()
		r := s.Apply(t.Context(), "")
		if took := time.Since(start); took > 3*time.Minute {
			t.Errorf("took %v", took)
		}
		s.expectAt(r, "openshell_sandbox.failed", "", "phase error", "exit code 3", "tainted")
		s.expectAt(r, "openshell_sandbox.refused", "", "no such image")
		if n := len(r.Errors()); n != 2 {
			t.Errorf("%d errors", n)
		}
		phases := map[string]any{"web": "ready", "unwaited": "provisioning", "finished": "completed", "short": "completed"}
		for name, phase := range phases {
			if got := s.attribute("openshell_sandbox."+name, "phase"); got != phase {
				t.Errorf("%s is in phase %v", name, got)
			}
		}

		// O10: what failed needs nobody's help. One apply with a better configuration replaces it.
		failed := s.attribute("openshell_sandbox.failed", "id")
		s.write("more.tf", resources(map[string]string{"failed": "", "refused": ""}))
		if err := s.Apply(t.Context(), "").Err(); err != nil { // with a warning about the phase that the failed one is in
			t.Fatal(err)
		}
		if again := s.attribute("openshell_sandbox.failed", "id"); again == failed || len(sandboxes(t, g)) != 3 {
			t.Errorf("%v after %v, gateway %v", again, failed, sandboxes(t, g))
		}
		s.empty()
	})
}

// A phase that this provider does not know is one to wait in.
func TestO12UnknownPhase(t *testing.T) {
	t.Parallel()
	g := gatewaytest.Start(t)
	s := set(t, cli.Require(t), g)
	reads := 0
	g.Intercept(shown(func(sb *openshellv1.Sandbox) {
		if reads++; reads <= 3 {
			sb.Status.Phase = 99
		}
	}))
	s.up()
	g.Intercept(shown(func(sb *openshellv1.Sandbox) { sb.Status.Phase = 99 }))
	s.must(s.Plan(t.Context(), savedPlan))
	if actions := s.actions(savedPlan); !actions.NoOp() {
		t.Errorf("planned %v", actions)
	}
}

// Somebody replaces the sandbox while the apply waits for it. The other one is not what the apply made.
func TestO25ReplacedDuringTheWait(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, c cli.CLI) {
		g := gatewaytest.Start(t)
		s := set(t, c, g, simulated(`never_ready = true`))
		var ours string
		var stranger *openshellv1.Sandbox
		g.Intercept(gatewaytest.Before("/GetSandbox", func() error {
			if stranger == nil {
				ours = g.WaitName(t, "web").GetMetadata().GetId()
				stranger = g.Replace(t, "web")
			}
			return nil
		}))
		s.expect(s.Apply(t.Context(), ""), 1, cli.Error, ours, stranger.GetMetadata().GetId(), "is gone")
		if s.id() != ours || !s.resource().Tainted {
			t.Errorf("the state is\n%s", s.raw())
		}
		s.expect(s.Apply(t.Context(), ""), 1, cli.Error, "ALREADY_EXISTS", stranger.GetMetadata().GetId())
		s.must(s.Destroy(t.Context()))
		unchanged(t, g, stranger)
	})
}

// A start that was planned loses against a delete that came first, and against one that comes between look and call.
func TestO30StartLosesAgainstADelete(t *testing.T) {
	t.Parallel()
	for name, moment := range map[string]func(*stage, func() error) grpc.UnaryServerInterceptor{
		"before": func(s *stage, remove func() error) grpc.UnaryServerInterceptor {
			if err := remove(); err != nil {
				s.t.Fatal(err)
			}
			return nil
		},
		"between": func(_ *stage, remove func() error) grpc.UnaryServerInterceptor {
			return gatewaytest.Before("ConditionalSandboxes/StartSandbox", remove)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := gatewaytest.Start(t)
			deletes := simulated(`delete_after = "2s"`)
			s := set(t, cli.Require(t), g, deletes, `running = false`)
			ours := s.up()
			s.sandbox(`name = "web"`, deletes, `running = true`)
			s.must(s.Plan(t.Context(), savedPlan))
			g.Intercept(moment(s, func() error {
				_, err := g.Conditional().DeleteSandbox(t.Context(), &conditionalv1.ConditionalDeleteSandboxRequest{
					Precondition: &conditionalv1.SandboxPrecondition{Id: &ours},
					Request:      &openshellv1.DeleteSandboxRequest{Name: "web", WorkspaceScope: gatewaytest.Default()},
				})
				return err
			}))
			s.expect(s.Apply(t.Context(), savedPlan), 1, cli.Error, ours, "was not started", "kept as it was")
			g.Intercept(nil)
			s.must(s.Destroy(t.Context(), "-refresh=false"))
			s.gone(ours)
		})
	}
}
