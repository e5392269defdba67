package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

const (
	workspaceColumns = `name, id, labels, resource_version, created_at, terminating_at`

	insertWorkspaceQuery = `
		INSERT INTO workspaces (name, id, labels, resource_version, created_at) VALUES (?, ?, ?, 1, {now})
		ON CONFLICT DO NOTHING RETURNING created_at`
	insertWorkspaceLabelQuery = `INSERT INTO workspace_labels (workspace, key, value) VALUES (?, ?, ?)`

	// heldQuery looks for what keeps a workspace from being deleted.
	heldQuery = `
		SELECT DISTINCT kind FROM objects WHERE workspace = ? AND kind <> ?
		UNION ALL SELECT '` + string(store.KindSandbox) + `' WHERE EXISTS (SELECT 1 FROM sandboxes WHERE workspace = ?)`
	terminateQuery = `
		UPDATE workspaces SET resource_version = resource_version + 1, terminating_at = coalesce(terminating_at, {now}) WHERE id = ?`
	removeMembersQuery   = `DELETE FROM objects WHERE workspace = ? AND kind = ?`
	removeWorkspaceQuery = `DELETE FROM workspaces WHERE id = ?`
)

// workspaceLockQuery reads a workspace and locks it, and then the clock.
func workspaceLockQuery(lock string) string {
	return `SELECT locked.*, {now} FROM (SELECT ` + workspaceColumns + ` FROM workspaces WHERE name = ? ` + lock + `) AS locked`
}

// scanWorkspace reads a row of workspaceColumns, and whatever more was selected into extra.
func scanWorkspace(r scanner, extra ...any) (store.Workspace, error) {
	var w store.Workspace
	var labels []byte
	var created int64
	var terminating sql.NullInt64
	if err := r.Scan(append([]any{&w.Name, &w.ID, &labels, &w.ResourceVersion, &created, &terminating}, extra...)...); err != nil {
		return store.Workspace{}, err
	}
	if err := json.Unmarshal(labels, &w.Labels); err != nil {
		return store.Workspace{}, fmt.Errorf("labels of workspace %s: %w", w.Name, err)
	}
	w.CreatedAt, w.TerminatingSince = fromMicros(created), fromMicros(terminating.Int64)
	return w, nil
}

// Workspace implements [store.Workspaces].
func (s *Store) Workspace(ctx context.Context, name string) (store.Workspace, error) {
	if unstorable(name) {
		return store.Workspace{}, store.ErrWorkspaceNotFound
	}
	var w store.Workspace
	err := s.engine.Read(ctx, func(ctx context.Context) (err error) {
		w, err = scanWorkspace(s.stmt.workspace.QueryRowContext(ctx, name))
		return err
	})
	if errors.Is(err, sql.ErrNoRows) {
		return store.Workspace{}, store.ErrWorkspaceNotFound
	}
	return w, s.wrap(ctx, err)
}

// lockWorkspace reads a workspace by one of the locking statements, and the database's clock.
func (s *Store) lockWorkspace(ctx context.Context, tx *sql.Tx, stmt *sql.Stmt, name string) (store.Workspace, int64, error) {
	if unstorable(name) {
		return store.Workspace{}, 0, decided{store.ErrWorkspaceNotFound}
	}
	var now int64
	w, err := scanWorkspace(tx.StmtContext(ctx, stmt).QueryRowContext(ctx, name), &now)
	if errors.Is(err, sql.ErrNoRows) {
		return store.Workspace{}, 0, decided{store.ErrWorkspaceNotFound}
	}
	return w, now, err
}

// active locks a workspace that takes new objects against the wish to delete it.
func (s *Store) active(ctx context.Context, tx *sql.Tx, name string) (store.Workspace, int64, error) {
	w, now, err := s.lockWorkspace(ctx, tx, s.stmt.shareWorkspace, name)
	if err == nil && w.Terminating() {
		return store.Workspace{}, 0, decided{store.ErrWorkspaceTerminating}
	}
	return w, now, err
}

func (s *Store) insertWorkspace(ctx context.Context, tx *sql.Tx, w store.Workspace) (store.Workspace, error) {
	labels, err := json.Marshal(w.Labels)
	if err != nil {
		return store.Workspace{}, err
	}
	var created int64
	err = tx.StmtContext(ctx, s.stmt.insertWorkspace).QueryRowContext(ctx, w.Name, w.ID, string(labels)).Scan(&created)
	if errors.Is(err, sql.ErrNoRows) {
		return store.Workspace{}, decided{store.ErrAlreadyExists}
	}
	if err != nil {
		return store.Workspace{}, err
	}
	w.ResourceVersion, w.CreatedAt = 1, fromMicros(created)
	for key, value := range w.Labels {
		if _, err := tx.StmtContext(ctx, s.stmt.insertWorkspaceLabel).ExecContext(ctx, w.Name, key, value); err != nil {
			return store.Workspace{}, err
		}
	}
	return w, nil
}

// deleteWorkspace waits, by its lock on the workspace, for the creates under way in it, and those that come later wait for
// it.
func (s *Store) deleteWorkspace(ctx context.Context, tx *sql.Tx, name string) ([]store.Kind, error) {
	w, _, err := s.lockWorkspace(ctx, tx, s.stmt.lockWorkspace, name)
	if err != nil {
		return nil, err
	}
	holds, err := s.held(ctx, tx, name)
	if err != nil {
		return nil, err
	}
	if len(holds) > 0 {
		return holds, s.exactlyOne(ctx, tx, s.stmt.terminate, w.ID)
	}
	if _, err := tx.StmtContext(ctx, s.stmt.removeMembers).ExecContext(ctx, name, string(store.KindMember)); err != nil {
		return nil, err
	}
	return nil, s.exactlyOne(ctx, tx, s.stmt.removeWorkspace, w.ID)
}

func (s *Store) held(ctx context.Context, tx *sql.Tx, workspace string) ([]store.Kind, error) {
	rows, err := tx.StmtContext(ctx, s.stmt.held).QueryContext(ctx, workspace, string(store.KindMember), workspace)
	if err != nil {
		return nil, err
	}
	kinds, err := collect(rows, func(r scanner) (kind store.Kind, err error) { err = r.Scan(&kind); return kind, err })
	slices.Sort(kinds)
	return kinds, err
}

// ListWorkspaces implements [store.Workspaces].
func (s *Store) ListWorkspaces(ctx context.Context, q store.WorkspaceQuery) (store.Page[store.Workspace], error) {
	if unstorable(append(labelTexts(q.Labels, q.After), q.Member)...) {
		return store.Page[store.Workspace]{}, nil
	}
	size := q.Limit
	q.Limit++ // to tell whether there are more
	query, args := workspacesQuery(q)
	return listPage(ctx, s, size, query, args, func(r scanner) (store.Workspace, error) { return scanWorkspace(r) })
}

func workspacesQuery(q store.WorkspaceQuery) (string, []any) {
	var c conditions
	if q.Member != "" {
		c.and("EXISTS (SELECT 1 FROM objects AS m WHERE m.kind = ? AND m.name = ? AND m.workspace = w.name AND m.sandbox_id IS NULL)",
			string(store.KindMember), q.Member)
	}
	for _, key := range slices.Sorted(maps.Keys(q.Labels)) {
		c.and("EXISTS (SELECT 1 FROM workspace_labels AS l WHERE l.workspace = w.name AND l.key = ? AND l.value = ?)", key, q.Labels[key])
	}
	if after := q.After; after != nil {
		c.and("(w.created_at, w.name, w.id) > (?, ?, ?)", micros(after.CreatedAt), after.Name, after.ID)
	}
	return c.page("SELECT "+workspaceColumns+" FROM workspaces AS w", "w.created_at, w.name, w.id", q.Limit)
}
