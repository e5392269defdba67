package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

const (
	raceRounds   = 150
	raceDeleters = 4 // of those who mean the sandbox of the round
	raceStale    = 4 // of those who mean one that is gone
	raceWriters  = 3
	raceWrites   = 4 // of each writer
)

// race is one round: everybody is after one name, on which A is replaced by B meanwhile.
type race struct {
	t *testing.T
	s store.Store
	a store.Sandbox

	mu      sync.Mutex
	removed int                      // how many were told that they removed A
	written map[string]store.Sandbox // the latest row of each sandbox that a writer was given
	writes  map[string]int           // how many writes each sandbox has had
}

var raceCases = map[string]func(*testing.T, store.Store){
	"conditional deletes, replacements and writes race on one name": func(t *testing.T, s store.Store) {
		gone := []string{}
		for round := range raceRounds {
			a := mustCreate(t, s, sandbox("web"))
			r := &race{t: t, s: s, a: a, written: map[string]store.Sandbox{}, writes: map[string]int{}}
			b := r.run(gone)
			r.check(b)
			if t.Failed() {
				t.Fatalf("in round %d", round)
			}
			if _, err := s.ChangeSandbox(testContext(t), store.Target{ID: b.ID}, &store.Precondition{ID: b.ID}, remove); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			gone = append(gone, a.ID, b.ID)
		}
	},
}

// run lets all loose and returns B as it was made.
func (r *race) run(gone []string) (b store.Sandbox) {
	start := make(chan struct{})
	var all sync.WaitGroup
	loose := func(fn func()) {
		all.Go(func() {
			<-start
			fn()
		})
	}
	for range raceDeleters {
		loose(r.removeA)
	}
	loose(func() { b = r.replace() })
	for range raceStale {
		if len(gone) > 0 {
			loose(func() { r.removeGone(gone[rand.N(len(gone))]) })
		}
	}
	for range raceWriters {
		loose(r.writeAnybody)
	}
	close(start)
	all.Wait()
	return b
}

// removeA deletes A by name, on condition that it is A.
func (r *race) removeA() {
	_, err := r.s.ChangeSandbox(testContext(r.t), named("web"), &store.Precondition{ID: r.a.ID}, remove)
	var mismatch *store.IdentityMismatchError
	switch {
	case err == nil:
		r.mu.Lock()
		r.removed++
		r.mu.Unlock()
	case errors.As(err, &mismatch):
		if mismatch.CurrentID == r.a.ID {
			r.t.Error("told apart from itself")
		}
	case !errors.Is(err, store.ErrNotFound):
		r.t.Error(err)
	}
}

// removeGone means a sandbox that is gone for long, now and then with the very version that the holder of its name has.
func (r *race) removeGone(id string) {
	p := &store.Precondition{ID: id}
	if holder, err := r.s.Sandbox(testContext(r.t), store.DefaultWorkspace, "web"); err == nil {
		p.ResourceVersion = holder.ResourceVersion
	}
	_, err := r.s.ChangeSandbox(testContext(r.t), named("web"), p, remove)
	var mismatch *store.IdentityMismatchError
	if !errors.As(err, &mismatch) && !errors.Is(err, store.ErrNotFound) {
		r.t.Errorf("the delete of a sandbox that is gone: %v", err)
	}
}

// replace deletes A, as others do, and then makes B as soon as the name is free.
func (r *race) replace() store.Sandbox {
	r.removeA()
	build := sandbox("web")
	for {
		b, err := r.s.CreateSandbox(testContext(r.t), store.DefaultWorkspace, build)
		if err == nil || !errors.Is(err, store.ErrAlreadyExists) {
			if err != nil {
				r.t.Error(err)
			}
			return b
		}
	}
}

// writeAnybody writes the status of whoever has the name.
func (r *race) writeAnybody() {
	for n := range raceWrites {
		got, err := r.s.ChangeSandbox(testContext(r.t), named("web"), nil, func(current store.Sandbox, _ time.Time) (store.Change, error) {
			current.Status = proto.CloneOf(current.Status)
			current.Status.AgentPod = fmt.Sprintf("%s after %d, write %d", current.ID, current.ResourceVersion, n)
			return store.Change{Write: &current}, nil
		})
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			r.t.Error(err)
			return
		}
		r.mu.Lock()
		r.writes[got.ID]++
		if got.ResourceVersion > r.written[got.ID].ResourceVersion {
			r.written[got.ID] = got
		}
		r.mu.Unlock()
	}
}

// check holds the outcome to what must be: A was removed once, B is there, and B has seen the writes it was given and
// nothing else.
func (r *race) check(b store.Sandbox) {
	r.t.Helper()
	if r.removed != 1 {
		r.t.Errorf("%d were told that they removed A", r.removed)
	}
	wantGone(r.t, r.s, r.a.ID)
	want := b
	if last, ok := r.written[b.ID]; ok {
		want = last
	}
	wantRow(r.t, r.s, want)
	if want.ResourceVersion != 1+uint64(r.writes[b.ID]) {
		r.t.Errorf("B is at version %d after %d writes", want.ResourceVersion, r.writes[b.ID])
	}
	for id := range r.writes {
		if id != r.a.ID && id != b.ID {
			r.t.Errorf("a write went to sandbox %s", id)
		}
	}
}
