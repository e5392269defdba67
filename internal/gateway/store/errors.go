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
	// ErrWorkspaceTerminating: the workspace is being deleted and takes nothing new.
	ErrWorkspaceTerminating = errors.New("workspace is being deleted")
	// ErrObjectNotFound: no object there.
	ErrObjectNotFound = errors.New("object not found")
	// ErrAlreadyExists: the name is taken in its workspace.
	ErrAlreadyExists = errors.New("the name is taken")
	// ErrAdmitted: the request was admitted before. Nothing was changed by this call of it.
	ErrAdmitted = errors.New("the request was admitted before")
	// ErrTooManyAdmissions: the caller has [MaxAdmissions].
	ErrTooManyAdmissions = errors.New("too many requests are remembered")
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
	Workspace, Name, ID string // of the row

	Expected, Current uint64
}

func (e *VersionConflictError) Error() string {
	return fmt.Sprintf("sandbox %s/%s (id %s) has resource version %d, expected %d", e.Workspace, e.Name, e.ID, e.Current, e.Expected)
}

// MissingError refuses a row because it needs an object that does not exist.
type MissingError struct{ Key Key }

func (e *MissingError) Error() string {
	return fmt.Sprintf("%s %s/%s not found", e.Key.Kind, e.Key.Workspace, e.Key.Name)
}

// InUseError refuses to delete an object because others need it.
type InUseError struct {
	Key Key
	// By are all of them, oldest first.
	By []Referrer
}

func (e *InUseError) Error() string {
	return fmt.Sprintf("%s %s/%s is needed by %d others", e.Key.Kind, e.Key.Workspace, e.Key.Name, len(e.By))
}
