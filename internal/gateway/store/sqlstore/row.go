package sqlstore

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// columns of a sandbox, in the order of scan.
const columns = `id, workspace, name, created_at, labels, annotations, resource_version, spec, status, operation_id, due_at, operation, created_from`

// operationRow is the part of an operation that no statement looks into, as JSON.
type operationRow struct {
	Kind     store.OperationKind `json:"kind,omitempty"`
	Pending  bool                `json:"pending,omitempty"`
	Since    int64               `json:"since,omitempty"` // microseconds
	Admitted bool                `json:"admitted,omitempty"`
	Restarts uint32              `json:"restarts,omitempty"`
	Before   *snapshotRow        `json:"before,omitempty"`
}

// snapshotRow holds an operation in full, since it has no columns of its own.
type snapshotRow struct {
	Status    []byte       `json:"status"`
	ID        string       `json:"operation_id,omitempty"`
	DueAt     int64        `json:"due_at,omitempty"` // microseconds
	Operation operationRow `json:"operation"`
}

type scanner interface{ Scan(dest ...any) error }

// scan reads a row of columns, and whatever more was selected into extra.
func scan(r scanner, extra ...any) (store.Sandbox, error) {
	var s store.Sandbox
	var created int64
	var due sql.NullInt64
	var labels, annotations, spec, status, operation, createdFrom []byte
	dest := append([]any{
		&s.ID, &s.Workspace, &s.Name, &created, &labels, &annotations, &s.ResourceVersion, &spec, &status,
		&s.Operation.ID, &due, &operation, &createdFrom,
	}, extra...)
	if err := r.Scan(dest...); err != nil {
		return store.Sandbox{}, err
	}
	s.CreatedAt = fromMicros(created)
	s.Spec, s.Status = &openshellv1.SandboxSpec{}, &openshellv1.SandboxStatus{}
	var o operationRow
	for _, decode := range []func() error{
		func() error { return json.Unmarshal(labels, &s.Labels) },
		func() error { return json.Unmarshal(annotations, &s.Annotations) },
		func() error { return proto.Unmarshal(spec, s.Spec) },
		func() error { return proto.Unmarshal(status, s.Status) },
		func() error { return json.Unmarshal(operation, &o) },
		func() error {
			if createdFrom == nil {
				return nil
			}
			s.CreatedFrom = &openshellv1.SandboxWorkloadTemplateProvenance{}
			return proto.Unmarshal(createdFrom, s.CreatedFrom)
		},
		func() (err error) { s.Operation, err = o.decode(s.Operation.ID, due.Int64); return err },
	} {
		if err := decode(); err != nil {
			return store.Sandbox{}, fmt.Errorf("row of sandbox %s: %w", s.ID, err)
		}
	}
	return s, nil
}

// encode returns the columns that change, in the order of insertQuery and updateQuery.
func encode(s store.Sandbox) ([]any, error) {
	annotations, err := json.Marshal(s.Annotations)
	if err != nil {
		return nil, err
	}
	spec, err := proto.Marshal(s.Spec)
	if err != nil {
		return nil, err
	}
	status, err := proto.Marshal(s.Status)
	if err != nil {
		return nil, err
	}
	row, err := encodeOperation(s.Operation)
	if err != nil {
		return nil, err
	}
	operation, err := json.Marshal(row)
	if err != nil {
		return nil, err
	}
	due := sql.NullInt64{Int64: micros(s.Operation.DueAt), Valid: !s.Operation.DueAt.IsZero()}
	return []any{string(annotations), spec, status, int(s.Phase()), s.Operation.ID, due, string(operation)}, nil
}

func encodeOperation(o store.Operation) (operationRow, error) {
	row := operationRow{Kind: o.Kind, Pending: o.Pending, Since: micros(o.Since), Admitted: o.Admitted, Restarts: o.Restarts}
	if o.Before == nil {
		return row, nil
	}
	status, err := proto.Marshal(o.Before.Status)
	if err != nil {
		return operationRow{}, err
	}
	before, err := encodeOperation(o.Before.Operation)
	if err != nil {
		return operationRow{}, err
	}
	row.Before = &snapshotRow{Status: status, ID: o.Before.Operation.ID, DueAt: micros(o.Before.Operation.DueAt), Operation: before}
	return row, nil
}

func (row operationRow) decode(id string, due int64) (store.Operation, error) {
	o := store.Operation{ID: id, Kind: row.Kind, Pending: row.Pending, Since: fromMicros(row.Since), DueAt: fromMicros(due), Admitted: row.Admitted, Restarts: row.Restarts}
	if row.Before == nil {
		return o, nil
	}
	o.Before = &store.Snapshot{Status: &openshellv1.SandboxStatus{}}
	if err := proto.Unmarshal(row.Before.Status, o.Before.Status); err != nil {
		return store.Operation{}, err
	}
	var err error
	o.Before.Operation, err = row.Before.Operation.decode(row.Before.ID, row.Before.DueAt)
	return o, err
}

// micros and fromMicros keep the zero time zero.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func fromMicros(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}
