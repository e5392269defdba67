package storetest

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// request is a call of somebody's with a request_id.
func request(caller, requestID string) *store.Request {
	return &store.Request{
		ID: uuid.NewString(), Method: "/a.B/C", Caller: store.Caller{Key: caller, IdentityProvider: "oidc", Issuer: "https://issuer", Subject: caller},
		Admission: &store.Admission{Scope: "scope of " + caller, RequestID: requestID, Fingerprint: "what " + requestID + " asks for"},
	}
}

func by(r *store.Request, name string) store.Target {
	return store.Target{Workspace: store.DefaultWorkspace, Name: name, Request: r}
}

func begins(r *store.Request, kind store.OperationKind) store.Decide {
	return func(current store.Sandbox, now time.Time) (store.Change, error) {
		current.Operation = store.Operation{ID: r.ID, Kind: kind, Since: now, DueAt: now.Add(time.Hour), Admitted: true}
		return store.Change{Write: &current, Audit: &store.AuditRecord{ID: r.ID, Caller: r.Caller, Method: r.Method, Outcome: store.OutcomeAccepted}}, nil
	}
}

func settles(outcome store.Outcome, remove bool) store.Decide {
	return func(current store.Sandbox, _ time.Time) (store.Change, error) {
		if remove {
			return store.Change{Remove: true, Settle: outcome}, nil
		}
		current.Operation = store.Operation{}
		return store.Change{Write: &current, Settle: outcome}, nil
	}
}

func wantAdmitted(t *testing.T, s store.Store, r *store.Request, want *store.Admitted) {
	t.Helper()
	got, found, err := s.Admitted(testContext(t), r.Admission.Scope, r.Admission.RequestID)
	switch {
	case err != nil:
		t.Error(err)
	case found != (want != nil):
		t.Errorf("admitted: %v %+v, want %+v", found, got, want)
	case found && got != *want:
		t.Errorf("admitted as %+v, want %+v", got, *want)
	}
}

func pending(r *store.Request) *store.Admitted {
	return &store.Admitted{Fingerprint: r.Admission.Fingerprint}
}

func settled(r *store.Request, outcome store.Outcome, subject string) *store.Admitted {
	return &store.Admitted{Fingerprint: r.Admission.Fingerprint, Outcome: outcome, SubjectID: subject}
}

// theRecord is the one record that the audit has.
func theRecord(t *testing.T, s store.Store) store.AuditRecord {
	t.Helper()
	all, err := s.ListAudit(testContext(t), store.AuditQuery{Limit: 9})
	if err != nil || len(all) != 1 {
		t.Fatalf("audit %+v, %v; want one record", all, err)
	}
	return all[0]
}

var requestCases = map[string]func(*testing.T, store.Store){
	"a change is admitted once": func(t *testing.T, s store.Store) {
		web := mustCreate(t, s, sandbox("web"))
		first := request("a", "1")
		wantAdmitted(t, s, first, nil)
		written, err := s.ChangeSandbox(testContext(t), by(first, "web"), nil, begins(first, store.OperationStop))
		if err != nil {
			t.Fatal(err)
		}
		wantAdmitted(t, s, first, pending(first))
		again := request("a", "1")
		for _, name := range []string{"web", "nobody"} {
			_, err = s.ChangeSandbox(testContext(t), by(again, name), nil, undecided(t))
			wantError(t, err, store.ErrAdmitted)
		}
		wantRow(t, s, written)
		if _, err := s.ChangeSandbox(testContext(t), store.Target{ID: web.ID}, nil, settles(store.OutcomeDone, false)); err != nil {
			t.Fatal(err)
		}
		wantAdmitted(t, s, first, settled(first, store.OutcomeDone, web.ID))
		_, err = s.ChangeSandbox(testContext(t), by(again, "web"), nil, undecided(t))
		wantError(t, err, store.ErrAdmitted)
		for _, other := range []*store.Request{request("b", "1"), request("a", "2")} { // another caller, another id
			if _, err := s.ChangeSandbox(testContext(t), by(other, "web"), nil, nothing); err != nil {
				t.Error(err)
			}
		}
	},
	"a refusal leaves no admission": func(t *testing.T, s store.Store) {
		web := mustCreate(t, s, sandbox("web"))
		r := request("a", "1")
		_, err := s.ChangeSandbox(testContext(t), by(r, "web"), &store.Precondition{ID: uuid.NewString()}, undecided(t))
		if err == nil {
			t.Error("a stranger was changed")
		}
		_, err = s.ChangeSandbox(testContext(t), by(r, "nobody"), nil, undecided(t))
		wantError(t, err, store.ErrNotFound)
		_, err = s.ChangeSandbox(testContext(t), by(r, "web"), nil, func(store.Sandbox, time.Time) (store.Change, error) { return store.Change{}, store.ErrInternal })
		wantError(t, err, store.ErrInternal)
		wantAdmitted(t, s, r, nil)
		wantRow(t, s, web)
		err = s.Transact(testContext(t), func(tx store.Tx) error {
			if err := tx.Admit(r); err != nil {
				return err
			}
			_, err := tx.CreateSandbox(store.DefaultWorkspace, sandbox("web"))
			return err
		})
		wantError(t, err, store.ErrAlreadyExists)
		wantAdmitted(t, s, r, nil)
	},
	"what needs no work is settled at once": func(t *testing.T, s store.Store) {
		web := mustCreate(t, s, sandbox("web"))
		r := request("a", "1")
		_, err := s.ChangeSandbox(testContext(t), by(r, "web"), nil, func(store.Sandbox, time.Time) (store.Change, error) {
			return store.Change{Settle: store.OutcomeDone}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		wantAdmitted(t, s, r, settled(r, store.OutcomeDone, web.ID))
		wantRow(t, s, web)
	},
	"a transaction admits and settles": func(t *testing.T, s store.Store) {
		r := request("a", "1")
		mustTransact(t, s, func(tx store.Tx) error {
			if err := tx.Admit(r); err != nil {
				return err
			}
			return tx.Settle(r.ID, store.OutcomeAbsent, "")
		})
		wantAdmitted(t, s, r, settled(r, store.OutcomeAbsent, ""))
		wantError(t, s.Transact(testContext(t), func(tx store.Tx) error { return tx.Admit(request("a", "1")) }), store.ErrAdmitted)
		mustTransact(t, s, func(tx store.Tx) error { return tx.Admit(nil) })
	},
	"a refused operation takes its admission along": func(t *testing.T, s store.Store) {
		web := mustCreate(t, s, sandbox("web"))
		r := request("a", "1")
		if _, err := s.ChangeSandbox(testContext(t), by(r, "web"), nil, begins(r, store.OperationDelete)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.ChangeSandbox(testContext(t), store.Target{ID: web.ID}, nil, settles(store.OutcomeRefused, false)); err != nil {
			t.Fatal(err)
		}
		wantAdmitted(t, s, r, nil)
		if a := theRecord(t, s); a.Outcome != store.OutcomeRefused || a.SettledAt.IsZero() {
			t.Errorf("audit %+v", a)
		}
	},
	"the first outcome stays": func(t *testing.T, s store.Store) {
		web := mustCreate(t, s, sandbox("web"))
		r := request("a", "1")
		if _, err := s.ChangeSandbox(testContext(t), by(r, "web"), nil, begins(r, store.OperationDelete)); err != nil {
			t.Fatal(err)
		}
		mustTransact(t, s, func(tx store.Tx) error { return tx.Settle(r.ID, store.OutcomeAccepted, web.ID) })
		if a := theRecord(t, s); a.Outcome != store.OutcomeAccepted || !a.SettledAt.IsZero() {
			t.Errorf("audit %+v", a)
		}
		if _, err := s.ChangeSandbox(testContext(t), store.Target{ID: web.ID}, nil, settles(store.OutcomeCompleted, true)); err != nil {
			t.Fatal(err)
		}
		wantAdmitted(t, s, r, settled(r, store.OutcomeAccepted, web.ID))
		if a := theRecord(t, s); a.Outcome != store.OutcomeCompleted || a.SettledAt.Before(a.At) {
			t.Errorf("audit %+v", a)
		}
	},
	"of many at once one is admitted": func(t *testing.T, s store.Store) {
		mustCreate(t, s, sandbox("web"))
		var changed, refused atomic.Int32
		all := make([]func(), 16)
		for i := range all {
			all[i] = func() {
				r := request("a", "1")
				switch _, err := s.ChangeSandbox(testContext(t), by(r, "web"), nil, begins(r, store.OperationStop)); err {
				case nil:
					changed.Add(1)
				case store.ErrAdmitted: //nolint:errorlint // as it is
					refused.Add(1)
				default:
					t.Error(err)
				}
			}
		}
		atOnce(all...)
		if changed.Load() != 1 || refused.Load() != 15 {
			t.Errorf("%d changed it, %d were refused", changed.Load(), refused.Load())
		}
	},
	"a caller has so many admissions": func(t *testing.T, s store.Store) {
		admit := func(from, to int) error {
			return s.Transact(testContext(t), func(tx store.Tx) error {
				for i := from; i < to; i++ {
					if err := tx.Admit(request("a", fmt.Sprint(i))); err != nil {
						return err
					}
				}
				return nil
			})
		}
		if err := admit(0, store.MaxAdmissions); err != nil {
			t.Fatal(err)
		}
		wantError(t, admit(store.MaxAdmissions, store.MaxAdmissions+1), store.ErrTooManyAdmissions)
		wantAdmitted(t, s, request("a", fmt.Sprint(store.MaxAdmissions)), nil)
		mustTransact(t, s, func(tx store.Tx) error { return tx.Admit(request("b", "1")) })
	},
	"the audit tells who deleted what": func(t *testing.T, s store.Store) {
		web := mustCreate(t, s, sandbox("web"))
		r := request("a", "1")
		want := store.AuditRecord{
			ID: r.ID, Caller: store.Caller{IdentityProvider: "oidc", Issuer: "https://issuer", Subject: "a"}, Method: "/a.B/C",
			Workspace: store.DefaultWorkspace, Name: "web", SandboxID: web.ID,
			Expected: &store.Precondition{ID: web.ID, ResourceVersion: 1<<64 - 1}, Outcome: store.OutcomeAccepted,
		}
		_, err := s.ChangeSandbox(testContext(t), by(r, "web"), nil, func(current store.Sandbox, _ time.Time) (store.Change, error) {
			return store.Change{Write: &current, Audit: &store.AuditRecord{ID: r.ID, Caller: r.Caller, Method: r.Method, Expected: want.Expected, Outcome: store.OutcomeAccepted}}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		got := theRecord(t, s)
		if got.At.Before(web.CreatedAt) || got.At.Sub(web.CreatedAt) > time.Minute {
			t.Errorf("at %v, the sandbox is of %v", got.At, web.CreatedAt)
		}
		want.At = got.At
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	},
	"a refused change is not in the audit": func(t *testing.T, s store.Store) {
		mustCreate(t, s, sandbox("web"))
		r := request("a", "1")
		_, err := s.ChangeSandbox(testContext(t), by(r, "web"), nil, func(current store.Sandbox, now time.Time) (store.Change, error) {
			change, _ := begins(r, store.OperationDelete)(current, now)
			return change, store.ErrInternal
		})
		wantError(t, err, store.ErrInternal)
		if all, err := s.ListAudit(testContext(t), store.AuditQuery{Limit: 9}); err != nil || len(all) != 0 {
			t.Errorf("audit %+v, %v", all, err)
		}
	},
	"the audit is read page by page": func(t *testing.T, s store.Store) {
		const n = 25
		for i := range n {
			mustTransact(t, s, func(tx store.Tx) error {
				return tx.Audit(store.AuditRecord{ID: uuid.NewString(), Workspace: []string{"w", "v"}[i%2], Name: fmt.Sprint(i % 5), SandboxID: numbered(i), Outcome: store.OutcomeAccepted})
			})
		}
		read := func(q store.AuditQuery) (ids []string) {
			q.Limit = 4
			for range n {
				page, err := s.ListAudit(testContext(t), q)
				if err != nil {
					t.Fatal(err)
				}
				for _, a := range page {
					ids = append(ids, a.SandboxID)
				}
				if len(page) < q.Limit {
					break
				}
				q.After = &page[len(page)-1]
			}
			return ids
		}
		want := func(pick func(i int) bool) (ids []string) {
			for i := range n {
				if pick(i) {
					ids = append(ids, numbered(i))
				}
			}
			return ids
		}
		tenth, err := s.ListAudit(testContext(t), store.AuditQuery{Limit: 11})
		if err != nil || len(tenth) != 11 {
			t.Fatal(tenth, err)
		}
		since := tenth[10].At
		for name, tc := range map[string]struct {
			query store.AuditQuery
			pick  func(i int) bool
		}{
			"all":       {store.AuditQuery{}, func(int) bool { return true }},
			"workspace": {store.AuditQuery{Workspace: "w"}, func(i int) bool { return i%2 == 0 }},
			"name":      {store.AuditQuery{Workspace: "v", Name: "3"}, func(i int) bool { return i%2 == 1 && i%5 == 3 }},
			"none":      {store.AuditQuery{Workspace: "\x00"}, func(int) bool { return false }},
			"since":     {store.AuditQuery{Since: since}, func(i int) bool { return i >= 10 }},
		} {
			if diff := cmp.Diff(want(tc.pick), read(tc.query)); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", name, strings.TrimSpace(diff))
			}
		}
	},
	"a purge spares what is young": func(t *testing.T, s store.Store) {
		r := request("a", "1")
		mustTransact(t, s, func(tx store.Tx) error {
			if err := tx.Admit(r); err != nil {
				return err
			}
			return tx.Audit(store.AuditRecord{ID: r.ID, Outcome: store.OutcomeAccepted})
		})
		if n, err := s.Purge(testContext(t), 10); err != nil || n != 0 {
			t.Errorf("purged %d, %v", n, err)
		}
		wantAdmitted(t, s, r, pending(r))
		theRecord(t, s)
	},
}
