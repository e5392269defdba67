package linearizability

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// checkTimeout bounds the search for one history. Running into it is a failure: nothing was shown.
const checkTimeout = time.Minute

// model is the nondeterministic model for porcupine. Its sets of states are closed under silent steps, so that equal
// knowledge is an equal set.
var model = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{state{}} },
	Step: func(s, input, _ any) []any {
		var next []any
		for _, after := range input.(event).step(s.(state)) { //nolint:forcetypeassert // porcupine hands back what it was given
			for more := true; more; after, more = after.silent() {
				next = append(next, after)
			}
		}
		return next
	},
	Hash: func(s any) uint64 {
		st := s.(state) //nolint:forcetypeassert // as above
		x := uint64(st.id)<<24 | uint64(st.phase)<<16 | uint64(st.before)<<8 | 1
		return (x ^ x>>15) * 0x9e3779b97f4a7c15
	},
	DescribeOperation: func(input, _ any) string { return fmt.Sprint(input) },
}).ToModel()

// Verdict is what became of a check.
type Verdict struct {
	// Problems is empty when the history is explained and the versions keep their rules.
	Problems []string
	// Events is how many events porcupine ordered.
	Events int
	// Quiet is how often a refused call was seen to have left the version of a settled sandbox alone.
	Quiet int

	model porcupine.Model
	info  porcupine.LinearizationInfo
}

// Check looks for an order of events that explains the history, and holds versions to their rules.
func Check(h History) Verdict {
	all := events(h)
	described := model
	described.DescribeOperation = func(input, _ any) string { return describe(h, input.(event)) } //nolint:forcetypeassert // as above
	v := Verdict{Events: len(all), model: described}
	switch result, info := porcupine.CheckOperationsVerbose(described, all, checkTimeout); result {
	case porcupine.Ok:
	case porcupine.Illegal:
		v.info = info
		v.Problems = append(v.Problems, culprit(h, all))
	default:
		v.info = info
		v.Problems = append(v.Problems, fmt.Sprintf("porcupine found no verdict on %d events within %s", len(all), checkTimeout))
	}
	versions := checkVersions(h)
	v.Quiet = versions.quiet
	v.Problems = append(v.Problems, versions.problems...)
	return v
}

// describe is an event as a line of the visualization.
func describe(h History, e event) string {
	text := h.Operations[e.operation].String()
	if e.kind != h.Operations[e.operation].Call.Kind {
		text = string(e.kind) + " (" + text + ")"
	}
	return text
}

// culprit names the first answer that cannot be explained: up to the one before, an order exists.
func culprit(h History, all []porcupine.Operation) string {
	ends := make([]int64, 0, len(all))
	for _, o := range all {
		if o.Return != math.MaxInt64 {
			ends = append(ends, o.Return)
		}
	}
	slices.Sort(ends)
	first := sort.Search(len(ends), func(i int) bool {
		return porcupine.CheckOperationsTimeout(model, until(all, ends[i]), checkTimeout) == porcupine.Illegal
	})
	if first == len(ends) {
		return "no order of events explains the history"
	}
	var b strings.Builder
	for _, o := range h.Operations {
		if o.Answer.Outcome != Unknown && o.Answered == ends[first] {
			fmt.Fprintf(&b, "no order of events explains the answer of %s; before it, latest last:", o)
		}
	}
	before := answeredBefore(h, ends[first])
	for _, o := range before[max(0, len(before)-12):] {
		fmt.Fprintf(&b, "\n  [%9.3f ms, %9.3f ms] %s", float64(o.Invoked)/1e6, float64(o.Answered)/1e6, o)
	}
	return b.String()
}

// until is what was known at a time: later answers are still to come.
func until(all []porcupine.Operation, end int64) []porcupine.Operation {
	var known []porcupine.Operation
	for _, o := range all {
		switch {
		case o.Call > end:
			continue
		case o.Return > end && o.Return != math.MaxInt64:
			e, left := o.Input.(event).unanswered() //nolint:forcetypeassert // made by events
			if !left {
				continue
			}
			o.Input, o.Return = e, math.MaxInt64
		}
		known = append(known, o)
	}
	return known
}

func answeredBefore(h History, end int64) []Operation {
	var before []Operation
	for _, o := range h.Operations {
		if o.Invoked <= end && (o.Answered < end || o.Answer.Outcome == Unknown) {
			before = append(before, o)
		}
	}
	slices.SortStableFunc(before, func(a, b Operation) int { return int(a.Answered - b.Answered) })
	return before
}

// Visualize writes porcupine's interactive page about the check.
func (v Verdict) Visualize(path string) error { return porcupine.VisualizePath(v.model, v.info, path) }
