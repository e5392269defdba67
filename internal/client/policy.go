package client

import (
	"context"
	"fmt"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/policy"
)

const updateCall = "ConditionalSandboxes/UpdateSandboxConfig"

// ObservePolicy reads a revision of the sandbox's policy as it was written, version 0 being the newest, and then the
// sandbox as [Client.Observe] does. The revision is nil when there is none, which a gateway may answer until the sandbox
// has asked for its policy once.
//
// A revision is read by name and does not say whose it is. The sandbox read afterwards does: an id is never used again,
// so a name that means ours then has meant it since ours was made.
func (c *Client) ObservePolicy(ctx context.Context, ref Ref, version uint32) (*openshellv1.SandboxPolicyRevision, *openshellv1.Sandbox, *Gone, error) {
	reply, err := read(ctx, c, "GetSandboxPolicyStatus", c.openshell.GetSandboxPolicyStatus,
		&openshellv1.GetSandboxPolicyStatusRequest{Sandbox: ref.Name, Version: version, WorkspaceScope: scope(ref.Workspace)})
	if err != nil && !isNotFound(err) {
		return nil, nil, nil, err
	}
	sb, gone, err := c.Observe(ctx, ref)
	if sb == nil {
		return nil, nil, gone, err
	}
	revision := reply.GetRevision()
	if revision != nil && (revision.GetVersion() == 0 || revision.GetPolicy() == nil) {
		return nil, nil, nil, &BrokenReplyError{Call: "GetSandboxPolicyStatus", Problem: "a revision without a version or a policy"}
	}
	if revision != nil {
		revision.LoadError = c.Scrub(withEnvironment(ctx, sb), revision.GetLoadError())
	}
	return revision, sb, nil, nil
}

// SetPolicy replaces the policy of the sandbox with ref's id and returns version and hash of the revision that it is now;
// the newest one, if that says the same already. A call whose answer is lost took effect if the newest revision says so.
func (c *Client) SetPolicy(ctx context.Context, ref Ref, p *sandboxv1.SandboxPolicy) (*openshellv1.SandboxPolicyRevision, error) {
	var revision *openshellv1.SandboxPolicyRevision
	b := &boundChange{wait: newWait(ref, goalChanged), c: c}
	b.decide = func(sb *openshellv1.Sandbox) move {
		if sb.GetStatus().GetPhase() == openshellv1.SandboxPhase_SANDBOX_PHASE_DELETING {
			return impossible
		}
		if b.lost != nil {
			newest, _, _, err := c.ObservePolicy(ctx, ref, 0)
			if err == nil && policy.Equal(newest.GetPolicy(), p) {
				revision = newest
				return arrived
			}
		}
		return act
	}
	b.call = func(ctx context.Context) (*openshellv1.Sandbox, error) {
		reply, err := change(ctx, c, updateCall, c.requestTimeout, c.conditional.UpdateSandboxConfig, &conditionalv1.ConditionalUpdateSandboxConfigRequest{
			Precondition: precondition(ref),
			Request:      &openshellv1.UpdateConfigRequest{Sandbox: ref.Name, Policy: p, WorkspaceScope: scope(ref.Workspace)},
		})
		if err == nil && reply.GetVersion() == 0 {
			return nil, &BrokenReplyError{Call: updateCall, Problem: "success without the version of a revision"}
		}
		revision = &openshellv1.SandboxPolicyRevision{Version: reply.GetVersion(), PolicyHash: reply.GetPolicyHash()}
		return b.seen, err // the reply has no sandbox; the precondition named this one
	}
	_, err := b.run(ctx)
	return revision, err
}

// WaitForPolicy waits until the sandbox has loaded a revision of its policy. A sandbox that does not run loads it when it
// is started, so that is not waited for. A revision that it cannot load is a PolicyError, as is one that another has
// superseded, of which nothing more can be learned.
func (c *Client) WaitForPolicy(ctx context.Context, ref Ref, version uint32) error {
	w := newWait(ref, fmt.Sprintf("under revision %d of its policy", version))
	for {
		revision, sb, gone, err := c.ObservePolicy(ctx, ref, version)
		if gone != nil {
			return &GoneError{Ref: ref, Gone: *gone}
		}
		if err := w.judge(ctx, err); err != nil {
			return err
		}
		if sb != nil {
			w.observed = c.Observed(ctx, sb)
		}
		switch revision.GetStatus() {
		case openshellv1.PolicyStatus_POLICY_STATUS_LOADED:
			return nil
		case openshellv1.PolicyStatus_POLICY_STATUS_FAILED, openshellv1.PolicyStatus_POLICY_STATUS_SUPERSEDED:
			return &PolicyError{Ref: ref, Version: version, Superseded: revision.GetStatus() == openshellv1.PolicyStatus_POLICY_STATUS_SUPERSEDED, LoadError: revision.GetLoadError()}
		default: // pending, or a replica that has not seen it yet
			if sb != nil && !loadsPolicies(sb.GetStatus().GetPhase()) {
				return nil
			}
		}
		if err := w.again(ctx); err != nil {
			return err
		}
	}
}

// loadsPolicies tells whether a sandbox runs, or is about to.
func loadsPolicies(phase openshellv1.SandboxPhase) bool {
	switch phase {
	case openshellv1.SandboxPhase_SANDBOX_PHASE_STOPPED, openshellv1.SandboxPhase_SANDBOX_PHASE_STOPPING,
		openshellv1.SandboxPhase_SANDBOX_PHASE_COMPLETED, openshellv1.SandboxPhase_SANDBOX_PHASE_ERROR,
		openshellv1.SandboxPhase_SANDBOX_PHASE_DELETING:
		return false
	default:
		return true
	}
}
