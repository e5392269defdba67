// Package store keeps workspaces, sandboxes, and whatever else there is in objects. It knows neither gRPC nor SQL: [Store]
// is what the gateway needs, the packages below implement it, and storetest holds them to it.
//
// The promise of the conditional calls lives in [Store.ChangeSandbox]: one transaction finds the row, compares it with
// the [Precondition], lets a [Decide] say what is to become of it, and writes with the id in the WHERE clause. No lock
// in memory carries it.
//
// An [Object] is anything that is neither workspace nor sandbox: a member, a provider, a profile, and so on, by its
// [Kind]; what is in it is its owner's. A child of a sandbox is keyed by the sandbox's id and goes with it, in the very
// transaction, so that a successor of the same name never sees it. Objects are read by the methods of [Objects] and
// changed in a [Tx], which [Objects.Transact] runs; in it they come together with sandboxes, under the same precondition.
// What must not go while something needs it is held by references: a sandbox refers to its providers, and an object to
// what [Tx.CreateObject] was told.
package store

import (
	"context"
	"time"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

// Sandbox is a row: one sandbox and the work on it that is under way.
type Sandbox struct {
	// ID, Workspace, Name, CreatedAt and Labels never change.
	ID, Workspace, Name string
	CreatedAt           time.Time
	Labels              map[string]string
	Annotations         map[string]string
	// CreatedFrom is the workload template that it was made from, nil when from none. It never changes either.
	CreatedFrom *openshellv1.SandboxWorkloadTemplateProvenance
	// ResourceVersion is 1 when the row is inserted and raised by every write, by the store alone.
	ResourceVersion uint64
	Spec            *openshellv1.SandboxSpec
	Status          *openshellv1.SandboxStatus
	Operation       Operation
}

// Phase is the phase in the status.
func (s Sandbox) Phase() openshellv1.SandboxPhase { return s.Status.GetPhase() }

// OperationKind says what is being done to a sandbox.
type OperationKind string

// What can be under way.
const (
	OperationNone    OperationKind = ""        // nothing; the row changes only when somebody asks for it
	OperationCreate  OperationKind = "create"  // the compute driver is making it
	OperationStart   OperationKind = "start"   // the compute driver is starting it again, because a client asked
	OperationRestart OperationKind = "restart" // the same by its restart policy, perhaps after a back-off
	OperationRun     OperationKind = "run"     // it runs, and its driver is to be asked about it again
	OperationRetire  OperationKind = "retire"  // it has finished, and its annotations ask the gateway to delete it
	OperationStop    OperationKind = "stop"    // the compute driver is stopping it
	OperationDelete  OperationKind = "delete"  // it is being deleted
)

// Operation is work on a sandbox that outlives a call. It is part of the row, so that a crash loses none of it, and it
// has an id, so that whoever finishes it can tell that it is still the same work.
type Operation struct {
	// ID is a UUID, new for each operation. An effect counts only while the row still carries it.
	ID   string
	Kind OperationKind
	// Pending is true while a create or start call to the compute driver is not answered yet.
	Pending bool
	// Since is when the step began that the compute driver is at: the call it has not answered, or what followed it. It
	// is set from the store's clock.
	Since time.Time
	// DueAt is when the operation is to be taken up (again); zero means never. It is set from the store's clock.
	DueAt time.Time
	// Admitted says that it was begun by a request that was admitted: its outcome is to be recorded.
	Admitted bool
	// Restarts counts the restarts by policy that followed each other at once; the next back-off depends on it.
	Restarts uint32
	// Before is the state to go back to when the driver refuses a start, stop or delete; nil when there is none.
	Before *Snapshot
}

// Snapshot is what a refused operation restores.
type Snapshot struct {
	Status    *openshellv1.SandboxStatus
	Operation Operation
}

// Target says which sandbox a change is about.
type Target struct {
	// Workspace and Name are what the caller said. The name is resolved to an id once; whatever the store has to try
	// again goes on by that id.
	Workspace, Name string
	// ID, when set, is the id that an earlier step of the same request found; Name is not looked at then.
	ID string
	// Request, when set, is the call that asks for the change. [Store.ChangeSandbox] admits it before it looks at the
	// sandbox: [ErrAdmitted] when that was done before, [ErrTooManyAdmissions].
	Request *Request
}

// Decide says what is to become of a row. It runs inside the store's transaction, perhaps more than once, so it must
// depend on its arguments alone and must not modify them. now is the store's clock. An error aborts the transaction and is
// returned as it is.
type Decide func(current Sandbox, now time.Time) (Change, error)

// Build makes a new row. Like [Decide] it may run more than once and must depend on now, the store's clock, alone: what
// is random, such as the id, is chosen before.
type Build func(now time.Time) Sandbox

// Change is what [Decide] wants done. The zero value leaves the row as it is, at its version.
type Change struct {
	// Write, when set, replaces annotations, spec, status and operation of the row. The rest of it is ignored.
	Write *Sandbox
	// Remove deletes the row.
	Remove bool
	// Drop, when set, deletes the children of this kind.
	Drop Kind
	// Settle records an outcome: that of the target's request or, without one, of the operation that the row carries.
	Settle Outcome
	// Audit, when set, is recorded, about the row and with the time.
	Audit *AuditRecord
}

// ListQuery selects a page of sandboxes, oldest first, then by name, workspace and id.
type ListQuery struct {
	// Workspace limits the list to one workspace; empty means all.
	Workspace string
	// Labels must all be carried with these values.
	Labels map[string]string
	// After is the last row of the page before; nil starts at the beginning.
	After *Cursor
	// Limit is the most rows to return.
	Limit int
}

// Cursor is the position of a row in the order of a list.
type Cursor struct {
	CreatedAt           time.Time
	Name, Workspace, ID string
}

// MaxPage is how many bytes the rows of a page hold at most, unless the first alone holds more. A page fits the 4 MiB that a
// gRPC client takes by default, and no list needs the memory of a thousand of the largest rows.
const MaxPage = 3 << 20

// Page is as much of a list as was asked for, or as [MaxPage] allows.
type Page[T any] struct {
	Rows []T
	// More says that further rows follow these.
	More bool
}

// Store keeps workspaces, sandboxes and objects. All methods honour their context and may be called at the same time.
// Errors are those of this package; a driver's own error is wrapped in [ErrUnavailable], [ErrInternal] or
// [ErrOutcomeUnknown].
type Store interface {
	Workspaces
	Objects
	Requests
	Counted

	// CreateSandbox inserts a row at version 1, created now. The name must be free in its workspace, whatever the phase
	// of its holder, else [ErrAlreadyExists]; the workspace must exist, else [ErrWorkspaceNotFound], and take new objects,
	// else [ErrWorkspaceTerminating]; its providers must exist, else [MissingError].
	CreateSandbox(ctx context.Context, workspace string, build Build) (Sandbox, error)

	// Sandbox reads the row that holds a name now, or [ErrNotFound].
	Sandbox(ctx context.Context, workspace, name string) (Sandbox, error)

	// SandboxByID reads a row by id, or [ErrNotFound].
	SandboxByID(ctx context.Context, id string) (Sandbox, error)

	// ListSandboxes reads a page.
	ListSandboxes(ctx context.Context, query ListQuery) (Page[Sandbox], error)

	// ChangeSandbox changes one row in one transaction: find the target ([ErrNotFound]), hold it against the
	// precondition ([Precondition.CheckIdentity]), ask decide, write where the id is still the same. It returns the row as it is
	// after the change, or as it was before a removal.
	ChangeSandbox(ctx context.Context, target Target, precondition *Precondition, decide Decide) (Sandbox, error)

	// Transact runs fn in one transaction, which is committed when fn returns nil, and else undone; the error is returned
	// as it is. fn may run more than once, so it must depend on its transaction alone and set, not add to, what is outside.
	Transact(ctx context.Context, fn func(tx Tx) error) error

	// ClaimDue takes up to limit rows whose operation is due, the longest due first, and puts them off by lease, so that
	// no other process takes them meanwhile. If the claimant dies, they fall due again. The version stays.
	ClaimDue(ctx context.Context, limit int, lease time.Duration) ([]Sandbox, error)

	// Reschedule makes an operation fall due after a while: a claimant extends its lease with it, or says when to look
	// again. The version stays. It is a no-op when the row is gone or carries another operation.
	Reschedule(ctx context.Context, sandboxID, operationID string, after time.Duration) error

	// NextDue tells how long it is until an operation falls due (never negative); false when none will.
	NextDue(ctx context.Context) (time.Duration, bool, error)

	// Close releases the database.
	Close() error
}
