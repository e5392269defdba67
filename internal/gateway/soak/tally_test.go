package soak

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// mostSurprises bounds how many answers that were not expected are shown.
	mostSurprises = 20
	// often is how many times without success say that an action cannot succeed.
	often = 500
	// lockTimeout is how long a gateway on PostgreSQL waits for a row before it answers UNAVAILABLE, as the contract has it
	// for a lock. On a machine that is busy with other things that may come of one action in so many, and of a few in any case.
	lockTimeout = 5 * time.Second
	oneIn, few  = 1000, 5
)

// tally counts answers.
type tally struct {
	mu        sync.Mutex
	answers   map[string]map[string]int // by action
	surprises []string
}

// count adds an answer to an action, which has to be one that is named for it. It came after a while.
func (t *tally) count(a action, err error, after time.Duration) {
	answer := answerOf(err)
	if answer == codes.Unavailable.String() && after >= lockTimeout {
		answer = lockedOut
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.answers == nil {
		t.answers = map[string]map[string]int{}
	}
	if t.answers[a.name] == nil {
		t.answers[a.name] = map[string]int{}
	}
	t.answers[a.name][answer]++
	if answer != lockedOut && !slices.Contains(a.named, answer) && len(t.surprises) < mostSurprises {
		t.surprises = append(t.surprises, fmt.Sprintf("%s: %s: %v", a.name, answer, err))
	}
}

const lockedOut = "Unavailable after a lock"

// answerOf is the code, and the reason when there is one that the code does not tell already.
func answerOf(err error) string {
	answer := status.Code(err).String()
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok && status.Code(err) != codes.InvalidArgument {
			answer += " " + info.GetReason()
		}
	}
	return answer
}

// report logs the answers and fails the test for those that were not named, and for actions that never did what they are
// for.
func (t *tally) report(tb testing.TB, duration time.Duration) {
	tb.Helper()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, surprise := range t.surprises {
		tb.Errorf("not named by the contract: %s", surprise)
	}
	total, locked := 0, 0
	var table strings.Builder
	for _, a := range mix {
		fmt.Fprintf(&table, "\n%-32s", a.name)
		done := 0
		for _, answer := range slices.Sorted(maps.Keys(t.answers[a.name])) {
			done += t.answers[a.name][answer]
			fmt.Fprintf(&table, " %s: %d", answer, t.answers[a.name][answer])
		}
		locked += t.answers[a.name][lockedOut]
		if total += done; done > often && t.answers[a.name][a.named[0]] == 0 {
			tb.Errorf("%s: never %s", a.name, a.named[0])
		}
	}
	if locked > max(total/oneIn, few) {
		tb.Errorf("%d of %d actions waited for a row in vain", locked, total)
	}
	tb.Logf("%d actions in %s over %d connections%s", total, duration, callers, table.String())
}
