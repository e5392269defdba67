package store

import (
	"context"
	"time"
)

// Limits of admissions (upstream-contract, request_id).
const (
	// AdmissionTTL is how long an admission is kept, and so how long the outcome of a request is replayed.
	AdmissionTTL = 24 * time.Hour
	// MaxAdmissions is how many of them a caller can have. On a database that several gateways share, requests that are
	// admitted at the same moment do not count each other.
	MaxAdmissions = 1000
)

// Caller is who makes a request.
type Caller struct {
	// Key is the same for all requests of a caller, and nobody else's.
	Key string
	// IdentityProvider, Issuer and Subject say who it is to a person.
	IdentityProvider, Issuer, Subject string
}

// Request is the client's call that a change is made for.
type Request struct {
	// ID is a UUID, new for each call. The operation that the call begins has it for its own.
	ID string
	// Caller makes the call.
	Caller Caller
	// Method is its full name.
	Method string
	// Admission, when set, keeps the call from being made twice.
	Admission *Admission
}

// Admitted says that the call is to be made once.
func (r *Request) Admitted() bool { return r != nil && r.Admission != nil }

// Admission is the permission to make a call once. It is recorded by the transaction that makes the change, so that one
// that changes nothing leaves none.
type Admission struct {
	// Scope and RequestID are its key. RequestID is what the client chose, and the scope is what its choice holds for: one
	// caller, one method and one workspace.
	Scope, RequestID string
	// Fingerprint stands for all else that the request says.
	Fingerprint string
}

// Outcome is what came of a request.
type Outcome string

// Outcomes. Only some of them can come of any one call.
const (
	OutcomePending   Outcome = ""               // not known yet
	OutcomeDone      Outcome = "done"           // what was asked for is so
	OutcomeUnchanged Outcome = "unchanged"      // an attach or detach: it was so already
	OutcomeAccepted  Outcome = "accepted"       // a delete: it is being deleted
	OutcomeCompleted Outcome = "completed"      // a delete: it is gone
	OutcomeAbsent    Outcome = "already_absent" // a delete: there was nothing
	// OutcomeRefused is of a compute driver that refused after all. It leaves no admission either.
	OutcomeRefused Outcome = "refused"

	// These are known to the audit alone: a delete of what was being deleted already, and those that were refused.
	OutcomeAlreadyDeleting  Outcome = "already_deleting"
	OutcomeIdentityMismatch Outcome = "identity_mismatch"
	OutcomeVersionConflict  Outcome = "version_conflict"
	OutcomeOperationPending Outcome = "operation_pending"
)

// Admitted is a request that was admitted before.
type Admitted struct {
	Fingerprint string
	// Outcome is pending while the work goes on, and after it was overtaken by another call's.
	Outcome Outcome
	// SubjectID is the id of what it was about; empty while the outcome is pending, and when there is none.
	SubjectID string
}

// AuditReader reads the audit and nothing else.
type AuditReader interface {
	// ListAudit reads a page of the audit.
	ListAudit(ctx context.Context, query AuditQuery) ([]AuditRecord, error)

	// Close releases the database.
	Close() error
}

// Requests keeps what is known of calls: admissions, and the audit.
type Requests interface {
	// Admitted finds what was admitted under a scope and request id; false when nothing was, or it has expired.
	Admitted(ctx context.Context, scope, requestID string) (Admitted, bool, error)

	// ListAudit reads a page of the audit.
	ListAudit(ctx context.Context, query AuditQuery) ([]AuditRecord, error)

	// Purge deletes up to limit admissions that have expired, and up to limit records of the audit that are older than
	// [AuditRetention]. It returns how many of either there were, whichever were more; less than limit means that none are left.
	Purge(ctx context.Context, limit int) (int, error)
}
