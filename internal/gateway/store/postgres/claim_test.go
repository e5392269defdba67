package postgres

import (
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/pgtest"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// dueRow has an operation that is due at once.
func dueRow(id, name string) store.Build {
	return func(now time.Time) store.Sandbox {
		return store.Sandbox{
			ID: id, Name: name, Spec: &openshellv1.SandboxSpec{}, Status: &openshellv1.SandboxStatus{},
			Operation: store.Operation{ID: uuid.NewString(), Kind: store.OperationRun, Since: now, DueAt: now},
		}
	}
}

// TestClaimsOfSeveralGateways has stores of their own claim the same work at the same time.
func TestClaimsOfSeveralGateways(t *testing.T) {
	const claimants, work = 4, 60
	url := pgtest.NewDatabase(t)
	stores := make([]store.Store, claimants)
	for i := range stores {
		stores[i] = openStore(t, url)
	}
	for range work {
		id := uuid.NewString()
		if _, err := stores[0].CreateSandbox(t.Context(), store.DefaultWorkspace, dueRow(id, "s-"+id[:8])); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	claims := map[string]int{}
	var claiming sync.WaitGroup
	for _, s := range stores {
		claiming.Go(func() {
			for {
				claimed, err := s.ClaimDue(t.Context(), 3, time.Hour)
				if err != nil {
					t.Error(err)
					return
				}
				if len(claimed) > 3 {
					t.Errorf("a claim of 3 took %d", len(claimed))
				}
				if len(claimed) == 0 {
					if _, due, err := s.NextDue(t.Context()); err != nil || !due {
						t.Errorf("nothing will be due any more: %v", err)
					}
					return
				}
				mu.Lock()
				for _, row := range claimed {
					claims[row.ID]++
				}
				mu.Unlock()
			}
		})
	}
	claiming.Wait()
	if len(claims) != work {
		t.Errorf("%d of %d were claimed", len(claims), work)
	}
	for id, n := range claims {
		if n != 1 {
			t.Errorf("%s was claimed %d times within its lease", id, n)
		}
	}
}

// TestClaimPassesOverWhatIsHeld: who is at a row needs no help with it, and the others go on without waiting.
func TestClaimPassesOverWhatIsHeld(t *testing.T) {
	url := pgtest.NewDatabase(t)
	s := openStore(t, url)
	var ids []string
	for _, name := range []string{"held", "free"} {
		ids = append(ids, uuid.NewString())
		if _, err := s.CreateSandbox(t.Context(), store.DefaultWorkspace, dueRow(ids[len(ids)-1], name)); err != nil {
			t.Fatal(err)
		}
	}
	session := dial(t, url)
	exec(t, session, "BEGIN")
	exec(t, session, "SELECT FROM sandboxes WHERE id = $1 FOR UPDATE", ids[0])
	claimed, err := s.ClaimDue(t.Context(), 10, time.Hour)
	if err != nil || len(claimed) != 1 || claimed[0].ID != ids[1] {
		t.Errorf("the claim took %v, %v, want what is free", claimed, err)
	}
	exec(t, session, "COMMIT")
	claimed, err = s.ClaimDue(t.Context(), 10, time.Hour)
	if err != nil || len(claimed) != 1 || claimed[0].ID != ids[0] {
		t.Errorf("the next claim took %v, %v, want what was held", claimed, err)
	}
}

// TestLeaseOfTheDeadRunsOut has a store claim work and end, and another take it over.
func TestLeaseOfTheDeadRunsOut(t *testing.T) {
	const lease = 200 * time.Millisecond
	url := pgtest.NewDatabase(t)
	dead, err := Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	heir := openStore(t, url)
	id := uuid.NewString()
	if _, err := dead.CreateSandbox(t.Context(), store.DefaultWorkspace, dueRow(id, "web")); err != nil {
		t.Fatal(err)
	}
	first, err := dead.ClaimDue(t.Context(), 1, lease)
	if err != nil || len(first) != 1 {
		t.Fatalf("the first claim took %v, %v", first, err)
	}
	if err := dead.Close(); err != nil {
		t.Fatal(err)
	}
	await(t, dial(t, url), "NOT EXISTS (SELECT FROM sandboxes WHERE due_at > "+dialect.Now+")")
	second, err := heir.ClaimDue(t.Context(), 1, time.Hour)
	if err != nil || len(second) != 1 || second[0].Operation.ID != first[0].Operation.ID || second[0].ResourceVersion != 1 {
		t.Errorf("the claim after the lease took %v, %v", second, err)
	}
}

// TestStartLeavesTheLeasesOfOthers: a gateway that starts may not take for left behind what another is at.
func TestStartLeavesTheLeasesOfOthers(t *testing.T) {
	url := pgtest.NewDatabase(t)
	working := openStore(t, url)
	if _, err := working.CreateSandbox(t.Context(), store.DefaultWorkspace, dueRow(uuid.NewString(), "web")); err != nil {
		t.Fatal(err)
	}
	if claimed, err := working.ClaimDue(t.Context(), 1, time.Hour); err != nil || len(claimed) != 1 {
		t.Fatalf("the claim took %v, %v", claimed, err)
	}
	if claimed, err := openStore(t, url).ClaimDue(t.Context(), 1, time.Hour); err != nil || len(claimed) != 0 {
		t.Errorf("the one that started took %v, %v", claimed, err)
	}
}
