package linearizability

import (
	"math"

	"github.com/anishathalye/porcupine"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

// events cuts the operations of a history into what takes effect at one instant. An answer that shows a sandbox is the
// call's effect and then a look at the sandbox; a delete that answers COMPLETED is the mark and then the sandbox being
// gone. In between others may act, so these are two events within the operation's interval. So is a stop or start that
// another call overtook: it marked the sandbox, found it in another phase or gone when the driver had answered, and said that.
func events(h History) []porcupine.Operation {
	ids := newIdentities(h)
	var all []porcupine.Operation
	for i, o := range h.Operations {
		end := o.Answered
		if o.Answer.Outcome == Unknown {
			if o.Call.Kind == Get {
				continue // changed nothing and saw nothing
			}
			end = math.MaxInt64
		}
		parts := ids.cut(o)
		if overtaken(h, o) {
			mark := parts[0]
			mark.outcome = Unknown
			parts = append(parts, mark)
		}
		for _, e := range parts {
			e.operation = i
			all = append(all, porcupine.Operation{ClientId: o.Client, Input: e, Call: o.Invoked, Return: end})
		}
	}
	return all
}

// overtaken reports whether an operation is a stop or start that a delete, or a stop that a start, may have overtaken. It is
// refused then, but may have marked the sandbox before.
func overtaken(h History, o Operation) bool {
	if o.Call.Kind != Stop && o.Call.Kind != Start || o.Answer.Outcome != WrongPhase && o.Answer.Outcome != NotFound {
		return false
	}
	for _, by := range h.Operations {
		overtakes := by.Call.Kind == Delete || by.Call.Kind == Start && o.Call.Kind == Stop
		if overtakes && !by.Answer.Outcome.Refused() && by.Invoked <= o.Answered && (by.Answer.Outcome == Unknown || by.Answered >= o.Invoked) {
			return true
		}
	}
	return false
}

// identities numbers the ids of a history and knows which create made which.
type identities struct {
	numbers map[string]sandboxID
	madeBy  map[int]sandboxID // by number of the create
	// unclaimed ids were named by an answer, but never shown with the number of their create.
	unclaimed []sandboxID
}

func newIdentities(h History) *identities {
	ids := &identities{numbers: map[string]sandboxID{"": 0}, madeBy: map[int]sandboxID{}}
	claimed := map[sandboxID]bool{0: true}
	for _, o := range h.Operations {
		if s := o.Answer.Sandbox; s != nil {
			ids.madeBy[s.CreatedBy] = ids.number(s.ID)
			claimed[ids.number(s.ID)] = true
		}
	}
	for _, o := range h.Operations {
		if id := ids.number(o.Answer.ID); !claimed[id] {
			claimed[id] = true
			ids.unclaimed = append(ids.unclaimed, id)
		}
	}
	return ids
}

func (ids *identities) number(id string) sandboxID {
	n, ok := ids.numbers[id]
	if !ok {
		n = sandboxID(len(ids.numbers))
		ids.numbers[id] = n
	}
	return n
}

// cut returns the events of an operation.
func (ids *identities) cut(o Operation) []event {
	e := event{kind: o.Call.Kind, outcome: o.Answer.Outcome, expect: ids.number(o.Call.ExpectID), id: ids.number(o.Answer.ID), refuses: o.Call.RefusesDelete}
	if e.kind == Create && e.outcome == Unknown {
		e.made = ids.madeByLost(o.Call.Number)
	}
	s := o.Answer.Sandbox
	if s == nil {
		if e.outcome == Completed {
			e.outcome = Accepted
			return []event{e, {kind: gone, id: e.id}}
		}
		return []event{e}
	}
	e.id = ids.number(s.ID)
	look := event{kind: Get, outcome: OK, id: e.id, seen: phasesOf(s)}
	if e.kind == Get {
		return []event{look}
	}
	return []event{e, look}
}

// madeByLost returns what a create of unknown outcome may have made: the sandbox that somebody saw with its number, or
// else one that nobody saw well enough, or one that nobody saw at all.
func (ids *identities) madeByLost(number int) []sandboxID {
	if id, ok := ids.madeBy[number]; ok {
		return []sandboxID{id}
	}
	unseen := sandboxID(math.MaxUint16 - number)
	return append([]sandboxID{unseen}, ids.unclaimed...)
}

// phasesOf returns the model's phases that a shown sandbox may be in.
func phasesOf(s *Sandbox) []phase {
	switch s.Phase {
	case openshellv1.SandboxPhase_SANDBOX_PHASE_PROVISIONING:
		return []phase{pick(s.Pending, creating, provisioning)}
	case openshellv1.SandboxPhase_SANDBOX_PHASE_READY:
		return []phase{ready}
	case openshellv1.SandboxPhase_SANDBOX_PHASE_STOPPING:
		return []phase{stopping}
	case openshellv1.SandboxPhase_SANDBOX_PHASE_STOPPED:
		return []phase{stopped}
	case openshellv1.SandboxPhase_SANDBOX_PHASE_STARTING:
		return []phase{pick(s.Pending, resuming, starting)}
	case openshellv1.SandboxPhase_SANDBOX_PHASE_DELETING:
		return []phase{deleting}
	}
	return nil // ERROR, COMPLETED and UNKNOWN are not asked for
}

func pick(first bool, a, b phase) phase {
	if first {
		return a
	}
	return b
}

// unanswered is e as it looks before its answer came; false when nothing is left of it then.
func (e event) unanswered() (event, bool) {
	switch {
	case e.kind == Get || e.kind == gone || e.outcome.Refused(): // a look, or without effect
		return e, false
	case e.kind == Create && e.outcome == OK:
		e.made = []sandboxID{e.id}
	}
	e.outcome = Unknown
	return e, true
}
