package linearizability

import (
	"strings"
	"testing"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

// The histories below run one call after the other unless a call says [during].

const (
	wireProvisioning = openshellv1.SandboxPhase_SANDBOX_PHASE_PROVISIONING
	wireReady        = openshellv1.SandboxPhase_SANDBOX_PHASE_READY
	wireStopping     = openshellv1.SandboxPhase_SANDBOX_PHASE_STOPPING
	wireStopped      = openshellv1.SandboxPhase_SANDBOX_PHASE_STOPPED
	wireStarting     = openshellv1.SandboxPhase_SANDBOX_PHASE_STARTING
	wireDeleting     = openshellv1.SandboxPhase_SANDBOX_PHASE_DELETING
)

// written makes a history of operations in their order.
func written(operations ...Operation) History {
	h := History{Workspace: "default", Name: "web"}
	for i, o := range operations {
		if o.Call.Number == 0 {
			o.Call.Number = 101 + i
		}
		if o.Answered == 0 {
			o.Invoked, o.Answered = int64(10*i), int64(10*i+5)
		}
		h.Operations = append(h.Operations, o)
	}
	return h
}

// during widens an operation to lie over the n operations before and after it.
func during(n int, position int, o Operation) Operation {
	o.Invoked, o.Answered = int64(10*(position-n)), int64(10*(position+n)+5)
	return o
}

// shown is sandbox A, B, … in an answer. A was made by create #1, and so on.
func shown(id string, version uint64, phase openshellv1.SandboxPhase) *Sandbox {
	return &Sandbox{ID: id, Version: version, Phase: phase, CreatedBy: int(id[0]-'A') + 1, Digest: phase.String()}
}

func create(id string) Operation {
	s := shown(id, 1, wireProvisioning)
	return Operation{Call: Call{Kind: Create, Number: s.CreatedBy}, Answer: Answer{Outcome: OK, Sandbox: s}}
}

// lostCreate may have made A.
func lostCreate() Operation {
	o := create("A")
	o.Answer = Answer{Outcome: Unknown}
	return o
}

// get sees a sandbox at a version that grows with the phases of an undisturbed life.
func get(id string, phase openshellv1.SandboxPhase) Operation {
	version := map[openshellv1.SandboxPhase]uint64{wireProvisioning: 1, wireReady: 2, wireStopping: 3, wireStopped: 4, wireStarting: 5, wireDeleting: 7}[phase]
	return Operation{Call: Call{Kind: Get}, Answer: Answer{Outcome: OK, Sandbox: shown(id, version, phase)}}
}

func answer(kind Kind, expect string, outcome Outcome, id string) Operation {
	return Operation{Call: Call{Kind: kind, ExpectID: expect}, Answer: Answer{Outcome: outcome, ID: id}}
}

var free = answer(Get, "", NotFound, "")

// refusing marks a create whose driver refuses deletes.
func refusing(o Operation) Operation { o.Call.RefusesDelete = true; return o }

func changed(kind Kind, expect string, s *Sandbox) Operation {
	return Operation{Call: Call{Kind: kind, ExpectID: expect}, Answer: Answer{Outcome: OK, Sandbox: s}}
}

func TestModelExplains(t *testing.T) {
	restarted := get("A", wireReady)
	restarted.Answer.Sandbox.Version = 6
	for name, h := range map[string]History{
		"a life and the next": written(free, create("A"), get("A", wireProvisioning), get("A", wireReady), answer(Delete, "A", Accepted, "A"),
			get("A", wireDeleting), answer(Create, "", AlreadyExists, ""), free, create("B"), get("B", wireReady)),
		"a delete is repeated":          written(create("A"), answer(Delete, "A", Accepted, "A"), answer(Delete, "A", Accepted, "A"), answer(Delete, "", Accepted, "A")),
		"a late delete spares B":        written(create("A"), answer(Delete, "", Completed, "A"), create("B"), answer(Delete, "A", Mismatch, "B"), get("B", wireReady)),
		"absent to a conditional call":  written(answer(Delete, "A", NotFound, ""), answer(Delete, "A", AlreadyAbsent, ""), answer(Stop, "A", NotFound, "")),
		"a stop and a start":            written(create("A"), get("A", wireReady), changed(Stop, "A", shown("A", 4, wireStopped)), get("A", wireStopped), changed(Start, "A", shown("A", 5, wireStarting)), restarted),
		"a start while provisioning":    written(create("A"), answer(Start, "A", WrongPhase, ""), get("A", wireReady)),
		"the driver owes an answer":     written(during(1, 1, create("A")), answer(Delete, "A", Pending, "")),
		"a lost create is seen later":   written(lostCreate(), free, get("A", wireProvisioning)),
		"a lost create never happens":   written(lostCreate(), free, create("B"), get("B", wireReady)),
		"a lost create known by its id": written(lostCreate(), answer(Delete, "B", Mismatch, "A"), answer(Delete, "", Accepted, "A"), free),
		"a lost create nobody saw":      written(lostCreate(), answer(Create, "", AlreadyExists, ""), answer(Delete, "", Unknown, ""), free),
		"a lost delete explains":        written(create("A"), answer(Delete, "A", Unknown, ""), get("A", wireReady), free, create("B")),
		"a lost stop explains":          written(create("A"), answer(Stop, "", Unknown, ""), get("A", wireReady), get("A", wireStopped)),
		"completed, deleting seen":      written(create("A"), during(2, 2, answer(Delete, "A", Completed, "A")), get("A", wireReady), get("A", wireDeleting), free),
		"a delete overtook a stop": written(create("A"), get("A", wireReady), during(2, 4, answer(Stop, "A", WrongPhase, "")),
			get("A", wireStopping), answer(Delete, "A", Accepted, "A")),
		"a delete overtook a stop and was done": written(create("A"), get("A", wireReady), during(2, 4, answer(Stop, "A", NotFound, "")),
			get("A", wireStopping), answer(Delete, "A", Completed, "A"), create("B")),
		"a delete overtook a start that another joined": written(create("A"), get("A", wireReady), changed(Stop, "A", shown("A", 4, wireStopped)),
			during(0, 3, answer(Start, "A", NotFound, "")).lasting(7), answer(Delete, "A", Pending, ""), changed(Start, "", shown("A", 6, wireStarting)),
			answer(Delete, "A", Completed, "A")),
		"a start overtook a stop that another joined": written(create("A"), get("A", wireReady), during(0, 2, answer(Stop, "A", WrongPhase, "")).lasting(7),
			answer(Stop, "B", Mismatch, "A"), get("A", wireStopping), changed(Stop, "A", shown("A", 4, wireStopped)), changed(Start, "A", shown("A", 5, wireStarting))),
		"a refused delete":        written(refusing(create("A")), get("A", wireReady), during(2, 2, answer(Delete, "A", DriverRefused, "")), get("A", wireReady)),
		"joined a refused delete": written(refusing(create("A")), during(2, 2, answer(Delete, "A", DriverRefused, "")), answer(Delete, "", Accepted, "A"), get("A", wireReady)),
	} {
		t.Run(name, func(t *testing.T) {
			if v := Check(h); len(v.Problems) != 0 {
				t.Errorf("refused: %s", strings.Join(v.Problems, "\n"))
			}
		})
	}
}

func TestModelRefuses(t *testing.T) {
	replaced := []Operation{create("A"), answer(Delete, "", Completed, "A"), create("B"), get("B", wireReady)}
	after := func(o ...Operation) History { return written(append(replaced[:4:4], o...)...) }
	for name, h := range map[string]History{
		"a stranger deleted for A":         after(answer(Delete, "A", Accepted, "B")),
		"a stranger deleted in A's name":   after(answer(Delete, "A", Accepted, "A")),
		"a mismatch that deleted":          after(answer(Delete, "A", Mismatch, "B"), get("B", wireDeleting)),
		"a mismatch that stopped":          after(answer(Stop, "A", Mismatch, "B"), get("B", wireStopped)),
		"a mismatch naming the wrong id":   after(answer(Delete, "A", Mismatch, "A")),
		"a mismatch though it matches":     after(answer(Delete, "B", Mismatch, "B")),
		"a stranger stopped":               after(changed(Stop, "A", shown("B", 4, wireStopped))),
		"a lost delete of A cannot hit B":  after(answer(Delete, "A", Unknown, ""), get("B", wireDeleting)),
		"a lost delete of A stops nobody":  after(answer(Delete, "A", Unknown, ""), get("B", wireStopped)),
		"gone without a cause":             after(free),
		"absent to a delete, though there": after(answer(Delete, "A", AlreadyAbsent, "")),
		"a second holder":                  after(create("C")),
		"a predecessor comes back":         after(get("A", wireReady)),
		"the same create twice":            after(create("A")),
		"resurrected":                      written(create("A"), answer(Delete, "A", Accepted, "A"), get("A", wireReady)),
		"resurrected by a start":           written(create("A"), answer(Delete, "A", Accepted, "A"), changed(Start, "", shown("A", 9, wireStarting))),
		"undone without a delete error":    written(create("A"), get("A", wireReady), answer(Delete, "A", DriverRefused, "")),
		"a refused delete took it":         written(refusing(create("A")), answer(Delete, "A", DriverRefused, ""), free),
		"a refused stop that stopped":      written(create("A"), get("A", wireReady), answer(Stop, "A", WrongPhase, "")),
		"stale after a create":             written(create("A"), free),
		"stale after a delete":             written(create("A"), answer(Delete, "A", Completed, "A"), get("A", wireDeleting)),
		"stale after a stop":               written(create("A"), get("A", wireReady), changed(Stop, "A", shown("A", 4, wireStopped)), get("A", wireReady)),
		"completed, still there":           written(create("A"), answer(Delete, "A", Completed, "A"), answer(Delete, "A", Accepted, "A")),
		"pending when settled":             written(create("A"), get("A", wireReady), answer(Delete, "A", Pending, "")),
		"a conflict once deleting":         written(create("A"), answer(Delete, "A", Accepted, "A"), answer(Delete, "A", VersionConflict, "")),
		"nothing explains it":              written(create("A"), Operation{Call: Call{Kind: Stop}, Answer: Answer{Outcome: Unexpected, Text: "boom"}}),
	} {
		t.Run(name, func(t *testing.T) {
			v := Check(h)
			if len(v.Problems) == 0 {
				t.Fatal("accepted")
			}
			last := h.Operations[len(h.Operations)-1].String()
			if first, _, _ := strings.Cut(v.Problems[0], "\n"); !strings.Contains(first, "no order of events explains the answer of "+last) {
				t.Errorf("the culprit is not %q: %s", last, v.Problems[0])
			}
		})
	}
}
