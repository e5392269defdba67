package lifecycle

import (
	"context"
	"errors"
	"time"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/driver"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// Deletion is what came of a delete.
type Deletion struct {
	// ID is that of the sandbox it was about.
	ID string
	// Gone says that the row is gone; otherwise it is DELETING.
	Gone bool
}

// Delete marks a sandbox DELETING, from when on only the id counts, and has the driver remove it. Errors are those of the
// store, [OperationPendingError] and [DriverError], after which the sandbox is as it was.
func (m *Manager) Delete(ctx context.Context, target store.Target, precondition *store.Precondition) (Deletion, error) {
	return detached(ctx, m, func(ctx context.Context) (Deletion, error) {
		operationID := operationOf(target.Request)
		s, err := m.store.ChangeSandbox(ctx, target, precondition, deleteAsked(target.Request, precondition, operationID))
		if err != nil {
			m.auditRefusal(ctx, target, precondition, err)
			return Deletion{}, err
		}
		if s.Operation.ID != operationID { // an earlier call is at it
			return Deletion{ID: s.ID}, nil
		}
		return m.delete(ctx, s)
	})
}

// delete has the driver remove a sandbox that is DELETING, or go on with it.
func (m *Manager) delete(ctx context.Context, s store.Sandbox) (Deletion, error) {
	var d driver.Deletion
	err := m.call(ctx, s, func(ctx context.Context, i driver.Instance) (err error) {
		d, err = m.driver.Delete(ctx, i)
		return err
	})
	switch {
	case errors.Is(err, errClosing):
		return Deletion{}, err
	case err != nil:
		refusal := &DriverError{Action: "delete", Sandbox: s, Err: err}
		_, err := m.change(ctx, s, during(s.Operation.ID, refused))
		switch {
		case errors.Is(err, store.ErrNotFound): // another attempt at this delete was not refused
			return Deletion{ID: s.ID, Gone: true}, nil
		case err != nil:
			return Deletion{}, err
		}
		return Deletion{}, refusal
	case d.Gone:
		return m.remove(ctx, s)
	}
	if s.Operation.Admitted {
		if err := m.store.Transact(ctx, func(tx store.Tx) error {
			return tx.Settle(s.Operation.ID, store.OutcomeAccepted, s.ID)
		}); err != nil {
			return Deletion{}, err
		}
	}
	// The answer need not wait for the timer: without it, the delete goes on when the lease runs out.
	m.spawn(func(ctx context.Context) { m.reschedule(ctx, s, d.Next) })
	return Deletion{ID: s.ID}, nil
}

// remove deletes the row of a sandbox that the driver has removed.
func (m *Manager) remove(ctx context.Context, s store.Sandbox) (Deletion, error) {
	last, err := m.change(ctx, s, during(s.Operation.ID, removed(store.OutcomeCompleted)))
	switch {
	case errors.Is(err, store.ErrNotFound): // another attempt at this delete was faster
	case err != nil:
		return Deletion{}, err
	case last.Operation.ID != s.Operation.ID: // another attempt was refused meanwhile, so this one has no say any more
		return Deletion{}, &DriverError{Action: "delete", Sandbox: last, Err: errors.New("it refused another attempt")}
	}
	return Deletion{ID: s.ID, Gone: true}, nil
}

// deleteAsked is the wish to have a sandbox deleted. The store has compared the id already; the order of the rest is that
// of the result table of the conditional delete.
func deleteAsked(request *store.Request, precondition *store.Precondition, operationID string) store.Decide {
	return func(current store.Sandbox, now time.Time) (store.Change, error) {
		if current.Operation.Pending {
			return nothing, &OperationPendingError{Sandbox: current}
		}
		if current.Phase() == deleting {
			return store.Change{Settle: store.OutcomeAccepted, Audit: audited(request, precondition, store.OutcomeAlreadyDeleting)}, nil
		}
		if err := precondition.CheckVersion(current); err != nil {
			return nothing, err
		}
		change, err := rewrite(current, func(s *store.Sandbox) {
			s.Status.Phase = deleting // the conditions stay (contract, DeleteSandbox)
			s.Operation = store.Operation{
				ID: operationID, Kind: store.OperationDelete, Since: now, DueAt: now.Add(lease), Admitted: request.Admitted(), Before: snapshot(current),
			}
		})
		change.Audit = audited(request, precondition, store.OutcomeAccepted)
		return change, err
	}
}
