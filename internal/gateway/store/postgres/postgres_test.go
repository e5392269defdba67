package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/pgtest"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store/sqlstore"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// testTimeout bounds what a test waits for.
const testTimeout = 30 * time.Second

// configOf is the configuration that a URL and further edits give.
func configOf(t *testing.T, url string, edits ...func(*config)) config {
	t.Helper()
	cfg, err := parse(url)
	if err != nil {
		t.Fatal(err)
	}
	for _, edit := range edits {
		edit(&cfg)
	}
	return cfg
}

// openStore opens a store on a database until the test ends.
func openStore(t *testing.T, url string, edits ...func(*config)) *sqlstore.Store {
	t.Helper()
	s, err := open(t.Context(), configOf(t, url, edits...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// dial opens a connection of the test's own.
func dial(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func exec(t *testing.T, conn *pgx.Conn, sql string, args ...any) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func query[T any](t *testing.T, conn *pgx.Conn, sql string, args ...any) T {
	t.Helper()
	var value T
	if err := conn.QueryRow(t.Context(), sql, args...).Scan(&value); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return value
}

// await polls the database until a condition holds.
func await(t *testing.T, conn *pgx.Conn, condition string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for !query[bool](t, conn, "SELECT "+condition) {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("it does not come about that %s", condition)
		}
	}
}

// someoneWaits holds while a session of the database waits for a row that another has locked.
const someoneWaits = "EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database())"

func newRow(id, name string) store.Build {
	return func(time.Time) store.Sandbox {
		return store.Sandbox{
			ID: id, Name: name,
			Spec:   &openshellv1.SandboxSpec{LogLevel: "info"},
			Status: &openshellv1.SandboxStatus{Phase: openshellv1.SandboxPhase_SANDBOX_PHASE_READY},
		}
	}
}

func create(t *testing.T, s store.Store, name string) store.Sandbox {
	t.Helper()
	row, err := s.CreateSandbox(t.Context(), store.DefaultWorkspace, newRow(uuid.NewString(), name))
	if err != nil {
		t.Fatal(err)
	}
	return row
}

func remove(t *testing.T, s store.Store, id string) {
	t.Helper()
	_, err := s.ChangeSandbox(t.Context(), store.Target{ID: id}, nil, func(store.Sandbox, time.Time) (store.Change, error) {
		return store.Change{Remove: true}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// mark is what a delete does first.
func mark(current store.Sandbox, now time.Time) (store.Change, error) {
	current.Status = &openshellv1.SandboxStatus{Phase: openshellv1.SandboxPhase_SANDBOX_PHASE_DELETING}
	current.Operation = store.Operation{ID: markID, Kind: store.OperationDelete, Since: now, DueAt: now.Add(time.Minute)}
	return store.Change{Write: &current}, nil
}

const markID = "0d5c8f5e-0000-4000-8000-000000000000"

func named(name string) store.Target {
	return store.Target{Workspace: store.DefaultWorkspace, Name: name}
}

// unchanged fails the test unless a sandbox holds the name at its first version.
func unchanged(t *testing.T, s store.Store, want store.Sandbox) {
	t.Helper()
	got, err := s.Sandbox(t.Context(), want.Workspace, want.Name)
	if err != nil {
		t.Fatal(err)
	}
	if got.ID != want.ID || got.ResourceVersion != want.ResourceVersion || got.Phase() != want.Phase() {
		t.Errorf("%s is now %s at version %d in %s; it was %s at version %d in %s", want.Name,
			got.ID, got.ResourceVersion, got.Phase(), want.ID, want.ResourceVersion, want.Phase())
	}
}
