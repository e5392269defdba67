// Package driver is what the gateway asks of a compute driver: the part that really runs sandboxes.
//
// Every call is about one sandbox, by its id alone, and may be repeated: a gateway that was killed in the middle calls
// again for the same id, and the driver goes on from what it finds.
package driver

import (
	"context"
	"errors"
	"time"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

// Instance is the sandbox that a call is about.
type Instance struct {
	// ID is the sandbox's, never used by another.
	ID string
	// Spec is what was asked for.
	Spec *openshellv1.SandboxSpec
	// Since is when the step began that the call belongs to: for Create, Start, Stop and Delete when that was asked for,
	// for Observe when Create or Start was answered.
	Since time.Time
}

// Driver runs sandboxes. Its calls honour their context; a call that is given up may be made again.
type Driver interface {
	// Info describes the driver.
	Info() *openshellv1.ComputeDriverInfo
	// Validate refuses a spec that the driver can never run, with an [InvalidError].
	Validate(spec *openshellv1.SandboxSpec) error
	// Create takes a sandbox on. Whether it runs is for Observe to say. A refusal leaves nothing behind.
	Create(ctx context.Context, instance Instance) error
	// Start takes a stopped or finished sandbox on again.
	Start(ctx context.Context, instance Instance) error
	// Stop returns when the sandbox does not run any more.
	Stop(ctx context.Context, instance Instance) error
	// Delete removes what there is of a sandbox, or goes on with it. An error means that the driver refuses and that the
	// sandbox is as it was.
	Delete(ctx context.Context, instance Instance) (Deletion, error)
	// Observe says how a sandbox does that was taken on.
	Observe(ctx context.Context, instance Instance) (Observation, error)
}

// Deletion is how far a delete is.
type Deletion struct {
	// Gone says that nothing is left.
	Gone bool
	// Next is how long to wait before asking again.
	Next time.Duration
}

// State is what a sandbox that was taken on is doing.
type State int

// States of a sandbox.
const (
	Starting State = iota // not ready yet
	Running               // ready
	Exited                // its main process has ended
)

// Observation is what the driver sees of a sandbox.
type Observation struct {
	State State
	// ExitCode of the main process, once Exited.
	ExitCode int32
	// Next is how long to wait before asking again; 0 says that nothing will change by itself.
	Next time.Duration
}

// Kinds of refusal that a client is told apart, by [errors.Is].
var (
	ErrAlreadyExists      = errors.New("already exists")
	ErrFailedPrecondition = errors.New("failed precondition")
)

// Refusal is an answer of the driver that its user is to read; other errors are kept from clients.
type Refusal struct {
	// Message is the driver's own text.
	Message string
	// Kind is one of the kinds above, or nil.
	Kind error
}

func (e *Refusal) Error() string { return e.Message }

func (e *Refusal) Unwrap() error { return e.Kind }

// InvalidError names the field of a spec that a driver cannot take.
type InvalidError struct {
	// Field is its path below the spec, such as template.driver_config.
	Field, Problem string
}

func (e *InvalidError) Error() string { return e.Field + ": " + e.Problem }
