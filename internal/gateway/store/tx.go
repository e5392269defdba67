package store

import "time"

// Tx is a transaction. What it reads stays as it was read until the end, and what it locks can be written by nobody
// else. It must not be used after the function it was given to has returned, nor by two goroutines.
//
// To keep transactions from waiting for each other in a circle, they take workspaces first, then objects, then sandboxes
// and their children. Those that do not are undone and run again, after a while.
type Tx interface {
	// Now is the store's clock.
	Now() (time.Time, error)

	// Active reads a workspace that must take new objects, else [ErrWorkspaceTerminating], and goes on doing so until the
	// end; or [ErrWorkspaceNotFound].
	Active(workspace string) (Workspace, error)

	// Count says how many objects of a kind, children apart, a workspace holds, and keeps out others that would add to it
	// until the end, so that a limit cannot be overrun. Called before anything else about the workspace; an unknown one is
	// [ErrWorkspaceNotFound].
	Count(kind Kind, workspace string) (int, error)

	// CreateWorkspace stores id, name and labels at version 1, created now. A taken name is [ErrAlreadyExists].
	CreateWorkspace(w Workspace) (Workspace, error)

	// DeleteWorkspace deletes a workspace with its members, when nothing else is in it. Otherwise it returns the kinds of
	// what is, in order, and the workspace stays, terminating. No create in it can come between. An unknown one is
	// [ErrWorkspaceNotFound].
	DeleteWorkspace(name string) (holds []Kind, err error)

	// CreateSandbox is [Store.CreateSandbox].
	CreateSandbox(workspace string, build Build) (Sandbox, error)

	// Sandbox finds and locks the target ([ErrNotFound]) and holds it against the precondition
	// ([Precondition.CheckIdentity]). If the transaction runs again it finds the same sandbox or none, whoever holds the
	// name then.
	Sandbox(target Target, precondition *Precondition) (Sandbox, error)

	// WriteSandbox writes annotations, spec, status and operation of a sandbox that is locked. Providers that are new in
	// the spec must exist, else [MissingError].
	WriteSandbox(s Sandbox) (Sandbox, error)

	// Object reads an object, or [ErrObjectNotFound].
	Object(key Key) (Object, error)

	// LockObject reads an object to write or delete it, or [ErrObjectNotFound].
	LockObject(key Key) (Object, error)

	// ListObjects reads up to the limit, whatever the rows hold; others may write them.
	ListObjects(query ObjectQuery) ([]Object, error)

	// CreateObject inserts an object at version 1, created now. A taken key is [ErrAlreadyExists]. Unless it is a child or
	// platform-wide, its workspace must be [Tx.Active]. Whatever it needs cannot be deleted while it is there.
	CreateObject(o Object, needs ...Object) (Object, error)

	// WriteObject writes the payload of an object that is locked.
	WriteObject(o Object) (Object, error)

	// DeleteObject deletes an object that is locked; while something needs it, that is an [InUseError].
	DeleteObject(o Object) error

	// Referrers are what needs an object, oldest first.
	Referrers(o Object) ([]Referrer, error)

	// Admit records the admission of a request, if it has one: [ErrAdmitted], [ErrTooManyAdmissions]. It comes before anything
	// else.
	Admit(r *Request) error

	// Settle records what came of an admitted request and of an audited delete; see [Change.Settle].
	Settle(requestID string, outcome Outcome, subjectID string) error

	// Audit writes a record, with the time.
	Audit(record AuditRecord) error

	// Trim deletes the oldest children of a kind of a sandbox, beyond a number to keep.
	Trim(kind Kind, sandboxID string, keep int) error
}
