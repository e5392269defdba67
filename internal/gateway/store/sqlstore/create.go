package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

const (
	insertQuery = `
		INSERT INTO sandboxes (annotations, spec, status, phase, operation_id, due_at, operation, id, workspace, name, created_at, labels, created_from, resource_version)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1)
		ON CONFLICT DO NOTHING`
	insertLabelQuery = `
		INSERT INTO sandbox_labels (sandbox_id, workspace, key, value, created_at, name) VALUES (?, ?, ?, ?, ?, ?)`

	// insertAttempts bounds how often a name may be found taken and then free again.
	insertAttempts = 10
)

// CreateSandbox implements [store.Store].
func (s *Store) CreateSandbox(ctx context.Context, workspace string, build store.Build) (store.Sandbox, error) {
	var result store.Sandbox
	err := s.engine.Write(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
		result, err = s.create(ctx, tx, workspace, build)
		return err
	})
	if err != nil {
		return store.Sandbox{}, s.undecided(ctx, err)
	}
	return result, nil
}

func (s *Store) create(ctx context.Context, tx *sql.Tx, workspace string, build store.Build) (store.Sandbox, error) {
	_, now, err := s.active(ctx, tx, workspace)
	if err != nil {
		return store.Sandbox{}, err
	}
	sandbox := build(fromMicros(now))
	sandbox.Workspace, sandbox.CreatedAt, sandbox.ResourceVersion = workspace, fromMicros(now), 1
	return s.insert(ctx, tx, sandbox)
}

// insert writes a new row.
func (s *Store) insert(ctx context.Context, tx *sql.Tx, sandbox store.Sandbox) (store.Sandbox, error) {
	for range insertAttempts {
		if inserted, err := s.insertRow(ctx, tx, sandbox); err != nil {
			return store.Sandbox{}, err
		} else if inserted {
			if err := s.insertLabels(ctx, tx, sandbox); err != nil {
				return store.Sandbox{}, err
			}
			return sandbox, s.refer(ctx, tx, store.Sandbox{ID: sandbox.ID, Workspace: sandbox.Workspace}, sandbox)
		}
		var taken bool
		if err := tx.StmtContext(ctx, s.stmt.taken).QueryRowContext(ctx, sandbox.Workspace, sandbox.Name).Scan(&taken); err != nil {
			return store.Sandbox{}, err
		}
		if taken {
			return store.Sandbox{}, decided{store.ErrAlreadyExists}
		} // else it is free since
	}
	return store.Sandbox{}, decided{fmt.Errorf("%w: others take and free the name again and again", store.ErrUnavailable)}
}

func (s *Store) insertRow(ctx context.Context, tx *sql.Tx, sandbox store.Sandbox) (bool, error) {
	args, err := encode(sandbox)
	if err != nil {
		return false, err
	}
	labels, err := json.Marshal(sandbox.Labels)
	if err != nil {
		return false, err
	}
	var createdFrom []byte // NULL
	if sandbox.CreatedFrom != nil {
		if createdFrom, err = proto.Marshal(sandbox.CreatedFrom); err != nil {
			return false, err
		}
	}
	result, err := tx.StmtContext(ctx, s.stmt.insert).ExecContext(ctx,
		append(args, sandbox.ID, sandbox.Workspace, sandbox.Name, micros(sandbox.CreatedAt), string(labels), createdFrom)...)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n == 1, err
}

func (s *Store) insertLabels(ctx context.Context, tx *sql.Tx, sandbox store.Sandbox) error {
	for key, value := range sandbox.Labels {
		if _, err := tx.StmtContext(ctx, s.stmt.insertLabel).ExecContext(ctx,
			sandbox.ID, sandbox.Workspace, key, value, micros(sandbox.CreatedAt), sandbox.Name); err != nil {
			return err
		}
	}
	return nil
}
