package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// Store implements [store.Store].
type Store struct {
	engine  Engine
	dialect Dialect
	stmt    statements
}

var _ store.Store = (*Store)(nil)

// statements are prepared once. The first group is for the Reader, the second for transactions on the Writer.
type statements struct {
	workspace, sandbox, sandboxByID, nextDue *sql.Stmt
	overdue                                  *sql.Stmt
	objectByID                               *sql.Stmt
	object                                   objectStatements

	shareWorkspace, lockWorkspace, insertWorkspace, insertWorkspaceLabel *sql.Stmt
	held, terminate, removeMembers, removeWorkspace                      *sql.Stmt

	lockByName, lockByID                 *sql.Stmt
	insert, insertLabel, taken           *sql.Stmt
	update, remove, claimDue, reschedule *sql.Stmt

	now, count, insertObject, insertObjectLabel *sql.Stmt
	shareObject, lockObject                     objectStatements
	updateObject, removeObject, trim            *sql.Stmt
	insertReference, removeReference, referrers *sql.Stmt

	admitted                                 *sql.Stmt // for the Reader
	admit, countAdmissions, settle, withdraw *sql.Stmt
	insertAudit, settleAudit                 *sql.Stmt
	purgeAdmissions, purgeAudit              *sql.Stmt
}

// Open takes over an engine whose schema is in place, and makes the default workspace if it is not there yet.
func Open(ctx context.Context, engine Engine, dialect Dialect) (*Store, error) {
	s := &Store{engine: engine, dialect: dialect}
	if err := s.makeDefaultWorkspace(ctx); err != nil {
		return nil, err
	}
	if err := s.prepare(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Store) makeDefaultWorkspace(ctx context.Context) error {
	err := s.engine.Write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, s.dialect.rewrite(`
			INSERT INTO workspaces (name, id, labels, resource_version, created_at) VALUES (?, ?, '{}', 1, {now})
			ON CONFLICT DO NOTHING`), store.DefaultWorkspace, uuid.NewString())
		return err
	})
	return s.wrap(ctx, err)
}

func (s *Store) prepare(ctx context.Context) error {
	for _, p := range []struct {
		db    *sql.DB
		stmt  **sql.Stmt
		query string
	}{
		{s.engine.Reader(), &s.stmt.workspace, `SELECT ` + workspaceColumns + ` FROM workspaces WHERE name = ?`},
		{s.engine.Reader(), &s.stmt.sandbox, `SELECT ` + columns + ` FROM sandboxes WHERE workspace = ? AND name = ?`},
		{s.engine.Reader(), &s.stmt.sandboxByID, `SELECT ` + columns + ` FROM sandboxes WHERE id = ?`},
		{s.engine.Reader(), &s.stmt.nextDue, nextDueQuery},
		{s.engine.Reader(), &s.stmt.overdue, overdueQuery},
		{s.engine.Reader(), &s.stmt.objectByID, `SELECT ` + objectColumns + ` FROM objects WHERE id = ?`},
		{s.engine.Reader(), &s.stmt.object.named, objectQuery("")},
		{s.engine.Reader(), &s.stmt.object.child, childQuery("")},

		{s.engine.Writer(), &s.stmt.shareWorkspace, workspaceLockQuery("{for share}")},
		{s.engine.Writer(), &s.stmt.lockWorkspace, workspaceLockQuery("{for update}")},
		{s.engine.Writer(), &s.stmt.insertWorkspace, insertWorkspaceQuery},
		{s.engine.Writer(), &s.stmt.insertWorkspaceLabel, insertWorkspaceLabelQuery},
		{s.engine.Writer(), &s.stmt.held, heldQuery},
		{s.engine.Writer(), &s.stmt.terminate, terminateQuery},
		{s.engine.Writer(), &s.stmt.removeMembers, removeMembersQuery},
		{s.engine.Writer(), &s.stmt.removeWorkspace, removeWorkspaceQuery},

		{s.engine.Writer(), &s.stmt.lockByName, lockQuery("workspace = ? AND name = ?")},
		{s.engine.Writer(), &s.stmt.lockByID, lockQuery("id = ?")},
		{s.engine.Writer(), &s.stmt.insert, insertQuery},
		{s.engine.Writer(), &s.stmt.insertLabel, insertLabelQuery},
		{s.engine.Writer(), &s.stmt.taken, `SELECT EXISTS (SELECT 1 FROM sandboxes WHERE workspace = ? AND name = ?)`},
		{s.engine.Writer(), &s.stmt.update, updateQuery},
		{s.engine.Writer(), &s.stmt.remove, removeQuery},
		{s.engine.Writer(), &s.stmt.claimDue, claimDueQuery},
		{s.engine.Writer(), &s.stmt.reschedule, rescheduleQuery},

		{s.engine.Writer(), &s.stmt.now, `SELECT {now}`},
		{s.engine.Writer(), &s.stmt.count, countQuery},
		{s.engine.Writer(), &s.stmt.insertObject, insertObjectQuery},
		{s.engine.Writer(), &s.stmt.insertObjectLabel, insertObjectLabelQuery},
		{s.engine.Writer(), &s.stmt.shareObject.named, objectQuery("{for share}")},
		{s.engine.Writer(), &s.stmt.shareObject.child, childQuery("{for share}")},
		{s.engine.Writer(), &s.stmt.lockObject.named, objectQuery("{for update}")},
		{s.engine.Writer(), &s.stmt.lockObject.child, childQuery("{for update}")},
		{s.engine.Writer(), &s.stmt.updateObject, updateObjectQuery},
		{s.engine.Writer(), &s.stmt.removeObject, removeObjectQuery},
		{s.engine.Writer(), &s.stmt.trim, trimQuery},
		{s.engine.Writer(), &s.stmt.insertReference, insertReferenceQuery},
		{s.engine.Writer(), &s.stmt.removeReference, removeReferenceQuery},
		{s.engine.Writer(), &s.stmt.referrers, referrersQuery},

		{s.engine.Reader(), &s.stmt.admitted, admittedQuery},
		{s.engine.Writer(), &s.stmt.admit, admitQuery},
		{s.engine.Writer(), &s.stmt.countAdmissions, countAdmissionsQuery},
		{s.engine.Writer(), &s.stmt.settle, settleQuery},
		{s.engine.Writer(), &s.stmt.withdraw, withdrawQuery},
		{s.engine.Writer(), &s.stmt.insertAudit, insertAuditQuery},
		{s.engine.Writer(), &s.stmt.settleAudit, settleAuditQuery},
		{s.engine.Writer(), &s.stmt.purgeAdmissions, purgeAdmissionsQuery},
		{s.engine.Writer(), &s.stmt.purgeAudit, purgeAuditQuery},
	} {
		stmt, err := p.db.PrepareContext(ctx, s.dialect.rewrite(p.query))
		if err != nil {
			return s.wrap(ctx, err)
		}
		*p.stmt = stmt
	}
	return nil
}

// lockQuery reads a sandbox, which it locks, and the clock. That is outside of what is locked, so as to be read when there
// is nothing more to wait for.
func lockQuery(where string) string {
	return `SELECT locked.*, {now} FROM (SELECT ` + columns + ` FROM sandboxes WHERE ` + where + ` {for update}) AS locked`
}

// Close implements [store.Store].
func (s *Store) Close() error { return s.engine.Close() }

// Sandbox implements [store.Store].
func (s *Store) Sandbox(ctx context.Context, workspace, name string) (store.Sandbox, error) {
	return s.read(ctx, s.stmt.sandbox, workspace, name)
}

// SandboxByID implements [store.Store].
func (s *Store) SandboxByID(ctx context.Context, id string) (store.Sandbox, error) {
	return s.read(ctx, s.stmt.sandboxByID, id)
}

func (s *Store) read(ctx context.Context, stmt *sql.Stmt, key ...string) (store.Sandbox, error) {
	if unstorable(key...) {
		return store.Sandbox{}, store.ErrNotFound
	}
	args := make([]any, len(key))
	for i, k := range key {
		args[i] = k
	}
	var sandbox store.Sandbox
	err := s.engine.Read(ctx, func(ctx context.Context) (err error) {
		sandbox, err = scan(stmt.QueryRowContext(ctx, args...))
		return err
	})
	if errors.Is(err, sql.ErrNoRows) {
		return store.Sandbox{}, store.ErrNotFound
	}
	return sandbox, s.wrap(ctx, err)
}

// unstorable says that no row can have one of these texts. A client may ask for them all the same, and PostgreSQL, which
// keeps no NUL and nothing but UTF-8, would not even look.
func unstorable(texts ...string) bool {
	return slices.ContainsFunc(texts, func(text string) bool { return strings.ContainsRune(text, 0) || !utf8.ValidString(text) })
}

// wrap makes a driver's error one of the store's. Errors of the store and of contexts pass.
func (s *Store) wrap(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrOutcomeUnknown), errors.Is(err, store.ErrInternal):
		return err
	case s.dialect.Unavailable(err):
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	default:
		return fmt.Errorf("%w: %w", store.ErrInternal, err)
	}
}
