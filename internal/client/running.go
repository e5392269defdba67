package client

import (
	"context"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

// Stop stops the sandbox with ref's id, once it is in a phase that can be stopped. One that is stopped, has finished or
// has failed is left as it is. Stop and Start are bound to the id, as boundChange says.
func (c *Client) Stop(ctx context.Context, ref Ref) (*openshellv1.Sandbox, error) {
	b := &boundChange{wait: newWait(ref, "stopped"), c: c}
	b.decide = func(sb *openshellv1.Sandbox) move {
		switch sb.GetStatus().GetPhase() {
		case openshellv1.SandboxPhase_SANDBOX_PHASE_STOPPED,
			openshellv1.SandboxPhase_SANDBOX_PHASE_COMPLETED,
			openshellv1.SandboxPhase_SANDBOX_PHASE_ERROR:
			return arrived
		case openshellv1.SandboxPhase_SANDBOX_PHASE_READY:
			return act
		case openshellv1.SandboxPhase_SANDBOX_PHASE_DELETING:
			return impossible
		default: // upstream stops only what is ready, so what is on its way there is waited for
			return hold
		}
	}
	b.call = func(ctx context.Context) (*openshellv1.Sandbox, error) {
		reply, err := change(ctx, c, "ConditionalSandboxes/StopSandbox", 0, c.conditional.StopSandbox, &conditionalv1.ConditionalStopSandboxRequest{
			Precondition: precondition(ref),
			Request:      &openshellv1.StopSandboxRequest{Name: ref.Name, WorkspaceScope: scope(ref.Workspace)},
		})
		return reply.GetSandbox(), err
	}
	return b.run(ctx)
}

// Start starts the sandbox with ref's id if it is stopped, and does nothing otherwise: a job that has finished is not
// run again. It returns when the start was accepted; started is false if there was nothing to start.
func (c *Client) Start(ctx context.Context, ref Ref) (sb *openshellv1.Sandbox, started bool, err error) {
	b := &boundChange{wait: newWait(ref, "started"), c: c}
	b.decide = func(sb *openshellv1.Sandbox) move {
		switch sb.GetStatus().GetPhase() {
		case openshellv1.SandboxPhase_SANDBOX_PHASE_STOPPED:
			return act
		case openshellv1.SandboxPhase_SANDBOX_PHASE_STOPPING:
			return hold
		case openshellv1.SandboxPhase_SANDBOX_PHASE_DELETING:
			return impossible
		default:
			return arrived
		}
	}
	b.call = func(ctx context.Context) (*openshellv1.Sandbox, error) {
		reply, err := change(ctx, c, "ConditionalSandboxes/StartSandbox", 0, c.conditional.StartSandbox, &conditionalv1.ConditionalStartSandboxRequest{
			Precondition: precondition(ref),
			Request:      &openshellv1.StartSandboxRequest{Name: ref.Name, WorkspaceScope: scope(ref.Workspace)},
		})
		return reply.GetSandbox(), err
	}
	sb, err = b.run(ctx)
	return sb, b.sent, err
}
