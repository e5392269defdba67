package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

const (
	objectColumns = `id, kind, workspace, sandbox_id, name, created_at, labels, resource_version, payload`

	insertObjectQuery = `
		INSERT INTO objects (id, kind, workspace, sandbox_id, name, created_at, labels, resource_version, payload)
		VALUES (?, ?, ?, ?, ?, {now}, ?, 1, ?)
		ON CONFLICT DO NOTHING RETURNING created_at`
	insertObjectLabelQuery = `INSERT INTO object_labels (object_id, key, value) VALUES (?, ?, ?)`

	// updateObjectQuery and removeObjectQuery name the version, so that they cannot overwrite another change.
	updateObjectQuery = `UPDATE objects SET resource_version = resource_version + 1, payload = ? WHERE id = ? AND resource_version = ?`
	removeObjectQuery = `DELETE FROM objects WHERE id = ? AND resource_version = ?`

	countQuery = `SELECT count(*) FROM objects WHERE workspace = ? AND kind = ? AND sandbox_id IS NULL`
	trimQuery  = `
		DELETE FROM objects WHERE id IN (
			SELECT id FROM objects WHERE sandbox_id = ? AND kind = ? ORDER BY created_at DESC, name DESC, id DESC LIMIT ? OFFSET ?)`
)

// objectStatements find an object by its key, with some kind of lock.
type objectStatements struct{ named, child *sql.Stmt }

func objectQuery(lock string) string {
	return `SELECT ` + objectColumns + ` FROM objects WHERE kind = ? AND name = ? AND workspace = ? AND sandbox_id IS NULL ` + lock
}

func childQuery(lock string) string {
	return `SELECT ` + objectColumns + ` FROM objects WHERE kind = ? AND name = ? AND sandbox_id = ? ` + lock
}

// by picks the statement for a key, and its arguments.
func (o objectStatements) by(key store.Key) (*sql.Stmt, []any) {
	if key.SandboxID != "" {
		return o.child, []any{string(key.Kind), key.Name, key.SandboxID}
	}
	return o.named, []any{string(key.Kind), key.Name, key.Workspace}
}

func scanObject(r scanner) (store.Object, error) {
	var o store.Object
	var sandboxID sql.NullString
	var created int64
	var labels []byte
	if err := r.Scan(&o.ID, &o.Kind, &o.Workspace, &sandboxID, &o.Name, &created, &labels, &o.ResourceVersion, &o.Payload); err != nil {
		return store.Object{}, err
	}
	if err := json.Unmarshal(labels, &o.Labels); err != nil {
		return store.Object{}, fmt.Errorf("labels of %s %s: %w", o.Kind, o.ID, err)
	}
	o.SandboxID, o.CreatedAt = sandboxID.String, fromMicros(created)
	return o, nil
}

// Object implements [store.Objects].
func (s *Store) Object(ctx context.Context, key store.Key) (store.Object, error) {
	stmt, args := s.stmt.object.by(key)
	return s.readObject(ctx, stmt, unstorable(key.Name, key.Workspace, key.SandboxID), args...)
}

// ObjectByID implements [store.Objects].
func (s *Store) ObjectByID(ctx context.Context, id string) (store.Object, error) {
	return s.readObject(ctx, s.stmt.objectByID, unstorable(id), id)
}

func (s *Store) readObject(ctx context.Context, stmt *sql.Stmt, nobody bool, args ...any) (store.Object, error) {
	if nobody {
		return store.Object{}, store.ErrObjectNotFound
	}
	var o store.Object
	err := s.engine.Read(ctx, func(ctx context.Context) (err error) {
		o, err = scanObject(stmt.QueryRowContext(ctx, args...))
		return err
	})
	if errors.Is(err, sql.ErrNoRows) {
		return store.Object{}, store.ErrObjectNotFound
	}
	return o, s.wrap(ctx, err)
}

// findObject reads an object in a transaction.
func (s *Store) findObject(ctx context.Context, tx *sql.Tx, statements objectStatements, key store.Key) (store.Object, error) {
	if unstorable(key.Name, key.Workspace, key.SandboxID) {
		return store.Object{}, decided{store.ErrObjectNotFound}
	}
	stmt, args := statements.by(key)
	o, err := scanObject(tx.StmtContext(ctx, stmt).QueryRowContext(ctx, args...))
	if errors.Is(err, sql.ErrNoRows) {
		return store.Object{}, decided{store.ErrObjectNotFound}
	}
	return o, err
}

func (s *Store) insertObject(ctx context.Context, tx *sql.Tx, o store.Object, needs []store.Object) (store.Object, error) {
	if o.Workspace != "" && o.SandboxID == "" {
		if _, _, err := s.active(ctx, tx, o.Workspace); err != nil {
			return store.Object{}, err
		}
	}
	labels, err := json.Marshal(o.Labels)
	if err != nil {
		return store.Object{}, err
	}
	var created int64
	err = tx.StmtContext(ctx, s.stmt.insertObject).QueryRowContext(ctx,
		o.ID, string(o.Kind), o.Workspace, optional(o.SandboxID), o.Name, string(labels), append([]byte{}, o.Payload...)).Scan(&created)
	if errors.Is(err, sql.ErrNoRows) {
		return store.Object{}, decided{store.ErrAlreadyExists}
	}
	if err != nil {
		return store.Object{}, err
	}
	o.CreatedAt, o.ResourceVersion = fromMicros(created), 1
	for key, value := range o.Labels {
		if _, err := tx.StmtContext(ctx, s.stmt.insertObjectLabel).ExecContext(ctx, o.ID, key, value); err != nil {
			return store.Object{}, err
		}
	}
	for _, need := range needs {
		if err := s.insertReference(ctx, tx, need.ID, "", o.ID); err != nil {
			return store.Object{}, err
		}
	}
	return o, nil
}

func (s *Store) trim(ctx context.Context, tx *sql.Tx, kind store.Kind, sandboxID string, keep int) error {
	_, err := tx.StmtContext(ctx, s.stmt.trim).ExecContext(ctx, sandboxID, string(kind), math.MaxInt32, keep)
	return err
}

// ListObjects implements [store.Objects].
func (s *Store) ListObjects(ctx context.Context, q store.ObjectQuery) (store.Page[store.Object], error) {
	if unlisted(q) {
		return store.Page[store.Object]{}, nil
	}
	size := q.Limit
	q.Limit++ // to tell whether there are more
	query, args := objectsQuery(q)
	return listPage(ctx, s, size, query, args, scanObject)
}

// unlisted says that no row can be meant.
func unlisted(q store.ObjectQuery) bool {
	return unstorable(slices.Concat(labelTexts(q.Labels, q.After), q.Workspaces, []string{q.SandboxID})...)
}

func objectsQuery(q store.ObjectQuery) (string, []any) {
	var c conditions
	c.and("o.kind = ?", string(q.Kind))
	if q.SandboxID != "" {
		c.and("o.sandbox_id = ?", q.SandboxID)
	}
	if q.Workspaces != nil {
		names := make([]any, len(q.Workspaces))
		for i, name := range q.Workspaces {
			names[i] = name
		}
		c.and("o.workspace IN ("+strings.TrimSuffix(strings.Repeat("?, ", len(names)), ", ")+")", names...)
	}
	for _, key := range slices.Sorted(maps.Keys(q.Labels)) {
		c.and("EXISTS (SELECT 1 FROM object_labels AS l WHERE l.object_id = o.id AND l.key = ? AND l.value = ?)", key, q.Labels[key])
	}
	order, after := []string{"o.created_at", "o.name", "o.workspace", "o.id"}, []any(nil)
	if q.After != nil {
		after = []any{micros(q.After.CreatedAt), q.After.Name, q.After.Workspace, q.After.ID}
	}
	if q.ByName {
		order, after = order[1:], after[min(1, len(after)):]
		if q.SandboxID == "" {
			c.and("o.sandbox_id IS NULL")
		}
	}
	beyond, direction := " > ", ""
	if q.Reverse {
		beyond, direction = " < ", " DESC"
	}
	if len(after) > 0 {
		c.and("("+strings.Join(order, ", ")+")"+beyond+"("+strings.Repeat("?, ", len(after)-1)+"?)", after...)
	}
	return c.page("SELECT "+objectColumns+" FROM objects AS o", strings.Join(order, direction+", ")+direction, q.Limit)
}
