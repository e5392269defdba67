package lifecycle

import (
	"context"
	"errors"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// joinEvery is how often a call that waits for another's operation looks whether that has ended.
const joinEvery = 50 * time.Millisecond

// doOrJoin carries out the operation that a call has begun, or waits for the one that another call has begun before.
func (m *Manager) doOrJoin(
	ctx context.Context, action, begun string, asked store.Sandbox, do func(context.Context, store.Sandbox) (store.Sandbox, error),
) (store.Sandbox, error) {
	if asked.Operation.ID == begun {
		return do(ctx, asked)
	}
	return m.join(ctx, action, asked)
}

// join waits until an operation has ended that another call is at, and returns what there is then. It leaves the driver to
// whoever is at it: of two calls to the driver at once, the one that is refused would say nothing about the other.
func (m *Manager) join(ctx context.Context, action string, asked store.Sandbox) (store.Sandbox, error) {
	ticker := time.NewTicker(joinEvery)
	defer ticker.Stop()
	for {
		s, err := m.store.SandboxByID(ctx, asked.ID)
		switch {
		case m.working.Err() != nil:
			return store.Sandbox{}, errClosing
		case err != nil:
			return store.Sandbox{}, err
		case s.Operation.ID == asked.Operation.ID:
		case undone(s, asked.Operation.Before):
			return store.Sandbox{}, &DriverError{Action: action, Sandbox: s, Err: errors.New("it refused the call before this one")}
		default:
			return s, nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

// undone says whether a sandbox is as it was before an operation: it has not left that phase since.
func undone(s store.Sandbox, before *store.Snapshot) bool {
	return before != nil && s.Phase() == before.Status.GetPhase() && proto.Equal(readyCondition(s.Status), readyCondition(before.Status))
}

// conclude settles the request of a call that has waited for another's operation, by the answer it has got. The operation's
// own request is settled by what ends that. This one has changed nothing itself, so whatever its failure, it may be made again.
func (m *Manager) conclude(ctx context.Context, r *store.Request, operationID string, s store.Sandbox, failure error) (store.Sandbox, error) {
	if !r.Admitted() || r.ID == operationID {
		return s, failure
	}
	outcome := store.OutcomeDone
	if failure != nil {
		outcome = store.OutcomeRefused
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lease) // a shutdown is such a failure
	defer cancel()
	err := m.store.Transact(ctx, func(tx store.Tx) error { return tx.Settle(r.ID, outcome, s.ID) })
	switch {
	case err != nil && failure == nil:
		return store.Sandbox{}, err
	case err != nil:
		m.log.WarnContext(ctx, "the request_id of a call that has failed stays taken", "method", r.Method, "error", err)
	}
	return s, failure
}
