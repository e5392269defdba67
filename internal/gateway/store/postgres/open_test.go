package postgres

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/pgtest"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store/migrations"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store/sqlstore"
)

func TestReplicasMayStartAtOnce(t *testing.T) {
	url := pgtest.NewDatabase(t)
	stores := make([]*sqlstore.Store, 5)
	var starting sync.WaitGroup
	for i := range stores {
		starting.Go(func() {
			var err error
			if stores[i], err = Open(t.Context(), url); err != nil {
				t.Error(err)
			}
		})
	}
	starting.Wait()
	ids := map[string]bool{}
	for _, s := range stores {
		if s == nil {
			continue
		}
		w, err := s.Workspace(t.Context(), store.DefaultWorkspace)
		if err != nil {
			t.Error(err)
		}
		ids[w.ID] = true
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if len(ids) != 1 {
		t.Errorf("they see %d workspaces of the name", len(ids))
	}
}

// TestStartWaitsForWhoMigrates holds the lock that a process has while it changes the schema.
func TestStartWaitsForWhoMigrates(t *testing.T) {
	url := pgtest.NewDatabase(t)
	migrating, watch := dial(t, url), dial(t, url)
	exec(t, migrating, "SELECT pg_advisory_lock($1)", migrations.PostgresLock)
	opened := make(chan error, 1)
	go func() {
		s, err := Open(t.Context(), url)
		if err == nil {
			err = s.Close()
		}
		opened <- err
	}()
	await(t, watch, "EXISTS (SELECT FROM pg_stat_activity WHERE query LIKE '%pg_try_advisory_lock%' AND state = 'idle') OR to_regclass('sandboxes') IS NOT NULL")
	if query[bool](t, watch, "SELECT to_regclass('sandboxes') IS NOT NULL") {
		t.Error("the schema was changed by two at a time")
	}
	exec(t, migrating, "SELECT pg_advisory_unlock($1)", migrations.PostgresLock)
	if err := <-opened; err != nil {
		t.Error(err)
	}
}

// TestNewerSchema adds to the schema what a later version may add, under the feet of one that is at work.
func TestNewerSchema(t *testing.T) {
	url := pgtest.NewDatabase(t)
	before := openStore(t, url)
	ours := create(t, before, "web")
	exec(t, dial(t, url), `
		ALTER TABLE sandboxes ADD COLUMN colour TEXT NOT NULL DEFAULT 'none';
		ALTER TABLE sandboxes ADD COLUMN weight BIGINT;
		ALTER TABLE workspaces ADD COLUMN colour TEXT NOT NULL DEFAULT 'none';
		ALTER TABLE sandbox_labels ADD COLUMN colour TEXT;
		CREATE TABLE later (x INT);
		CREATE INDEX sandboxes_of_later ON sandboxes (colour);
		INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, true)`)
	for name, s := range map[string]store.Store{"at work": before, "started since": openStore(t, url)} {
		t.Run(name, func(t *testing.T) {
			unchanged(t, s, ours)
			made := create(t, s, strings.ReplaceAll(name, " ", "-"))
			marked, err := s.ChangeSandbox(t.Context(), named(made.Name), nil, mark)
			if err != nil {
				t.Fatal(err)
			}
			unchanged(t, s, marked)
			page, err := s.ListSandboxes(t.Context(), store.ListQuery{Limit: 10})
			if err != nil || len(page.Rows) < 2 {
				t.Errorf("the list is %d rows long: %v", len(page.Rows), err)
			}
			if _, err := s.ClaimDue(t.Context(), 1, time.Minute); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestSessions(t *testing.T) {
	dsn := pgtest.NewDatabase(t)
	watch := dial(t, dsn)
	name := query[string](t, watch, "SELECT current_database()")
	exec(t, watch, "ALTER DATABASE "+name+" SET synchronous_commit = off")
	exec(t, watch, "ALTER DATABASE "+name+" SET default_transaction_isolation = serializable")
	cfg := configOf(t, dsn)
	s := openStore(t, dsn)
	create(t, s, "web")
	writer, reader := connect(cfg), pool(openReader(cfg), 1)
	defer writer.Close()
	defer reader.Close()

	tx, err := writer.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	for setting, want := range map[string]string{
		"synchronous_commit": "on", "transaction_isolation": "read committed", "transaction_read_only": "off",
		"statement_timeout": "10s", "lock_timeout": "5s", "idle_in_transaction_session_timeout": "10s",
		"application_name": "openshell-reference-gateway",
	} {
		var got string
		if err := tx.QueryRowContext(t.Context(), "SELECT current_setting($1)", setting).Scan(&got); err != nil || got != want {
			t.Errorf("%s of a transaction is %s, %v, want %s", setting, got, err, want)
		}
	}
	if _, err := reader.ExecContext(t.Context(), "DELETE FROM sandboxes"); err == nil {
		t.Error("a connection for reads can delete")
	}
}

// TestStrongerSynchronousCommitIsKept: what the server is told to wait for besides its own disk is not ours to give up.
func TestStrongerSynchronousCommitIsKept(t *testing.T) {
	dsn := pgtest.NewDatabase(t)
	watch := dial(t, dsn)
	exec(t, watch, "ALTER DATABASE "+query[string](t, watch, "SELECT current_database()")+" SET synchronous_commit = remote_apply")
	cfg := configOf(t, dsn)
	writer := connect(cfg)
	defer writer.Close()
	var got string
	if err := writer.QueryRowContext(t.Context(), "SHOW synchronous_commit").Scan(&got); err != nil || got != "remote_apply" {
		t.Errorf("synchronous_commit is %s, %v", got, err)
	}
}

func TestURLs(t *testing.T) {
	const password = "hunter2"
	for text, want := range map[string]string{
		"postgres://user:" + password + "@host:port/db":                             "percent-encoded",
		"postgres://user:" + password + "%zz@host/db":                               "percent-encoded",
		"postgres://user:" + password + "/x@host/db":                                "percent-encoded",
		"mysql://user:" + password + "@host/db":                                     `scheme "mysql"`,
		"postgres://user:" + password + "@host/db?target_session_attrs=" + password: "not valid",
		"postgres://user:" + password + "@host/db?sslmode=maybe":                    "sslmode is invalid",
		"postgres://user:" + password + "@host/db?pool_max_conns=many":              "pool_max_conns",
		"postgres://user:" + password + "@host/db?pool_max_conns=1":                 "pool_max_conns",
		"postgres://user:" + password + "@host/db?sslrootcert=/no/such/file":        "/no/such/file",
	} {
		_, err := Open(t.Context(), text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", text, err, want)
		}
		if err != nil && strings.Contains(err.Error(), password) {
			t.Errorf("%s: the error repeats the password: %v", text, err)
		}
	}
}

func TestURLParameters(t *testing.T) {
	cfg, err := parse("postgresql://me@db.example/app?pool_max_conns=10&lock_timeout=1s&connect_timeout=2&sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	if cfg.writers != 7 || cfg.readers != 3 {
		t.Errorf("%d connections write and %d read, want 7 and 3", cfg.writers, cfg.readers)
	}
	if got := cfg.conn.RuntimeParams["lock_timeout"]; got != "1s" {
		t.Errorf("lock_timeout is %s, want that of the URL", got)
	}
	if got := cfg.conn.RuntimeParams["statement_timeout"]; got != "10s" {
		t.Errorf("statement_timeout is %s, want the default", got)
	}
	if _, sent := cfg.conn.RuntimeParams["pool_max_conns"]; sent {
		t.Error("the server would be sent pool_max_conns")
	}
	if cfg.conn.ConnectTimeout != 2*time.Second {
		t.Errorf("connect_timeout is %s", cfg.conn.ConnectTimeout)
	}
}

// A password in a file is read for every connection, as by PostgreSQL's own clients: it may have been changed since the start.
func TestPasswordFileIsReadAnew(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pgpass")
	write := func(password string) {
		if err := os.WriteFile(file, []byte("*:*:*:*:"+password+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("before")
	t.Setenv("PGPASSFILE", file)
	t.Setenv("PGPASSWORD", "")
	cfg, err := parse("postgres://me@db.example/app?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	conn := cfg.session(nil)
	want := func(password string) {
		t.Helper()
		if err := cfg.renewPassword(t.Context(), conn); err != nil || conn.Password != password {
			t.Errorf("the password is %q, %v, want %q", conn.Password, err, password)
		}
	}
	want("before")
	write("after")
	want("after")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	want("after")
}

func TestOpenNamesTheDatabaseAndWhatIsWrong(t *testing.T) {
	server := pgtest.NewDatabase(t)
	admin := dial(t, server)
	exec(t, admin, "CREATE DATABASE latin ENCODING 'SQL_ASCII' LOCALE_PROVIDER libc LOCALE 'C' TEMPLATE template0")
	t.Cleanup(func() {
		if _, err := admin.Exec(context.Background(), "DROP DATABASE latin WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	for path, want := range map[string][]string{
		"/latin":   {`"latin"`, "SQL_ASCII", "ENCODING 'UTF8'"},
		"/nowhere": {`"nowhere"`, "does not exist"},
	} {
		u, err := url.Parse(server)
		if err != nil {
			t.Fatal(err)
		}
		u.Path = path
		u.User = url.UserPassword("postgres", "hunter2")
		_, err = Open(t.Context(), u.String())
		for _, part := range want {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v, want %q in it", path, err, part)
			}
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error repeats the password: %v", path, err)
		}
	}
}

func TestOpenHonoursItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ctx, pgtest.NewDatabase(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("Open answered %v", err)
	}
}

// Reading the audit changes nothing, whatever the database is.
func TestOpenAuditLeavesTheDatabaseAsItIs(t *testing.T) {
	url := pgtest.NewDatabase(t)
	admin := dial(t, url)
	if a, err := OpenAudit(t.Context(), url); err == nil || !strings.Contains(err.Error(), "there is no audit of a gateway in it") {
		t.Errorf("an empty database: %v, %v", a, err)
	}
	if n := query[int](t, admin, "SELECT count(*)::int FROM pg_tables WHERE schemaname = 'public'"); n != 0 {
		t.Errorf("%d tables were made", n)
	}
	gone := strings.Replace(url, "/test_", "/no_", 1) // which cannot be asked
	if a, err := OpenAudit(t.Context(), gone); err == nil || gone == url || strings.Contains(err.Error(), "there is no audit") {
		t.Errorf("no database: %v, %v", a, err)
	}
	s := openStore(t, url)
	if err := s.Transact(t.Context(), func(tx store.Tx) error { return tx.Audit(store.AuditRecord{ID: "a"}) }); err != nil {
		t.Fatal(err)
	}
	exec(t, admin, "DELETE FROM goose_db_version WHERE version_id > 4") // as a gateway of an older build would have left it
	a, err := OpenAudit(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	got, err := a.ListAudit(t.Context(), store.AuditQuery{Limit: 9})
	if err := errors.Join(err, a.Close()); err != nil || len(got) != 1 {
		t.Errorf("%d records, %v", len(got), err)
	}
	if version := query[int](t, admin, "SELECT max(version_id)::int FROM goose_db_version"); version != 4 {
		t.Errorf("the schema was brought to version %d", version)
	}
}
