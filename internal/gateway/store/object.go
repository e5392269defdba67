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
	ListObjects(ctx context.Context, query ObjectQuery) (Page[Object], error)
}
