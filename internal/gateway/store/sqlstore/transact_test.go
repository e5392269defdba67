package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store/sqlite"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store/sqlstore"
)

// twice runs every transaction, undoes it, lets others come between, and runs it again, as an engine may.
type twice struct {
	db      *sql.DB
	between func()
}

var errAgain = errors.New("again")

func (e *twice) Write(ctx context.Context, fn func(context.Context, *sql.Tx) error) error {
	if between := e.between; between != nil {
		e.between = nil
		if err := e.run(ctx, func(ctx context.Context, tx *sql.Tx) error { return errors.Join(fn(ctx, tx), errAgain) }); !errors.Is(err, errAgain) {
			return err
		}
		between()
	}
	return e.run(ctx, fn)
}

func (e *twice) run(ctx context.Context, fn func(context.Context, *sql.Tx) error) error {
	tx, err := e.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := fn(ctx, tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

func (e *twice) Read(ctx context.Context, fn func(context.Context) error) error { return fn(ctx) }
func (e *twice) Writer() *sql.DB                                                { return e.db }
func (e *twice) Reader() *sql.DB                                                { return e.db }
func (e *twice) Close() error                                                   { return e.db.Close() }

// over opens a store over an engine of the test's.
func over(t *testing.T, engine func(db *sql.DB) sqlstore.Engine) *sqlstore.Store {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.db")
	migrated, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := migrated.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := sqlstore.Open(t.Context(), engine(db), sqlstore.Dialect{Now: "now_us()", Unavailable: func(error) bool { return false }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// A name is resolved once: when a transaction runs again, it does not turn to whoever has the name by then.
func TestTransactionsGoOnByID(t *testing.T) {
	var engine *twice
	s := over(t, func(db *sql.DB) sqlstore.Engine {
		engine = &twice{db: db}
		return engine
	})
	create := func() store.Sandbox {
		id := uuid.NewString()
		created, err := s.CreateSandbox(t.Context(), store.DefaultWorkspace, func(time.Time) store.Sandbox {
			return store.Sandbox{ID: id, Name: "web", Spec: &openshellv1.SandboxSpec{}, Status: &openshellv1.SandboxStatus{}}
		})
		if err != nil {
			t.Fatal(err)
		}
		return created
	}
	remove := func(store.Sandbox, time.Time) (store.Change, error) { return store.Change{Remove: true}, nil }
	touch := func(current store.Sandbox, _ time.Time) (store.Change, error) {
		return store.Change{Write: &current}, nil
	}
	target := store.Target{Workspace: store.DefaultWorkspace, Name: "web"}
	for name, change := range map[string]func() error{
		"Transact": func() error {
			return s.Transact(t.Context(), func(tx store.Tx) error {
				current, err := tx.Sandbox(target, nil)
				if err == nil {
					_, err = tx.WriteSandbox(current)
				}
				return err
			})
		},
		"ChangeSandbox": func() error { _, err := s.ChangeSandbox(t.Context(), target, nil, touch); return err },
	} {
		t.Run(name, func(t *testing.T) {
			a := create()
			var b store.Sandbox
			engine.between = func() {
				if _, err := s.ChangeSandbox(t.Context(), store.Target{ID: a.ID}, nil, remove); err != nil {
					t.Fatal(err)
				}
				b = create()
			}
			if err := change(); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("error %v, want that the sandbox is not there", err)
			}
			now, err := s.SandboxByID(t.Context(), b.ID)
			if err != nil || now.ResourceVersion != 1 {
				t.Errorf("the successor is at version %d (%v)", now.ResourceVersion, err)
			}
			if _, err := s.ChangeSandbox(t.Context(), target, nil, remove); err != nil {
				t.Fatal(err)
			}
		})
	}
}
