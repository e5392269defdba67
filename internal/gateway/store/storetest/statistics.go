package storetest

import (
	"maps"
	"testing"
	"time"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

func statistics(t *testing.T, s store.Store) store.Statistics {
	t.Helper()
	got, err := s.Statistics(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func wantPhases(t *testing.T, s store.Store, want map[openshellv1.SandboxPhase]int) {
	t.Helper()
	if got := statistics(t, s).Sandboxes; !maps.Equal(got, want) {
		t.Errorf("by phase %v, want %v", got, want)
	}
}

var statisticsCases = map[string]func(*testing.T, store.Store){
	"sandboxes are counted by phase": func(t *testing.T, s store.Store) {
		const (
			provisioning = openshellv1.SandboxPhase_SANDBOX_PHASE_PROVISIONING
			ready        = openshellv1.SandboxPhase_SANDBOX_PHASE_READY
		)
		wantPhases(t, s, nil)
		for i := range 3 {
			mustCreate(t, s, sandbox(numbered(i)))
		}
		wantPhases(t, s, map[openshellv1.SandboxPhase]int{provisioning: 3})
		change := func(name string, decide store.Decide) {
			if _, err := s.ChangeSandbox(testContext(t), named(name), nil, decide); err != nil {
				t.Fatal(err)
			}
		}
		change(numbered(0), setPhase(ready))
		wantPhases(t, s, map[openshellv1.SandboxPhase]int{provisioning: 2, ready: 1})
		err := s.Transact(testContext(t), func(tx store.Tx) error {
			current, err := tx.Sandbox(named(numbered(1)), nil)
			if err != nil {
				return err
			}
			written, err := setPhase(ready)(current, time.Time{})
			if err != nil {
				return err
			}
			_, err = tx.WriteSandbox(*written.Write)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		change(numbered(2), remove)
		wantPhases(t, s, map[openshellv1.SandboxPhase]int{ready: 2})
	},
	"work is overdue until it is taken up": func(t *testing.T, s store.Store) {
		mustCreate(t, s, sandbox("never"))
		mustCreate(t, s, sandbox("later", due(time.Hour)))
		if got := statistics(t, s); got.Overdue != 0 || got.LongestOverdue != 0 {
			t.Errorf("nothing is overdue, but %+v", got)
		}
		mustCreate(t, s, sandbox("now", due(overdue)))
		mustCreate(t, s, sandbox("long", due(2*overdue)))
		if got := statistics(t, s); got.Overdue != 2 || got.LongestOverdue < -2*overdue || got.LongestOverdue > -2*overdue+time.Minute {
			t.Errorf("two are overdue, one for two hours, but %+v", got)
		}
		if claimed := claim(t, s, 1, time.Hour); len(claimed) != 1 {
			t.Fatalf("claimed %v", names(claimed))
		}
		if got := statistics(t, s); got.Overdue != 1 || got.LongestOverdue > -overdue+time.Minute {
			t.Errorf("one is overdue, for an hour, but %+v", got)
		}
	},
}
