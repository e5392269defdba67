package lifecycle

import (
	"context"
	"errors"
	"time"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// Stop stops a sandbox and returns when it does not run any more. Stopping one that has ended changes nothing. Errors are
// those of the store, [PhaseError] and [DriverError], after which the sandbox is as it was.
func (m *Manager) Stop(ctx context.Context, target store.Target, precondition *store.Precondition) (store.Sandbox, error) {
	return detached(ctx, m, func(ctx context.Context) (store.Sandbox, error) {
		operationID := operationOf(target.Request)
		asked, err := m.store.ChangeSandbox(ctx, target, precondition, stopAsked(target.Request, precondition, operationID))
		if err != nil || asked.Phase() != stopping {
			return asked, err
		}
		s, err := m.doOrJoin(ctx, "stop", operationID, asked, m.stop)
		if err == nil && s.Phase() != stopped { // somebody deleted it, or started it again, while it stopped
			err = &PhaseError{Action: "stop", Sandbox: s}
		}
		return m.conclude(ctx, target.Request, asked.Operation.ID, s, err)
	})
}

// stop has the driver stop a sandbox.
func (m *Manager) stop(ctx context.Context, s store.Sandbox) (store.Sandbox, error) {
	err := m.call(ctx, s, m.driver.Stop)
	switch {
	case errors.Is(err, errClosing):
		return store.Sandbox{}, err
	case err != nil:
		if last, err := m.change(ctx, s, during(s.Operation.ID, refused)); err != nil || last.Phase() == stopped { // by another attempt
			return last, err
		}
		return store.Sandbox{}, &DriverError{Action: "stop", Sandbox: s, Err: err}
	}
	return m.change(ctx, s, during(s.Operation.ID, hasStopped))
}

// stopAsked is a client's wish to have a sandbox stopped (contract, phases and lifecycle).
func stopAsked(request *store.Request, precondition *store.Precondition, operationID string) store.Decide {
	return func(current store.Sandbox, now time.Time) (store.Change, error) {
		if err := precondition.CheckVersion(current); err != nil {
			return nothing, err
		}
		switch phase := current.Phase(); {
		case phase == stopping: // the call joins the one that is at it
			return nothing, nil
		case phase == stopped, phase == completed, phase == failed && reason(current) == reasonMainProcessFailed:
			return store.Change{Settle: store.OutcomeDone}, nil
		case phase == ready, phase == starting && current.Operation.Kind == store.OperationRestart:
			return rewrite(current, func(s *store.Sandbox) {
				setPhase(s.Status, stopping, reasonStopping, "The compute driver is stopping the sandbox.", now)
				s.Status.NextRestartTime = nil
				s.Operation = store.Operation{
					ID: operationID, Kind: store.OperationStop, Since: now, DueAt: now.Add(lease), Admitted: request.Admitted(), Before: snapshot(current),
				}
				setPending(s, false)
			})
		}
		return nothing, &PhaseError{Action: "stop", Sandbox: current}
	}
}

// hasStopped is the end of a stop, and of the sessions of whoever was connected (contract, CreateSshSession).
func hasStopped(current store.Sandbox, now time.Time) (store.Change, error) {
	change, err := settle(store.OutcomeDone)(rewrite(current, func(s *store.Sandbox) {
		setPhase(s.Status, stopped, reasonStopped, "The sandbox was stopped.", now)
		s.Operation = store.Operation{}
	}))
	change.Drop = store.KindSSHSession
	return change, err
}
