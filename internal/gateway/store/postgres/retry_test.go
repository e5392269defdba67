package postgres

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/pgtest"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// failUpdates has the next n updates of sandboxes fail with a code. A sequence counts them, as it is not rolled back.
func failUpdates(t *testing.T, conn *pgx.Conn, n int, code string) {
	t.Helper()
	exec(t, conn, fmt.Sprintf(`
		CREATE SEQUENCE IF NOT EXISTS failures;
		ALTER SEQUENCE failures RESTART;
		CREATE OR REPLACE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			IF nextval('failures') <= %d THEN
				RAISE EXCEPTION 'the table sandboxes is out of order' USING ERRCODE = '%s';
			END IF;
			RETURN NEW;
		END $$;
		CREATE OR REPLACE TRIGGER fail BEFORE UPDATE ON sandboxes FOR EACH ROW EXECUTE FUNCTION fail();`, n, code))
}

func TestTransientFailuresAreTriedAgain(t *testing.T) {
	url := pgtest.NewDatabase(t)
	s := openStore(t, url)
	for _, code := range []string{codeSerializationFailure, codeDeadlock, codeAdminShutdown, "08006"} {
		t.Run(code, func(t *testing.T) {
			ours := create(t, s, "web-"+code)
			failUpdates(t, dial(t, url), 3, code)
			marked, err := s.ChangeSandbox(t.Context(), named(ours.Name), nil, mark)
			if err != nil || marked.ID != ours.ID || marked.ResourceVersion != ours.ResourceVersion+1 {
				t.Errorf("the change answered %s at version %d, %v", marked.ID, marked.ResourceVersion, err)
			}
		})
	}
}

// TestRetryKeepsToTheSandbox replaces the sandbox between two runs of a change that was told a name.
func TestRetryKeepsToTheSandbox(t *testing.T) {
	url := pgtest.NewDatabase(t)
	s, other := openStore(t, url), openStore(t, url)
	ours := create(t, s, "web")
	watch := dial(t, url)
	var successor store.Sandbox
	runs := 0
	_, err := s.ChangeSandbox(t.Context(), named("web"), nil, func(current store.Sandbox, now time.Time) (store.Change, error) {
		if runs++; runs == 1 {
			terminate(t, watch)
			remove(t, other, ours.ID)
			successor = create(t, other, "web")
		}
		return mark(current, now)
	})
	if !errors.Is(err, store.ErrNotFound) || runs != 1 {
		t.Errorf("after %d runs the change answered %v, want %v after one", runs, err, store.ErrNotFound)
	}
	unchanged(t, other, successor)
}

// terminate ends the session that is in a transaction, as an administrator would.
func terminate(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	const inTransaction = "FROM pg_stat_activity WHERE backend_xid IS NOT NULL AND datname = current_database() AND pid <> pg_backend_pid()"
	if !query[bool](t, conn, "SELECT pg_terminate_backend(pid, 10000) "+inTransaction) {
		t.Fatal("the session lives on")
	}
}

func TestLostConnectionIsReplaced(t *testing.T) {
	url := pgtest.NewDatabase(t)
	s := openStore(t, url)
	ours := create(t, s, "web")
	watch := dial(t, url)
	runs := 0
	marked, err := s.ChangeSandbox(t.Context(), named("web"), nil, func(current store.Sandbox, now time.Time) (store.Change, error) {
		if runs++; runs == 1 {
			terminate(t, watch)
		}
		return mark(current, now)
	})
	if err != nil || runs != 2 || marked.ResourceVersion != ours.ResourceVersion+1 {
		t.Errorf("after %d runs the change answered version %d, %v", runs, marked.ResourceVersion, err)
	}
	// Reads have lost theirs, too.
	query[int](t, watch, "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
	for range 20 {
		unchanged(t, s, marked)
	}
}

func TestFailuresHaveAnEndAndNoText(t *testing.T) {
	url := pgtest.NewDatabase(t)
	s := openStore(t, url, func(cfg *config) { cfg.patience = 50 * time.Millisecond })
	ours := create(t, s, "web")
	for _, c := range []struct {
		code string
		want error
	}{
		{codeSerializationFailure, store.ErrUnavailable},
		{"53100", store.ErrUnavailable}, // disk full
		{codeReadOnly, store.ErrUnavailable},
		{"P0001", store.ErrInternal},
	} {
		t.Run(c.code, func(t *testing.T) {
			failUpdates(t, dial(t, url), 1_000_000, c.code)
			began := time.Now()
			_, err := s.ChangeSandbox(t.Context(), named("web"), nil, mark)
			if took := time.Since(began); took > testTimeout {
				t.Errorf("it was tried again for %s", took)
			}
			if !errors.Is(err, c.want) {
				t.Errorf("the change answered %v, want %v", err, c.want)
			}
			if !strings.HasPrefix(err.Error(), c.want.Error()) {
				t.Errorf("%q does not begin with what it is", err)
			}
			unchanged(t, s, ours)
		})
	}
}

func TestClosedStoreIsUnavailable(t *testing.T) {
	s, err := Open(t.Context(), pgtest.NewDatabase(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Sandbox(t.Context(), "default", "web"); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a read answered %v", err)
	}
	if _, err := s.ChangeSandbox(t.Context(), named("web"), nil, mark); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a change answered %v", err)
	}
}
