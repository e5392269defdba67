package lifecycle

import (
	"context"
	"errors"
	"time"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

const (
	// tidyEvery is how often what is kept of calls is looked through for what has been kept long enough.
	tidyEvery = 10 * time.Minute
	// tidyAtOnce bounds what one transaction of that deletes.
	tidyAtOnce = 500
)

// operationOf is the id of the operation that a request begins.
func operationOf(r *store.Request) string {
	if r == nil {
		return newID()
	}
	return r.ID
}

// settle completes a change with what comes of the request, or of the operation that the row carries.
func settle(outcome store.Outcome) func(store.Change, error) (store.Change, error) {
	return func(change store.Change, err error) (store.Change, error) {
		change.Settle = outcome
		return change, err
	}
}

// audited is the record of a delete; nil when nobody asked for it.
func audited(r *store.Request, precondition *store.Precondition, outcome store.Outcome) *store.AuditRecord {
	if r == nil {
		return nil
	}
	return &store.AuditRecord{ID: r.ID, Caller: r.Caller, Method: r.Method, Expected: precondition, Outcome: outcome}
}

// auditRefusal records a delete that was refused although there was something to delete. Nothing was changed, so it has a
// transaction of its own; should that fail, the refusal is all the same the answer.
func (m *Manager) auditRefusal(ctx context.Context, target store.Target, precondition *store.Precondition, refusal error) {
	var (
		mismatch *store.IdentityMismatchError
		conflict *store.VersionConflictError
		pending  *OperationPendingError
	)
	record := audited(target.Request, precondition, store.OutcomePending)
	if record == nil {
		return
	}
	record.Workspace, record.Name = target.Workspace, target.Name
	switch {
	case errors.As(refusal, &mismatch):
		record.Outcome, record.SandboxID = store.OutcomeIdentityMismatch, mismatch.CurrentID
	case errors.As(refusal, &conflict): // only a precondition has a version, and then its id is the sandbox's
		record.Outcome, record.SandboxID = store.OutcomeVersionConflict, precondition.ID
	case errors.As(refusal, &pending):
		record.Outcome, record.SandboxID = store.OutcomeOperationPending, pending.Sandbox.ID
	default:
		return
	}
	if err := m.store.Transact(ctx, func(tx store.Tx) error { return tx.Audit(*record) }); err != nil {
		m.log.ErrorContext(ctx, "the refusal of a delete is missing in the audit", "workspace", record.Workspace, "name", record.Name,
			"sandbox_id", record.SandboxID, "outcome", record.Outcome, "error", err)
	}
}

// tidy deletes what has been kept of calls for long enough, a bounded piece at a time.
func (m *Manager) tidy(ctx context.Context) {
	ticker := time.NewTicker(tidyEvery)
	defer ticker.Stop()
	for {
		for n := tidyAtOnce; n == tidyAtOnce && ctx.Err() == nil; {
			var err error
			if n, err = m.store.Purge(ctx, tidyAtOnce); err != nil && ctx.Err() == nil {
				m.log.WarnContext(ctx, "cannot delete what is kept of old calls", "error", err)
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}
