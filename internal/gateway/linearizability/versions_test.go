package linearizability

import (
	"strings"
	"testing"
)

// at puts a sandbox in an answer at a version.
func at(version uint64, o Operation) Operation {
	s := *o.Answer.Sandbox
	s.Version = version
	o.Answer.Sandbox = &s
	return o
}

// expecting adds a version to a precondition.
func expecting(version uint64, o Operation) Operation {
	o.Call.ExpectVersion = version
	return o
}

// lasting gives an operation its answer after that of the one at a position.
func (o Operation) lasting(position int) Operation {
	o.Answered = int64(10*position + 6)
	return o
}

func conflict(expected, current uint64) Operation {
	o := expecting(expected, answer(Delete, "A", VersionConflict, ""))
	o.Answer.Version = current
	return o
}

func TestVersions(t *testing.T) {
	stop := changed(Stop, "A", shown("A", 4, wireStopped))
	otherContent := at(2, get("A", wireReady))
	otherContent.Answer.Sandbox.Digest = "other"
	relabelled := at(2, get("A", wireReady))
	relabelled.Answer.Sandbox.CreatedBy = 9
	for name, c := range map[string]struct {
		history History
		want    string // part of the problem; empty when there is none
	}{
		"growing":                       {written(create("A"), get("A", wireReady), stop), ""},
		"a new sandbox counts afresh":   {written(create("A"), get("A", wireReady), answer(Delete, "A", Completed, "A"), create("B"), at(1, get("B", wireProvisioning))), ""},
		"back":                          {written(create("A"), at(3, get("A", wireReady)), at(2, get("A", wireReady))), "went back"},
		"either order at once":          {written(create("A"), at(3, get("A", wireReady)), during(1, 2, at(2, get("A", wireReady)))), ""},
		"two contents":                  {written(create("A"), get("A", wireReady), otherContent), "two contents"},
		"two makers":                    {written(create("A"), get("A", wireReady), relabelled), "was made by create #1 and by create #9"},
		"conflict with the current one": {written(create("A"), get("A", wireReady), conflict(2, 2)), "is the current one"},
		"conflict that goes back":       {written(create("A"), at(3, get("A", wireReady)), conflict(1, 2)), "went back"},
		"the expected version held":     {written(create("A"), get("A", wireReady), expecting(2, stop)), ""},
		"an old version passed":         {written(create("A"), get("A", wireReady), expecting(1, stop)), "went back"},
		"an old version deleted":        {written(create("A"), get("A", wireReady), expecting(1, answer(Delete, "A", Accepted, "A"))), "went back"},
		"another's delete is no excuse": {written(create("A"), answer(Delete, "", Completed, "A"), create("B"), get("B", wireReady),
			expecting(1, answer(Delete, "B", Accepted, "B"))), "went back"},
		"deleting answers any version": {written(create("A"), get("A", wireReady), answer(Delete, "A", Accepted, "A"), expecting(1, answer(Delete, "A", Accepted, "A"))), ""},
		"a refused call wrote":         {written(create("A"), get("A", wireReady), answer(Delete, "B", Mismatch, "A"), at(3, get("A", wireReady))), "only refused calls ran"},
		"a stop that a delete overtook": {written(create("A"), get("A", wireReady), during(0, 2, answer(Stop, "A", NotFound, "")).lasting(5),
			answer(Delete, "B", Mismatch, "A"), get("A", wireStopping), answer(Delete, "A", Completed, "A")), ""},
		"a refused call beside a stop": {written(create("A"), get("A", wireReady), answer(Delete, "B", Mismatch, "A"), stop), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(checkVersions(c.history).problems, "\n")
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("problems: %q, want %q", got, c.want)
			}
		})
	}
}

func TestQuietWindowsAreCounted(t *testing.T) {
	h := written(create("A"), get("A", wireReady), answer(Delete, "B", Mismatch, "A"), get("A", wireReady),
		answer(Delete, "", Unknown, ""), get("A", wireReady), answer(Stop, "B", Mismatch, "A"), get("A", wireReady))
	if quiet := checkVersions(h).quiet; quiet != 1 {
		t.Errorf("counted %d quiet windows, want 1: the lost delete may act at any time after it was sent", quiet)
	}
}
