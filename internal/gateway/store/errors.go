package store

import (
	"errors"
	"fmt"
)

// What can go wrong, however the store is built.
var (
	// ErrNotFound: no sandbox there.
	ErrNotFound = errors.New("sandbox not found")
	// ErrWorkspaceNotFound: no such workspace.
	ErrWorkspaceNotFound = errors.New("workspace not found")
	// ErrAlreadyExists: the name is taken in its workspace.
	ErrAlreadyExists = errors.New("sandbox already exists")
	// ErrUnavailable: the database did not serve the call in time; nothing was changed, and it may be tried again.
	ErrUnavailable = errors.New("store unavailable")
	// ErrOutcomeUnknown: the database was lost while it was committing, and could not be asked whether it did.
	ErrOutcomeUnknown = errors.New("it is not known whether the store was changed")
	// ErrInternal: the database failed in a way that a client can do nothing about.
	ErrInternal = errors.New("store failed")
)

// IdentityMismatchError refuses a change because the name belongs to another sandbox than the expected one.
type IdentityMismatchError struct {
	Workspace, Name, ExpectedID, CurrentID string
}

func (e *IdentityMismatchError) Error() string {
	return fmt.Sprintf("sandbox %s/%s has id %s, expected %s", e.Workspace, e.Name, e.CurrentID, e.ExpectedID)
}

// VersionConflictError refuses a change because the row is at another version than the expected one.
type VersionConflictError struct {
	Expected, Current uint64
}

func (e *VersionConflictError) Error() string {
	return fmt.Sprintf("resource version is %d, expected %d", e.Current, e.Expected)
}
