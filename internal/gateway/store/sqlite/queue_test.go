package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// withQueue runs a test in a bubble, where [synctest.Wait] returns when everybody is waiting.
func withQueue(t *testing.T, run func(t *testing.T, q *queue)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		db, err := connect(Memory, url.Values{})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.Exec("CREATE TABLE notes (n INTEGER PRIMARY KEY, parent INTEGER REFERENCES notes (n))"); err != nil {
			t.Fatal(err)
		}
		q, err := newQueue(db)
		if err != nil {
			t.Fatal(err)
		}
		defer q.close()
		run(t, q)
	})
}

func insert(n int) func(context.Context, *sql.Tx) error {
	return func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO notes (n) VALUES (?)", n)
		return err
	}
}

func wantNotes(t *testing.T, q *queue, want ...int) {
	t.Helper()
	rows, err := q.db.Query("SELECT n FROM notes ORDER BY n")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var got []int
	for rows.Next() {
		var n int
		if err := rows.Scan(&n); err != nil {
			t.Fatal(err)
		}
		got = append(got, n)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("notes %v, want %v", got, want)
	}
}

// batch has requests run in one transaction: they queue up behind one that is held back. It returns their errors.
func batch(t *testing.T, q *queue, requests ...func(context.Context, *sql.Tx) error) []error {
	t.Helper()
	goOn := make(chan struct{})
	first := make(chan struct{})
	go func() {
		defer close(first)
		_ = q.do(t.Context(), func(context.Context, *sql.Tx) error { <-goOn; return nil }) // it shares the fate of all
	}()
	synctest.Wait()
	errs := make([]chan error, len(requests))
	var tx *sql.Tx
	for i, fn := range requests {
		errs[i] = make(chan error, 1)
		go func() {
			errs[i] <- q.do(t.Context(), func(ctx context.Context, own *sql.Tx) error {
				if tx != nil && tx != own {
					t.Error("a request got a transaction of its own")
				}
				tx = own
				return fn(ctx, own)
			})
		}()
		synctest.Wait() // they come in order
	}
	close(goOn)
	<-first
	var all []error
	for _, err := range errs {
		all = append(all, <-err)
	}
	return all
}

func TestRequestsShareATransaction(t *testing.T) {
	withQueue(t, func(t *testing.T, q *queue) {
		for _, err := range batch(t, q, insert(1), insert(2), insert(3)) {
			if err != nil {
				t.Error(err)
			}
		}
		wantNotes(t, q, 1, 2, 3)
	})
}

// Of more requests than a transaction takes, none is forgotten.
func TestMoreRequestsThanATransactionTakes(t *testing.T) {
	withQueue(t, func(t *testing.T, q *queue) {
		const all = 2*batchLimit + 1
		goOn, held := make(chan struct{}), make(chan error, 1)
		go func() {
			held <- q.do(t.Context(), func(context.Context, *sql.Tx) error { <-goOn; return nil })
		}()
		synctest.Wait()
		errs := make(chan error, all)
		for n := range all {
			go func() { errs <- q.do(t.Context(), insert(n)) }()
		}
		synctest.Wait()
		close(goOn)
		synctest.Wait()
		if len(errs) != all || len(held) != 1 {
			t.Errorf("%d of %d requests were answered, and %d of 1 before them", len(errs), all, len(held))
		}
		for range len(errs) {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
	})
}

func TestAFailureUndoesItsOwnWorkOnly(t *testing.T) {
	withQueue(t, func(t *testing.T, q *queue) {
		refused := errors.New("refused")
		errs := batch(t, q, insert(1), func(ctx context.Context, tx *sql.Tx) error {
			return errors.Join(insert(2)(ctx, tx), refused)
		}, insert(1), insert(3))
		if errs[0] != nil || !errors.Is(errs[1], refused) || errs[2] == nil || errs[3] != nil {
			t.Errorf("errors %v", errs)
		}
		wantNotes(t, q, 1, 3)
	})
}

// Nobody is told of a change before it is committed.
func TestNoAnswerBeforeTheCommit(t *testing.T) {
	withQueue(t, func(t *testing.T, q *queue) {
		goOn, answered := make(chan struct{}), make(chan struct{})
		held := make(chan error, 1)
		go func() {
			held <- q.do(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
				go func() {
					_ = q.do(t.Context(), func(context.Context, *sql.Tx) error { <-goOn; return nil })
				}()
				<-time.After(time.Millisecond) // which is over once the other waits
				return insert(1)(ctx, tx)
			})
			close(answered)
		}()
		synctest.Wait()
		select {
		case <-answered:
			t.Error("answered while the transaction is open")
		default:
		}
		close(goOn)
		<-answered
		if err := <-held; err != nil {
			t.Error(err)
		}
	})
}

// When the commit fails, nothing was done, and everybody hears of it: also who was refused because of what others did in
// the same transaction.
func TestCommitFails(t *testing.T) {
	withQueue(t, func(t *testing.T, q *queue) {
		refused := errors.New("refused")
		errs := batch(t, q, insert(1), func(context.Context, *sql.Tx) error { return refused }, func(ctx context.Context, tx *sql.Tx) error {
			// A broken reference that is not looked at before the commit.
			_, err := tx.ExecContext(ctx, "PRAGMA defer_foreign_keys = ON")
			_, err2 := tx.ExecContext(ctx, "INSERT INTO notes (n, parent) VALUES (2, 99)")
			return errors.Join(err, err2)
		})
		for i, err := range errs {
			if err == nil || errors.Is(err, refused) {
				t.Errorf("request %d: %v", i, err)
			}
		}
		wantNotes(t, q)
		if err := q.do(t.Context(), insert(3)); err != nil {
			t.Errorf("the next: %v", err)
		}
		wantNotes(t, q, 3)
	})
}

// SQLite ends a transaction by itself when, for one, the disk is full.
func TestTransactionIsLost(t *testing.T) {
	withQueue(t, func(t *testing.T, q *queue) {
		full := errors.New("disk full")
		errs := batch(t, q, insert(1), func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "ROLLBACK")
			return errors.Join(err, full)
		})
		if errs[0] == nil || errs[1] == nil {
			t.Errorf("errors %v", errs)
		}
		wantNotes(t, q)
		if err := q.do(t.Context(), insert(3)); err != nil {
			t.Errorf("the next: %v", err)
		}
	})
}

func TestWhoGivesUpWhileWaitingChangesNothing(t *testing.T) {
	withQueue(t, func(t *testing.T, q *queue) {
		goOn := make(chan struct{})
		go func() { _ = q.do(t.Context(), func(context.Context, *sql.Tx) error { <-goOn; return nil }) }()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		gaveUp := make(chan error, 1)
		go func() { gaveUp <- q.do(ctx, insert(1)) }()
		synctest.Wait()
		cancel()
		if err := <-gaveUp; !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		close(goOn)
		synctest.Wait()
		wantNotes(t, q)
	})
}

// A request that has begun is waited for, so that its caller knows the outcome.
func TestWhoGivesUpTooLateIsAnswered(t *testing.T) {
	withQueue(t, func(t *testing.T, q *queue) {
		ctx, cancel := context.WithCancel(t.Context())
		goOn := make(chan struct{})
		answered := make(chan error, 1)
		go func() {
			answered <- q.do(ctx, func(ctx context.Context, tx *sql.Tx) error { <-goOn; return insert(1)(ctx, tx) })
		}()
		synctest.Wait()
		cancel()
		synctest.Wait()
		close(goOn)
		if err := <-answered; err != nil {
			t.Error(err)
		}
		wantNotes(t, q, 1)
	})
}

// Another program that keeps the file locked makes requests fail in bounded time, all at once, and nothing else.
func TestBusy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	e, err := open(path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := e.start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	other, err := connect(path, url.Values{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := e.writer.Exec("PRAGMA busy_timeout = 50"); err != nil {
		t.Fatal(err)
	}
	backup, err := other.Begin()
	if err != nil {
		t.Fatal(err)
	}
	reschedule := func() error { return s.Reschedule(t.Context(), "none", "none", 0) }
	errs := make(chan error)
	for range 20 {
		go func() { errs <- reschedule() }()
	}
	for range 20 {
		if err := <-errs; !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("error %v", err)
		}
	}
	if _, err := s.Workspace(t.Context(), store.DefaultWorkspace); err != nil {
		t.Errorf("read: %v", err)
	}
	if err := backup.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := reschedule(); err != nil {
		t.Errorf("once it is free: %v", err)
	}
}

// Every connection, not just the first of each pool, is durable and bounded.
func TestEveryConnectionIsSetUp(t *testing.T) {
	e, err := open(filepath.Join(t.TempDir(), "a.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	want := map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "busy_timeout": busyTimeoutMillis}
	for name, db := range map[string]*sql.DB{"writer": e.writer, "reader": e.reader} {
		for n := range db.Stats().MaxOpenConnections {
			conn, err := db.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			for pragma, value := range want {
				var got string
				if err := conn.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got); err != nil || got != value {
					t.Errorf("%s connection %d: %s is %s, want %s (%v)", name, n, pragma, got, value, err)
				}
			}
		}
	}
}

// A full disk passes, and nothing was changed.
func TestAFullDiskIsUnavailable(t *testing.T) {
	withQueue(t, func(t *testing.T, q *queue) {
		if _, err := q.db.Exec("PRAGMA max_page_count = 2"); err != nil { // which are taken
			t.Fatal(err)
		}
		err := q.do(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "CREATE TABLE more (n INTEGER)")
			return err
		})
		if !unavailable(err) {
			t.Errorf("a full disk: %v", err)
		}
	})
}
