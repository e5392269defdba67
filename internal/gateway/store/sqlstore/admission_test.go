package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/uuid"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store/sqlite"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store/sqlstore"
)

// aged is a store, and a way to let what is in it grow old.
func aged(t *testing.T) (s *sqlstore.Store, exec func(query string, args ...any)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.db")
	s, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return s, func(query string, args ...any) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), query, args...); err != nil {
			t.Fatal(err)
		}
	}
}

func request(i int) *store.Request {
	return &store.Request{
		ID: uuid.NewString(), Caller: store.Caller{Key: "a"},
		Admission: &store.Admission{Scope: "s", RequestID: fmt.Sprint(i), Fingerprint: fmt.Sprint("f", i)},
	}
}

// Once a day is over an admission counts no more, whether it was deleted by then or not.
func TestAdmissionsExpire(t *testing.T) {
	s, exec := aged(t)
	admit := func(r *store.Request) error {
		return s.Transact(t.Context(), func(tx store.Tx) error {
			if err := tx.Admit(r); err != nil {
				return err
			}
			return tx.Settle(r.ID, store.OutcomeDone, "x")
		})
	}
	admitted := func(r *store.Request) store.Admitted {
		t.Helper()
		a, _, err := s.Admitted(t.Context(), r.Admission.Scope, r.Admission.RequestID)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	old, other := request(1), request(2)
	if err := errors.Join(admit(old), admit(other)); err != nil {
		t.Fatal(err)
	}
	exec(`UPDATE admissions SET expires_at = expires_at - ? WHERE request_id = '1'`, (store.AdmissionTTL - 1e12).Microseconds())
	if a := admitted(old); a.Outcome != store.OutcomeDone { // some minutes are left
		t.Errorf("before a day is over: %+v", a)
	}
	exec(`UPDATE admissions SET expires_at = expires_at - ? WHERE request_id = '1'`, int64(1e12/1000))
	if a := admitted(old); a != (store.Admitted{}) {
		t.Errorf("after a day: %+v", a)
	}
	again := request(1)
	again.Admission.Fingerprint = "something else"
	if err := s.Transact(t.Context(), func(tx store.Tx) error { return tx.Admit(again) }); err != nil {
		t.Fatal(err)
	}
	if a := admitted(again); a != (store.Admitted{Fingerprint: "something else"}) {
		t.Errorf("admitted anew: %+v", a)
	}
	if a := admitted(other); a.Outcome != store.OutcomeDone {
		t.Errorf("another: %+v", a)
	}
	// Those that have expired are not among those that a caller may have.
	for i := range store.MaxAdmissions - 2 {
		if err := admit(request(10 + i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := admit(request(3)); !errors.Is(err, store.ErrTooManyAdmissions) {
		t.Errorf("one more: %v", err)
	}
	exec(`UPDATE admissions SET expires_at = 1 WHERE request_id = '2'`)
	if err := admit(request(3)); err != nil {
		t.Errorf("one more after one has expired: %v", err)
	}
}

// A purge takes the old only, so many at a time.
func TestPurge(t *testing.T) {
	s, exec := aged(t)
	for i := range 7 {
		err := s.Transact(t.Context(), func(tx store.Tx) error {
			if err := tx.Admit(request(i)); err != nil {
				return err
			}
			return tx.Audit(store.AuditRecord{ID: fmt.Sprint(i)})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	exec(`UPDATE admissions SET expires_at = 1 WHERE request_id < '5'`)
	exec(`UPDATE audit SET at = at - ? WHERE id < '3'`, store.AuditRetention.Microseconds())
	for _, want := range []int{2, 2, 1, 0} {
		if n, err := s.Purge(t.Context(), 2); err != nil || n != want {
			t.Errorf("purged %d, %v; want %d", n, err, want)
		}
	}
	all, err := s.ListAudit(t.Context(), store.AuditQuery{Limit: 9})
	if err != nil || len(all) != 4 || all[0].ID != "3" {
		t.Errorf("audit %+v, %v", all, err)
	}
	for i := range 7 {
		if _, found, err := s.Admitted(t.Context(), "s", fmt.Sprint(i)); err != nil || found != (i >= 5) {
			t.Errorf("admission %d: %v, %v", i, found, err)
		}
	}
}

// uncommitted loses every transaction when it is to be committed, once told so.
type uncommitted struct {
	twice
	lost error
}

func (e *uncommitted) Write(ctx context.Context, fn func(context.Context, *sql.Tx) error) error {
	return e.run(ctx, func(ctx context.Context, tx *sql.Tx) error { return errors.Join(fn(ctx, tx), e.lost) })
}

// What was not committed is not counted, or the next purge would follow at once, for ever.
func TestPurgeUncommitted(t *testing.T) {
	var engine *uncommitted
	s := over(t, func(db *sql.DB) sqlstore.Engine {
		engine = &uncommitted{twice: twice{db: db}}
		return engine
	})
	if err := s.Transact(t.Context(), func(tx store.Tx) error { return tx.Audit(store.AuditRecord{ID: "a"}) }); err != nil {
		t.Fatal(err)
	}
	if _, err := engine.db.ExecContext(t.Context(), "UPDATE audit SET at = 1"); err != nil {
		t.Fatal(err)
	}
	engine.lost = errors.New("the disk is full")
	if n, err := s.Purge(t.Context(), 1); n != 0 || !errors.Is(err, store.ErrInternal) {
		t.Errorf("purged %d, %v", n, err)
	}
	engine.lost = nil
	if n, err := s.Purge(t.Context(), 1); n != 1 || err != nil {
		t.Errorf("then purged %d, %v", n, err)
	}
}
