package linearizability

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Stats says what a run consisted of.
type Stats struct {
	Histories, Operations, Events, Quiet int
	// Outcomes counts operations by kind and outcome.
	Outcomes map[string]int
	// Checking is the time spent in [Check], Longest the most for one history.
	Checking, Longest time.Duration
}

func (s Stats) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d operations in %d histories (%d events; %d times a refused call left a settled sandbox's version alone), checked in %s, at most %s each",
		s.Operations, s.Histories, s.Events, s.Quiet, s.Checking.Round(time.Millisecond), s.Longest.Round(time.Millisecond))
	for _, key := range slices.Sorted(maps.Keys(s.Outcomes)) {
		fmt.Fprintf(&b, "\n  %7d %s", s.Outcomes[key], key)
	}
	return b.String()
}

// Violation is a history that nothing explains.
type Violation struct {
	History History
	Verdict Verdict
	// Problem is the first, After when it was found.
	Problem string
	After   time.Duration
}

// Prove has runs go on at the same time until ctx ends, enough says so of what there is, or a history cannot be explained.
func Prove(ctx context.Context, enough func(Stats) bool, configs ...Config) (Stats, *Violation) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	began := time.Now()
	var mu sync.Mutex
	stats := Stats{Outcomes: map[string]int{}}
	var violation *Violation
	complete := func(h History) {
		start := time.Now()
		verdict := Check(h)
		took := time.Since(start)
		mu.Lock()
		defer mu.Unlock()
		stats.add(h, verdict, took)
		if len(verdict.Problems) > 0 && violation == nil {
			violation = &Violation{h, verdict, verdict.Problems[0], time.Since(began)}
		}
		if violation != nil || enough(stats) {
			cancel()
		}
	}
	var runs sync.WaitGroup
	for _, config := range configs {
		runs.Go(func() { Run(ctx, config, complete) })
	}
	runs.Wait()
	return stats, violation
}

func (s *Stats) add(h History, v Verdict, took time.Duration) {
	s.Histories++
	s.Operations += len(h.Operations)
	s.Events += v.Events
	s.Quiet += v.Quiet
	s.Checking += took
	s.Longest = max(s.Longest, took)
	for _, o := range h.Operations {
		form := "plain"
		if o.Call.ExpectID != "" {
			form = "conditional"
		}
		s.Outcomes[fmt.Sprintf("%s %s: %s", form, o.Call.Kind, o.Answer.Outcome)]++
	}
}

// EnvReplay names a history that TestReplay checks again.
const EnvReplay = "OPENSHELL_LIN_REPLAY"

// problemsShown is how many problems a report shows; one wrong write can make hundreds.
const problemsShown = 5

// Report writes a violation to a new directory that stays, and says where.
func (v *Violation) Report() string {
	dir, err := os.MkdirTemp("", "openshell-linearizability-")
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	problems := v.Verdict.Problems
	fmt.Fprintf(&b, "seed %d, name %s, after %s: %d problems, beginning with\n%s", v.History.Seed, v.History.Name,
		v.After.Round(time.Millisecond), len(problems), strings.Join(problems[:min(len(problems), problemsShown)], "\n"))
	history, page := filepath.Join(dir, "history.json"), filepath.Join(dir, "history.html")
	for path, err := range map[string]error{history: v.History.Save(history), page: v.Verdict.Visualize(page)} {
		if err != nil {
			fmt.Fprintf(&b, "\n%s: %v", path, err)
		}
	}
	fmt.Fprintf(&b, "\nhistory:       %s (check it again with %s=%s)\nvisualization: %s", history, EnvReplay, history, page)
	return b.String()
}
