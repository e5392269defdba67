package sqlstore

import (
	"context"
	"database/sql"
	"errors"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

const (
	admittedQuery = `
		SELECT fingerprint, outcome, subject_id FROM admissions WHERE scope = ? AND request_id = ? AND expires_at > (SELECT {now})`

	// admitQuery replaces what has expired. It waits for another transaction that admits the same, and then counts no row
	// unless that one was undone.
	admitQuery = `
		INSERT INTO admissions (scope, request_id, caller, fingerprint, operation_id, expires_at) VALUES (?, ?, ?, ?, ?, {now} + ?)
		ON CONFLICT (scope, request_id) DO UPDATE
		SET caller = excluded.caller, fingerprint = excluded.fingerprint, operation_id = excluded.operation_id,
			expires_at = excluded.expires_at, outcome = '', subject_id = ''
		WHERE admissions.expires_at <= {now}`
	countAdmissionsQuery = `SELECT count(*) FROM admissions WHERE caller = ? AND expires_at > (SELECT {now})`

	// settleQuery and withdrawQuery leave alone what is settled: the first outcome is what the client was told.
	settleQuery   = `UPDATE admissions SET outcome = ?, subject_id = ? WHERE operation_id = ? AND outcome = ''`
	withdrawQuery = `DELETE FROM admissions WHERE operation_id = ? AND outcome = ''`

	purgeAdmissionsQuery = `
		WITH due AS MATERIALIZED (
			SELECT operation_id FROM admissions WHERE expires_at <= (SELECT {now}) ORDER BY expires_at LIMIT ? {skip locked}
		)
		DELETE FROM admissions WHERE operation_id IN (SELECT operation_id FROM due)`
)

// Admitted implements [store.Requests].
func (s *Store) Admitted(ctx context.Context, scope, requestID string) (store.Admitted, bool, error) {
	var a store.Admitted
	err := s.engine.Read(ctx, func(ctx context.Context) error {
		return s.stmt.admitted.QueryRowContext(ctx, scope, requestID).Scan(&a.Fingerprint, &a.Outcome, &a.SubjectID)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return store.Admitted{}, false, nil
	}
	return a, err == nil, s.wrap(ctx, err)
}

// admit records the admission of a request, if it has one.
func (s *Store) admit(ctx context.Context, tx *sql.Tx, r *store.Request) error {
	if !r.Admitted() {
		return nil
	}
	result, err := tx.StmtContext(ctx, s.stmt.admit).ExecContext(ctx,
		r.Admission.Scope, r.Admission.RequestID, r.Caller.Key, r.Admission.Fingerprint, r.ID, store.AdmissionTTL.Microseconds())
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	switch {
	case err != nil:
		return err
	case n == 0:
		return decided{store.ErrAdmitted}
	}
	var live int
	if err := tx.StmtContext(ctx, s.stmt.countAdmissions).QueryRowContext(ctx, r.Caller.Key).Scan(&live); err != nil {
		return err
	}
	if live > store.MaxAdmissions {
		return decided{store.ErrTooManyAdmissions}
	}
	return nil
}

// remember records what a change says about its request and in the audit.
func (s *Store) remember(ctx context.Context, tx *sql.Tx, r *store.Request, current store.Sandbox, change store.Change) error {
	if change.Audit != nil {
		record := *change.Audit
		record.Workspace, record.Name, record.SandboxID = current.Workspace, current.Name, current.ID
		if err := s.audit(ctx, tx, record); err != nil {
			return err
		}
	}
	switch operation := current.Operation; {
	case change.Settle == store.OutcomePending:
		return nil
	case r.Admitted():
		return s.settleAdmission(ctx, tx, r.ID, change.Settle, current.ID)
	case r != nil:
		return nil
	default:
		if operation.Admitted {
			if err := s.settleAdmission(ctx, tx, operation.ID, change.Settle, current.ID); err != nil {
				return err
			}
		}
		if operation.Kind == store.OperationDelete {
			return s.settleAudit(ctx, tx, operation.ID, change.Settle)
		}
		return nil
	}
}

func (s *Store) settleAdmission(ctx context.Context, tx *sql.Tx, operationID string, outcome store.Outcome, subjectID string) error {
	if outcome == store.OutcomeRefused {
		_, err := tx.StmtContext(ctx, s.stmt.withdraw).ExecContext(ctx, operationID)
		return err
	}
	_, err := tx.StmtContext(ctx, s.stmt.settle).ExecContext(ctx, string(outcome), subjectID, operationID)
	return err
}

// Purge implements [store.Requests].
func (s *Store) Purge(ctx context.Context, limit int) (int, error) {
	var n int64
	err := s.engine.Write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		n = 0
		for _, purge := range []func() (sql.Result, error){
			func() (sql.Result, error) { return tx.StmtContext(ctx, s.stmt.purgeAdmissions).ExecContext(ctx, limit) },
			func() (sql.Result, error) {
				return tx.StmtContext(ctx, s.stmt.purgeAudit).ExecContext(ctx, store.AuditRetention.Microseconds(), limit)
			},
		} {
			result, err := purge()
			if err != nil {
				return err
			}
			deleted, err := result.RowsAffected()
			if err != nil {
				return err
			}
			n = max(n, deleted)
		}
		return nil
	})
	if err != nil {
		return 0, s.wrap(ctx, err)
	}
	return int(n), nil
}
