package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

const (
	// updateQuery and removeQuery name the id, so that they cannot reach another sandbox whatever happened since the
	// row was read, and the version, so that they cannot overwrite another change of it. The rows are counted.
	updateQuery = `
		UPDATE sandboxes
		SET resource_version = resource_version + 1, annotations = ?, spec = ?, status = ?, phase = ?, operation_id = ?, due_at = ?, operation = ?
		WHERE id = ? AND resource_version = ?`
	removeQuery = `DELETE FROM sandboxes WHERE id = ? AND resource_version = ?`
)

// ChangeSandbox implements [store.Store]. This is where the promise of the conditional calls is kept.
func (s *Store) ChangeSandbox(ctx context.Context, target store.Target, precondition *store.Precondition, decide store.Decide) (store.Sandbox, error) {
	var result store.Sandbox
	err := s.engine.Write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if err := s.admit(ctx, tx, target.Request); err != nil {
			return err
		}
		current, now, err := s.find(ctx, tx, target)
		if err != nil {
			return err
		}
		target.ID = current.ID // if this runs again, it is about this sandbox, whoever holds the name then
		if err := precondition.CheckIdentity(current); err != nil {
			return decided{err}
		}
		result = current
		change, err := decide(current, fromMicros(now))
		if err != nil {
			return decided{err}
		}
		switch {
		case change.Remove:
			err = s.exactlyOne(ctx, tx, s.stmt.remove, current.ID, current.ResourceVersion)
		case change.Write != nil:
			result, err = s.write(ctx, tx, current, *change.Write)
		}
		if err != nil {
			return err
		}
		if change.Drop != "" {
			if err := s.trim(ctx, tx, change.Drop, current.ID, 0); err != nil {
				return err
			}
		}
		return s.remember(ctx, tx, target.Request, current, change)
	})
	if err != nil {
		return store.Sandbox{}, s.undecided(ctx, err)
	}
	return result, nil
}

// find locks the row of a target and reads the database's clock.
func (s *Store) find(ctx context.Context, tx *sql.Tx, target store.Target) (store.Sandbox, int64, error) {
	if unstorable(target.Workspace, target.Name, target.ID) {
		return store.Sandbox{}, 0, decided{store.ErrNotFound}
	}
	var row *sql.Row
	if target.ID != "" {
		row = tx.StmtContext(ctx, s.stmt.lockByID).QueryRowContext(ctx, target.ID)
	} else {
		row = tx.StmtContext(ctx, s.stmt.lockByName).QueryRowContext(ctx, target.Workspace, target.Name)
	}
	var now int64
	sandbox, err := scan(row, &now)
	if errors.Is(err, sql.ErrNoRows) {
		return store.Sandbox{}, 0, decided{store.ErrNotFound}
	}
	return sandbox, now, err
}

func (s *Store) write(ctx context.Context, tx *sql.Tx, current, wanted store.Sandbox) (store.Sandbox, error) {
	args, err := encode(wanted)
	if err != nil {
		return store.Sandbox{}, err
	}
	if err := s.exactlyOne(ctx, tx, s.stmt.update, append(args, current.ID, current.ResourceVersion)...); err != nil {
		return store.Sandbox{}, err
	}
	if err := s.refer(ctx, tx, current, wanted); err != nil {
		return store.Sandbox{}, err
	}
	current.Annotations, current.Spec, current.Status, current.Operation = wanted.Annotations, wanted.Spec, wanted.Status, wanted.Operation
	current.ResourceVersion++
	return current, nil
}

// exactlyOne runs a statement that must hit the one row that the transaction has read and locked.
func (s *Store) exactlyOne(ctx context.Context, tx *sql.Tx, stmt *sql.Stmt, args ...any) error {
	result, err := tx.StmtContext(ctx, stmt).ExecContext(ctx, args...)
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	if err != nil {
		return err
	}
	if n != 1 {
		return fmt.Errorf("a statement for one row hit %d", n)
	}
	return nil
}

// decided marks an error that is an answer and not a failure of the database.
type decided struct{ error }

func (d decided) Unwrap() error { return d.error }

// undecided takes the mark off, or else makes the error one of the store's.
func (s *Store) undecided(ctx context.Context, err error) error {
	var d decided
	if errors.As(err, &d) {
		return d.error
	}
	return s.wrap(ctx, err)
}
