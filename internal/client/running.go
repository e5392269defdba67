package client

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/apierr"
)

// Stop stops the sandbox with ref's id, once it is in a phase that can be stopped. One that is stopped, has finished or
// has failed is left as it is.
//
// Stop and Start are bound to the id; a gateway that cannot do that is a NotSupportedError, another sandbox under the
// name a GoneError. They are sent once: if the answer is lost, the phase tells whether they took effect.
func (c *Client) Stop(ctx context.Context, ref Ref) (*openshellv1.Sandbox, error) {
	s := &switching{wait: newWait(ref, "stopped"), c: c}
	return s.run(ctx, func(phase openshellv1.SandboxPhase) move {
		switch phase {
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
	}, func(ctx context.Context) (*openshellv1.SandboxResponse, error) {
		return change(ctx, c, "ConditionalSandboxes/StopSandbox", 0, c.conditional.StopSandbox, &conditionalv1.ConditionalStopSandboxRequest{
			Precondition: precondition(ref),
			Request:      &openshellv1.StopSandboxRequest{Name: ref.Name, WorkspaceScope: scope(ref.Workspace)},
		})
	})
}

// Start starts the sandbox with ref's id if it is stopped, and does nothing otherwise: a job that has finished is not
// run again. It returns when the start was accepted; started is false if there was nothing to start.
func (c *Client) Start(ctx context.Context, ref Ref) (sb *openshellv1.Sandbox, started bool, err error) {
	s := &switching{wait: newWait(ref, "started"), c: c}
	sb, err = s.run(ctx, func(phase openshellv1.SandboxPhase) move {
		switch phase {
		case openshellv1.SandboxPhase_SANDBOX_PHASE_STOPPED:
			return act
		case openshellv1.SandboxPhase_SANDBOX_PHASE_STOPPING:
			return hold
		case openshellv1.SandboxPhase_SANDBOX_PHASE_DELETING:
			return impossible
		default:
			return arrived
		}
	}, func(ctx context.Context) (*openshellv1.SandboxResponse, error) {
		return change(ctx, c, "ConditionalSandboxes/StartSandbox", 0, c.conditional.StartSandbox, &conditionalv1.ConditionalStartSandboxRequest{
			Precondition: precondition(ref),
			Request:      &openshellv1.StartSandboxRequest{Name: ref.Name, WorkspaceScope: scope(ref.Workspace)},
		})
	})
	return sb, s.sent, err
}

// move is what a phase calls for.
type move int

const (
	hold move = iota
	act
	arrived
	impossible
)

// switching is one change of whether a sandbox runs.
type switching struct {
	*wait
	c     *Client
	sent  bool
	lost  error // why the answer of the one call did not arrive
	mixed int
}

func (s *switching) run(ctx context.Context, judge func(openshellv1.SandboxPhase) move, call func(context.Context) (*openshellv1.SandboxResponse, error)) (*openshellv1.Sandbox, error) {
	for {
		sb, gone, err := s.c.Observe(ctx, s.ref)
		if gone != nil {
			return nil, &GoneError{Ref: s.ref, Gone: *gone}
		}
		if err := s.judge(ctx, err); err != nil {
			return nil, err
		}
		if sb != nil {
			s.observed = s.c.Observed(ctx, sb)
			switch judge(sb.GetStatus().GetPhase()) {
			case arrived:
				return sb, nil
			case impossible:
				return nil, &FailedError{Ref: s.ref, Observed: s.observed, Goal: s.goal}
			case act:
				if sb, err := s.act(ctx, call); sb != nil || err != nil {
					return sb, err
				}
			case hold:
			}
		}
		if err := s.again(ctx); err != nil {
			return nil, err
		}
	}
}

// act makes the call. Without a sandbox or an error in return, the phase is to be looked at again.
func (s *switching) act(ctx context.Context, call func(context.Context) (*openshellv1.SandboxResponse, error)) (*openshellv1.Sandbox, error) {
	if s.lost != nil { // it was sent, and the phase shows no effect
		return nil, s.lost
	}
	reply, err := call(ctx)
	if err == nil {
		s.sent = true
		if !sameID(IDOf(reply.GetSandbox()), s.ref.ID) {
			return nil, &BrokenReplyError{Call: "ConditionalSandboxes", Problem: fmt.Sprintf("success for the sandbox id %q, where the call was for %s", IDOf(reply.GetSandbox()), s.ref.ID)}
		}
		return reply.GetSandbox(), nil
	}
	if _, ok := errors.AsType[*apierr.IdentityMismatch](err); ok {
		return nil, nil // the next look proves it
	}
	switch status.Code(err) {
	case codes.NotFound:
		return nil, nil
	case codes.Unimplemented, codes.PermissionDenied:
		mixed, err := s.c.unsupported(ctx, err)
		if s.mixed++; mixed && s.mixed < mixedFleetTries {
			s.last = err
			return nil, nil
		}
		return nil, err
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		if ctx.Err() != nil {
			return nil, s.ended(ctx)
		}
		s.sent, s.lost = true, err
		return nil, nil
	default:
		return nil, err
	}
}
