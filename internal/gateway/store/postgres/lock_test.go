package postgres

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/pgtest"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// What a change meets that had to wait for the row: it was locked by another session, which did something with it.

func TestChangeThatWaited(t *testing.T) {
	const (
		deleteWeb = "DELETE FROM sandboxes WHERE name = 'web'"
		insertWeb = `
			INSERT INTO sandboxes (id, workspace, name, created_at, labels, annotations, resource_version, spec, status, operation_id, operation)
			VALUES ('` + markID + `', 'default', 'web', 1, '{}', '{}', 1, '', '', '', '{}')`
	)
	url := pgtest.NewDatabase(t)
	s := openStore(t, url)
	for name, c := range map[string]struct {
		// meanwhile is what the other session does with the row, and after the COMMIT in a transaction of its own.
		meanwhile, after string
		want             error
	}{
		"finds the row gone":                    {meanwhile: deleteWeb, want: store.ErrNotFound},
		"does not take a successor for it":      {meanwhile: deleteWeb, after: insertWeb, want: store.ErrNotFound},
		"nor one that came in the same instant": {meanwhile: deleteWeb + ";" + insertWeb, want: store.ErrNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			session, watch := dial(t, url), dial(t, url)
			exec(t, session, deleteWeb)
			ours := create(t, s, "web")
			exec(t, session, "BEGIN")
			exec(t, session, c.meanwhile)
			decided := make(chan error, 1)
			go func() {
				_, err := s.ChangeSandbox(t.Context(), named("web"), &store.Precondition{ID: ours.ID}, mark)
				decided <- err
			}()
			await(t, watch, someoneWaits)
			exec(t, session, "COMMIT;"+c.after)
			if err := <-decided; !errors.Is(err, c.want) {
				t.Errorf("the change answered %v, want %v", err, c.want)
			}
			if n := query[int](t, watch, "SELECT count(*) FROM sandboxes WHERE resource_version <> 1 OR operation_id <> ''"); n != 0 {
				t.Error("a sandbox was changed that was not meant")
			}
		})
	}
}

func TestChangeThatWaitedSeesWhatTheOtherWrote(t *testing.T) {
	url := pgtest.NewDatabase(t)
	s := openStore(t, url)
	ours := create(t, s, "web")
	session, watch := dial(t, url), dial(t, url)
	exec(t, session, "BEGIN")
	exec(t, session, "UPDATE sandboxes SET resource_version = 7, annotations = '{\"who\": \"other\"}'")
	seen := make(chan store.Sandbox, 1)
	failed := make(chan error, 1)
	go func() {
		_, err := s.ChangeSandbox(t.Context(), named("web"), nil, func(current store.Sandbox, now time.Time) (store.Change, error) {
			seen <- current
			return mark(current, now)
		})
		failed <- err
	}()
	await(t, watch, someoneWaits)
	exec(t, session, "COMMIT")
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
	if got := <-seen; got.ResourceVersion != 7 || got.Annotations["who"] != "other" {
		t.Errorf("the decision was about version %d with %v", got.ResourceVersion, got.Annotations)
	}
	if v := query[int](t, watch, "SELECT resource_version FROM sandboxes WHERE id = $1", ours.ID); v != 8 {
		t.Errorf("the version is %d, want 8", v)
	}
}

// TestClockIsReadAfterTheWait has a session hold a row without changing it: PostgreSQL then goes on with what it had read.
func TestClockIsReadAfterTheWait(t *testing.T) {
	const clock = "SELECT clock_timestamp()"
	url := pgtest.NewDatabase(t)
	s := openStore(t, url)
	create(t, s, "web")
	for name, c := range map[string]struct {
		hold string
		call func(seen chan<- time.Time) error
	}{
		"change": {"SELECT FROM sandboxes FOR UPDATE", func(seen chan<- time.Time) error {
			_, err := s.ChangeSandbox(t.Context(), named("web"), nil, func(_ store.Sandbox, now time.Time) (store.Change, error) {
				seen <- now
				return store.Change{}, nil
			})
			return err
		}},
		"create": {"SELECT FROM workspaces FOR UPDATE", func(seen chan<- time.Time) error {
			_, err := s.CreateSandbox(t.Context(), store.DefaultWorkspace, func(now time.Time) store.Sandbox {
				seen <- now
				return newRow(uuid.NewString(), "db")(now)
			})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			session, watch := dial(t, url), dial(t, url)
			exec(t, session, "BEGIN")
			exec(t, session, c.hold)
			seen, failed := make(chan time.Time, 1), make(chan error, 1)
			go func() { failed <- c.call(seen) }()
			await(t, watch, someoneWaits)
			released := query[time.Time](t, watch, clock)
			exec(t, session, "COMMIT")
			if err := <-failed; err != nil {
				t.Fatal(err)
			}
			if now := <-seen; now.Before(released) {
				t.Errorf("the clock was read %s before the row was had", released.Sub(now))
			}
		})
	}
}

func TestWaitForARowEnds(t *testing.T) {
	url := pgtest.NewDatabase(t)
	s := openStore(t, url, func(cfg *config) { cfg.conn.RuntimeParams["lock_timeout"] = "50ms" })
	ours := create(t, s, "web")
	session := dial(t, url)
	exec(t, session, "BEGIN")
	exec(t, session, "SELECT FROM sandboxes FOR UPDATE")
	if _, err := s.ChangeSandbox(t.Context(), named("web"), nil, mark); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("the change answered %v, want %v", err, store.ErrUnavailable)
	}
	exec(t, session, "COMMIT")
	unchanged(t, s, ours)
}

// TestGatewayThatStandsStillLosesItsRow has a gateway stop in the middle of a transaction, which the server then ends.
func TestGatewayThatStandsStillLosesItsRow(t *testing.T) {
	url := pgtest.NewDatabase(t)
	w := &wire{}
	still := openStore(t, url, w.through, func(cfg *config) { cfg.conn.RuntimeParams["idle_in_transaction_session_timeout"] = "100ms" })
	other := openStore(t, url)
	ours := create(t, other, "web")
	touch := func(current store.Sandbox, _ time.Time) (store.Change, error) {
		return store.Change{Write: &current}, nil
	}
	w.atCommit(func(c *brokenConn) {
		if touched, err := other.ChangeSandbox(t.Context(), named("web"), nil, touch); err != nil || touched.ResourceVersion != 2 {
			t.Errorf("the other's change answered version %d, %v", touched.ResourceVersion, err)
		}
		c.send()
	})
	marked, err := still.ChangeSandbox(t.Context(), named("web"), nil, mark)
	if err != nil || marked.ID != ours.ID || marked.ResourceVersion != 3 {
		t.Errorf("the change answered version %d, %v, want 3", marked.ResourceVersion, err)
	}
}

// TestCreateWaitsForWhoTakesOrFreesTheName holds a name in a transaction that has not ended.
func TestCreateWaitsForWhoTakesOrFreesTheName(t *testing.T) {
	const deleteWeb = "DELETE FROM sandboxes WHERE name = 'web'"
	url := pgtest.NewDatabase(t)
	s := openStore(t, url)
	for name, c := range map[string]struct {
		end  string
		want error
	}{
		"freed":     {"COMMIT", nil},
		"not freed": {"ROLLBACK", store.ErrAlreadyExists},
	} {
		t.Run(name, func(t *testing.T) {
			session, watch := dial(t, url), dial(t, url)
			exec(t, session, deleteWeb)
			create(t, s, "web")
			exec(t, session, "BEGIN")
			exec(t, session, deleteWeb)
			failed := make(chan error, 1)
			go func() {
				_, err := s.CreateSandbox(t.Context(), store.DefaultWorkspace, newRow(uuid.NewString(), "web"))
				failed <- err
			}()
			await(t, watch, someoneWaits)
			exec(t, session, c.end)
			if err := <-failed; !errors.Is(err, c.want) {
				t.Errorf("the create answered %v, want %v", err, c.want)
			}
		})
	}
}
