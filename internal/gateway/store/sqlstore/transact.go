package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// Transact implements [store.Objects].
func (s *Store) Transact(ctx context.Context, fn func(tx store.Tx) error) error {
	found := map[store.Target]string{} // outlives a run, so that the next one is about the same sandboxes
	err := s.engine.Write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		t := &transaction{ctx: ctx, store: s, tx: tx, found: found}
		err := fn(t)
		switch {
		case t.failed != nil: // whatever fn has made of it
			return t.failed
		case err != nil:
			return decided{err}
		}
		return nil
	})
	return s.undecided(ctx, err)
}

// transaction implements [store.Tx].
type transaction struct {
	ctx    context.Context
	store  *Store
	tx     *sql.Tx
	found  map[store.Target]string // ids of sandboxes
	failed error                   // the first failure of the database, after which the transaction is lost
}

var _ store.Tx = (*transaction)(nil)

// answer takes the mark off an answer, and remembers a failure.
func (t *transaction) answer(err error) error {
	var d decided
	if errors.As(err, &d) {
		return d.error
	}
	if t.failed == nil {
		t.failed = err
	}
	return err
}

// Now implements [store.Tx].
func (t *transaction) Now() (time.Time, error) {
	var now int64
	err := t.tx.StmtContext(t.ctx, t.store.stmt.now).QueryRowContext(t.ctx).Scan(&now)
	return fromMicros(now), t.answer(err)
}

// Active implements [store.Tx].
func (t *transaction) Active(workspace string) (store.Workspace, error) {
	w, _, err := t.store.active(t.ctx, t.tx, workspace)
	return w, t.answer(err)
}

// Count implements [store.Tx].
func (t *transaction) Count(kind store.Kind, workspace string) (int, error) {
	if _, _, err := t.store.lockWorkspace(t.ctx, t.tx, t.store.stmt.lockWorkspace, workspace); err != nil {
		return 0, t.answer(err)
	}
	var n int
	err := t.tx.StmtContext(t.ctx, t.store.stmt.count).QueryRowContext(t.ctx, workspace, string(kind)).Scan(&n)
	return n, t.answer(err)
}

// CreateWorkspace implements [store.Tx].
func (t *transaction) CreateWorkspace(w store.Workspace) (store.Workspace, error) {
	w, err := t.store.insertWorkspace(t.ctx, t.tx, w)
	return w, t.answer(err)
}

// DeleteWorkspace implements [store.Tx].
func (t *transaction) DeleteWorkspace(name string) ([]store.Kind, error) {
	holds, err := t.store.deleteWorkspace(t.ctx, t.tx, name)
	return holds, t.answer(err)
}

// CreateSandbox implements [store.Tx].
func (t *transaction) CreateSandbox(workspace string, build store.Build) (store.Sandbox, error) {
	s, err := t.store.create(t.ctx, t.tx, workspace, build)
	return s, t.answer(err)
}

// Sandbox implements [store.Tx].
func (t *transaction) Sandbox(target store.Target, precondition *store.Precondition) (store.Sandbox, error) {
	asked := target
	if id, again := t.found[asked]; again {
		target.ID = id
	}
	s, _, err := t.store.find(t.ctx, t.tx, target)
	if err != nil {
		return store.Sandbox{}, t.answer(err)
	}
	t.found[asked] = s.ID
	if err := precondition.CheckIdentity(s); err != nil {
		return store.Sandbox{}, err
	}
	return s, nil
}

// WriteSandbox implements [store.Tx].
func (t *transaction) WriteSandbox(s store.Sandbox) (store.Sandbox, error) {
	current, _, err := t.store.find(t.ctx, t.tx, store.Target{ID: s.ID})
	if err == nil {
		s, err = t.store.write(t.ctx, t.tx, current, s)
	}
	return s, t.answer(err)
}

// Object implements [store.Tx].
func (t *transaction) Object(key store.Key) (store.Object, error) {
	o, err := t.store.findObject(t.ctx, t.tx, t.store.stmt.shareObject, key)
	return o, t.answer(err)
}

// LockObject implements [store.Tx].
func (t *transaction) LockObject(key store.Key) (store.Object, error) {
	o, err := t.store.findObject(t.ctx, t.tx, t.store.stmt.lockObject, key)
	return o, t.answer(err)
}

// ListObjects implements [store.Tx].
func (t *transaction) ListObjects(q store.ObjectQuery) ([]store.Object, error) {
	if unlisted(q) {
		return nil, nil
	}
	query, args := objectsQuery(q)
	rows, err := t.tx.QueryContext(t.ctx, t.store.dialect.rewrite(query), args...)
	if err != nil {
		return nil, t.answer(err)
	}
	objects, err := collect(rows, scanObject)
	return objects, t.answer(err)
}

// CreateObject implements [store.Tx].
func (t *transaction) CreateObject(o store.Object, needs ...store.Object) (store.Object, error) {
	o, err := t.store.insertObject(t.ctx, t.tx, o, needs)
	return o, t.answer(err)
}

// WriteObject implements [store.Tx].
func (t *transaction) WriteObject(o store.Object) (store.Object, error) {
	err := t.store.exactlyOne(t.ctx, t.tx, t.store.stmt.updateObject, append([]byte{}, o.Payload...), o.ID, o.ResourceVersion)
	o.ResourceVersion++
	return o, t.answer(err)
}

// DeleteObject implements [store.Tx].
func (t *transaction) DeleteObject(o store.Object) error {
	by, err := t.Referrers(o)
	switch {
	case err != nil:
		return err
	case len(by) > 0:
		return &store.InUseError{Key: o.Key, By: by}
	}
	return t.answer(t.store.exactlyOne(t.ctx, t.tx, t.store.stmt.removeObject, o.ID, o.ResourceVersion))
}

// Referrers implements [store.Tx].
func (t *transaction) Referrers(o store.Object) ([]store.Referrer, error) {
	by, err := t.store.referrers(t.ctx, t.tx, o.ID)
	return by, t.answer(err)
}

// Admit implements [store.Tx].
func (t *transaction) Admit(r *store.Request) error {
	return t.answer(t.store.admit(t.ctx, t.tx, r))
}

// Settle implements [store.Tx].
func (t *transaction) Settle(requestID string, outcome store.Outcome, subjectID string) error {
	err := t.store.settleAdmission(t.ctx, t.tx, requestID, outcome, subjectID)
	if err == nil {
		err = t.store.settleAudit(t.ctx, t.tx, requestID, outcome)
	}
	return t.answer(err)
}

// Audit implements [store.Tx].
func (t *transaction) Audit(record store.AuditRecord) error {
	return t.answer(t.store.audit(t.ctx, t.tx, record))
}

// Trim implements [store.Tx].
func (t *transaction) Trim(kind store.Kind, sandboxID string, keep int) error {
	return t.answer(t.store.trim(t.ctx, t.tx, kind, sandboxID, keep))
}
