package postgres

import (
	"context"
	"errors"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/pgtest"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// behindTheWire opens two stores on one database: the first through a wire that can break, the other is another process.
func behindTheWire(t *testing.T) (*wire, store.Store, store.Store) {
	t.Helper()
	url := pgtest.NewDatabase(t)
	w := &wire{}
	return w, openStore(t, url, w.through), openStore(t, url)
}

func TestDeleteWhoseCommitWasLostSparesTheSuccessor(t *testing.T) {
	w, s, other := behindTheWire(t)
	ours := create(t, s, "web")
	var successor store.Sandbox
	w.loseCommit(func() {
		remove(t, other, ours.ID)
		successor = create(t, other, "web")
	})
	if _, err := s.ChangeSandbox(t.Context(), named("web"), nil, mark); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the delete answered %v, want %v", err, store.ErrNotFound)
	}
	unchanged(t, other, successor)
}

func TestDeleteWhoseAnswerWasLostIsKnownToBeCommitted(t *testing.T) {
	w, s, other := behindTheWire(t)
	ours := create(t, s, "web")
	var successor store.Sandbox
	w.loseAnswer(func() {
		remove(t, other, ours.ID)
		successor = create(t, other, "web")
	})
	marked, err := s.ChangeSandbox(t.Context(), named("web"), nil, mark)
	if err != nil || marked.ID != ours.ID || marked.Operation.ID != markID {
		t.Errorf("the delete answered %+v, %v, want %s marked", marked, err, ours.ID)
	}
	unchanged(t, other, successor)
}

func TestChangeDoesNotMeetItsOwnVersion(t *testing.T) {
	for name, lose := range map[string]func(*wire, func()){"commit lost": (*wire).loseCommit, "answer lost": (*wire).loseAnswer} {
		t.Run(name, func(t *testing.T) {
			w, s, other := behindTheWire(t)
			ours := create(t, s, "web")
			lose(w, func() {})
			p := &store.Precondition{ID: ours.ID, ResourceVersion: ours.ResourceVersion}
			changed, err := s.ChangeSandbox(t.Context(), named("web"), p, func(current store.Sandbox, now time.Time) (store.Change, error) {
				if err := p.CheckVersion(current); err != nil {
					return store.Change{}, err
				}
				return mark(current, now)
			})
			if err != nil || changed.ResourceVersion != ours.ResourceVersion+1 {
				t.Errorf("the change answered version %d, %v, want %d", changed.ResourceVersion, err, ours.ResourceVersion+1)
			}
			unchanged(t, other, changed)
		})
	}
}

func TestCreateDoesNotMeetItself(t *testing.T) {
	for name, lose := range map[string]func(*wire, func()){"commit lost": (*wire).loseCommit, "answer lost": (*wire).loseAnswer} {
		t.Run(name, func(t *testing.T) {
			w, s, other := behindTheWire(t)
			lose(w, func() {})
			id := uuid.NewString()
			made, err := s.CreateSandbox(t.Context(), store.DefaultWorkspace, newRow(id, "web"))
			if err != nil || made.ID != id {
				t.Fatalf("the create answered %s, %v, want %s", made.ID, err, id)
			}
			unchanged(t, other, made)
		})
	}
}

func TestCreateWhoseCommitWasLostLeavesTheNameToWhoHasIt(t *testing.T) {
	w, s, other := behindTheWire(t)
	var holder store.Sandbox
	w.loseCommit(func() { holder = create(t, other, "web") })
	if _, err := s.CreateSandbox(t.Context(), store.DefaultWorkspace, newRow(uuid.NewString(), "web")); !errors.Is(err, store.ErrAlreadyExists) {
		t.Errorf("the create answered %v, want %v", err, store.ErrAlreadyExists)
	}
	unchanged(t, other, holder)
}

func TestSandboxDeletedBeforeItsCreateWasAnsweredStaysGone(t *testing.T) {
	w, s, other := behindTheWire(t)
	id := uuid.NewString()
	w.loseAnswer(func() { remove(t, other, id) })
	if _, err := s.CreateSandbox(t.Context(), store.DefaultWorkspace, newRow(id, "web")); err != nil {
		t.Error(err)
	}
	if back, err := other.SandboxByID(t.Context(), id); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the sandbox is back: %+v, %v", back, err)
	}
}

func TestCommitIsNotBrokenOffByItsCaller(t *testing.T) {
	w, s, other := behindTheWire(t)
	create(t, s, "web")
	ctx, cancel := context.WithCancel(t.Context())
	w.atCommit(func(c *brokenConn) {
		cancel()
		c.send()
	})
	marked, err := s.ChangeSandbox(ctx, named("web"), nil, mark)
	if err != nil {
		t.Fatalf("the change answered %v", err)
	}
	unchanged(t, other, marked)
}

func TestOutcomeThatCannotBeFoundOutIsSaidToBeUnknown(t *testing.T) {
	url := pgtest.NewDatabase(t)
	w := &wire{}
	s := openStore(t, url, w.through, func(cfg *config) { cfg.patience = 100 * time.Millisecond })
	create(t, s, "web")
	w.loseAnswer(w.cut)
	_, err := s.ChangeSandbox(t.Context(), named("web"), nil, mark)
	if !errors.Is(err, store.ErrOutcomeUnknown) || errors.Is(err, store.ErrUnavailable) {
		t.Errorf("the change answered %v, want %v", err, store.ErrOutcomeUnknown)
	}
}

// TestCrash crashes the server at a COMMIT that it never sees, before it has written anything of the transaction to the
// disk.
func TestCrash(t *testing.T) {
	server := pgtest.Start(t, pgtest.WithSetting("wal_writer_delay", "10s"))
	t.Run("change is made again", func(t *testing.T) {
		url := server.NewDatabase(t)
		w := &wire{}
		s := openStore(t, url, w.through)
		ours := create(t, s, "web")
		w.atCommit(func(c *brokenConn) { crash(t, c, url) })
		marked, err := s.ChangeSandbox(t.Context(), named("web"), nil, mark)
		if err != nil || marked.ID != ours.ID || marked.ResourceVersion != ours.ResourceVersion+1 {
			t.Fatalf("the change answered %s at version %d, %v", marked.ID, marked.ResourceVersion, err)
		}
		unchanged(t, s, marked)
	})
	// The server gives the number of the transaction that it has lost to another, which is committed.
	t.Run("number is not trusted", func(t *testing.T) {
		url := server.NewDatabase(t)
		w := &wire{}
		s := openStore(t, url, w.through)
		exec(t, dial(t, url), "CREATE TABLE others (x int)")
		ours := create(t, s, "web")
		var lost, reused int64
		w.atCommit(func(c *brokenConn) {
			lost = crash(t, c, url)
			again := reconnect(t, url)
			for reused < lost {
				exec(t, again, "BEGIN")
				reused = query[int64](t, again, "SELECT pg_current_xact_id()::text::bigint")
				exec(t, again, "INSERT INTO others VALUES (1)")
				exec(t, again, "COMMIT")
			}
		})
		_, err := s.ChangeSandbox(t.Context(), named("web"), nil, mark)
		if reused != lost {
			t.Fatalf("the server was made to use number %d again, but its next was %d", lost, reused)
		}
		if !errors.Is(err, store.ErrOutcomeUnknown) {
			t.Errorf("the change answered %v, want %v", err, store.ErrOutcomeUnknown)
		}
		unchanged(t, openStore(t, url), ours)
	})
}

// crash kills the server's process for a connection, upon which the whole server starts anew, and returns the number of
// the transaction there.
func crash(t *testing.T, c *brokenConn, url string) (number int64) {
	t.Helper()
	watch := dial(t, url)
	var pid int
	const inTransaction = "SELECT pid, backend_xid::text::bigint FROM pg_stat_activity WHERE backend_xid IS NOT NULL AND datname = current_database()"
	if err := watch.QueryRow(t.Context(), inTransaction).Scan(&pid, &number); err != nil {
		t.Fatal(err)
	}
	process, err := os.FindProcess(pid)
	if err == nil {
		err = process.Signal(syscall.SIGKILL)
	}
	if err != nil {
		t.Fatal(err)
	}
	for watch.Ping(t.Context()) == nil { // every connection is ended; before that, a new one might be let in
		runtime.Gosched()
	}
	_ = c.Conn.Close()
	return number
}

// reconnect waits for a server that comes up again.
func reconnect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		if conn, err := pgx.Connect(ctx, url); err == nil {
			t.Cleanup(func() { _ = conn.Close(context.Background()) })
			return conn
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatal("the server did not come up again")
		}
	}
}
