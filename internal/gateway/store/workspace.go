package store

import (
	"context"
	"time"
)

// Workspace is a namespace for sandboxes and objects.
type Workspace struct {
	// ID is a UUID of this database: two databases never share one, which is how a client tells gateways apart.
	ID              string
	Name            string
	Labels          map[string]string
	ResourceVersion uint64
	CreatedAt       time.Time
	// TerminatingSince is when its deletion was first asked for. From then on it takes nothing new, for good; zero before.
	TerminatingSince time.Time
}

// Terminating says that the workspace takes nothing new.
func (w Workspace) Terminating() bool { return !w.TerminatingSince.IsZero() }

// DefaultWorkspace is made when a database is first opened.
const DefaultWorkspace = "default"

// WorkspaceQuery selects a page of workspaces, oldest first, then by name and id.
type WorkspaceQuery struct {
	// Member limits the list to the workspaces that have this member; empty means all.
	Member string
	// Labels must all be carried with these values.
	Labels map[string]string
	// After is the last row of the page before; nil starts at the beginning. Its Workspace is not looked at.
	After *Cursor
	// Limit is the most rows to return.
	Limit int
}

// Workspaces reads workspaces, which a [Tx] changes.
type Workspaces interface {
	// Workspace reads a workspace, or [ErrWorkspaceNotFound].
	Workspace(ctx context.Context, name string) (Workspace, error)

	// ListWorkspaces reads a page.
	ListWorkspaces(ctx context.Context, query WorkspaceQuery) (Page[Workspace], error)
}
