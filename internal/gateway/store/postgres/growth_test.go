package postgres

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/pgtest"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

const (
	manyRows = 20_000
	// repeats is more than PostgreSQL takes to settle for one plan of a prepared statement.
	repeats = 10
	// readPerCall bounds the index entries that a call may read: a page, and a few to find it.
	readPerCall = 40
	page        = 10
)

// TestNothingScans has every call made on a large database, and then asks the server what that has read.
func TestNothingScans(t *testing.T) {
	dsn := pgtest.NewDatabase(t)
	s, err := Open(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	admin := dial(t, dsn)
	exec(t, admin, `
		INSERT INTO sandboxes (id, workspace, name, created_at, labels, annotations, resource_version, spec, status, operation_id, operation, due_at)
		SELECT 'id-' || i, 'default', 'name-' || i, i, '{}', '{}', 1, '', '', 'operation-' || i, '{}', 8000000000000000 + i
		FROM generate_series(1, $1::int) AS i`, manyRows)
	exec(t, admin, `
		INSERT INTO sandbox_labels (sandbox_id, workspace, key, value, created_at, name)
		SELECT id, workspace, key, 'b', created_at, name FROM sandboxes, unnest(ARRAY['a', 'c']) AS key`)
	exec(t, admin, `
		INSERT INTO objects (id, kind, workspace, sandbox_id, name, created_at, labels, resource_version, payload)
		SELECT 'object-' || kind || i, kind, 'default', CASE kind WHEN 'service' THEN 'id-' || i END, 'name-' || i, i, '{}', 1, ''
		FROM generate_series(1, $1::int) AS i, unnest(ARRAY['provider', 'service']) AS kind`, manyRows)
	exec(t, admin, `
		INSERT INTO object_labels (object_id, key, value) SELECT id, key, 'b' FROM objects, unnest(ARRAY['a', 'c']) AS key WHERE kind = 'provider'`)
	exec(t, admin, `
		INSERT INTO admissions (scope, request_id, caller, fingerprint, operation_id, expires_at)
		SELECT 'scope', 'request-' || i, 'caller-' || i % 1000, '', 'operation-' || i, 8000000000000000 + i FROM generate_series(1, $1::int) AS i`, manyRows)
	exec(t, admin, `
		INSERT INTO audit (id, at, identity_provider, issuer, subject, method, workspace, name, sandbox_id, outcome)
		SELECT 'audit-' || i, 8000000000000000 + i, '', '', '', '', 'default', 'name-' || i % 1000, 'id-' || i, 'completed' FROM generate_series(1, $1::int) AS i`, manyRows)
	exec(t, admin, "ANALYZE") // the server does that by itself, a little later
	before := readSoFar(t, s, dsn)

	if s, err = Open(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	calls := 0
	for i := range repeats {
		for what, call := range everyCall(s, i) {
			calls++
			if err := call(t.Context()); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
		}
	}
	after := readSoFar(t, s, dsn)
	if n := after.scans - before.scans; n != 0 {
		t.Errorf("%d calls read a whole table %d times", calls, n)
	}
	if n := after.entries - before.entries; n > int64(calls*readPerCall) {
		t.Errorf("%d calls read %d entries of indexes", calls, n)
	}
}

// everyCall is each call about sandboxes, children and requests included, on rows around the middle. Statistics are left out, which do
// read all.
func everyCall(s store.Store, i int) map[string]func(context.Context) error {
	all := callsAboutObjects(s)
	maps.Copy(all, callsAboutRequests(s, i))
	maps.Copy(all, callsAboutSandboxes(s, i))
	return all
}

var middle = store.Cursor{CreatedAt: time.UnixMicro(manyRows / 2), Name: "name-10000", Workspace: store.DefaultWorkspace, ID: "id-10000"}

func callsAboutObjects(s store.Store) map[string]func(context.Context) error {
	list := func(q store.ObjectQuery) func(context.Context) error {
		return func(ctx context.Context) error {
			for _, q.After = range []*store.Cursor{nil, &middle} {
				q.Limit = page
				if _, err := s.ListObjects(ctx, q); err != nil {
					return err
				}
			}
			return nil
		}
	}
	key := store.ProviderKey(store.DefaultWorkspace, "name-80")
	return map[string]func(context.Context) error{
		"object":       func(ctx context.Context) error { _, err := s.Object(ctx, key); return err },
		"object by id": func(ctx context.Context) error { _, err := s.ObjectByID(ctx, "object-provider80"); return err },
		"child": func(ctx context.Context) error {
			_, err := s.Object(ctx, store.Key{Kind: store.KindService, SandboxID: "id-80", Name: "name-80"})
			return err
		},
		"objects":                  list(store.ObjectQuery{Kind: store.KindProvider}),
		"objects of one workspace": list(store.ObjectQuery{Kind: store.KindProvider, Workspaces: []string{store.DefaultWorkspace}}),
		"objects by label":         list(store.ObjectQuery{Kind: store.KindProvider, Labels: map[string]string{"a": "b", "c": "b"}}),
		"objects by name":          list(store.ObjectQuery{Kind: store.KindProvider, ByName: true}),
		"children":                 list(store.ObjectQuery{Kind: store.KindService, SandboxID: "id-80"}),
		"write an object": func(ctx context.Context) error {
			return s.Transact(ctx, func(tx store.Tx) error {
				o, err := tx.LockObject(key)
				if err == nil {
					_, err = tx.WriteObject(o)
				}
				if err == nil {
					_, err = tx.Referrers(o)
				}
				return err
			})
		},
		"trim": func(ctx context.Context) error {
			return s.Transact(ctx, func(tx store.Tx) error { return tx.Trim(store.KindService, "id-81", 1) })
		},
	}
}

func callsAboutRequests(s store.Store, i int) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"admitted": func(ctx context.Context) error { _, _, err := s.Admitted(ctx, "scope", "request-80"); return err },
		"admit and settle": func(ctx context.Context) error {
			r := &store.Request{
				ID: uuid.NewString(), Caller: store.Caller{Key: fmt.Sprint("new-", i)}, Admission: &store.Admission{Scope: "scope", RequestID: uuid.NewString()},
			}
			return s.Transact(ctx, func(tx store.Tx) error {
				if err := tx.Admit(r); err != nil {
					return err
				}
				return tx.Settle(r.ID, store.OutcomeDone, "id-80")
			})
		},
		"purge": func(ctx context.Context) error { _, err := s.Purge(ctx, page); return err },
		"audit": func(ctx context.Context) error { _, err := s.ListAudit(ctx, store.AuditQuery{Limit: page}); return err },
		"audit of one name": func(ctx context.Context) error {
			_, err := s.ListAudit(ctx, store.AuditQuery{Workspace: store.DefaultWorkspace, Name: "name-80", Limit: page})
			return err
		},
	}
}

func callsAboutSandboxes(s store.Store, i int) map[string]func(context.Context) error {
	list := func(q store.ListQuery) func(context.Context) error {
		return func(ctx context.Context) error {
			q.Limit = page
			if _, err := s.ListSandboxes(ctx, q); err != nil {
				return err
			}
			q.After = &middle
			_, err := s.ListSandboxes(ctx, q)
			return err
		}
	}
	a, ac := map[string]string{"a": "b"}, map[string]string{"a": "b", "c": "b"}
	id := uuid.NewString()
	return map[string]func(context.Context) error{
		"workspace": func(ctx context.Context) error { _, err := s.Workspace(ctx, store.DefaultWorkspace); return err },
		"get": func(ctx context.Context) error {
			_, err := s.Sandbox(ctx, store.DefaultWorkspace, "name-77")
			return err
		},
		"get by id":   func(ctx context.Context) error { _, err := s.SandboxByID(ctx, "id-77"); return err },
		"list":        list(store.ListQuery{}),
		"of one":      list(store.ListQuery{Workspace: store.DefaultWorkspace}),
		"by label":    list(store.ListQuery{Labels: a}),
		"by labels":   list(store.ListQuery{Labels: ac}),
		"of one by l": list(store.ListQuery{Workspace: store.DefaultWorkspace, Labels: ac}),
		"change": func(ctx context.Context) error {
			_, err := s.ChangeSandbox(ctx, named("name-78"), nil, func(current store.Sandbox, _ time.Time) (store.Change, error) {
				return store.Change{Write: &current}, nil
			})
			return err
		},
		"create and remove": func(ctx context.Context) error {
			made, err := s.CreateSandbox(ctx, store.DefaultWorkspace, newRow(id, "new-"+id))
			if err != nil {
				return err
			}
			_, err = s.ChangeSandbox(ctx, store.Target{ID: made.ID}, nil, func(store.Sandbox, time.Time) (store.Change, error) {
				return store.Change{Remove: true}, nil
			})
			return err
		},
		"next due": func(ctx context.Context) error { _, _, err := s.NextDue(ctx); return err },
		"claim":    func(ctx context.Context) error { _, err := s.ClaimDue(ctx, page, time.Minute); return err },
		"reschedule": func(ctx context.Context) error {
			return s.Reschedule(ctx, "id-79", "operation-79", time.Duration(i+1)*time.Hour)
		},
	}
}

type reads struct{ scans, entries int64 }

// readSoFar closes the store, so that its sessions report, and says what was read of the large tables.
func readSoFar(t *testing.T, s store.Store, dsn string) reads {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	watch := dial(t, dsn)
	await(t, watch, "NOT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'openshell-reference-gateway' AND datname = current_database())")
	const tables = " WHERE relname IN ('sandboxes', 'sandbox_labels', 'objects', 'object_labels', 'admissions', 'audit')"
	return reads{
		scans:   query[int64](t, watch, "SELECT sum(seq_scan)::bigint FROM pg_stat_user_tables"+tables),
		entries: query[int64](t, watch, "SELECT sum(idx_tup_read)::bigint FROM pg_stat_user_indexes"+tables),
	}
}
