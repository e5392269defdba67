package storetest

import (
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

var counter = store.ProviderKey(store.DefaultWorkspace, "counter")

var transactCases = map[string]func(*testing.T, store.Store){
	"a transaction that fails leaves nothing": func(t *testing.T, s store.Store) {
		web := mustCreate(t, s, sandbox("web"))
		there := mustCreateObject(t, s, store.Object{Key: counter, Payload: []byte("1")})
		unwanted := errors.New("unwanted")
		err := s.Transact(testContext(t), func(tx store.Tx) error {
			if _, err := tx.CreateObject(store.Object{ID: uuid.NewString(), Key: store.ProviderKey(store.DefaultWorkspace, "new"), Labels: map[string]string{"a": "b"}}); err != nil {
				return err
			}
			o, err := tx.LockObject(counter)
			if err != nil {
				return err
			}
			o.Payload = []byte("2")
			if o, err = tx.WriteObject(o); err != nil || o.ResourceVersion != 2 {
				t.Errorf("wrote %+v, %v", o, err)
			}
			current, err := tx.Sandbox(named("web"), nil)
			if err != nil {
				return err
			}
			if current, err = tx.WriteSandbox(current); err != nil || current.ResourceVersion != 2 {
				t.Errorf("wrote %+v, %v", current, err)
			}
			if _, err := tx.CreateSandbox(store.DefaultWorkspace, sandbox("other")); err != nil {
				return err
			}
			return unwanted
		})
		if !errors.Is(err, unwanted) {
			t.Errorf("error %v", err)
		}
		wantRow(t, s, web)
		if got, err := s.Object(testContext(t), counter); err != nil || cmp.Diff(there, got) != "" {
			t.Errorf("object %+v, %v", got, err)
		}
		_, err = s.Object(testContext(t), store.ProviderKey(store.DefaultWorkspace, "new"))
		wantError(t, err, store.ErrObjectNotFound)
		_, err = s.Sandbox(testContext(t), store.DefaultWorkspace, "other")
		wantError(t, err, store.ErrNotFound)
	},
	"a write raises the version": func(t *testing.T, s store.Store) {
		created := mustCreateObject(t, s, store.Object{Key: counter, Labels: map[string]string{"a": "b"}, Payload: []byte("1")})
		var wrote store.Object
		mustTransact(t, s, func(tx store.Tx) error {
			o, err := tx.LockObject(counter)
			if err != nil {
				return err
			}
			o.Payload = []byte("2")
			wrote, err = tx.WriteObject(o)
			return err
		})
		want := created
		want.ResourceVersion, want.Payload = 2, []byte("2")
		got, err := s.Object(testContext(t), counter)
		if diff := cmp.Diff([]store.Object{want, want}, []store.Object{wrote, got}); diff != "" || err != nil {
			t.Errorf("%v (-want +wrote, read)\n%s", err, diff)
		}
	},
	"transactions do not lose each other's writes": func(t *testing.T, s store.Store) {
		mustCreateObject(t, s, store.Object{Key: counter, Payload: []byte("0")})
		const n = 24
		increment := func() {
			err := s.Transact(testContext(t), func(tx store.Tx) error {
				o, err := tx.LockObject(counter)
				if err != nil {
					return err
				}
				value, err := strconv.Atoi(string(o.Payload))
				if err != nil {
					return err
				}
				o.Payload = []byte(strconv.Itoa(value + 1))
				_, err = tx.WriteObject(o)
				return err
			})
			if err != nil {
				t.Error(err)
			}
		}
		all := make([]func(), n)
		for i := range all {
			all[i] = increment
		}
		atOnce(all...)
		if got, err := s.Object(testContext(t), counter); err != nil || string(got.Payload) != strconv.Itoa(n) || got.ResourceVersion != n+1 {
			t.Errorf("%s at version %d, %v", got.Payload, got.ResourceVersion, err)
		}
	},
	"what a transaction has read stays so until its end": func(t *testing.T, s store.Store) {
		mustCreateObject(t, s, store.Object{Key: counter})
		for range 10 {
			var started sync.Once
			begun := make(chan struct{})
			atOnce(
				func() {
					mustTransact(t, s, func(tx store.Tx) error {
						first, err := tx.Object(counter)
						if err != nil {
							return err
						}
						started.Do(func() { close(begun) })
						for range 20 {
							again, err := tx.Object(counter)
							if err != nil {
								return err
							}
							if again.ResourceVersion != first.ResourceVersion {
								t.Errorf("read at version %d, then at %d", first.ResourceVersion, again.ResourceVersion)
							}
						}
						return nil
					})
				},
				func() {
					<-begun
					mustTransact(t, s, func(tx store.Tx) error {
						o, err := tx.LockObject(counter)
						if err == nil {
							_, err = tx.WriteObject(o)
						}
						return err
					})
				},
			)
		}
	},
	"a limit holds however many come at once": func(t *testing.T, s store.Store) {
		const limit, n = 5, 20
		full := errors.New("full")
		var created atomic.Int32
		add := func() {
			err := s.Transact(testContext(t), func(tx store.Tx) error {
				count, err := tx.Count(store.KindMember, store.DefaultWorkspace)
				if err != nil {
					return err
				}
				if count >= limit {
					return full
				}
				_, err = tx.CreateObject(store.Object{ID: uuid.NewString(), Key: store.Key{Kind: store.KindMember, Workspace: store.DefaultWorkspace, Name: uuid.NewString()}})
				return err
			})
			switch {
			case err == nil:
				created.Add(1)
			case !errors.Is(err, full):
				t.Error(err)
			}
		}
		all := make([]func(), n)
		for i := range all {
			all[i] = add
		}
		atOnce(all...)
		if created.Load() != limit {
			t.Errorf("%d created, the limit is %d", created.Load(), limit)
		}
	},
	"a transaction holds sandboxes to their precondition": func(t *testing.T, s store.Store) {
		a := mustCreate(t, s, sandbox("web"))
		if _, err := s.ChangeSandbox(testContext(t), named("web"), nil, remove); err != nil {
			t.Fatal(err)
		}
		b := mustCreate(t, s, sandbox("web"))
		err := s.Transact(testContext(t), func(tx store.Tx) error {
			current, err := tx.Sandbox(named("web"), &store.Precondition{ID: a.ID})
			if err != nil {
				return err
			}
			_, err = tx.WriteSandbox(current)
			return err
		})
		var mismatch *store.IdentityMismatchError
		if !errors.As(err, &mismatch) || mismatch.CurrentID != b.ID || mismatch.ExpectedID != a.ID {
			t.Errorf("error %v", err)
		}
		wantRow(t, s, b)
		wantError(t, s.Transact(testContext(t), func(tx store.Tx) error { _, err := tx.Sandbox(named("none"), nil); return err }), store.ErrNotFound)
	},
	"a transaction knows the time": func(t *testing.T, s store.Store) {
		created := mustCreateObject(t, s, store.Object{Key: counter})
		mustTransact(t, s, func(tx store.Tx) error {
			now, err := tx.Now()
			if now.Before(created.CreatedAt) || now.Sub(created.CreatedAt) > time.Hour {
				t.Errorf("now is %v, an object was created at %v", now, created.CreatedAt)
			}
			return err
		})
	},
}
