package replicas

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

const (
	provisioning = openshellv1.SandboxPhase_SANDBOX_PHASE_PROVISIONING
	ready        = openshellv1.SandboxPhase_SANDBOX_PHASE_READY
	starting     = openshellv1.SandboxPhase_SANDBOX_PHASE_STARTING
	stopped      = openshellv1.SandboxPhase_SANDBOX_PHASE_STOPPED
	deleting     = openshellv1.SandboxPhase_SANDBOX_PHASE_DELETING
	completed    = openshellv1.SandboxPhase_SANDBOX_PHASE_COMPLETED
)

// killedGateway kills a gateway that has work of every kind under way.
func killedGateway(t *testing.T, fleet []*replica) {
	doomed, other, third := fleet[0], fleet[1], fleet[2]

	// What takes long begins when the gateway is about to die.
	restarted := doomed.create(t, "restarted", map[string]any{"ready_after": "2s"})
	other.awaitPhase(t, "restarted", ready)
	if _, err := doomed.plain.StopSandbox(within(t), &openshellv1.StopSandboxRequest{Name: "restarted", WorkspaceScope: gatewaytest.Default()}); err != nil {
		t.Fatal(err)
	}
	finishing := doomed.create(t, "finishing", map[string]any{"ready_after": "0s", "exit_after": "5s"})
	replaced := doomed.create(t, "replaced", map[string]any{"ready_after": "0s", "delete_after": "3s"})
	doomed.create(t, "removed", map[string]any{"ready_after": "0s", "delete_after": "3s"})
	for _, name := range []string{"replaced", "removed"} {
		other.awaitPhase(t, name, ready)
		if reply := doomed.delete(t, name); reply.GetOutcome() != openshellv1.DeletionOutcome_DELETION_OUTCOME_ACCEPTED {
			t.Fatalf("delete %s: %v", name, reply)
		}
	}
	if _, err := doomed.plain.StartSandbox(within(t), &openshellv1.StartSandboxRequest{Name: "restarted", WorkspaceScope: gatewaytest.Default()}); err != nil {
		t.Fatal(err)
	}
	settling := doomed.create(t, "settling", map[string]any{"ready_after": "3s"})
	answered := make(chan error, 1)
	go func() {
		_, err := doomed.plain.CreateSandbox(within(t), request("pending", map[string]any{"create_takes": "3s"}))
		answered <- err
	}()
	pending := other.await(t, "pending", "there", func(s *openshellv1.Sandbox) bool { return s != nil })
	for name, phase := range map[string]openshellv1.SandboxPhase{
		"restarted": starting, "replaced": deleting, "removed": deleting, "settling": provisioning, "pending": provisioning,
	} {
		if got := other.get(within(t), t, name).GetStatus().GetPhase(); got != phase {
			t.Fatalf("%s is in %s before the kill, want %s", name, got, phase)
		}
	}

	doomed.Kill()
	if err := <-answered; err == nil {
		t.Error("the killed gateway answered")
	}
	if _, err := third.plain.DeleteSandbox(within(t), deleteRequest("pending")); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("a delete answered %v while the driver's call was unanswered", err)
	}
	doomed.Restart(t)

	third.awaitGone(t, "replaced")
	third.create(t, "replaced", map[string]any{"ready_after": "0s"})
	successor := third.awaitPhase(t, "replaced", ready)
	third.awaitGone(t, "removed")
	for s, phase := range map[*openshellv1.Sandbox]openshellv1.SandboxPhase{
		restarted: ready, settling: ready, pending: ready, finishing: completed,
	} {
		if got := other.awaitPhase(t, meta(s).GetName(), phase); meta(got).GetId() != meta(s).GetId() {
			t.Errorf("%s is %s now, was %s", meta(s).GetName(), meta(got).GetId(), meta(s).GetId())
		}
	}
	if meta(successor).GetId() == meta(replaced).GetId() {
		t.Error("the successor has the id of the first")
	}
	if now := doomed.get(within(t), t, "replaced"); !proto.Equal(now, successor) {
		t.Errorf("the successor was touched: it is %v, was %v", now, successor)
	}
}
