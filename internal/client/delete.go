package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/apierr"
)

// mixedFleetTries is how often a method that the gateway claims to have is tried before it counts as missing.
const mixedFleetTries = 8

// graceForTexts is how long a sandbox is looked for, once the caller's context has ended, so that a text can be shown.
const graceForTexts = 5 * time.Second

// Deletion is how a sandbox came to be gone.
type Deletion struct {
	Gone
	// Replaced: it was gone before this delete did anything, and another sandbox, which was left alone, has its name.
	Replaced bool
	// MaybeReplaced: another sandbox, which was left alone, has its name, and an attempt of this delete was not answered.
	// Whether that attempt deleted it, or somebody else before, is not known.
	MaybeReplaced bool
	// ByName: it was deleted by name, without protection against a replacement, and the reply named it.
	ByName bool
	// Unanswered: a delete by name was sent and not answered, so that it may have hit another sandbox.
	Unanswered bool
}

// Delete deletes the sandbox with ref's id and waits until that id is gone. The delete is bound to the id, so that it
// cannot reach another sandbox of the same name, and is repeated until the context ends if its outcome is unknown.
//
// A gateway without conditional deletes is a NotSupportedError, and nothing is deleted. With allowByName the sandbox is
// then read, compared and deleted by name: a replacement in between is deleted instead, which DeletedAnotherError reports.
// A delete by name that is not answered is not repeated; what fails from then on is an UnansweredDeleteError.
func (c *Client) Delete(ctx context.Context, ref Ref, allowByName bool) (Deletion, error) {
	d := &deletion{wait: newWait(c.located(ctx, ref), "gone"), c: c, allowByName: allowByName}
	for {
		next, err := d.attempt(ctx)
		if err == nil && next == watch {
			next, err = d.watch(ctx)
		}
		if err != nil {
			if ctx.Err() != nil && isCallError(err) {
				d.last = nil // only the end of the context, seen by the call
				err = d.ended(ctx)
			}
			return Deletion{}, d.failed(ctx, err)
		}
		if next == done {
			return d.result, nil
		}
		if err := d.again(ctx); err != nil {
			return Deletion{}, d.failed(ctx, err)
		}
	}
}

// failed cleans an error, and adds to it what is not known of a delete by name.
func (d *deletion) failed(ctx context.Context, err error) error {
	err = d.discreet(ctx, err)
	if d.unanswered == nil {
		return err
	}
	return &UnansweredDeleteError{Ref: d.ref, Answer: d.discreet(ctx, d.unanswered), Err: err}
}

// discreet keeps the sandbox's environment out of the answers to deletes in an error, which the compute driver may have
// worded. A state need not know all of it, so the sandbox tells; if it cannot be seen any more, the text goes.
func (d *deletion) discreet(ctx context.Context, err error) error {
	if wait, ok := errors.AsType[*WaitError](err); ok {
		wait.Last = d.discreet(ctx, wait.Last)
		return err
	}
	if unsupported, ok := errors.AsType[*NotSupportedError](err); ok {
		unsupported.Refusal = d.discreet(ctx, unsupported.Refusal)
		return err
	}
	if mixed, ok := errors.AsType[*MixedFleetError](err); ok {
		mixed.Refusal = d.discreet(ctx, mixed.Refusal)
		return err
	}
	call, ok := errors.AsType[*CallError](err)
	if !ok || !strings.HasSuffix(call.Call, "DeleteSandbox") {
		return err
	}
	if d.seen == nil {
		if ctx.Err() != nil {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), graceForTexts)
			defer cancel()
		}
		if _, _, err := d.look(ctx); d.seen == nil {
			return call.reworded("its text is withheld, since the sandbox's environment, which may be in it, could not be read" + because(err))
		}
	}
	return call.reworded(d.c.Scrub(withEnvironment(ctx, d.seen), status.Convert(call.err).Message()))
}

func because(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

// deletion is the state of one Delete.
type deletion struct {
	*wait
	c           *Client
	allowByName bool
	seen        *openshellv1.Sandbox // last
	// taken: the gateway took the delete of our sandbox, so that a replacement found later is nothing odd.
	taken bool
	// lost: an attempt was not answered, and may have deleted the sandbox.
	lost bool
	// unanswered is why the answer to a delete by name did not arrive. From then on nothing is sent any more: nothing binds
	// such a call to an id, so a repeat could hit another sandbox that has the name by then.
	unanswered error
	// undone counts how often a delete was answered as if it would happen, and did not.
	undone int
	// answer is the last such answer.
	answer string
	// mixed counts refusals of a method that the gateway claims to have.
	mixed  int
	result Deletion
}

// look reads the sandbox as [Client.Observe] does.
func (d *deletion) look(ctx context.Context) (*openshellv1.Sandbox, *Gone, error) {
	sb, gone, err := d.c.Observe(ctx, d.ref)
	if sb != nil {
		d.seen, d.observed = sb, d.c.Observed(ctx, sb)
	}
	return sb, gone, err
}

// step is what to do next.
type step int

const (
	repeat step = iota // the delete itself, after a pause
	watch              // the gateway took it, or says the sandbox is gone: see whether it is
	done
)

// attempt makes the guarded delete once. It carries no request_id, which would forbid repeating it.
func (d *deletion) attempt(ctx context.Context) (step, error) {
	if err := d.c.checkAccess(ctx); err != nil {
		return repeat, d.judge(ctx, err)
	}
	reply, err := change(ctx, d.c, "ConditionalSandboxes/DeleteSandbox", d.c.requestTimeout, d.c.conditional.DeleteSandbox, &conditionalv1.ConditionalDeleteSandboxRequest{
		Precondition: precondition(d.ref),
		Request:      &openshellv1.DeleteSandboxRequest{Name: d.ref.Name, WorkspaceScope: scope(d.ref.Workspace), AllowMissing: true},
	})
	if err == nil {
		return d.accepted("ConditionalSandboxes/DeleteSandbox", reply)
	}
	if mismatch, ok := errors.AsType[*apierr.IdentityMismatch](err); ok {
		return d.mismatch(ctx, mismatch)
	}
	switch status.Code(err) {
	case codes.NotFound:
		d.answer = CodeName(err)
		return watch, nil
	case codes.Unimplemented, codes.PermissionDenied:
		return d.refusedAsUnknown(ctx, err)
	default:
		return d.refused(ctx, err)
	}
}

// accepted checks that a success speaks of our sandbox.
func (d *deletion) accepted(call string, reply *openshellv1.DeleteSandboxResponse) (step, error) {
	outcome, id := reply.GetOutcome(), reply.GetSandboxId()
	d.answer = strings.TrimPrefix(outcome.String(), "DELETION_OUTCOME_")
	switch {
	case (outcome == openshellv1.DeletionOutcome_DELETION_OUTCOME_ACCEPTED || outcome == openshellv1.DeletionOutcome_DELETION_OUTCOME_COMPLETED) && sameID(id, d.ref.ID):
		d.taken = true
		return watch, nil
	case outcome == openshellv1.DeletionOutcome_DELETION_OUTCOME_ALREADY_ABSENT && id == "":
		return watch, nil
	default:
		return done, &BrokenReplyError{Call: call, Problem: fmt.Sprintf("success with outcome %s and sandbox id %q, where the delete was for id %s", d.answer, id, d.ref.ID)}
	}
}

func (d *deletion) mismatch(ctx context.Context, m *apierr.IdentityMismatch) (step, error) {
	if !sameID(m.ExpectedID, d.ref.ID) || !IsUUID(m.CurrentID) || sameID(m.CurrentID, d.ref.ID) {
		return done, &BrokenReplyError{Call: "ConditionalSandboxes/DeleteSandbox", Problem: fmt.Sprintf("an identity mismatch of expected id %q and current id %q, where the delete was for id %s", m.ExpectedID, m.CurrentID, d.ref.ID)}
	}
	gone, err := d.c.prove(ctx, d.ref, Gone{CurrentID: m.CurrentID})
	return d.gone(ctx, gone, err)
}

// gone ends the delete with a proof, or goes on if passing trouble kept it from being found.
func (d *deletion) gone(ctx context.Context, gone *Gone, err error) (step, error) {
	if gone == nil {
		return repeat, d.judge(ctx, err)
	}
	d.result.Gone, d.result.Unanswered = *gone, d.unanswered != nil
	if gone.CurrentID != "" && !d.taken {
		d.result.Replaced, d.result.MaybeReplaced = !d.lost, d.lost
	}
	return done, nil
}

// watch polls until our id is gone. If the sandbox is not being deleted any more, the delete is repeated once; replicas
// that lag are given a few reads.
func (d *deletion) watch(ctx context.Context) (step, error) {
	deleting, stale := false, 0
	d.pause = firstPause
	for {
		sb, gone, err := d.look(ctx)
		if gone != nil {
			return d.gone(ctx, gone, nil)
		}
		if err := d.judge(ctx, err); err != nil {
			return done, err
		}
		switch {
		case sb == nil: // passing trouble
		case sb.GetStatus().GetPhase() == openshellv1.SandboxPhase_SANDBOX_PHASE_DELETING:
			deleting = true
		case deleting || stale >= staleReads:
			if d.undone++; d.undone > 1 || d.unanswered != nil {
				return done, &DeleteUndoneError{Ref: d.ref, Answer: d.answer, Observed: d.observed}
			}
			return repeat, nil
		default:
			stale++
		}
		if err := d.again(ctx); err != nil {
			return done, err
		}
	}
}
