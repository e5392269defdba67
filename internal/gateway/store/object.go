package store

import (
	"context"
	"time"
)

// Kind says what an object is. Its text is what a person calls it.
type Kind string

// Kinds of what a workspace holds. Only members go with it; all others keep it from being deleted.
const (
	KindMember          Kind = "member"           // named by its subject
	KindProfile         Kind = "provider profile" // named by its id; without a workspace it is platform-wide
	KindProvider        Kind = "provider"
	KindTemplate        Kind = "sandbox template"
	KindService         Kind = "service"          // child of a sandbox, perhaps without a name
	KindSSHSession      Kind = "ssh session"      // child of a sandbox, whose name and id stand for its token
	KindProviderReceipt Kind = "provider receipt" // child of a sandbox, named by the receipt's id
	KindSandboxPolicy   Kind = "sandbox policy"   // child of a sandbox, one for each revision
	KindSandboxSettings Kind = "sandbox settings" // child of a sandbox, one
	KindGatewayPolicy   Kind = "gateway policy"   // platform-wide, one for each revision
	KindGatewaySettings Kind = "gateway settings" // platform-wide, one
	KindSandbox         Kind = "sandbox"          // of [Referrer] and [Tx.DeleteWorkspace]; no object has it
)

// Key is what an object is found by.
type Key struct {
	Kind Kind
	// Workspace is empty for what is platform-wide.
	Workspace string
	// SandboxID makes it a child of that sandbox, unique by kind and name there, in the sandbox's workspace.
	SandboxID string
	Name      string
}

// ProviderKey is the key of a provider.
func ProviderKey(workspace, name string) Key {
	return Key{Kind: KindProvider, Workspace: workspace, Name: name}
}

// Object is a row.
type Object struct {
	// ID, Key, CreatedAt and Labels never change.
	ID string
	Key
	CreatedAt time.Time
	Labels    map[string]string
	// ResourceVersion is 1 when the row is inserted and raised by every write, by the store alone.
	ResourceVersion uint64
	// Payload is all else, as its owner has encoded it.
	Payload []byte
}

// ObjectQuery selects a page of objects of one kind.
type ObjectQuery struct {
	Kind Kind
	// Workspaces limits the list to these, of which "" stands for what is platform-wide; nil means all there are.
	Workspaces []string
	// SandboxID limits the list to children of one sandbox.
	SandboxID string
	// Labels must all be carried with these values.
	Labels map[string]string
	// ByName sorts by name, workspace and id, instead of oldest first, then by name, workspace and id. Children are left out
	// unless they are those of a sandbox.
	ByName bool
	// Reverse turns the order around.
	Reverse bool
	// After is the last row of the page before; nil starts at the beginning.
	After *Cursor
	// Limit is the most rows to return.
	Limit int
}

// Referrer is what needs an object.
type Referrer struct {
	Kind                Kind
	ID, Workspace, Name string
}

// Objects keeps objects.
type Objects interface {
	// Object reads an object, or [ErrObjectNotFound].
	Object(ctx context.Context, key Key) (Object, error)

	// ObjectByID reads an object by id, or [ErrObjectNotFound].
	ObjectByID(ctx context.Context, id string) (Object, error)

	// ListObjects reads a page.
	ListObjects(ctx context.Context, query ObjectQuery) ([]Object, error)

	// Transact runs fn in one transaction, which is committed when fn returns nil, and else undone; the error is returned
	// as it is. fn may run more than once, so it must depend on its transaction alone and set, not add to, what is outside.
	Transact(ctx context.Context, fn func(tx Tx) error) error
}

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

	// ListObjects reads a page; others may write what is on it.
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
