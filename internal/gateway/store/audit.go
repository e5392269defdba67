package store

import "time"

// AuditRetention is how long a record of the audit is kept.
const AuditRetention = 90 * 24 * time.Hour

// AuditRecord is what is kept of a delete. It is written by the transaction that marks the sandbox, or for a refusal by one
// of its own, and its outcome is brought up to date by the transaction that settles it.
type AuditRecord struct {
	// ID is that of the request.
	ID string
	// At is when it was decided, by the store's clock.
	At time.Time
	// Caller made the call Method. Its key is not kept.
	Caller Caller
	Method string
	// Workspace, Name and SandboxID are those of the sandbox that held the name.
	Workspace, Name, SandboxID string
	// Expected is the precondition; nil when there was none.
	Expected *Precondition
	Outcome  Outcome
	// SettledAt is when an accepted delete came to its end; zero before.
	SettledAt time.Time
}

// AuditQuery selects a page of the audit, oldest first, then by id.
type AuditQuery struct {
	// Workspace and Name limit it to one workspace, and there to one name; empty means all. A name without a workspace is
	// looked for in all of them.
	Workspace, Name string
	// Since leaves out what was before.
	Since time.Time
	// After is the last record of the page before; nil starts at the beginning.
	After *AuditRecord
	// Limit is the most records to return.
	Limit int
}
