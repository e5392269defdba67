package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/google/uuid"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// overdue is far enough in the past for any clock.
const overdue = -time.Hour

func claim(t *testing.T, s store.Store, limit int, lease time.Duration) []store.Sandbox {
	t.Helper()
	claimed, err := s.ClaimDue(testContext(t), limit, lease)
	if err != nil {
		t.Fatal(err)
	}
	return claimed
}

func nextDue(t *testing.T, s store.Store) (time.Duration, bool) {
	t.Helper()
	next, ok, err := s.NextDue(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	return next, ok
}

var dueCases = map[string]func(*testing.T, store.Store){
	"a claim takes what is due, for a lease": func(t *testing.T, s store.Store) {
		mustCreate(t, s, sandbox("never"))
		mustCreate(t, s, sandbox("later", due(time.Hour)))
		created := mustCreate(t, s, sandbox("now", due(overdue)))
		claimed := claim(t, s, 10, time.Hour)
		if len(claimed) != 1 || claimed[0].ID != created.ID {
			t.Fatalf("claimed %v", names(claimed))
		}
		got := claimed[0]
		if left := time.Until(got.Operation.DueAt); left < 59*time.Minute || left > 61*time.Minute {
			t.Errorf("put off by %v", left)
		}
		got.Operation.DueAt = created.Operation.DueAt
		if diff := cmp.Diff(created, got, protocmp.Transform()); diff != "" { // a claim is no change of the sandbox
			t.Errorf("the claimed row (-created +claimed)\n%s", diff)
		}
		if again := claim(t, s, 10, time.Hour); len(again) != 0 {
			t.Errorf("claimed twice: %v", names(again))
		}
	},
	"a lease that runs out is claimed anew": func(t *testing.T, s store.Store) {
		mustCreate(t, s, sandbox("web", due(overdue)))
		for range 3 {
			if claimed := claim(t, s, 10, overdue); len(claimed) != 1 {
				t.Fatalf("claimed %v", names(claimed))
			}
		}
	},
	"the longest due go first": func(t *testing.T, s store.Store) {
		mustCreate(t, s, sandbox("third", due(overdue)))
		mustCreate(t, s, sandbox("first", due(3*overdue)))
		mustCreate(t, s, sandbox("second", due(2*overdue)))
		var got []string
		for range 3 {
			got = append(got, names(claim(t, s, 1, time.Hour))...)
		}
		if !slices.Equal(got, []string{"first", "second", "third"}) {
			t.Errorf("claimed %v", got)
		}
	},
	"claims at the same time share the work": func(t *testing.T, s store.Store) {
		const n = 40
		for i := range n {
			mustCreate(t, s, sandbox(numbered(i), due(overdue)))
		}
		claims := make(chan []store.Sandbox)
		for range 8 {
			go func() {
				claimed, err := s.ClaimDue(testContext(t), 10, time.Hour)
				if err != nil {
					t.Error(err)
				}
				claims <- claimed
			}()
		}
		seen := map[string]int{}
		for range 8 {
			for _, s := range <-claims {
				seen[s.ID]++
			}
		}
		for _, s := range claim(t, s, n, time.Hour) { // what they left to each other
			seen[s.ID]++
		}
		for id, times := range seen {
			if times != 1 {
				t.Errorf("sandbox %s was claimed %d times", id, times)
			}
		}
		if len(seen) != n {
			t.Errorf("%d of %d were claimed", len(seen), n)
		}
	},
	"reschedule": func(t *testing.T, s store.Store) {
		created := mustCreate(t, s, sandbox("web", due(overdue)))
		reschedule := func(id, operationID string, after time.Duration) {
			t.Helper()
			if err := s.Reschedule(testContext(t), id, operationID, after); err != nil {
				t.Error(err)
			}
		}
		reschedule(created.ID, uuid.NewString(), time.Hour) // another operation
		reschedule(uuid.NewString(), created.Operation.ID, time.Hour)
		wantRow(t, s, created)
		reschedule(created.ID, created.Operation.ID, time.Hour)
		if claimed := claim(t, s, 10, time.Hour); len(claimed) != 0 {
			t.Errorf("claimed %v", names(claimed))
		}
		reschedule(created.ID, created.Operation.ID, 0)
		claimed := claim(t, s, 10, time.Hour)
		if len(claimed) != 1 || claimed[0].ResourceVersion != 1 {
			t.Errorf("claimed %v", claimed)
		}
	},
	"next due": func(t *testing.T, s store.Store) {
		if next, ok := nextDue(t, s); ok {
			t.Errorf("an empty store has work in %v", next)
		}
		mustCreate(t, s, sandbox("never"))
		if next, ok := nextDue(t, s); ok {
			t.Errorf("work in %v", next)
		}
		mustCreate(t, s, sandbox("two", due(2*time.Hour)))
		mustCreate(t, s, sandbox("one", due(time.Hour)))
		if next, ok := nextDue(t, s); !ok || next < 59*time.Minute || next > time.Hour {
			t.Errorf("next due in %v (%v)", next, ok)
		}
		mustCreate(t, s, sandbox("now", due(overdue)))
		if next, ok := nextDue(t, s); !ok || next != 0 {
			t.Errorf("next due in %v (%v)", next, ok)
		}
	},
	"a change ends a claim": func(t *testing.T, s store.Store) {
		created := mustCreate(t, s, sandbox("web", due(overdue)))
		if claimed := claim(t, s, 1, overdue); len(claimed) != 1 {
			t.Fatal(claimed)
		}
		if _, err := s.ChangeSandbox(testContext(t), named("web"), nil, func(current store.Sandbox, _ time.Time) (store.Change, error) {
			current.Operation = store.Operation{}
			return store.Change{Write: &current}, nil
		}); err != nil {
			t.Fatal(err)
		}
		if err := s.Reschedule(testContext(t), created.ID, created.Operation.ID, overdue); err != nil {
			t.Fatal(err)
		}
		if next, ok := nextDue(t, s); ok {
			t.Errorf("work in %v", next)
		}
	},
}
