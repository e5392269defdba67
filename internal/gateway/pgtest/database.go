package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// EnvServer names, as a postgres:// URL, a running server to use instead of starting one: one for all packages of a run.
const EnvServer = "OPENSHELL_TEST_POSTGRES"

// statementTimeout bounds making and dropping a database.
const statementTimeout = time.Minute

// shared is the server of this test process.
var shared struct {
	sync.Mutex
	main    bool
	server  *Server // nil when EnvServer names one
	url     *url.URL
	err     error
	started bool
}

// Main runs the tests of a package and then ends the server that [NewDatabase] may have started. It does not return.
func Main(m *testing.M) {
	shared.main = true
	code := m.Run()
	if shared.server != nil {
		shared.server.stop()
	}
	os.Exit(code)
}

// NewDatabase makes an empty database on the server of this test process and returns its URL. The database goes with
// the test.
func NewDatabase(tb testing.TB) string {
	tb.Helper()
	server, err := sharedURL()
	if err != nil {
		giveUp(tb, err)
	}
	return newDatabase(tb, server)
}

func sharedURL() (*url.URL, error) {
	shared.Lock()
	defer shared.Unlock()
	if shared.started {
		return shared.url, shared.err
	}
	shared.started = true
	if value := os.Getenv(EnvServer); value != "" {
		shared.url, shared.err = parseServer(value)
		return shared.url, shared.err
	}
	if !shared.main {
		shared.err = errors.New("the package needs: func TestMain(m *testing.M) { pgtest.Main(m) }")
		return nil, shared.err
	}
	shared.server, shared.err = start(nil)
	if shared.err == nil {
		shared.url = shared.server.url
	}
	return shared.url, shared.err
}

// parseServer reads the value of [EnvServer]. It may hold a password, so no error repeats it.
func parseServer(value string) (*url.URL, error) {
	u, err := url.Parse(value)
	if err != nil || !strings.HasPrefix(u.Scheme, "postgres") {
		return nil, fmt.Errorf("%s is no postgres:// URL", EnvServer)
	}
	return u, nil
}

func newDatabase(tb testing.TB, server *url.URL) string {
	tb.Helper()
	name := "test_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	if err := execute(server, "CREATE DATABASE "+name); err != nil {
		tb.Fatalf("make a database: %v", err)
	}
	tb.Cleanup(func() {
		if err := execute(server, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			tb.Errorf("drop database %s: %v", name, err)
		}
	})
	return dsn(server, name)
}

// execute runs a statement that cannot be part of a transaction.
func execute(server *url.URL, statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), statementTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, server.String())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, statement)
	return err
}

func dsn(server *url.URL, database string) string {
	u := *server
	if database != "" {
		u.Path = "/" + database
	}
	return u.String()
}

// giveUp ends a test that has no PostgreSQL. Only a machine that lacks it may skip, and not where the result counts.
func giveUp(tb testing.TB, err error) {
	tb.Helper()
	var missing *missingError
	if errors.As(err, &missing) && os.Getenv("CI") != "true" {
		tb.Skip(err)
	}
	tb.Fatal(err)
}
