package storetest

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

func createWorkspace(t *testing.T, s store.Store, name string, labels map[string]string) (w store.Workspace, err error) {
	t.Helper()
	err = s.Transact(testContext(t), func(tx store.Tx) (err error) {
		w, err = tx.CreateWorkspace(store.Workspace{ID: uuid.NewString(), Name: name, Labels: labels})
		return err
	})
	return w, err
}

func deleteTeam(t *testing.T, s store.Store) (holds []store.Kind, err error) {
	t.Helper()
	err = s.Transact(testContext(t), func(tx store.Tx) (err error) {
		holds, err = tx.DeleteWorkspace("team")
		return err
	})
	return holds, err
}

func mustCreateWorkspace(t *testing.T, s store.Store, name string, labels map[string]string) store.Workspace {
	t.Helper()
	w, err := createWorkspace(t, s, name, labels)
	if err != nil {
		t.Fatalf("create workspace %s: %v", name, err)
	}
	return w
}

func workspaceNames(t *testing.T, s store.Store, q store.WorkspaceQuery) []string {
	t.Helper()
	var all []string
	for {
		page, err := s.ListWorkspaces(testContext(t), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range page.Rows {
			all = append(all, w.Name)
		}
		if !page.More {
			return all
		}
		last := page.Rows[len(page.Rows)-1]
		q.After = &store.Cursor{CreatedAt: last.CreatedAt, Name: last.Name, ID: last.ID}
	}
}

var workspaceCases = map[string]func(*testing.T, store.Store){
	"default workspace": func(t *testing.T, s store.Store) {
		w, err := s.Workspace(testContext(t), store.DefaultWorkspace)
		if err != nil {
			t.Fatal(err)
		}
		if uuid.Validate(w.ID) != nil || w.Name != "default" || w.ResourceVersion != 1 || w.CreatedAt.IsZero() {
			t.Errorf("workspace %+v", w)
		}
	},
	"unknown workspace": func(t *testing.T, s store.Store) {
		for _, name := range []string{"", "Default", "default ", "other", "\x00"} {
			_, err := s.Workspace(testContext(t), name)
			wantError(t, err, store.ErrWorkspaceNotFound)
		}
	},
	"a workspace keeps everything": func(t *testing.T, s store.Store) {
		created := mustCreateWorkspace(t, s, "team", map[string]string{"a": "b", "empty": ""})
		if created.ResourceVersion != 1 || created.CreatedAt.IsZero() || created.Terminating() {
			t.Errorf("created %+v", created)
		}
		got, err := s.Workspace(testContext(t), "team")
		if diff := cmp.Diff(created, got); diff != "" || err != nil {
			t.Errorf("%v (-created +read)\n%s", err, diff)
		}
		_, err = createWorkspace(t, s, "team", nil)
		wantError(t, err, store.ErrAlreadyExists)
	},
	"workspaces are listed oldest first, by member and by labels": func(t *testing.T, s store.Store) {
		for name, labels := range map[string]map[string]string{"c": {"x": "1"}, "a": {"x": "1", "y": "2"}, "b": nil} {
			mustCreateWorkspace(t, s, name, labels)
		}
		all := workspaceNames(t, s, store.WorkspaceQuery{Limit: 100})
		if len(all) != 4 || all[0] != store.DefaultWorkspace {
			t.Fatalf("all: %v", all)
		}
		mustCreateObject(t, s, store.Object{Key: store.Key{Kind: store.KindMember, Workspace: "a", Name: "ann"}})
		mustCreateObject(t, s, store.Object{Key: store.Key{Kind: store.KindMember, Workspace: "c", Name: "ann"}})
		mustCreateObject(t, s, store.Object{Key: store.Key{Kind: store.KindProvider, Workspace: "b", Name: "ann"}})
		for _, tc := range []struct {
			query store.WorkspaceQuery
			want  []string
		}{
			{store.WorkspaceQuery{}, all},
			{store.WorkspaceQuery{Member: "ann"}, only(all, "a", "c")},
			{store.WorkspaceQuery{Member: "Ann"}, nil},
			{store.WorkspaceQuery{Member: "a\x00"}, nil},
			{store.WorkspaceQuery{Labels: map[string]string{"x": "1"}}, only(all, "a", "c")},
			{store.WorkspaceQuery{Labels: map[string]string{"x": "1", "y": "2"}}, []string{"a"}},
			{store.WorkspaceQuery{Labels: map[string]string{"x": "2"}}, nil},
			{store.WorkspaceQuery{Member: "ann", Labels: map[string]string{"y": "2"}}, []string{"a"}},
		} {
			for _, tc.query.Limit = range []int{1, 2, 100} {
				if got := workspaceNames(t, s, tc.query); !slices.Equal(got, tc.want) {
					t.Errorf("%+v: %v, want %v", tc.query, got, tc.want)
				}
			}
		}
	},
	"an empty workspace is deleted with its members": func(t *testing.T, s store.Store) {
		before := mustCreateWorkspace(t, s, "team", map[string]string{"a": "b"})
		member := mustCreateObject(t, s, store.Object{Key: store.Key{Kind: store.KindMember, Workspace: "team", Name: "ann"}})
		holds, err := deleteTeam(t, s)
		if err != nil || len(holds) != 0 {
			t.Fatalf("delete: %v, %v", holds, err)
		}
		_, err = s.Workspace(testContext(t), "team")
		wantError(t, err, store.ErrWorkspaceNotFound)
		_, err = deleteTeam(t, s)
		wantError(t, err, store.ErrWorkspaceNotFound)
		after := mustCreateWorkspace(t, s, "team", nil)
		if after.ID == before.ID {
			t.Error("the id was used again")
		}
		_, err = s.Object(testContext(t), member.Key)
		wantError(t, err, store.ErrObjectNotFound)
	},
	"a workspace that holds something terminates": func(t *testing.T, s store.Store) {
		mustCreateWorkspace(t, s, "team", nil)
		held := mustCreateObject(t, s, store.Object{Key: store.ProviderKey("team", "p")})
		mustCreateObject(t, s, store.Object{Key: store.Key{Kind: store.KindMember, Workspace: "team", Name: "ann"}})
		web, err := s.CreateSandbox(testContext(t), "team", sandbox("web"))
		if err != nil {
			t.Fatal(err)
		}
		var first store.Workspace
		for n := range 2 {
			holds, err := deleteTeam(t, s)
			if err != nil || !slices.Equal(holds, []store.Kind{store.KindProvider, store.KindSandbox}) {
				t.Fatalf("delete: %v, %v", holds, err)
			}
			w, err := s.Workspace(testContext(t), "team")
			if err != nil || !w.Terminating() || w.ResourceVersion != uint64(n)+2 {
				t.Fatalf("workspace %+v, %v", w, err)
			}
			if n == 0 {
				first = w
			} else if !w.TerminatingSince.Equal(first.TerminatingSince) {
				t.Errorf("terminating since %v, before %v", w.TerminatingSince, first.TerminatingSince)
			}
		}

		_, err = s.CreateSandbox(testContext(t), "team", sandbox("new"))
		wantError(t, err, store.ErrWorkspaceTerminating)
		err = s.Transact(testContext(t), func(tx store.Tx) error {
			_, err := tx.CreateObject(store.Object{ID: uuid.NewString(), Key: store.ProviderKey("team", "new")})
			return err
		})
		wantError(t, err, store.ErrWorkspaceTerminating)
		err = s.Transact(testContext(t), func(tx store.Tx) error { _, err := tx.Active("team"); return err })
		wantError(t, err, store.ErrWorkspaceTerminating)

		// What is there can be changed and removed.
		if _, err := s.ChangeSandbox(testContext(t), store.Target{ID: web.ID}, nil, remove); err != nil {
			t.Error(err)
		}
		mustTransact(t, s, func(tx store.Tx) error {
			held, err := tx.LockObject(held.Key)
			if err == nil {
				held, err = tx.WriteObject(held)
			}
			if err != nil {
				return err
			}
			return tx.DeleteObject(held)
		})
		if holds, err := deleteTeam(t, s); err != nil || len(holds) != 0 {
			t.Errorf("delete of what is empty by now: %v, %v", holds, err)
		}
	},
	"an active workspace stays so until the end of a transaction": func(t *testing.T, s store.Store) {
		for range 10 {
			mustCreateWorkspace(t, s, "team", nil)
			p := mustCreateObject(t, s, store.Object{Key: store.ProviderKey("team", "p")})
			var started sync.Once
			begun := make(chan struct{})
			var last time.Time
			atOnce(
				func() {
					mustTransact(t, s, func(tx store.Tx) error {
						if _, err := tx.Active("team"); err != nil {
							return err
						}
						started.Do(func() { close(begun) })
						for range 20 {
							now, err := tx.Now()
							if err != nil {
								return err
							}
							last = now
						}
						return nil
					})
				},
				func() {
					<-begun
					if _, err := deleteTeam(t, s); err != nil {
						t.Error(err)
					}
				},
			)
			w, err := s.Workspace(testContext(t), "team")
			if err != nil || !w.Terminating() || w.TerminatingSince.Before(last) {
				t.Fatalf("terminating since %v, but active at %v (%v)", w.TerminatingSince, last, err)
			}
			if err := drop(t, s, p.Key); err != nil {
				t.Fatal(err)
			}
			if _, err := deleteTeam(t, s); err != nil {
				t.Fatal(err)
			}
		}
	},
	"deleting a workspace races with creates in it": func(t *testing.T, s store.Store) {
		for range 25 {
			mustCreateWorkspace(t, s, "team", nil)
			var mu sync.Mutex
			var created int
			var holds []store.Kind
			atOnce(
				func() {
					kinds, err := deleteTeam(t, s)
					if err != nil {
						t.Error(err)
					}
					holds = kinds
				},
				func() {
					_, err := s.CreateSandbox(testContext(t), "team", sandbox("web"))
					mu.Lock()
					defer mu.Unlock()
					created += refusedOr(t, err)
				},
				func() {
					err := s.Transact(testContext(t), func(tx store.Tx) error {
						_, err := tx.CreateObject(store.Object{ID: uuid.NewString(), Key: store.ProviderKey("team", "p")})
						return err
					})
					mu.Lock()
					defer mu.Unlock()
					created += refusedOr(t, err)
				},
			)
			w, err := s.Workspace(testContext(t), "team")
			switch {
			case errors.Is(err, store.ErrWorkspaceNotFound):
				if created > 0 || len(holds) > 0 {
					t.Fatalf("deleted, although %d were created in it, and it held %v", created, holds)
				}
				continue
			case err != nil || !w.Terminating() || created == 0 || len(holds) == 0:
				t.Fatalf("workspace %+v (%v), %d created, held %v", w, err, created, holds)
			}
			clear := func(tx store.Tx) error {
				p, err := tx.LockObject(store.ProviderKey("team", "p"))
				if errors.Is(err, store.ErrObjectNotFound) {
					return nil
				}
				if err != nil {
					return err
				}
				return tx.DeleteObject(p)
			}
			mustTransact(t, s, clear)
			if _, err := s.ChangeSandbox(testContext(t), store.Target{Workspace: "team", Name: "web"}, nil, remove); err != nil && !errors.Is(err, store.ErrNotFound) {
				t.Fatal(err)
			}
			if holds, err := deleteTeam(t, s); err != nil || len(holds) > 0 {
				t.Fatal(holds, err)
			}
		}
	},
}

// refusedOr counts 1 for a create that was not refused because of its workspace.
func refusedOr(t *testing.T, err error) int {
	switch {
	case err == nil:
		return 1
	case !errors.Is(err, store.ErrWorkspaceNotFound) && !errors.Is(err, store.ErrWorkspaceTerminating):
		t.Error(err)
	}
	return 0
}

// atOnce runs all at once and waits for them.
func atOnce(all ...func()) {
	start := make(chan struct{})
	var running sync.WaitGroup
	for _, fn := range all {
		running.Go(func() {
			<-start
			fn()
		})
	}
	close(start)
	running.Wait()
}

// only are those of a list that are named.
func only(all []string, names ...string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(name string) bool { return !slices.Contains(names, name) })
}

func mustTransact(t *testing.T, s store.Store, fn func(store.Tx) error) {
	t.Helper()
	if err := s.Transact(testContext(t), fn); err != nil {
		t.Fatal(err)
	}
}

// mustCreateObject gives an object an id, if it has none, and stores it.
func mustCreateObject(t *testing.T, s store.Store, o store.Object, needs ...store.Object) store.Object {
	t.Helper()
	if o.ID == "" {
		o.ID = uuid.NewString()
	}
	var created store.Object
	mustTransact(t, s, func(tx store.Tx) (err error) {
		created, err = tx.CreateObject(o, needs...)
		return err
	})
	return created
}

// withProviders refers to providers.
func withProviders(names ...string) func(*store.Sandbox, time.Time) {
	return func(s *store.Sandbox, _ time.Time) { s.Spec.Providers = names }
}
