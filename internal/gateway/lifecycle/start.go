package lifecycle

import (
	"context"
	"errors"
	"time"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// Start starts a stopped or finished sandbox and returns when the driver has taken it on. Starting one that runs changes
// nothing. Errors are those of the store, [PhaseError] and [DriverError], after which the sandbox is as it was.
func (m *Manager) Start(ctx context.Context, target store.Target, precondition *store.Precondition) (store.Sandbox, error) {
	return detached(ctx, m, func(ctx context.Context) (store.Sandbox, error) {
		operationID := operationOf(target.Request)
		asked, err := m.store.ChangeSandbox(ctx, target, precondition, startAsked(target.Request, precondition, operationID))
		if err != nil || !asked.Operation.Pending {
			return asked, err
		}
		s, err := m.doOrJoin(ctx, "start", operationID, asked, m.start)
		switch s.Phase() {
		case stopping, stopped, deleting: // another attempt was refused, or somebody stopped or deleted it meanwhile
			err = &PhaseError{Action: "start", Sandbox: s}
		}
		return m.conclude(ctx, target.Request, asked.Operation.ID, s, err)
	})
}

// start has the driver take a sandbox on again, be it for a client or by policy.
func (m *Manager) start(ctx context.Context, s store.Sandbox) (store.Sandbox, error) {
	err := m.call(ctx, s, m.driver.Start)
	switch {
	case errors.Is(err, errClosing):
		return store.Sandbox{}, err
	case err != nil:
		back := refused
		if s.Operation.Kind == store.OperationRestart {
			back = restartRefused(newID())
		}
		if last, err := m.change(ctx, s, during(s.Operation.ID, back)); err != nil || started(last) { // by another attempt
			return last, err
		}
		return store.Sandbox{}, &DriverError{Action: "start", Sandbox: s, Err: err}
	}
	return m.change(ctx, s, during(s.Operation.ID, m.taken(ctx, s)))
}

// started says whether a sandbox runs or is being started.
func started(s store.Sandbox) bool {
	return s.Phase() == ready || s.Phase() == starting && !waiting(s)
}

// startAsked is a client's wish to have a sandbox started (contract, phases and lifecycle).
func startAsked(request *store.Request, precondition *store.Precondition, operationID string) store.Decide {
	return func(current store.Sandbox, now time.Time) (store.Change, error) {
		if err := precondition.CheckVersion(current); err != nil {
			return nothing, err
		}
		switch phase := current.Phase(); {
		case phase == starting && current.Operation.Pending: // the call joins the one that is at it
			return nothing, nil
		case started(current):
			return store.Change{Settle: store.OutcomeDone}, nil
		case phase == stopped, phase == completed, phase == starting,
			phase == failed && (reason(current) == reasonMainProcessFailed || reason(current) == reasonProvisioningTimedOut):
			return rewrite(current, func(s *store.Sandbox) {
				setPhase(s.Status, starting, reasonStarting, "The compute driver is starting the sandbox.", now)
				s.Status.ExitCode, s.Status.NextRestartTime, s.Status.RestartCount = nil, nil, 0
				s.Operation = store.Operation{
					ID: operationID, Kind: store.OperationStart, Since: now, DueAt: now.Add(lease), Admitted: request.Admitted(), Before: snapshot(current),
				}
				setPending(s, true)
			})
		}
		return nothing, &PhaseError{Action: "start", Sandbox: current}
	}
}
