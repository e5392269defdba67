package storetest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// attach makes providers those of a sandbox.
func attach(names ...string) store.Decide {
	return func(current store.Sandbox, _ time.Time) (store.Change, error) {
		current.Spec = proto.CloneOf(current.Spec)
		current.Spec.Providers = names
		return store.Change{Write: &current}, nil
	}
}

func provider(t *testing.T, s store.Store, name string) store.Object {
	t.Helper()
	return mustCreateObject(t, s, store.Object{Key: store.ProviderKey(store.DefaultWorkspace, name)})
}

// drop deletes an object.
func drop(t *testing.T, s store.Store, key store.Key) error {
	t.Helper()
	return s.Transact(testContext(t), func(tx store.Tx) error {
		o, err := tx.LockObject(key)
		if err != nil {
			return err
		}
		return tx.DeleteObject(o)
	})
}

// wantInUse holds a refusal to the names of those who need the object.
func wantInUse(t *testing.T, err error, key store.Key, names ...string) {
	t.Helper()
	var inUse *store.InUseError
	if !errors.As(err, &inUse) || inUse.Key != key {
		t.Fatalf("error %v", err)
	}
	var by []string
	for _, r := range inUse.By {
		by = append(by, string(r.Kind)+" "+r.Workspace+"/"+r.Name)
	}
	if !slices.Equal(by, names) {
		t.Errorf("used by %v, want %v", by, names)
	}
}

func wantMissing(t *testing.T, err error, name string) {
	t.Helper()
	var missing *store.MissingError
	if !errors.As(err, &missing) || missing.Key != store.ProviderKey(store.DefaultWorkspace, name) {
		t.Errorf("error %v", err)
	}
}

var referenceCases = map[string]func(*testing.T, store.Store){
	"a sandbox needs its providers": func(t *testing.T, s store.Store) {
		p, q := provider(t, s, "p"), provider(t, s, "q")
		_, err := s.CreateSandbox(testContext(t), store.DefaultWorkspace, sandbox("web", withProviders("p", "none")))
		wantMissing(t, err, "none")
		_, err = s.Sandbox(testContext(t), store.DefaultWorkspace, "web")
		wantError(t, err, store.ErrNotFound)

		web := mustCreate(t, s, sandbox("web", withProviders("p")))
		api := mustCreate(t, s, sandbox("api", withProviders("p")))
		wantInUse(t, drop(t, s, p.Key), p.Key, "sandbox default/web", "sandbox default/api")

		_, err = s.ChangeSandbox(testContext(t), store.Target{ID: web.ID}, nil, attach("p", "none"))
		wantMissing(t, err, "none")
		wantRow(t, s, web)
		if _, err := s.ChangeSandbox(testContext(t), store.Target{ID: web.ID}, nil, attach("q", "p")); err != nil {
			t.Fatal(err)
		}
		wantInUse(t, drop(t, s, q.Key), q.Key, "sandbox default/web")
		if _, err := s.ChangeSandbox(testContext(t), store.Target{ID: web.ID}, nil, attach("q")); err != nil {
			t.Fatal(err)
		}
		wantInUse(t, drop(t, s, p.Key), p.Key, "sandbox default/api")
		if _, err := s.ChangeSandbox(testContext(t), store.Target{ID: api.ID}, nil, remove); err != nil {
			t.Fatal(err)
		}
		if err := drop(t, s, p.Key); err != nil {
			t.Errorf("a provider that nobody needs any more: %v", err)
		}
		// Status writes leave references alone.
		if _, err := s.ChangeSandbox(testContext(t), store.Target{ID: web.ID}, nil, setPhase(web.Phase())); err != nil {
			t.Fatal(err)
		}
		wantInUse(t, drop(t, s, q.Key), q.Key, "sandbox default/web")
	},
	"providers of another workspace do not count": func(t *testing.T, s store.Store) {
		mustCreateWorkspace(t, s, "team", nil)
		mustCreateObject(t, s, store.Object{Key: store.ProviderKey("team", "p")})
		_, err := s.CreateSandbox(testContext(t), store.DefaultWorkspace, sandbox("web", withProviders("p")))
		wantMissing(t, err, "p")
	},
	"an object needs others": func(t *testing.T, s store.Store) {
		profile := mustCreateObject(t, s, store.Object{Key: store.Key{Kind: store.KindProfile, Name: "github"}})
		p := mustCreateObject(t, s, store.Object{Key: store.ProviderKey(store.DefaultWorkspace, "p")}, profile)
		wantInUse(t, drop(t, s, profile.Key), profile.Key, "provider default/p")
		if err := drop(t, s, p.Key); err != nil {
			t.Fatal(err)
		}
		if err := drop(t, s, profile.Key); err != nil {
			t.Error(err)
		}
	},
	"deleting a provider races with its use": func(t *testing.T, s store.Store) {
		for range 30 {
			p := provider(t, s, "p")
			web := mustCreate(t, s, sandbox("web"))
			var dropped, attached, created error
			atOnce(
				func() { dropped = drop(t, s, p.Key) },
				func() {
					_, attached = s.ChangeSandbox(testContext(t), store.Target{ID: web.ID}, nil, attach("p"))
				},
				func() {
					_, created = s.CreateSandbox(testContext(t), store.DefaultWorkspace, sandbox("new", withProviders("p")))
				},
			)
			_, err := s.Object(testContext(t), p.Key)
			there := err == nil
			if (dropped == nil) == there {
				t.Fatalf("delete: %v, and the provider is there: %v", dropped, there)
			}
			for what, err := range map[string]error{"attach": attached, "create": created} {
				if (err == nil) != there { // the delete comes before both of them, or after one and not at all
					t.Fatalf("%s: %v, delete: %v", what, err, dropped)
				}
			}
			for _, name := range []string{"web", "new"} {
				if _, err := s.ChangeSandbox(testContext(t), named(name), nil, remove); err != nil && !errors.Is(err, store.ErrNotFound) {
					t.Fatal(err)
				}
			}
			if there {
				if err := drop(t, s, p.Key); err != nil {
					t.Fatal(err)
				}
			}
		}
	},
}
