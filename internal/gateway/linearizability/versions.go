package linearizability

import (
	"fmt"
	"math"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

// sighting is what an answer tells about the version of a sandbox at some instant between call and answer.
type sighting struct {
	Operation
	id      string
	version uint64
	shown   *Sandbox // nil when the answer tells the version alone
}

// versionCheck holds a history to the rules that the model leaves out:
// a version of a sandbox means one content; versions never go back; a refused call changes none; a version conflict is
// one; a create makes one sandbox.
type versionCheck struct {
	history   History
	sightings []sighting
	problems  []string
	quiet     int
}

func checkVersions(h History) *versionCheck {
	c := &versionCheck{history: h}
	for _, o := range h.Operations {
		c.sightings = append(c.sightings, c.looks(o)...)
		if o.Answer.Outcome == VersionConflict && o.Answer.Version == o.Call.ExpectVersion {
			c.problem("%s: the version it expects is the current one", o)
		}
	}
	c.labels()
	for i, a := range c.sightings {
		for _, b := range c.sightings[i+1:] {
			if a.id == b.id {
				c.pair(a, b)
			}
		}
	}
	return c
}

func (c *versionCheck) problem(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

// looks returns what an operation tells about versions.
func (c *versionCheck) looks(o Operation) []sighting {
	var all []sighting
	switch a := o.Answer; {
	case a.Sandbox != nil:
		all = append(all, sighting{o, a.Sandbox.ID, a.Sandbox.Version, a.Sandbox})
	case a.Outcome == VersionConflict && a.Version != 0:
		all = append(all, sighting{o, o.Call.ExpectID, a.Version, nil})
	}
	if o.Call.ExpectVersion != 0 && c.comparedVersion(o) {
		all = append(all, sighting{o, o.Call.ExpectID, o.Call.ExpectVersion, nil})
	}
	return all
}

// comparedVersion reports whether a call succeeded because the sandbox was at the version it expects. A delete may
// instead have met a sandbox that another delete had marked, which it answers at every version.
func (c *versionCheck) comparedVersion(o Operation) bool {
	switch o.Answer.Outcome {
	case OK:
		return true
	case Accepted, Completed, DriverRefused:
	default:
		return false
	}
	for _, other := range c.history.Operations {
		if other.Call.Kind == Delete && other.Call.Number != o.Call.Number && other.Invoked <= o.Answered && mayHaveMarked(other, o.Call.ExpectID) {
			return false
		}
	}
	return true
}

// mayHaveMarked reports whether a delete may have been of a certain sandbox.
func mayHaveMarked(o Operation, id string) bool {
	switch {
	case o.Answer.Outcome.Refused(), o.Call.ExpectID != "" && o.Call.ExpectID != id:
		return false
	default:
		return o.Answer.ID == "" || o.Answer.ID == id
	}
}

// labels checks that a create made one sandbox and that a sandbox was made by one create.
func (c *versionCheck) labels() {
	ids, numbers := map[int]string{}, map[string]int{}
	for _, s := range c.sightings {
		if s.shown == nil {
			continue
		}
		number := s.shown.CreatedBy
		if id, ok := ids[number]; ok && id != s.id {
			c.problem("create #%d made two sandboxes, %s and %s", number, id, s.id)
		}
		if other, ok := numbers[s.id]; ok && other != number {
			c.problem("sandbox %s was made by create #%d and by create #%d", s.id, other, number)
		}
		ids[number], numbers[s.id] = s.id, number
	}
}

// pair compares two sightings of one sandbox.
func (c *versionCheck) pair(a, b sighting) {
	if b.Answered < a.Invoked {
		a, b = b, a
	}
	if a.shown != nil && b.shown != nil && a.version == b.version && a.shown.Digest != b.shown.Digest {
		c.problem("version %d of sandbox %s has two contents: %s; %s", a.version, a.id, a, b)
	}
	if a.Answered >= b.Invoked {
		return // at the same time: either may have come first
	}
	if a.version > b.version {
		c.problem("the version of sandbox %s went back: %s; then %s", a.id, a, b)
	}
	if a.shown == nil || !settled(a.shown) {
		return
	}
	if refusals, undisturbed := c.between(a, b); undisturbed && refusals > 0 {
		c.quiet++
		if a.version != b.version {
			c.problem("only refused calls ran, yet the version of settled sandbox %s changed: %s; then %s", a.id, a, b)
		}
	}
}

// settled reports whether a sandbox stays as it is until somebody asks for a change.
func settled(s *Sandbox) bool {
	return !s.Pending && (s.Phase == openshellv1.SandboxPhase_SANDBOX_PHASE_READY || s.Phase == openshellv1.SandboxPhase_SANDBOX_PHASE_STOPPED)
}

// between counts the refused calls that lie between two sightings; false when any other call may have changed the
// sandbox meanwhile.
func (c *versionCheck) between(a, b sighting) (refusals int, undisturbed bool) {
	for _, o := range c.history.Operations {
		end := o.Answered
		if o.Answer.Outcome == Unknown {
			end = math.MaxInt64
		}
		elsewhere := o.Call.ExpectID != "" && o.Call.ExpectID != a.id
		switch {
		case o.Call.Kind == Get || end < a.Invoked || o.Invoked > b.Answered:
		case overtaken(c.history, o) && !elsewhere:
			return 0, false
		case o.Answer.Outcome.Refused():
			if o.Invoked > a.Answered && o.Answered < b.Invoked {
				refusals++
			}
		case o.Call.Kind == Create || elsewhere: // the name is taken; not this sandbox
		default:
			return 0, false
		}
	}
	return refusals, true
}
