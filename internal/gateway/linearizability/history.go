package linearizability

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

// Kind is what a client asks for.
type Kind string

// The calls that a client makes.
const (
	Create Kind = "create"
	Get    Kind = "get"
	Delete Kind = "delete"
	Stop   Kind = "stop"
	Start  Kind = "start"
)

// Call is one request about the name of a history.
type Call struct {
	Kind Kind
	// Number is unique in a history. A create carries it to the gateway in an annotation, so that the sandbox it made is
	// known by it even when the answer was lost.
	Number int
	// ExpectID makes the call conditional; ExpectVersion is compared too unless 0.
	ExpectID      string `json:",omitempty"`
	ExpectVersion uint64 `json:",omitempty"`
	// AllowMissing is that of a delete.
	AllowMissing bool `json:",omitempty"`
	// RefusesDelete is true for a create that asks the driver to refuse deletes of the new sandbox.
	RefusesDelete bool `json:",omitempty"`
}

// Outcome is how a call ended.
type Outcome string

// The outcomes. All but Unknown are definite.
const (
	// Unknown: no answer. It may have happened, may still happen, or never.
	Unknown Outcome = "unknown"
	// Unexpected: an answer that nothing explains. The model has no place for it.
	Unexpected Outcome = "unexpected"
	// Internal: the gateway failed. Nothing explains that either.
	Internal Outcome = "internal"

	OK            Outcome = "ok" // with a sandbox
	Accepted      Outcome = "accepted"
	Completed     Outcome = "completed"
	AlreadyAbsent Outcome = "already absent"

	NotFound        Outcome = "not found"
	AlreadyExists   Outcome = "already exists"
	Mismatch        Outcome = "identity mismatch"
	VersionConflict Outcome = "version conflict"
	Pending         Outcome = "operation pending"
	WrongPhase      Outcome = "wrong phase"
	DriverRefused   Outcome = "driver refused"
)

// Refused reports whether the outcome promises that the call changed nothing.
func (o Outcome) Refused() bool {
	switch o {
	case NotFound, AlreadyExists, Mismatch, VersionConflict, Pending, WrongPhase, AlreadyAbsent:
		return true
	}
	return false
}

// Sandbox is what an answer shows of a sandbox.
type Sandbox struct {
	ID      string
	Version uint64
	Phase   openshellv1.SandboxPhase
	// Pending is true while the compute driver owes an answer to a create or start.
	Pending bool `json:",omitempty"`
	// CreatedBy is the number of the create that made it.
	CreatedBy int
	// Digest stands for the whole message.
	Digest string
}

// Answer is what a client was told.
type Answer struct {
	Outcome Outcome
	// ID is the sandbox_id of a delete, or the current_id of a mismatch.
	ID string `json:",omitempty"`
	// Version is the current version that a version conflict names.
	Version uint64 `json:",omitempty"`
	// Sandbox is the one in the answer, if any.
	Sandbox *Sandbox `json:",omitempty"`
	// Text is the error's.
	Text string `json:",omitempty"`
}

// Operation is a call with its answer. Times are in nanoseconds of one monotonic clock.
type Operation struct {
	Client   int
	Call     Call
	Answer   Answer
	Invoked  int64
	Answered int64
}

func (o Operation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "#%d client %d %s", o.Call.Number, o.Client, o.Call.Kind)
	if o.Call.ExpectID != "" {
		fmt.Fprintf(&b, " if id %s", short(o.Call.ExpectID))
	}
	if o.Call.ExpectVersion != 0 {
		fmt.Fprintf(&b, " and version %d", o.Call.ExpectVersion)
	}
	if o.Call.RefusesDelete {
		b.WriteString(" (driver refuses deletes)")
	}
	fmt.Fprintf(&b, " -> %s", o.Answer.Outcome)
	if o.Answer.ID != "" {
		fmt.Fprintf(&b, " %s", short(o.Answer.ID))
	}
	if s := o.Answer.Sandbox; s != nil {
		fmt.Fprintf(&b, " %s v%d %s", short(s.ID), s.Version, strings.TrimPrefix(s.Phase.String(), "SANDBOX_PHASE_"))
	}
	if o.Answer.Text != "" && (o.Answer.Outcome == Unexpected || o.Answer.Outcome == Internal || o.Answer.Outcome == DriverRefused) {
		fmt.Fprintf(&b, " (%s)", o.Answer.Text)
	}
	return b.String()
}

// short is the part of a UUID that tells it from others at a glance.
func short(id string) string { return id[:min(len(id), 8)] }

// History is what happened to one name.
type History struct {
	// Seed is that of the run.
	Seed            uint64
	Workspace, Name string
	Operations      []Operation
}

// Save writes a history to a file.
func (h History) Save(path string) error {
	data, err := json.MarshalIndent(h, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}

// Load reads what [History.Save] wrote.
func Load(path string) (History, error) {
	var h History
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &h)
	}
	if err != nil {
		return History{}, fmt.Errorf("history %s: %w", path, err)
	}
	return h, nil
}
