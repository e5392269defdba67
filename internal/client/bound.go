package client

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/apierr"
)

// boundChange is one change of a sandbox through the conditional service, bound to its id. A gateway without the service is
// a NotSupportedError, another sandbox under the name a GoneError. The call is made once: if its answer is lost, the sandbox
// tells whether it took effect, and what fails from then on is an UnansweredChangeError. Only a definite refusal that may pass by itself is tried again.
type boundChange struct {
	*wait
	c *Client
	// decide says what a sandbox, as it is, calls for.
	decide func(*openshellv1.Sandbox) move
	// call makes the change and returns the sandbox from the reply.
	call func(context.Context) (*openshellv1.Sandbox, error)

	seen   *openshellv1.Sandbox // last
	sent   bool
	lost   error // why the answer of the one call did not arrive
	stale  int
	mixed  int
	unseen int // how often the call was answered as if the sandbox, which looks show, were not there
}

// goalChanged is the goal of a change that shows in no phase. It is given up only when the sandbox is being deleted.
const goalChanged = "changed"

// move is what a sandbox calls for.
type move int

const (
	hold move = iota
	act
	arrived
	impossible
)

func (b *boundChange) run(ctx context.Context) (*openshellv1.Sandbox, error) {
	sb, err := b.untilDone(ctx)
	if err == nil || b.lost == nil {
		return sb, err
	}
	unanswered := &UnansweredChangeError{Ref: b.ref, Answer: b.lost, Observed: b.observed}
	if !errors.Is(err, b.lost) {
		unanswered.Err = err
	}
	return sb, unanswered
}

func (b *boundChange) untilDone(ctx context.Context) (*openshellv1.Sandbox, error) {
	for {
		sb, gone, err := b.c.Observe(ctx, b.ref)
		if gone != nil {
			return nil, &GoneError{Ref: b.ref, Gone: *gone}
		}
		if err := b.judge(ctx, err); err != nil {
			return nil, err
		}
		if sb != nil {
			b.seen, b.observed = sb, b.c.Observed(ctx, sb)
			switch b.decide(sb) {
			case arrived:
				return sb, nil
			case impossible:
				return nil, &FailedError{Ref: b.ref, Observed: b.observed, Goal: b.goal}
			case act:
				if sb, err := b.act(withEnvironment(ctx, sb)); sb != nil || err != nil {
					return sb, err
				}
			case hold:
			}
		}
		if err := b.again(ctx); err != nil {
			return nil, err
		}
	}
}

// act makes the call. Without a sandbox or an error in return, the sandbox is to be looked at again.
func (b *boundChange) act(ctx context.Context) (*openshellv1.Sandbox, error) {
	if b.lost != nil { // it was sent, and the sandbox shows no effect; replicas that lag are given a few reads
		if b.stale++; b.stale < staleReads {
			return nil, nil
		}
		return nil, b.lost
	}
	sb, err := b.call(ctx)
	if err == nil {
		b.sent = true
		if !sameID(IDOf(sb), b.ref.ID) {
			return nil, &BrokenReplyError{Call: "ConditionalSandboxes", Problem: fmt.Sprintf("success for the sandbox id %q, where the call was for %s", IDOf(sb), b.ref.ID)}
		}
		b.seen = sb
		return sb, nil
	}
	if sentNothing(err) {
		return nil, b.judge(ctx, err)
	}
	if _, ok := errors.AsType[*apierr.IdentityMismatch](err); ok || status.Code(err) == codes.NotFound {
		// The next look proves it. If looks go on to show the sandbox, a role may be missing that only this call asks for.
		if b.unseen++; b.unseen > staleReads {
			return nil, err
		}
		b.last = err
		return nil, nil
	}
	if isVersionConflict(err) { // a write of somebody else's got in between; nothing was changed
		b.last = err
		return nil, nil
	}
	switch status.Code(err) {
	case codes.Unimplemented, codes.PermissionDenied:
		mixed, err := b.c.unsupported(ctx, err)
		if !mixed {
			return nil, b.judge(ctx, err)
		}
		if b.mixed++; b.mixed >= mixedFleetTries {
			return nil, &MixedFleetError{Endpoint: b.c.endpoint.url, Refusal: err}
		}
		b.last = err
		return nil, nil
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		b.sent, b.lost = true, err
		if ctx.Err() != nil {
			return nil, b.ended(ctx)
		}
		return nil, nil
	default:
		return nil, err
	}
}
