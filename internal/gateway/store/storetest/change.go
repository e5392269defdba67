package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

var changeCases = map[string]func(*testing.T, store.Store){
	"a write raises the version and nothing else": func(t *testing.T, s store.Store) {
		provider(t, s, "p")
		before := mustCreate(t, s, sandbox("web", labelled(map[string]string{"a": "b"})))
		want := before
		want.ResourceVersion = 2
		want.Annotations = map[string]string{"new": "one"}
		want.Spec = proto.CloneOf(before.Spec)
		want.Spec.Providers = []string{"p"}
		want.Status = &openshellv1.SandboxStatus{Phase: openshellv1.SandboxPhase_SANDBOX_PHASE_READY}
		want.Operation = store.Operation{ID: uuid.NewString(), Kind: store.OperationRun, Since: before.CreatedAt, DueAt: before.CreatedAt}
		got, err := s.ChangeSandbox(testContext(t), named("web"), nil, func(current store.Sandbox, _ time.Time) (store.Change, error) {
			// What never changes is not taken from here.
			return store.Change{Write: &store.Sandbox{
				ID: uuid.NewString(), Workspace: "other", Name: "other", CreatedAt: time.Unix(1, 0), ResourceVersion: 99,
				Labels:      map[string]string{"x": "y"},
				Annotations: want.Annotations, Spec: want.Spec, Status: want.Status, Operation: want.Operation,
			}}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
			t.Errorf("reply (-want +got):\n%s", diff)
		}
		wantRow(t, s, want)
	},
	"a drop deletes the children of one kind": func(t *testing.T, s store.Store) {
		web, other := mustCreate(t, s, sandbox("web")), mustCreate(t, s, sandbox("other"))
		child := func(of store.Sandbox, kind store.Kind) store.Key {
			return mustCreateObject(t, s, store.Object{
				ID: uuid.NewString(), Key: store.Key{Kind: kind, Workspace: of.Workspace, SandboxID: of.ID, Name: "x"},
			}).Key
		}
		dropped, kept := child(web, store.KindSSHSession), []store.Key{child(web, store.KindService), child(other, store.KindSSHSession)}
		if _, err := s.ChangeSandbox(testContext(t), named("web"), nil, func(store.Sandbox, time.Time) (store.Change, error) {
			return store.Change{Drop: store.KindSSHSession}, nil
		}); err != nil {
			t.Fatal(err)
		}
		_, err := s.Object(testContext(t), dropped)
		wantError(t, err, store.ErrObjectNotFound)
		for _, key := range kept {
			if _, err := s.Object(testContext(t), key); err != nil {
				t.Errorf("%+v: %v", key, err)
			}
		}
		wantRow(t, s, web)
	},
	"decide sees the row and the clock": func(t *testing.T, s store.Store) {
		created := mustCreate(t, s, sandbox("web", due(time.Hour)))
		_, err := s.ChangeSandbox(testContext(t), named("web"), nil, func(current store.Sandbox, now time.Time) (store.Change, error) {
			if diff := cmp.Diff(created, current, protocmp.Transform()); diff != "" {
				t.Errorf("decide saw (-created +current):\n%s", diff)
			}
			if now.Before(created.CreatedAt) || now.Sub(created.CreatedAt) > time.Minute {
				t.Errorf("now is %v, created at %v", now, created.CreatedAt)
			}
			return store.Change{}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	},
	"no change leaves the row and its version": func(t *testing.T, s store.Store) {
		created := mustCreate(t, s, sandbox("web", due(time.Hour)))
		got, err := s.ChangeSandbox(testContext(t), named("web"), nil, nothing)
		if diff := cmp.Diff(created, got, protocmp.Transform()); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
		wantRow(t, s, created)
	},
	"decide's error is returned and undoes": func(t *testing.T, s store.Store) {
		created := mustCreate(t, s, sandbox("web"))
		refused := errors.New("refused")
		_, err := s.ChangeSandbox(testContext(t), named("web"), nil, func(current store.Sandbox, _ time.Time) (store.Change, error) {
			return store.Change{Remove: true}, refused
		})
		if err != refused { //nolint:errorlint // as it is
			t.Errorf("error %v", err)
		}
		wantRow(t, s, created)
	},
	"another id is refused before decide": func(t *testing.T, s store.Store) {
		a := mustCreate(t, s, sandbox("web"))
		if _, err := s.ChangeSandbox(testContext(t), store.Target{ID: a.ID}, nil, remove); err != nil {
			t.Fatal(err)
		}
		b := mustCreate(t, s, sandbox("web"))
		for _, p := range []store.Precondition{{ID: a.ID}, {ID: a.ID, ResourceVersion: b.ResourceVersion}, {ID: ""}} {
			_, err := s.ChangeSandbox(testContext(t), named("web"), &p, undecided(t))
			var mismatch *store.IdentityMismatchError
			if !errors.As(err, &mismatch) {
				t.Fatalf("error %v", err)
			}
			want := store.IdentityMismatchError{Workspace: store.DefaultWorkspace, Name: "web", ExpectedID: p.ID, CurrentID: b.ID}
			if *mismatch != want {
				t.Errorf("mismatch %+v, want %+v", *mismatch, want)
			}
			wantRow(t, s, b)
		}
	},
	"the version is for decide to compare": func(t *testing.T, s store.Store) {
		created := mustCreate(t, s, sandbox("web"))
		p := &store.Precondition{ID: created.ID, ResourceVersion: 7}
		_, err := s.ChangeSandbox(testContext(t), named("web"), p, func(current store.Sandbox, _ time.Time) (store.Change, error) {
			return store.Change{Remove: true}, p.CheckVersion(current)
		})
		var conflict *store.VersionConflictError
		if !errors.As(err, &conflict) || conflict.Current != 1 || conflict.Expected != 7 {
			t.Errorf("error %v", err)
		}
		wantRow(t, s, created)
		p.ResourceVersion = 1
		if _, err := s.ChangeSandbox(testContext(t), named("web"), p, func(current store.Sandbox, _ time.Time) (store.Change, error) {
			return store.Change{Remove: true}, p.CheckVersion(current)
		}); err != nil {
			t.Error(err)
		}
		wantGone(t, s, created.ID)
	},
	"an id is found whatever the name is": func(t *testing.T, s store.Store) {
		a, b := mustCreate(t, s, sandbox("a")), mustCreate(t, s, sandbox("b"))
		target := store.Target{Workspace: store.DefaultWorkspace, Name: "b", ID: a.ID}
		got, err := s.ChangeSandbox(testContext(t), target, nil, setPhase(openshellv1.SandboxPhase_SANDBOX_PHASE_READY))
		if err != nil || got.ID != a.ID || got.ResourceVersion != 2 {
			t.Errorf("%+v, %v", got, err)
		}
		wantRow(t, s, b)
	},
	"absent targets": func(t *testing.T, s store.Store) {
		created := mustCreate(t, s, sandbox("web"))
		for _, target := range []store.Target{
			named("other"), named("WEB"), {Workspace: "other", Name: "web"}, {ID: uuid.NewString()}, named("\x00"),
			{Workspace: store.DefaultWorkspace, Name: "web", ID: uuid.NewString()},
		} {
			for _, p := range []*store.Precondition{nil, {ID: created.ID}} {
				_, err := s.ChangeSandbox(testContext(t), target, p, undecided(t))
				wantError(t, err, store.ErrNotFound)
			}
		}
		wantRow(t, s, created)
	},
	"remove returns the row as it was": func(t *testing.T, s store.Store) {
		created := mustCreate(t, s, sandbox("web", labelled(map[string]string{"a": "b"})))
		last, err := s.ChangeSandbox(testContext(t), named("web"), &store.Precondition{ID: created.ID}, remove)
		if diff := cmp.Diff(created, last, protocmp.Transform()); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
		wantGone(t, s, created.ID)
		for _, q := range []store.ListQuery{{Limit: 9}, {Limit: 9, Labels: map[string]string{"a": "b"}}} {
			if page, err := s.ListSandboxes(testContext(t), q); err != nil || len(page.Rows) != 0 {
				t.Errorf("list %v: %v, %v", q, names(page.Rows), err)
			}
		}
		_, err = s.ChangeSandbox(testContext(t), store.Target{ID: created.ID}, nil, undecided(t))
		wantError(t, err, store.ErrNotFound)
	},
	"a cancelled change does nothing": func(t *testing.T, s store.Store) {
		created := mustCreate(t, s, sandbox("web"))
		ctx, cancel := context.WithCancel(testContext(t))
		cancel()
		_, err := s.ChangeSandbox(ctx, named("web"), nil, remove)
		wantError(t, err, context.Canceled)
		wantRow(t, s, created)
	},
	"a panic in decide is its caller's": func(t *testing.T, s store.Store) {
		created := mustCreate(t, s, sandbox("web"))
		func() {
			defer func() {
				if p := recover(); p != "oh" {
					t.Errorf("recovered %v", p)
				}
			}()
			_, _ = s.ChangeSandbox(testContext(t), named("web"), nil, func(store.Sandbox, time.Time) (store.Change, error) { panic("oh") })
		}()
		wantRow(t, s, created)
		if _, err := s.ChangeSandbox(testContext(t), named("web"), nil, remove); err != nil {
			t.Errorf("the next change: %v", err)
		}
	},
}
