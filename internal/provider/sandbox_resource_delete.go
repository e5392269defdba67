package provider

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/openshell-iac/terraform-provider-openshell/internal/client"
)

const notDeleted = "The sandbox was not deleted"

// Delete deletes the sandbox with the id in the state and waits until that id is gone. The state goes only when that is
// proved.
func (r *sandboxResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var m sandboxModel
	resp.Diagnostics.Append(req.State.Get(ctx, &m)...)
	c := r.data.connection(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	limit, diags := m.Timeouts.Delete(ctx, defaultDeleteTimeout)
	resp.Diagnostics.Append(diags...)
	ctx, cancel := context.WithTimeout(m.withSecrets(ctx), limit)
	defer cancel()
	if !isSandboxID(m.ID.ValueString()) {
		r.deleteWithoutID(ctx, c, m, resp)
		return
	}
	deletion, err := c.Delete(ctx, m.ref(), r.data.allowUnconditionalDelete)
	if err != nil {
		deleteFailure(m.ref(), err).asError(&resp.Diagnostics)
		return
	}
	if deletion.Replaced && r.data.mismatchIsError {
		replacedFault(m.ref(), deletion.Gone).asError(&resp.Diagnostics)
		return
	}
	reportDeletion(m.ref(), deletion, &resp.Diagnostics)
}

// reportDeletion warns about what was not as it should be.
func reportDeletion(ref client.Ref, deletion client.Deletion, diags *diag.Diagnostics) {
	if deletion.Replaced {
		report{title: "The sandbox had already been replaced by another one", what: goneWhat(ref, deletion.Gone), ref: ref, state: stateRemoved,
			todo: "nothing, unless the other sandbox should not be there: then have its owner delete it."}.asWarning(diags)
	}
	if deletion.Unanswered {
		what := fmt.Sprintf("The gateway does not offer deletes bound to a sandbox's id, so the id was compared first and the delete sent by name (allow_unconditional_delete). That call was not answered. The sandbox with id %s is gone; whether the call hit it, or another sandbox that had taken the name, is not known.", ref.ID)
		if deletion.CurrentID != "" {
			what += " The name now belongs to another sandbox, with id " + deletion.CurrentID + "."
		}
		report{title: "A delete by name was not answered", what: what, ref: ref, state: stateRemoved,
			todo: "if others use this name, ask them whether a sandbox of theirs is missing; the gateway's log tells what was deleted. A gateway that offers openshell.conditional.v1 rules this out."}.asWarning(diags)
	}
	if deletion.ByName {
		report{title: "The sandbox was deleted by name", what: "The gateway does not offer deletes bound to a sandbox's id, so the id was compared first and the delete sent by name (allow_unconditional_delete). The gateway's reply named our sandbox. A sandbox that somebody had put under the name in between would have been deleted instead.", ref: ref, state: stateRemoved,
			todo: "use a gateway that offers openshell.conditional.v1 to be safe."}.asWarning(diags)
	}
	weakEvidence(ref, deletion.Gone, diags)
}

func deleteFailure(ref client.Ref, err error) report {
	r := failure(notDeleted, ref, stateKept, "delete", err)
	if another, ok := errors.AsType[*client.DeletedAnotherError](err); ok {
		r.title = "ANOTHER sandbox was deleted"
		r.todo = "tell the owner of the sandbox with id " + another.DeletedID + ". Ours was gone before, so the next refresh or destroy takes it out of the state. A gateway that offers openshell.conditional.v1 rules this out; until then set allow_unconditional_delete = false."
	}
	if _, ok := errors.AsType[*client.UnansweredDeleteError](err); ok {
		if _, ok := errors.AsType[*client.DeleteUndoneError](err); ok {
			r.todo = "destroy again: it compares the id anew and, if the sandbox still has the name, sends one more delete. The one without an answer may yet take effect, on whatever has the name then; the gateway's log tells."
		} else {
			r.title = "Whether the sandbox was deleted is not known"
		}
	}
	if _, ok := errors.AsType[*client.NotSupportedError](err); ok {
		r.title = "The gateway cannot delete exactly this sandbox"
		r.todo = "use a gateway that offers openshell.conditional.v1, such as this project's openshell-reference-gateway. Or set allow_unconditional_delete = true in the provider's configuration: destroy then compares the id and deletes by name, at the risk of hitting a sandbox that takes the name in between. Or delete the sandbox yourself and " + stateRm + "."
	}
	return r
}

// deleteWithoutID never deletes: without an id nothing says which sandbox is meant. It ends only if nobody has the name.
func (r *sandboxResource) deleteWithoutID(ctx context.Context, c *client.Client, m sandboxModel, resp *resource.DeleteResponse) {
	holder, gone, err := c.ProveAbsent(ctx, m.ref())
	switch {
	case err != nil:
		failure(notDeleted, m.ref(), stateKept, "delete", err).asError(&resp.Diagnostics)
	case holder != nil:
		withoutID(m, holder).asError(&resp.Diagnostics)
	default:
		weakEvidence(m.ref(), *gone, &resp.Diagnostics)
	}
}
