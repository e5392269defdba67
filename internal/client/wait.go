package client

import (
	"context"
	"time"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

const (
	firstPause = 100 * time.Millisecond
	longPause  = 3 * time.Second
	// staleReads is how many reads may show a sandbox as it was before an accepted change: replicas lag.
	staleReads = 4
)

// wait is one wait for one sandbox: its pauses, and what its error will tell.
type wait struct {
	ref      Ref
	goal     string
	started  time.Time
	pause    time.Duration
	observed Observed
	last     error
}

func newWait(ref Ref, goal string) *wait {
	return &wait{ref: ref, goal: goal, started: time.Now(), pause: firstPause}
}

// again pauses, longer each time. Once the context has ended it returns a WaitError.
func (w *wait) again(ctx context.Context) error {
	timer := time.NewTimer(w.pause)
	defer timer.Stop()
	w.pause = min(w.pause*8/5, longPause)
	select {
	case <-ctx.Done():
		return w.ended(ctx)
	case <-timer.C:
		return nil
	}
}

func (w *wait) ended(ctx context.Context) error {
	return &WaitError{Ref: w.ref, Goal: w.goal, Elapsed: time.Since(w.started), Observed: w.observed, Last: w.last, Err: ctx.Err()}
}

// judge turns the error of one call into the error of the wait: nil if the wait should go on.
func (w *wait) judge(ctx context.Context, err error) error {
	switch {
	case err == nil:
		w.last = nil
		return nil
	case ctx.Err() != nil:
		return w.ended(ctx)
	case passing(err):
		w.last = err
		return nil
	default:
		return err
	}
}

// Goal is what a new or restarted sandbox is waited for.
type Goal string

const (
	// Ready is reached in phase READY, and by a job that has already completed.
	Ready Goal = "ready"
	// Completed is reached in phase COMPLETED: the main process ended with exit code 0.
	Completed Goal = "completed"
)

// WaitFor polls until the sandbox reaches the goal. It fails at once in a phase from which the goal cannot come
// (FailedError), when the sandbox is gone (GoneError), and on an error other than passing trouble; it ends with the
// context (WaitError).
func (c *Client) WaitFor(ctx context.Context, ref Ref, goal Goal) (*openshellv1.Sandbox, error) {
	w := newWait(ref, string(goal))
	stopped := 0
	for {
		sb, gone, err := c.Observe(ctx, ref)
		if gone != nil {
			return nil, &GoneError{Ref: ref, Gone: *gone}
		}
		if err := w.judge(ctx, err); err != nil {
			return nil, err
		}
		if sb != nil {
			w.observed = c.Observed(ctx, sb)
			switch sb.GetStatus().GetPhase() {
			case openshellv1.SandboxPhase_SANDBOX_PHASE_COMPLETED:
				return sb, nil
			case openshellv1.SandboxPhase_SANDBOX_PHASE_READY:
				if goal == Ready {
					return sb, nil
				}
			case openshellv1.SandboxPhase_SANDBOX_PHASE_STOPPED: // perhaps a replica that has not seen the start yet
				if stopped++; stopped > staleReads {
					return nil, &FailedError{Ref: ref, Observed: w.observed, Goal: string(goal)}
				}
			case openshellv1.SandboxPhase_SANDBOX_PHASE_ERROR,
				openshellv1.SandboxPhase_SANDBOX_PHASE_DELETING:
				return nil, &FailedError{Ref: ref, Observed: w.observed, Goal: string(goal)}
			default: // on the way, or a phase this program does not know
			}
		}
		if err := w.again(ctx); err != nil {
			return nil, err
		}
	}
}
