package client

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

// CallError is a call that the gateway, or something on the way to it, refused. The cause is one of apierr's types when
// the gateway gave a structured reason.
type CallError struct {
	// Call is the name of the method, such as GetSandbox.
	Call     string
	Endpoint string
	err      error
	// handshake is why TLS with the gateway failed last, if the call was not answered.
	handshake error
}

func (e *CallError) Error() string {
	text := e.err.Error()
	if st, ok := status.FromError(e.err); ok {
		text = st.Message()
	}
	return e.Call + ": " + CodeName(e.err) + ": " + text
}

// Unwrap gives the cause, which carries the gRPC status.
func (e *CallError) Unwrap() error { return e.err }

// Code is the gRPC code of the refusal.
func (e *CallError) Code() codes.Code { return status.Code(e.err) }

// reworded is the same refusal with another text.
func (e *CallError) reworded(text string) *CallError {
	clean := *e
	clean.err = status.Error(e.Code(), text)
	return &clean
}

// CodeName is the name of an error's gRPC code as the API documents it, such as NOT_FOUND.
func CodeName(err error) string { return code.Code(status.Code(err)).String() }

// UnsupportedGatewayError is a gateway of the 0.0.x series, whose messages have other shapes under the same numbers.
type UnsupportedGatewayError struct{ Endpoint, Version string }

func (e *UnsupportedGatewayError) Error() string {
	return fmt.Sprintf("the gateway at %s is version %s; OpenShell 0.0.x is not supported, 0.1.0 is the oldest that is", e.Endpoint, e.Version)
}

// OtherGatewayError is an answer from a gateway, or a database, that is not the one the sandbox was recorded in. It says
// nothing about the sandbox.
type OtherGatewayError struct {
	Endpoint string
	Ref      Ref
	// Seen is how the sandbox seems to be gone.
	Seen Gone
	// FoundWorkspaceID is the id the workspace has there.
	FoundWorkspaceID string
}

func (e *OtherGatewayError) Error() string {
	text := fmt.Sprintf("the gateway at %s is another one, or its database was rebuilt: there, workspace %q has the id %s, not the recorded %s",
		e.Endpoint, e.Ref.Workspace, e.FoundWorkspaceID, e.Ref.WorkspaceID)
	if e.Seen.CurrentID != "" {
		text += fmt.Sprintf(", and the name %q belongs to %s", e.Ref.Name, e.Seen.Holder())
	}
	return text
}

// UnprovenError is an answer that looks as if the sandbox were gone, which could not be confirmed: a missing workspace,
// a lack of access and another gateway look the same.
type UnprovenError struct {
	Ref Ref
	// Seen is how the sandbox seems to be gone.
	Seen Gone
	// Err is what stood in the way of the confirmation; nil if the workspace can be read, and no id was recorded to compare
	// with.
	Err error
}

func (e *UnprovenError) Error() string {
	text := "the gateway does not show the sandbox"
	if e.Seen.CurrentID != "" {
		text += fmt.Sprintf("; the name %q belongs to %s", e.Ref.Name, e.Seen.Holder())
	}
	if e.Err == nil {
		return text + ", but that proves nothing: no id of the workspace was recorded, which would tell this gateway from others"
	}
	return text + ", but that proves nothing, since the workspace could not be read: " + e.Err.Error()
}

// Unwrap gives what stood in the way.
func (e *UnprovenError) Unwrap() error { return e.Err }

// GoneError is a change asked for a sandbox that is proved to be gone. Nothing was sent, or nothing was changed.
type GoneError struct {
	Ref  Ref
	Gone Gone
}

func (e *GoneError) Error() string {
	text := fmt.Sprintf("the sandbox with id %s is gone", e.Ref.ID)
	if e.Gone.CurrentID != "" {
		text += fmt.Sprintf("; the name %q now belongs to %s", e.Ref.Name, e.Gone.Holder())
	}
	if e.Gone.Evidence != Proved {
		text += "; that the gateway which says so is the one the sandbox was created on is not certain, since the ids of the workspace could not be compared"
	}
	return text
}

// NotSupportedError is a gateway without the conditional service. Nothing was changed.
type NotSupportedError struct {
	Endpoint string
	// Health is what the gateway said about the service, such as UNIMPLEMENTED or NOT_SERVING.
	Health string
	// Refusal is how it refused the call.
	Refusal error
}

func (e *NotSupportedError) Error() string {
	return fmt.Sprintf("the gateway at %s does not offer changes bound to a sandbox's id (openshell.conditional.v1): health says %s, and the call was refused: %v", e.Endpoint, e.Health, e.Refusal)
}

// MixedFleetError is a method of the conditional service that was refused as unknown, again and again, by a gateway whose
// health says that it offers the service. Nothing was changed.
type MixedFleetError struct {
	Endpoint string
	// Refusal is how the last call was refused.
	Refusal error
}

func (e *MixedFleetError) Error() string {
	return fmt.Sprintf("the gateway at %s offers changes bound to a sandbox's id (openshell.conditional.v1), as health says SERVING, and yet the call was refused as unknown, %d times; nothing was changed: %v", e.Endpoint, mixedFleetTries, e.Refusal)
}

// Unwrap gives the last refusal.
func (e *MixedFleetError) Unwrap() error { return e.Refusal }

// BrokenReplyError is an answer that cannot be: something between here and the gateway is broken.
type BrokenReplyError struct{ Call, Problem string }

func (e *BrokenReplyError) Error() string {
	return e.Call + ": the answer makes no sense: " + e.Problem
}

// DeletedAnotherError is a delete by name that hit another sandbox than the one that was read right before.
type DeletedAnotherError struct {
	Ref       Ref
	DeletedID string
}

func (e *DeletedAnotherError) Error() string {
	return fmt.Sprintf("the delete by name deleted ANOTHER sandbox, with id %s: it took the name %q between the read and the delete", e.DeletedID, e.Ref.Name)
}

// DeleteUndoneError is a sandbox that is still there after a delete, and not being deleted.
type DeleteUndoneError struct {
	Ref Ref
	// Answer is what the gateway said, twice, such as ACCEPTED; empty if it did not answer.
	Answer   string
	Observed Observed
}

func (e *DeleteUndoneError) Error() string {
	text := "the sandbox is still there and not being deleted: " + e.Observed.String()
	if e.Answer != "" {
		text = "the gateway answered the delete with " + e.Answer + ", twice, but " + text
	}
	return text
}

// UnansweredDeleteError is a delete by name that was sent and not answered, and whose outcome could not be found out.
type UnansweredDeleteError struct {
	Ref Ref
	// Answer is what came instead of the answer, Err how the watch for the outcome ended.
	Answer, Err error
}

func (e *UnansweredDeleteError) Error() string {
	return fmt.Sprintf("a delete by name was sent and not answered (%v), and is not repeated, since nothing would bind the repeat to the id; then: %v", e.Answer, e.Err)
}

// Unwrap gives how the watch ended.
func (e *UnansweredDeleteError) Unwrap() error { return e.Err }

// UnansweredChangeError is a change that was sent and not answered, and that was not seen to have taken effect.
type UnansweredChangeError struct {
	Ref Ref
	// Answer is what came instead of the answer, Err what ended the watch for the effect; nil if there was time enough.
	Answer, Err error
	// Observed is the last thing seen.
	Observed Observed
}

func (e *UnansweredChangeError) Error() string {
	text := fmt.Sprintf("the change was sent and not answered (%v), and is not repeated", e.Answer)
	wait, ended := errors.AsType[*WaitError](e.Err)
	switch {
	case ended:
		text += fmt.Sprintf("; no effect was seen within %s (%v)", wait.Elapsed.Round(time.Second/10), wait.Err)
	case e.Err != nil:
		text += fmt.Sprintf("; then: %v", e.Err)
	default:
		text += "; the sandbox shows no effect"
	}
	if e.Observed.Phase != "" {
		text += "; last seen: " + e.Observed.String()
	}
	return text
}

// Unwrap gives both causes.
func (e *UnansweredChangeError) Unwrap() []error { return []error{e.Err, e.Answer} }

// FailedError is a sandbox that reached a phase from which what was waited for cannot come.
type FailedError struct {
	Ref      Ref
	Observed Observed
	Goal     string
}

func (e *FailedError) Error() string {
	if e.Goal == goalChanged {
		return "the sandbox is being deleted, so nothing is changed any more: " + e.Observed.String()
	}
	return fmt.Sprintf("the sandbox will not become %s: %s", e.Goal, e.Observed)
}

// PolicyError is a revision of a policy that the gateway has stored, and that the sandbox does not run under, or not any more.
type PolicyError struct {
	Ref     Ref
	Version uint32
	// Superseded says that there is a newer revision, which hides whether this one was ever loaded; otherwise LoadError says
	// what was wrong.
	Superseded bool
	LoadError  string
}

func (e *PolicyError) Error() string {
	if e.Superseded {
		return fmt.Sprintf("revision %d of the sandbox's policy was superseded by a newer one; whether it was loaded before is not known", e.Version)
	}
	return fmt.Sprintf("the sandbox could not load revision %d of its policy: %s", e.Version, e.LoadError)
}

// WaitError is a wait that ended by time limit or interruption before its goal.
type WaitError struct {
	Ref     Ref
	Goal    string
	Elapsed time.Duration
	// Observed is the last thing seen; its phase is empty when nothing was.
	Observed Observed
	// Last is the last refused call, if the last one was refused.
	Last error
	// Err is context.DeadlineExceeded or context.Canceled.
	Err error
}

func (e *WaitError) Error() string {
	text := fmt.Sprintf("the sandbox was not %s after %s (%v)", e.Goal, e.Elapsed.Round(time.Second/10), e.Err)
	if e.Goal == goalChanged {
		text = fmt.Sprintf("the change was not made within %s (%v)", e.Elapsed.Round(time.Second/10), e.Err)
	}
	if e.Observed.Phase != "" {
		text += "; last seen: " + e.Observed.String()
	}
	if e.Last != nil {
		text += "; last answer: " + e.Last.Error()
	}
	return text
}

// Unwrap tells a time limit from an interruption.
func (e *WaitError) Unwrap() error { return e.Err }

// NameTakenError is a create under a name that another sandbox holds.
type NameTakenError struct {
	Workspace, Name string
	// Holder is nil when it could not be read; Err says why.
	Holder *openshellv1.Sandbox
	Err    error
}

func (e *NameTakenError) Error() string {
	if e.Holder == nil {
		return fmt.Sprintf("the name %q in workspace %q is taken by a sandbox that could not be read: %v", e.Name, e.Workspace, e.Err)
	}
	return fmt.Sprintf("the name %q in workspace %q is taken by the sandbox with id %s in phase %s", e.Name, e.Workspace, IDOf(e.Holder), Phase(e.Holder))
}

// OutcomeUnknownError is a create of which neither the reply nor the sandbox was seen: it may exist or yet come to be.
type OutcomeUnknownError struct {
	Workspace, Name, CreateID string
	// Err is how the create ended here, Lookup how the search for the sandbox did.
	Err, Lookup error
}

func (e *OutcomeUnknownError) Error() string {
	return fmt.Sprintf("whether sandbox %q in workspace %q was created is unknown: %v; looking for it: %v", e.Name, e.Workspace, e.Err, e.Lookup)
}

// Unwrap gives both causes.
func (e *OutcomeUnknownError) Unwrap() []error { return []error{e.Err, e.Lookup} }

// Observed is what was last seen of a sandbox.
type Observed struct {
	// Phase as in [Phase].
	Phase string
	// Reason and Message come from the condition Ready, if there is one.
	Reason, Message string
	ExitCode        *int32
}

func (o Observed) String() string {
	parts := []string{"phase " + o.Phase}
	if o.Reason != "" {
		parts = append(parts, "reason "+o.Reason)
	}
	if o.Message != "" {
		parts = append(parts, strings.TrimSuffix(o.Message, "."))
	}
	if o.ExitCode != nil {
		if code := fmt.Sprintf("exit code %d", *o.ExitCode); !strings.Contains(o.Message, code) {
			parts = append(parts, code)
		}
	}
	return strings.Join(parts, ", ")
}
