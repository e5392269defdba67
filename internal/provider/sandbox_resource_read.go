package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/resource"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/client"
)

const notRead = "The sandbox could not be read"

// Read compares ids. Only a proof that the sandbox is gone takes it out of the state; a sandbox with another id is never
// read into it.
func (r *sandboxResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var m sandboxModel
	resp.Diagnostics.Append(req.State.Get(ctx, &m)...)
	c := r.data.connection(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	limit, diags := m.Timeouts.Read(ctx, defaultReadTimeout)
	resp.Diagnostics.Append(diags...)
	ctx, cancel := context.WithTimeout(m.withSecrets(ctx), limit)
	defer cancel()
	if !isSandboxID(m.ID.ValueString()) {
		r.readWithoutID(ctx, c, m, resp)
		return
	}
	revision, sb, gone, err := m.read(ctx, c)
	switch {
	case err != nil:
		failure(notRead, m.ref(), stateKept, "read", err).asError(&resp.Diagnostics)
	case gone != nil && gone.CurrentID != "" && r.data.mismatchIsError:
		replacedFault(m.ref(), *gone).asError(&resp.Diagnostics)
	case gone != nil:
		r.remove(ctx, m, *gone, resp)
	default:
		r.refresh(ctx, c, m, sb, revision, resp)
	}
}

// remove takes a sandbox that is proved to be gone out of the state. The framework wants an identity even then.
func (r *sandboxResource) remove(ctx context.Context, m sandboxModel, gone client.Gone, resp *resource.ReadResponse) {
	title := "The sandbox is gone"
	if gone.CurrentID != "" {
		title = "The sandbox was replaced by another one"
	}
	report{title: title, what: goneWhat(m.ref(), gone), ref: m.ref(), state: stateRemoved,
		todo: "nothing, if a new one is to be created as the plan shows. A name that another sandbox holds makes that fail: choose another name, have its owner delete it, or import it."}.asWarning(&resp.Diagnostics)
	weakEvidence(m.ref(), gone, &resp.Diagnostics)
	resp.Diagnostics.Append(setIdentity(ctx, resp.Identity, m)...)
	resp.State.RemoveResource(ctx)
}

// refresh takes over what can change. Everything else is fixed for an id, so the state has it.
func (r *sandboxResource) refresh(ctx context.Context, c *client.Client, m sandboxModel, sb *openshellv1.Sandbox, revision *openshellv1.SandboxPolicyRevision, resp *resource.ReadResponse) {
	m.follow(sb)
	m.followPolicy(ctx, revision, resp.Private, &resp.Diagnostics)
	if m.WorkspaceID.IsNull() { // this gateway has our id, so it is the right one; perhaps the caller may read it now
		m.WorkspaceID = textOrNull(c.WorkspaceID(ctx, m.Workspace.ValueString()))
	}
	switch sb.GetStatus().GetPhase() {
	case openshellv1.SandboxPhase_SANDBOX_PHASE_DELETING:
		report{title: "The sandbox is being deleted", what: "Somebody else deletes the sandbox, or an earlier destroy is still under way.", ref: m.ref(), state: stateKept,
			todo: "wait until it is gone and plan again, or destroy, which waits for it."}.asWarning(&resp.Diagnostics)
	case openshellv1.SandboxPhase_SANDBOX_PHASE_ERROR, openshellv1.SandboxPhase_SANDBOX_PHASE_UNKNOWN:
		report{title: "The sandbox is not well", what: fmt.Sprintf("The gateway reports %s.", c.Observed(ctx, sb)), ref: m.ref(), state: stateKept,
			todo: "look at the sandbox and the gateway's log. Terraform does not replace it for that alone; terraform apply -replace=ADDRESS does."}.asWarning(&resp.Diagnostics)
	default:
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
	resp.Diagnostics.Append(setIdentity(ctx, resp.Identity, m)...)
}

// readWithoutID handles a state that does not say which sandbox it means. It ends only if nobody has the name.
func (r *sandboxResource) readWithoutID(ctx context.Context, c *client.Client, m sandboxModel, resp *resource.ReadResponse) {
	holder, gone, err := c.ProveAbsent(ctx, m.ref())
	switch {
	case err != nil:
		failure(notRead, m.ref(), stateKept, "read", err).asError(&resp.Diagnostics)
	case holder != nil:
		withoutID(m, holder).asError(&resp.Diagnostics)
	default:
		report{title: "The sandbox is gone", what: "The state holds no valid id of the sandbox, and no sandbox has the name.", ref: m.ref(), state: stateRemoved,
			todo: "nothing, if a new one is to be created as the plan shows."}.asWarning(&resp.Diagnostics)
		weakEvidence(m.ref(), *gone, &resp.Diagnostics)
		resp.Diagnostics.Append(setIdentity(ctx, resp.Identity, m)...)
		resp.State.RemoveResource(ctx)
	}
}

// withoutID is the error when the state has no id and somebody has the name.
func withoutID(m sandboxModel, holder *openshellv1.Sandbox) report {
	return report{
		title: "The state does not say which sandbox it means",
		what:  fmt.Sprintf("The state holds no valid id of the sandbox, and the name belongs to a sandbox with id %s in phase %s, created %s. Whether that is the one Terraform made cannot be told, so it is left alone.", client.IDOf(holder), client.Phase(holder), createdTime(holder).ValueString()),
		ref:   m.ref(), state: stateKept,
		todo: fmt.Sprintf("forget the entry with \"terraform state rm ADDRESS\" (the address stands with this message); then, if the sandbox is yours, import it: terraform import ADDRESS '%s/%s@%s'.", m.Workspace.ValueString(), m.Name.ValueString(), client.IDOf(holder)),
	}
}
