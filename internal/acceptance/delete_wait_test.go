package acceptance_test

import (
	"context"
	"math"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"

	"github.com/openshell-iac/terraform-provider-openshell/internal/acceptance/cli"
	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/apierr"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// gone checks that our sandbox is neither at the gateway nor in the state.
func (s *stage) gone(id string) {
	s.t.Helper()
	if _, ok := s.g.GetByID(s.t, id); ok || s.id() != "" {
		s.t.Errorf("at the gateway: %v, in the state: %q", ok, s.id())
	}
}

// deletes counts the guarded deletes so far.
func (s *stage) deletes() int { return len(s.g.Calls(conditional)) }

// The delete is over when our id is gone, and so it is when a stranger has the name by then.
func TestT9NameTakenDuringTheDelete(t *testing.T) {
	t.Parallel()
	g := gatewaytest.Start(t)
	s := set(t, cli.Require(t), g)
	ours := s.up()
	var stranger *openshellv1.Sandbox
	g.Intercept(gatewaytest.Before("/GetSandbox", func() error {
		if stranger == nil && s.deletes() > 0 {
			g.WaitGone(t, ours)
			stranger = g.MustCreate(t, "web")
		}
		return nil
	}))
	s.must(s.Destroy(t.Context()))
	s.gone(ours)
	unchanged(t, g, stranger)
	if n := s.deletes(); n != 1 {
		t.Errorf("%d deletes", n)
	}
}

// stale answers reads after the delete with the sandbox as it was, so many times.
func (s *stage) stale(times int64) {
	var left atomic.Int64
	left.Store(times)
	mine, _ := s.g.Get(s.t, "web")
	s.g.Intercept(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		if !strings.HasSuffix(info.FullMethod, "/GetSandbox") || s.deletes() == 0 || left.Add(-1) < 0 {
			return handle(ctx, req)
		}
		return &openshellv1.SandboxResponse{Sandbox: mine}, nil
	})
}

// Replicas lag: a few reads may show the sandbox after its delete. The read is repeated then, not the delete.
func TestT10StaleReadsAfterTheDelete(t *testing.T) {
	t.Parallel()
	g := gatewaytest.Start(t)
	s := set(t, cli.Require(t), g)
	ours := s.up()
	s.stale(3)
	s.must(s.Destroy(t.Context()))
	s.gone(ours)
	if n := s.deletes(); n != 1 {
		t.Errorf("%d deletes", n)
	}
}

// A sandbox that never stops showing is not proved gone, whatever the delete was answered.
func TestO7AbsenceCannotBeProved(t *testing.T) {
	t.Parallel()
	g := gatewaytest.Start(t)
	s := set(t, cli.Require(t), g)
	ours := s.up()
	state := s.raw()
	s.stale(math.MaxInt64)
	s.expect(s.Destroy(t.Context(), "-refresh=false"), 1, cli.Error, ours, "still there", "phase ready", "kept as it was")
	s.stateIs(state)
	g.Intercept(nil)
	s.must(s.Destroy(t.Context(), "-refresh=false"))
	s.gone(ours)
}

// The answer to a delete that took effect is lost. Nothing odd has happened then, not even when somebody else has the name
// by the time the delete is repeated.
func TestT11LostReplyOfADelete(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, c cli.CLI) {
		for name, replaced := range map[string]bool{"gone": false, "replaced": true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				g := gatewaytest.Start(t)
				s := set(t, c, g)
				ours := s.up()
				var stranger *openshellv1.Sandbox
				g.Intercept(gatewaytest.Lose(conditional, func() {
					g.WaitGone(t, ours)
					if replaced {
						stranger = g.MustCreate(t, "web")
					}
				}))
				s.must(s.Destroy(t.Context()))
				s.gone(ours)
				if replaced {
					unchanged(t, g, stranger)
				}
				if n := s.deletes(); n != 2 {
					t.Errorf("%d deletes", n)
				}
			})
		}
	})
}

// The compute driver gives the delete up, and the gateway puts the sandbox back: the destroy says so after one more try
// instead of waiting for its time limit. A later one works.
func TestT12DeleteIsRolledBack(t *testing.T) {
	t.Parallel()
	g := gatewaytest.Start(t)
	s := set(t, cli.Require(t), g, `driver_config = jsonencode({ simulated = { delete_after = "300ms", delete_error = "volume is busy" } })`)
	ours := s.up()
	state := s.raw()
	s.expect(s.Destroy(t.Context(), "-refresh=false"), 1, cli.Error, ours, "twice", "phase ready", "kept as it was")
	s.stateIs(state)
	g.Steer(t, "web", nil)
	s.must(s.Destroy(t.Context(), "-refresh=false"))
	s.gone(ours)
}

// Somebody else's delete is under way: a destroy joins it.
func TestT13AlreadyDeleting(t *testing.T) {
	t.Parallel()
	g := gatewaytest.Start(t)
	s := set(t, cli.Require(t), g, `driver_config = jsonencode({ simulated = { delete_after = "2s" } })`)
	ours := s.up()
	_, err := g.Conditional().DeleteSandbox(t.Context(), &conditionalv1.ConditionalDeleteSandboxRequest{
		Precondition: &conditionalv1.SandboxPrecondition{Id: &ours},
		Request:      &openshellv1.DeleteSandboxRequest{Name: "web", WorkspaceScope: gatewaytest.Default()},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.must(s.Destroy(t.Context(), "-refresh=false"))
	s.gone(ours)
}

// The time limit of a delete is that of the state: in a second destroy too, and when the configuration has none any more.
// What it says is which sandbox, how long, and how it was last seen.
func TestT14T15DeleteTimesOut(t *testing.T) {
	t.Parallel()
	g := gatewaytest.Start(t)
	never := `driver_config = jsonencode({ simulated = { delete_after = "1h" } })`
	s := set(t, cli.Require(t), g, never, `timeouts = { delete = "5s" }`)
	ours := s.up()
	state := s.raw()
	g.Intercept(shown(func(sb *openshellv1.Sandbox) {
		sb.Status.Conditions = []*openshellv1.SandboxCondition{{Type: "Ready", Status: "False", Reason: "VolumeBusy", Message: "waiting for a volume"}}
	}))
	says := []string{ours, "was not gone after 5", "phase deleting, reason VolumeBusy, waiting for a volume", "kept as it was", "timeouts = { delete"}
	for range 2 {
		s.expect(s.Destroy(t.Context(), "-refresh=false"), 1, cli.Error, says...)
		s.stateIs(state)
		s.sandbox(`name = "web"`, never)
	}
}

// Status writes come between whatever the gateway reads and writes. A delete that loses against one is made again, with
// the same id.
func TestO5VersionConflict(t *testing.T) {
	t.Parallel()
	g := gatewaytest.Start(t)
	s := set(t, cli.Require(t), g)
	ours := s.up()
	g.Intercept(gatewaytest.Before(conditional, func() error {
		mine, _ := g.Get(t, "web")
		version := mine.GetMetadata().GetResourceVersion()
		g.TouchVersion(t, "web", version+10)
		if s.deletes() > 2 {
			return nil
		}
		return &apierr.VersionConflict{Current: version + 10}
	}))
	s.must(s.Destroy(t.Context()))
	s.gone(ours)
	for _, call := range g.Calls(conditional) {
		request, _ := call.Request.(*conditionalv1.ConditionalDeleteSandboxRequest)
		if request.GetPrecondition().GetId() != ours {
			t.Errorf("delete %v", request)
		}
	}
}
