package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

func walkObjects(t *testing.T, s store.Store, q store.ObjectQuery) []string {
	t.Helper()
	var all []string
	for {
		page, err := s.ListObjects(testContext(t), q)
		if err != nil {
			t.Fatal(err)
		}
		var again []store.Object
		mustTransact(t, s, func(tx store.Tx) (err error) { again, err = tx.ListObjects(q); return err })
		if diff := cmp.Diff(page.Rows, again); diff != "" {
			t.Errorf("the list in a transaction is another (-without +within)\n%s", diff)
		}
		for _, o := range page.Rows {
			all = append(all, o.Workspace+"/"+o.Name)
		}
		if !page.More {
			return all
		}
		last := page.Rows[len(page.Rows)-1]
		q.After = &store.Cursor{CreatedAt: last.CreatedAt, Name: last.Name, Workspace: last.Workspace, ID: last.ID}
	}
}

var objectCases = map[string]func(*testing.T, store.Store){
	"an object keeps everything": func(t *testing.T, s store.Store) {
		web := mustCreate(t, s, sandbox("web"))
		for _, key := range []store.Key{
			store.ProviderKey(store.DefaultWorkspace, "p"),
			{Kind: store.KindProfile, Name: "platform-wide"},
			{Kind: store.KindProviderReceipt, Workspace: store.DefaultWorkspace, SandboxID: web.ID, Name: "child"},
			{Kind: store.KindProviderReceipt, Workspace: store.DefaultWorkspace, SandboxID: web.ID, Name: ""},
		} {
			created := mustCreateObject(t, s, store.Object{Key: key, Labels: map[string]string{"a": "b", "empty": ""}, Payload: []byte("\x00any\xffthing")})
			if created.ResourceVersion != 1 || created.CreatedAt.IsZero() {
				t.Errorf("created %+v", created)
			}
			for name, read := range map[string]func() (store.Object, error){
				"by key": func() (store.Object, error) { return s.Object(testContext(t), key) },
				"by id":  func() (store.Object, error) { return s.ObjectByID(testContext(t), created.ID) },
				"shared": func() (o store.Object, err error) {
					mustTransact(t, s, func(tx store.Tx) error { o, err = tx.Object(key); return nil })
					return o, err
				},
				"locked": func() (o store.Object, err error) {
					mustTransact(t, s, func(tx store.Tx) error { o, err = tx.LockObject(key); return nil })
					return o, err
				},
			} {
				got, err := read()
				if diff := cmp.Diff(created, got); diff != "" || err != nil {
					t.Errorf("%s: %v (-created +read)\n%s", name, err, diff)
				}
			}
		}
	},
	"a key is taken once": func(t *testing.T, s store.Store) {
		mustCreateWorkspace(t, s, "team", nil)
		a, b := mustCreate(t, s, sandbox("a")), mustCreate(t, s, sandbox("b"))
		ids := map[store.Key]string{}
		for _, key := range []store.Key{
			store.ProviderKey(store.DefaultWorkspace, "x"), store.ProviderKey("team", "x"), store.ProviderKey(store.DefaultWorkspace, "X"),
			{Kind: store.KindProfile, Workspace: store.DefaultWorkspace, Name: "x"}, {Kind: store.KindProfile, Name: "x"},
			{Kind: store.KindProvider, Workspace: store.DefaultWorkspace, SandboxID: a.ID, Name: "x"},
			{Kind: store.KindProvider, Workspace: store.DefaultWorkspace, SandboxID: b.ID, Name: "x"},
			store.ProviderKey(store.DefaultWorkspace, "straße"), store.ProviderKey(store.DefaultWorkspace, "strasse"),
			store.ProviderKey(store.DefaultWorkspace, strings.Repeat("x", 253)),
		} {
			ids[key] = mustCreateObject(t, s, store.Object{Key: key}).ID
			err := s.Transact(testContext(t), func(tx store.Tx) error {
				_, err := tx.CreateObject(store.Object{ID: uuid.NewString(), Key: key, Labels: map[string]string{"stranger": "yes"}})
				return err
			})
			wantError(t, err, store.ErrAlreadyExists)
		}
		for key, id := range ids {
			if got, err := s.Object(testContext(t), key); err != nil || got.ID != id {
				t.Errorf("%+v has id %s, want %s (%v)", key, got.ID, id, err)
			}
		}
	},
	"absent objects": func(t *testing.T, s store.Store) {
		there := mustCreateObject(t, s, store.Object{Key: store.ProviderKey(store.DefaultWorkspace, "x")})
		for _, key := range []store.Key{
			{}, store.ProviderKey("", "x"), store.ProviderKey(store.DefaultWorkspace, "y"), store.ProviderKey(store.DefaultWorkspace, "x\x00"),
			{Kind: store.KindProfile, Workspace: store.DefaultWorkspace, Name: "x"},
			{Kind: store.KindProvider, Workspace: store.DefaultWorkspace, SandboxID: there.ID, Name: "x"},
		} {
			_, err := s.Object(testContext(t), key)
			wantError(t, err, store.ErrObjectNotFound)
			wantError(t, s.Transact(testContext(t), func(tx store.Tx) error { _, err := tx.LockObject(key); return err }), store.ErrObjectNotFound)
		}
		_, err := s.ObjectByID(testContext(t), "\x00")
		wantError(t, err, store.ErrObjectNotFound)
	},
	"objects in an unknown workspace": func(t *testing.T, s store.Store) {
		err := s.Transact(testContext(t), func(tx store.Tx) error {
			_, err := tx.CreateObject(store.Object{ID: uuid.NewString(), Key: store.ProviderKey("nowhere", "x")})
			return err
		})
		wantError(t, err, store.ErrWorkspaceNotFound)
		wantError(t, s.Transact(testContext(t), func(tx store.Tx) error { _, err := tx.Count(store.KindMember, "nowhere"); return err }), store.ErrWorkspaceNotFound)
	},
	"lists of objects": func(t *testing.T, s store.Store) {
		mustCreateWorkspace(t, s, "team", nil)
		a, b := mustCreate(t, s, sandbox("a")), mustCreate(t, s, sandbox("b"))
		for i, o := range []store.Object{
			{Key: store.Key{Kind: store.KindProfile, Name: "c"}, Labels: map[string]string{"x": "1"}},
			{Key: store.Key{Kind: store.KindProfile, Workspace: "team", Name: "c"}},
			{Key: store.Key{Kind: store.KindProfile, Workspace: "team", Name: "a"}, Labels: map[string]string{"x": "1", "y": "2"}},
			{Key: store.Key{Kind: store.KindProfile, Name: "b"}, Labels: map[string]string{"x": "2"}},
			{Key: store.Key{Kind: store.KindProfile, Workspace: store.DefaultWorkspace, Name: "a"}},
			{Key: store.Key{Kind: store.KindProviderReceipt, Workspace: store.DefaultWorkspace, SandboxID: a.ID, Name: "2"}},
			{Key: store.Key{Kind: store.KindProviderReceipt, Workspace: store.DefaultWorkspace, SandboxID: a.ID, Name: "1"}},
			{Key: store.Key{Kind: store.KindProviderReceipt, Workspace: store.DefaultWorkspace, SandboxID: b.ID, Name: "1"}},
		} {
			o.ID = fmt.Sprintf("id-%d", i)
			mustCreateObject(t, s, o)
		}
		for _, tc := range []struct {
			query store.ObjectQuery
			want  []string
		}{
			{store.ObjectQuery{Kind: store.KindProfile}, []string{"/c", "team/c", "team/a", "/b", "default/a"}},
			{store.ObjectQuery{Kind: store.KindProfile, Workspaces: []string{"team"}}, []string{"team/c", "team/a"}},
			{store.ObjectQuery{Kind: store.KindProfile, Workspaces: []string{""}}, []string{"/c", "/b"}},
			{store.ObjectQuery{Kind: store.KindProfile, Workspaces: []string{"", "team"}, ByName: true}, []string{"team/a", "/b", "/c", "team/c"}},
			{store.ObjectQuery{Kind: store.KindProfile, ByName: true}, []string{"default/a", "team/a", "/b", "/c", "team/c"}},
			{store.ObjectQuery{Kind: store.KindProfile, Labels: map[string]string{"x": "1"}}, []string{"/c", "team/a"}},
			{store.ObjectQuery{Kind: store.KindProfile, Labels: map[string]string{"x": "1", "y": "2"}}, []string{"team/a"}},
			{store.ObjectQuery{Kind: store.KindProfile, Labels: map[string]string{"x\x00": "1"}}, nil},
			{store.ObjectQuery{Kind: store.KindProfile, Workspaces: []string{"Team"}}, nil},
			{store.ObjectQuery{Kind: store.KindProvider}, nil},
			{store.ObjectQuery{Kind: store.KindProfile, Reverse: true}, []string{"default/a", "/b", "team/a", "team/c", "/c"}},
			{store.ObjectQuery{Kind: store.KindProfile, Workspaces: []string{"", "team"}, ByName: true, Reverse: true}, []string{"team/c", "/c", "/b", "team/a"}},
			{store.ObjectQuery{Kind: store.KindProviderReceipt, SandboxID: a.ID}, []string{"default/2", "default/1"}},
			{store.ObjectQuery{Kind: store.KindProviderReceipt, SandboxID: a.ID, ByName: true}, []string{"default/1", "default/2"}},
			{store.ObjectQuery{Kind: store.KindProviderReceipt, SandboxID: a.ID, ByName: true, Reverse: true}, []string{"default/2", "default/1"}},
			{store.ObjectQuery{Kind: store.KindProviderReceipt}, []string{"default/2", "default/1", "default/1"}},
			{store.ObjectQuery{Kind: store.KindProviderReceipt, ByName: true}, nil},
		} {
			for _, tc.query.Limit = range []int{1, 2, 3, 100} {
				if got := walkObjects(t, s, tc.query); !slices.Equal(got, tc.want) {
					t.Errorf("%+v: %v, want %v", tc.query, got, tc.want)
				}
			}
		}
	},
	"children go with their sandbox": func(t *testing.T, s store.Store) {
		a := mustCreate(t, s, sandbox("web"))
		key := store.Key{Kind: store.KindProviderReceipt, Workspace: store.DefaultWorkspace, SandboxID: a.ID, Name: "x"}
		child := mustCreateObject(t, s, store.Object{Key: key, Labels: map[string]string{"a": "b"}})
		if _, err := s.ChangeSandbox(testContext(t), named("web"), nil, remove); err != nil {
			t.Fatal(err)
		}
		b := mustCreate(t, s, sandbox("web"))
		_, err := s.ObjectByID(testContext(t), child.ID)
		wantError(t, err, store.ErrObjectNotFound)
		for _, id := range []string{a.ID, b.ID} {
			if got := walkObjects(t, s, store.ObjectQuery{Kind: key.Kind, SandboxID: id, Limit: 10}); len(got) != 0 {
				t.Errorf("children of %s: %v", id, got)
			}
		}
		key.SandboxID = b.ID
		_, err = s.Object(testContext(t), key)
		wantError(t, err, store.ErrObjectNotFound)
	},
	"the oldest children are trimmed": func(t *testing.T, s store.Store) {
		a, b := mustCreate(t, s, sandbox("a")), mustCreate(t, s, sandbox("b"))
		child := func(sandboxID, name string, kind store.Kind) {
			mustCreateObject(t, s, store.Object{Key: store.Key{Kind: kind, Workspace: store.DefaultWorkspace, SandboxID: sandboxID, Name: name}})
		}
		for _, name := range []string{"3", "1", "2"} {
			child(a.ID, name, store.KindProviderReceipt)
			child(b.ID, name, store.KindProviderReceipt)
			child(a.ID, name, store.KindProvider)
		}
		for keep, want := range map[int][]string{5: {"default/3", "default/1", "default/2"}, 3: {"default/3", "default/1", "default/2"}} {
			mustTransact(t, s, func(tx store.Tx) error { return tx.Trim(store.KindProviderReceipt, a.ID, keep) })
			if got := walkObjects(t, s, store.ObjectQuery{Kind: store.KindProviderReceipt, SandboxID: a.ID, Limit: 9}); !slices.Equal(got, want) {
				t.Errorf("of %d: %v", keep, got)
			}
		}
		mustTransact(t, s, func(tx store.Tx) error { return tx.Trim(store.KindProviderReceipt, a.ID, 2) })
		for query, want := range map[*store.ObjectQuery]int{
			{Kind: store.KindProviderReceipt, SandboxID: a.ID, Limit: 9}: 2, {Kind: store.KindProviderReceipt, SandboxID: b.ID, Limit: 9}: 3,
			{Kind: store.KindProvider, SandboxID: a.ID, Limit: 9}: 3,
		} {
			if got := walkObjects(t, s, *query); len(got) != want || slices.Contains(got, "default/3") != (want == 3) {
				t.Errorf("%+v: %v", query, got)
			}
		}
	},
}
