package lifecycle

import (
	"context"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

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
