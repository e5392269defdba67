package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

const (
	nextDueQuery = `SELECT due_at - {now} FROM sandboxes WHERE due_at IS NOT NULL ORDER BY due_at LIMIT 1`

	// claimDueQuery leaves the version alone: who looks after a sandbox is no part of it. What is due is chosen once, and
	// found through the index, since the clock is read but once for it.
	claimDueQuery = `
		WITH due AS MATERIALIZED (
			SELECT id FROM sandboxes WHERE due_at <= (SELECT {now}) ORDER BY due_at LIMIT ? {skip locked}
		)
		UPDATE sandboxes SET due_at = {now} + ? WHERE id IN (SELECT id FROM due)
		RETURNING ` + columns

	rescheduleQuery = `UPDATE sandboxes SET due_at = {now} + ? WHERE id = ? AND operation_id = ?`
)

// ClaimDue implements [store.Store].
func (s *Store) ClaimDue(ctx context.Context, limit int, lease time.Duration) ([]store.Sandbox, error) {
	var claimed []store.Sandbox
	err := s.engine.Write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		rows, err := tx.StmtContext(ctx, s.stmt.claimDue).QueryContext(ctx, limit, lease.Microseconds())
		if err != nil {
			return err
		}
		claimed, err = collect(rows, func(r scanner) (store.Sandbox, error) { return scan(r) })
		return err
	})
	if err != nil {
		return nil, s.wrap(ctx, err)
	}
	return claimed, nil
}

// Reschedule implements [store.Store].
func (s *Store) Reschedule(ctx context.Context, sandboxID, operationID string, after time.Duration) error {
	err := s.engine.Write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.StmtContext(ctx, s.stmt.reschedule).ExecContext(ctx, after.Microseconds(), sandboxID, operationID)
		return err
	})
	return s.wrap(ctx, err)
}

// NextDue implements [store.Store].
func (s *Store) NextDue(ctx context.Context) (time.Duration, bool, error) {
	var us int64
	err := s.engine.Read(ctx, func(ctx context.Context) error { return s.stmt.nextDue.QueryRowContext(ctx).Scan(&us) })
	switch {
	case err == nil:
		return max(0, time.Duration(us)*time.Microsecond), true, nil
	case errors.Is(err, sql.ErrNoRows):
		return 0, false, nil
	default:
		return 0, false, s.wrap(ctx, err)
	}
}
