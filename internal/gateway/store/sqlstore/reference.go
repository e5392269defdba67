package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

const (
	insertReferenceQuery = `INSERT INTO object_references (target_id, sandbox_id, object_id) VALUES (?, ?, ?)`
	removeReferenceQuery = `
		DELETE FROM object_references WHERE sandbox_id = ? AND target_id IN (
			SELECT id FROM objects WHERE kind = ? AND name = ? AND workspace = ? AND sandbox_id IS NULL)`
	referrersQuery = `
		SELECT '` + string(store.KindSandbox) + `', s.id, s.workspace, s.name, s.created_at
		FROM object_references AS r JOIN sandboxes AS s ON s.id = r.sandbox_id WHERE r.target_id = ?
		UNION ALL
		SELECT o.kind, o.id, o.workspace, o.name, o.created_at
		FROM object_references AS r JOIN objects AS o ON o.id = r.object_id WHERE r.target_id = ?
		ORDER BY 5, 4, 2`
)

// refer brings the references of a sandbox from one row to the next. Those that are added must exist, and are locked
// against being deleted.
func (s *Store) refer(ctx context.Context, tx *sql.Tx, from, to store.Sandbox) error {
	before, after := from.Spec.GetProviders(), to.Spec.GetProviders()
	if slices.Equal(before, after) {
		return nil
	}
	for _, name := range without(before, after) {
		if _, err := tx.StmtContext(ctx, s.stmt.removeReference).ExecContext(ctx, from.ID, string(store.KindProvider), name, from.Workspace); err != nil {
			return err
		}
	}
	for _, name := range without(after, before) {
		key := store.ProviderKey(from.Workspace, name)
		provider, err := s.findObject(ctx, tx, s.stmt.shareObject, key)
		if errors.Is(err, store.ErrObjectNotFound) {
			return decided{&store.MissingError{Key: key}}
		}
		if err != nil {
			return err
		}
		if err := s.insertReference(ctx, tx, provider.ID, from.ID, ""); err != nil {
			return err
		}
	}
	return nil
}

// without are the names of one list that another lacks, each once.
func without(names, others []string) []string {
	lacking := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
	slices.Sort(lacking) // rows are locked in one order
	return slices.Compact(lacking)
}

func (s *Store) insertReference(ctx context.Context, tx *sql.Tx, targetID, sandboxID, objectID string) error {
	_, err := tx.StmtContext(ctx, s.stmt.insertReference).ExecContext(ctx, targetID, optional(sandboxID), optional(objectID))
	return err
}

// optional is NULL for "".
func optional(text string) sql.NullString { return sql.NullString{String: text, Valid: text != ""} }

func (s *Store) referrers(ctx context.Context, tx *sql.Tx, targetID string) ([]store.Referrer, error) {
	rows, err := tx.StmtContext(ctx, s.stmt.referrers).QueryContext(ctx, targetID, targetID)
	if err != nil {
		return nil, err
	}
	return collect(rows, func(r scanner) (store.Referrer, error) {
		var by store.Referrer
		var created int64
		err := r.Scan(&by.Kind, &by.ID, &by.Workspace, &by.Name, &created)
		return by, err
	})
}
