package linearizability

import "fmt"

// phase is where a sandbox is, as far as the calls can tell.
type phase uint8

const (
	absent       phase = iota
	creating           // PROVISIONING, the driver owes the answer to the create
	provisioning       // PROVISIONING
	ready
	stopping
	stopped
	resuming // STARTING, the driver owes the answer to the start
	starting // STARTING
	deleting
)

var phaseNames = [...]string{"absent", "creating", "provisioning", "ready", "stopping", "stopped", "resuming", "starting", "deleting"}

func (p phase) String() string { return phaseNames[p] }

// pending reports whether the driver owes an answer, which keeps a delete out.
func (p phase) pending() bool { return p == creating || p == resuming }

// sandboxID numbers the ids of a history; 0 is none.
type sandboxID uint16

// state is a name: free (the zero value), or held by one sandbox.
type state struct {
	id    sandboxID
	phase phase
	// before is the phase that a refused delete goes back to; set while deleting a sandbox whose driver refuses deletes.
	before phase
	// refuses is true when the driver was asked to refuse deletes of this sandbox.
	refuses bool
}

func (s state) String() string {
	if s.phase == absent {
		return "absent"
	}
	return fmt.Sprintf("{%d %s}", s.id, s.phase)
}

// silent returns where a state may go without a call.
func (s state) silent() (state, bool) {
	switch s.phase {
	case creating:
		s.phase = provisioning
	case provisioning, starting:
		s.phase = ready
	case resuming:
		s.phase = starting
	case stopping:
		s.phase = stopped
	case deleting:
		if !s.refuses {
			return state{}, true
		}
		s.phase, s.before = s.before, absent
	default:
		return s, false
	}
	return s, true
}

// event is a part of an operation that takes effect at one instant.
type event struct {
	kind    Kind
	outcome Outcome
	// expect is the id in the precondition; 0 makes the call plain.
	expect sandboxID
	// id is the one that the answer speaks of, or that a create made.
	id sandboxID
	// made are the ids that a create of unknown outcome may have made.
	made []sandboxID
	// seen are the phases that the shown phase may stand for.
	seen []phase
	// refuses is Call.RefusesDelete.
	refuses bool
	// operation is the index in the history.
	operation int
}

// gone is the kind of an event that saw that a sandbox no longer held the name.
const gone Kind = "gone"

// step returns every state that an event may lead to from s; none when the event is impossible there.
func (e event) step(s state) []state {
	switch e.kind {
	case Create:
		return e.create(s)
	case Get:
		return only(s, e.outcome == NotFound && s.phase == absent || e.outcome == OK && s.id == e.id && among(s.phase, e.seen))
	case gone:
		return only(s, s.id != e.id)
	default:
		return e.change(s)
	}
}

func (e event) create(s state) []state {
	switch e.outcome {
	case OK:
		return only(state{id: e.id, phase: creating, refuses: e.refuses}, s.phase == absent)
	case AlreadyExists:
		return only(s, s.phase != absent)
	case Unknown:
		next := []state{s}
		if s.phase == absent {
			for _, id := range e.made {
				next = append(next, state{id: id, phase: creating, refuses: e.refuses})
			}
		}
		return next
	}
	return nil
}

// change is a delete, stop or start, plain or conditional.
func (e event) change(s state) []state {
	matches := s.phase != absent && (e.expect == 0 || e.expect == s.id)
	after, allowed := e.effect(s)
	switch {
	case e.outcome == Unknown && matches && allowed:
		return []state{s, after}
	case e.outcome == Unknown:
		return []state{s}
	case !matches:
		return only(s, e.refusedUnmatched(s))
	case e.refusedMatched(s, allowed):
		return []state{s}
	}
	return only(after, allowed && e.succeeded(s))
}

// refusedUnmatched reports whether the answer is that to a call whose precondition does not hold in s, or that finds
// nothing there.
func (e event) refusedUnmatched(s state) bool {
	switch e.outcome {
	case NotFound, AlreadyAbsent:
		return s.phase == absent
	case Mismatch:
		return s.phase != absent && s.id == e.id
	}
	return false
}

// refusedMatched reports whether the answer is a refusal for another reason than the id.
func (e event) refusedMatched(s state, allowed bool) bool {
	switch e.outcome {
	case VersionConflict: // a sandbox that is being deleted answers a delete at every version
		return e.expect != 0 && !(e.kind == Delete && s.phase == deleting)
	case Pending:
		return e.kind == Delete && s.phase.pending()
	case WrongPhase:
		return e.kind != Delete && !allowed
	}
	return false
}

// succeeded reports whether the answer is that to a call which took effect in s.
func (e event) succeeded(s state) bool {
	switch e.outcome {
	case OK, Accepted:
		return s.id == e.id
	case DriverRefused: // undone later
		return s.refuses && s.phase != deleting
	}
	return false
}

// effect is what the call does to a sandbox that the precondition lets it reach; false when its phase is refused.
func (e event) effect(s state) (state, bool) {
	switch {
	case e.kind == Delete && s.phase == deleting,
		e.kind == Stop && (s.phase == stopping || s.phase == stopped),
		e.kind == Start && (s.phase == resuming || s.phase == starting || s.phase == ready):
		return s, true
	case e.kind == Delete && !s.phase.pending():
		if s.refuses {
			s.before = s.phase
		}
		s.phase = deleting
	case e.kind == Stop && s.phase == ready:
		s.phase = stopping
	case e.kind == Start && s.phase == stopped:
		s.phase = resuming
	default:
		return s, false
	}
	return s, true
}

func only(s state, possible bool) []state {
	if !possible {
		return nil
	}
	return []state{s}
}

func among(p phase, phases []phase) bool {
	for _, q := range phases {
		if p == q {
			return true
		}
	}
	return false
}
