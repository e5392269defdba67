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
		r.data.deleteFailure(m.ref(), err).asError(&resp.Diagnostics)
		return
	}
	if (deletion.Replaced || deletion.MaybeReplaced) && r.data.mismatchIsError {
		fault := replacedFault(m.ref(), deletion.Gone)
		switch {
		case deletion.Unanswered:
			fault.what = unansweredWhat(m.ref(), deletion.Gone)
		case deletion.MaybeReplaced:
			fault.what += " A delete that this destroy sent before was not answered; it may have deleted it, before the other one took the name."
		}
		fault.asError(&resp.Diagnostics)
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
		report{title: "A delete by name was not answered", what: unansweredWhat(ref, deletion.Gone), ref: ref, state: stateRemoved,
			todo: "if others use this name, ask them whether a sandbox of theirs is missing; the gateway's log tells what was deleted. A gateway that offers openshell.conditional.v1 rules this out."}.asWarning(diags)
	}
	if deletion.ByName {
		report{title: "The sandbox was deleted by name", what: "The gateway does not offer deletes bound to a sandbox's id, so the id was compared first and the delete sent by name (allow_unconditional_delete). The gateway's reply named our sandbox. A sandbox that somebody had put under the name in between would have been deleted instead.", ref: ref, state: stateRemoved,
			todo: "use a gateway that offers openshell.conditional.v1 to be safe."}.asWarning(diags)
	}
	weakEvidence(ref, deletion.Gone, diags)
}

// unansweredWhat says what is known after a delete by name that was not answered.
func unansweredWhat(ref client.Ref, gone client.Gone) string {
	text := fmt.Sprintf("The gateway does not offer deletes bound to a sandbox's id, so the id was compared first and the delete sent by name (allow_unconditional_delete). That call was not answered. The sandbox with id %s is gone; whether the call hit it, or another sandbox that had taken the name, is not known.", ref.ID)
	if gone.CurrentID != "" {
		text += " The name now belongs to " + gone.Holder() + "."
	}
	if gone.CurrentPhase == "deleting" {
		text += " It is being deleted: it may be what the call hit."
	}
	return text
}

// deleteFailure reports a delete that did not end with a proof.
func (d *providerData) deleteFailure(ref client.Ref, err error) report {
	r := d.failure(notDeleted, ref, stateKept, "delete", err)
	ended, isEnd := errors.AsType[*client.WaitError](err)
	if isEnd {
		r.title = "The delete was not seen to its end"
	}
	if another, ok := errors.AsType[*client.DeletedAnotherError](err); ok {
		r.title = "ANOTHER sandbox was deleted"
		r.todo = "tell the owner of the sandbox with id " + another.DeletedID + ". Ours was gone before, so the next refresh or destroy takes it out of the state"
		if d.mismatchIsError {
			r.todo += " once no sandbox has the name; while one has it, they fail (on_identity_mismatch = \"error\"): then " + stateRm
		}
		r.todo += ". A gateway that offers openshell.conditional.v1 rules this out; until then set allow_unconditional_delete = false."
	}
	if _, ok := errors.AsType[*client.UnansweredDeleteError](err); ok {
		r.title, r.todo = "Whether the sandbox was deleted is not known", unansweredAdvice(err, r.todo)
	}
	if isEnd && ended.Observed.Phase == "deleting" {
		r.title = "The sandbox is still being deleted"
		r.what += " The gateway goes on with it."
	}
	if _, ok := errors.AsType[*client.DeleteUndoneError](err); ok {
		r.title = notDeleted
	}
	if _, ok := errors.AsType[*client.NotSupportedError](err); ok {
		r.title = "The gateway cannot delete exactly this sandbox"
		r.todo = "use a gateway that offers openshell.conditional.v1, such as this project's openshell-reference-gateway. Or set allow_unconditional_delete = true in the provider's configuration: destroy then compares the id and deletes by name, at the risk of hitting a sandbox that takes the name in between. Or look whether the name still has the id " + ref.ID + ", as it may mean another sandbox by now. If it has, and nobody else uses the name meanwhile, delete the sandbox yourself: that is by name, too. Once ours is gone, " + stateRm + "."
	}
	return r
}

// unansweredAdvice is what to do about a delete by name that may yet take effect. next is the advice on why that could not be
// found out.
func unansweredAdvice(err error, next string) string {
	_, undone := errors.AsType[*client.DeleteUndoneError](err)
	_, ended := errors.AsType[*client.WaitError](err)
	if undone || ended {
		next = "Then destroy again: it compares the id anew and, if the sandbox still has the name and is not being deleted, sends one more delete by name."
	} else {
		next = "Then " + next
	}
	return "look at the gateway's log first: the delete without an answer may yet take effect, on whatever has the name then. " + next
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
