// Package storetest holds every implementation of [store.Store] to what the interface says, by named cases. Whatever a
// database does in its own way is for its own tests.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// Run runs every case as a subtest on a store of its own, which open opens empty and closes with the test.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	t.Helper()
	for _, group := range []map[string]func(*testing.T, store.Store){
		workspaceCases, createCases, changeCases, listCases, dueCases, raceCases,
		objectCases, transactCases, referenceCases, statisticsCases, requestCases,
	} {
		for name, run := range group {
			t.Run(name, func(t *testing.T) { run(t, open(t)) })
		}
	}
}

// timeout bounds a case, so that a lock that is never released fails it.
const timeout = time.Minute

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	t.Cleanup(cancel)
	return ctx
}

// sandbox is a new row in PROVISIONING, without an operation unless edit gives it one.
func sandbox(name string, edit ...func(s *store.Sandbox, now time.Time)) store.Build {
	id := uuid.NewString()
	return func(now time.Time) store.Sandbox {
		s := store.Sandbox{
			ID: id, Name: name,
			Spec:   &openshellv1.SandboxSpec{LogLevel: "info", Environment: map[string]string{"A": "b"}},
			Status: &openshellv1.SandboxStatus{Phase: openshellv1.SandboxPhase_SANDBOX_PHASE_PROVISIONING},
		}
		for _, e := range edit {
			e(&s, now)
		}
		return s
	}
}

func labelled(labels map[string]string) func(*store.Sandbox, time.Time) {
	return func(s *store.Sandbox, _ time.Time) { s.Labels = labels }
}

// due gives a row an operation that falls due after a while.
func due(after time.Duration) func(*store.Sandbox, time.Time) {
	operationID := uuid.NewString()
	return func(s *store.Sandbox, now time.Time) {
		s.Operation = store.Operation{ID: operationID, Kind: store.OperationRun, Since: now, DueAt: now.Add(after)}
	}
}

func mustCreate(t *testing.T, s store.Store, build store.Build) store.Sandbox {
	t.Helper()
	created, err := s.CreateSandbox(testContext(t), store.DefaultWorkspace, build)
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	return created
}

func named(name string) store.Target {
	return store.Target{Workspace: store.DefaultWorkspace, Name: name}
}

// setPhase writes a phase.
func setPhase(phase openshellv1.SandboxPhase) store.Decide {
	return func(current store.Sandbox, _ time.Time) (store.Change, error) {
		current.Status = proto.CloneOf(current.Status)
		current.Status.Phase = phase
		return store.Change{Write: &current}, nil
	}
}

func remove(store.Sandbox, time.Time) (store.Change, error) { return store.Change{Remove: true}, nil }

func nothing(store.Sandbox, time.Time) (store.Change, error) { return store.Change{}, nil }

// undecided fails the test when it is asked.
func undecided(t *testing.T) store.Decide {
	return func(current store.Sandbox, _ time.Time) (store.Change, error) {
		t.Errorf("decide was asked about sandbox %s", current.ID)
		return store.Change{}, nil
	}
}

// wantRow holds the whole row with an id to what it should be, its version included.
func wantRow(t *testing.T, s store.Store, want store.Sandbox) {
	t.Helper()
	got, err := s.SandboxByID(testContext(t), want.ID)
	if err != nil {
		t.Errorf("read sandbox %s: %v", want.ID, err)
		return
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("row of sandbox %s (-want +got):\n%s", want.ID, diff)
	}
}

func wantGone(t *testing.T, s store.Store, id string) {
	t.Helper()
	if got, err := s.SandboxByID(testContext(t), id); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("sandbox %s is there: %v (%v)", id, got, err)
	}
}

func wantError(t *testing.T, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("error %v, want %v", got, want)
	}
}

func names(sandboxes []store.Sandbox) []string {
	var all []string
	for _, s := range sandboxes {
		all = append(all, s.Name)
	}
	return all
}

func numbered(n int) string { return fmt.Sprintf("s%04d", n) }
