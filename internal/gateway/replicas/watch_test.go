package replicas

import (
	"errors"
	"io"
	"testing"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// watched has one gateway watch what the others do, one of which is killed and replaced.
func watched(t *testing.T, fleet []*replica) {
	created := fleet[0].create(t, "web", map[string]any{"ready_after": "1s"})
	stream, err := fleet[1].plain.WatchSandbox(within(t), &openshellv1.WatchSandboxRequest{Sandbox: "web", FollowStatus: true, WorkspaceScope: gatewaytest.Default()})
	if err != nil {
		t.Fatal(err)
	}
	until := func(phase openshellv1.SandboxPhase) {
		t.Helper()
		for {
			event, err := stream.Recv()
			if err != nil {
				t.Fatalf("on the way to %v: %v", phase, err)
			}
			if id := meta(event.GetSandbox()).GetId(); id != meta(created).GetId() {
				t.Fatalf("shown %s, not %s", id, meta(created).GetId())
			}
			if event.GetSandbox().GetStatus().GetPhase() == phase {
				return
			}
		}
	}
	until(openshellv1.SandboxPhase_SANDBOX_PHASE_READY)
	if _, err := fleet[2].plain.StopSandbox(within(t), &openshellv1.StopSandboxRequest{Name: "web", WorkspaceScope: gatewaytest.Default()}); err != nil {
		t.Fatal(err)
	}
	until(openshellv1.SandboxPhase_SANDBOX_PHASE_STOPPED)
	fleet[2].Kill()
	fleet[2].Restart(t)
	certainlyDelete(t, fleet[2], "web", meta(created).GetId())
	for {
		event, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return
		case err != nil || meta(event.GetSandbox()).GetId() != meta(created).GetId():
			t.Fatalf("after the delete: %v, %v", event, err)
		}
	}
}
