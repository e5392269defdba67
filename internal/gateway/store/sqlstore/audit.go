package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

const (
	auditColumns = `id, at, identity_provider, issuer, subject, method, workspace, name, sandbox_id, expected_id, expected_version, outcome, settled_at`

	insertAuditQuery = `
		INSERT INTO audit (id, at, identity_provider, issuer, subject, method, workspace, name, sandbox_id, expected_id, expected_version, outcome)
		VALUES (?, {now}, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	settleAuditQuery = `UPDATE audit SET outcome = ?, settled_at = {now} WHERE id = ? AND settled_at IS NULL`
	purgeAuditQuery  = `
		WITH due AS MATERIALIZED (
			SELECT id FROM audit WHERE at <= (SELECT {now} - ?) ORDER BY at LIMIT ? {skip locked}
		)
		DELETE FROM audit WHERE id IN (SELECT id FROM due)`
)

func (s *Store) audit(ctx context.Context, tx *sql.Tx, r store.AuditRecord) error {
	var expectedID sql.NullString
	var expectedVersion sql.NullInt64
	if p := r.Expected; p != nil {
		expectedID = sql.NullString{String: p.ID, Valid: true}
		// Any 64 bits can be asked for, and come back as they were.
		expectedVersion = sql.NullInt64{Int64: int64(p.ResourceVersion), Valid: p.ResourceVersion != 0} //nolint:gosec // as said
	}
	_, err := tx.StmtContext(ctx, s.stmt.insertAudit).ExecContext(ctx,
		r.ID, r.Caller.IdentityProvider, r.Caller.Issuer, r.Caller.Subject, r.Method, r.Workspace, r.Name, r.SandboxID,
		expectedID, expectedVersion, string(r.Outcome))
	return err
}

func (s *Store) settleAudit(ctx context.Context, tx *sql.Tx, id string, outcome store.Outcome) error {
	if outcome == store.OutcomeAccepted { // it says so, and is not at its end
		return nil
	}
	_, err := tx.StmtContext(ctx, s.stmt.settleAudit).ExecContext(ctx, string(outcome), id)
	return err
}

// ListAudit implements [store.Requests].
func (s *Store) ListAudit(ctx context.Context, q store.AuditQuery) ([]store.AuditRecord, error) {
	if unstorable(q.Workspace, q.Name) {
		return nil, nil
	}
	query, args := auditQuery(q)
	return list(ctx, s, query, args, scanAudit)
}

// Audit implements [store.AuditReader].
type Audit struct{ store *Store }

// OpenAudit takes over an engine, of which it uses what reads. It fails where there is no audit.
func OpenAudit(ctx context.Context, engine Engine, dialect Dialect) (*Audit, error) {
	a := &Audit{store: &Store{engine: engine, dialect: dialect}}
	if _, err := a.ListAudit(ctx, store.AuditQuery{Limit: 1}); err != nil {
		if errors.Is(err, store.ErrUnavailable) || ctx.Err() != nil {
			return nil, err
		}
		return nil, fmt.Errorf("there is no audit of a gateway in it: %w", err)
	}
	return a, nil
}

// ListAudit implements [store.AuditReader].
func (a *Audit) ListAudit(ctx context.Context, q store.AuditQuery) ([]store.AuditRecord, error) {
	return a.store.ListAudit(ctx, q)
}

// Close implements [store.AuditReader].
func (a *Audit) Close() error { return a.store.Close() }

func auditQuery(q store.AuditQuery) (string, []any) {
	var c conditions
	if q.Workspace != "" {
		c.and("workspace = ?", q.Workspace)
	}
	if q.Name != "" {
		c.and("name = ?", q.Name)
	}
	if after := q.After; after != nil {
		c.and("(at, id) > (?, ?)", micros(after.At), after.ID)
	} else {
		c.and("at >= ?", micros(q.Since))
	}
	return c.page("SELECT "+auditColumns+" FROM audit", "at, id", q.Limit)
}

func scanAudit(r scanner) (store.AuditRecord, error) {
	var a store.AuditRecord
	var at int64
	var expectedID sql.NullString
	var expectedVersion, settled sql.NullInt64
	err := r.Scan(&a.ID, &at, &a.Caller.IdentityProvider, &a.Caller.Issuer, &a.Caller.Subject, &a.Method,
		&a.Workspace, &a.Name, &a.SandboxID, &expectedID, &expectedVersion, &a.Outcome, &settled)
	a.At, a.SettledAt = fromMicros(at), fromMicros(settled.Int64)
	if expectedID.Valid {
		a.Expected = &store.Precondition{ID: expectedID.String, ResourceVersion: uint64(expectedVersion.Int64)} //nolint:gosec // as it was written
	}
	return a, err
}
