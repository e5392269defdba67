// Package postgres keeps the store in a PostgreSQL database, which any number of gateway processes may share.
//
// Nothing about a sandbox is kept in the process, so what the store promises holds over all of them: it rests on row
// locks and on statements that name the id, and work that was taken up is put off by the database's own clock.
package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sethvargo/go-retry"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store/migrations"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store/sqlstore"
)

const (
	// attemptTimeout bounds one run of a transaction or read, the wait for a connection included.
	attemptTimeout = 15 * time.Second
	// patience bounds how long one is run again and again. A restart of the server takes less, and no lease runs out.
	patience = 10 * time.Second
	// firstPause and longestPause are between two runs.
	firstPause   = 5 * time.Millisecond
	longestPause = 500 * time.Millisecond
)

// dialect says how the SQL of package sqlstore is to be read by PostgreSQL.
//
// Transactions are READ COMMITTED, and that is enough for the conditional calls. SELECT … FOR UPDATE waits for whoever
// holds the row and then returns it as that one left it, not as it was when the statement began; from there on until
// COMMIT nobody else can change or delete it. So what is compared with the precondition is what the UPDATE writes, and
// that names the id and the version again, so that even without the lock it would hit no row rather than a wrong one.
//
// If the row was deleted during the wait, the lookup by name finds nothing, even when the name was given to a successor
// by then: that row was not there when the statement began. NOT_FOUND is right all the same, because a delete and a
// create are two transactions, and in between, which was during this call, the name was free. It is never a decision
// about one row carried out on another.
//
// The clock is clock_timestamp(), not now(): the latter stands still at the start of the transaction, so after a wait it
// would be behind what others have written meanwhile.
var dialect = sqlstore.Dialect{
	Now:                "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint",
	ForUpdate:          "FOR UPDATE",
	ForShare:           "FOR SHARE",
	SkipLocked:         "FOR UPDATE SKIP LOCKED",
	NumberedParameters: true,
	Unavailable:        unavailable,
}

// Open connects to the database of a postgres:// URL and brings its schema up to date. Other processes may be doing the
// same. No error repeats the password.
func Open(ctx context.Context, url string) (*sqlstore.Store, error) {
	cfg, err := parse(url)
	if err != nil {
		return nil, err
	}
	return open(ctx, cfg)
}

func open(ctx context.Context, cfg config) (*sqlstore.Store, error) {
	s, err := start(ctx, cfg)
	if err != nil {
		return nil, cfg.failed(err)
	}
	return s, nil
}

func (c config) failed(err error) error {
	return fmt.Errorf("open database %q on %s: %w", c.conn.Database, c.conn.Host, err)
}

// OpenAudit connects to the database of a postgres:// URL for reading its audit, and leaves it as it is. It fails where
// there is none. No error repeats the password.
func OpenAudit(ctx context.Context, url string) (*sqlstore.Audit, error) {
	cfg, err := parse(url)
	if err != nil {
		return nil, err
	}
	e := &engine{reader: pool(openReader(cfg), cfg.readers), patience: cfg.patience}
	a, err := sqlstore.OpenAudit(ctx, e, dialect)
	if err != nil {
		return nil, cfg.failed(errors.Join(err, e.Close()))
	}
	return a, nil
}

func start(ctx context.Context, cfg config) (*sqlstore.Store, error) {
	if err := again(ctx, cfg.patience, func(ctx context.Context) error { return prepare(ctx, cfg) }); err != nil {
		return nil, err
	}
	e := &engine{
		writer:   pool(connect(cfg), cfg.writers),
		reader:   pool(openReader(cfg), cfg.readers),
		patience: cfg.patience,
	}
	s, err := sqlstore.Open(ctx, e, dialect)
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return s, nil
}

func openReader(cfg config) *sql.DB { return cfg.open(readOnly) }

// prepare checks the server and migrates the schema, on connections of its own: a step may take longer than a call.
func prepare(ctx context.Context, cfg config) error {
	db := cfg.open(map[string]string{"statement_timeout": "0"})
	defer db.Close()
	if err := check(ctx, db); err != nil {
		return err
	}
	return migrations.Postgres(ctx, db)
}

// minVersion is the oldest server that the queries are tested with.
const minVersion = 150000

func check(ctx context.Context, db *sql.DB) error {
	var version int
	var name, encoding string
	err := db.QueryRowContext(ctx, `
		SELECT current_setting('server_version_num')::int, current_setting('server_version'), current_setting('server_encoding')`,
	).Scan(&version, &name, &encoding)
	switch {
	case err != nil:
		return err
	case version < minVersion:
		return fmt.Errorf("the server is PostgreSQL %s; the gateway needs %d or newer", name, minVersion/10000)
	case encoding != "UTF8":
		return fmt.Errorf("its encoding is %s; make the database with ENCODING 'UTF8'", encoding)
	}
	return nil
}

func pool(db *sql.DB, size int) *sql.DB {
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	db.SetConnMaxIdleTime(maxIdleTime)
	db.SetConnMaxLifetime(maxLifetime)
	return db
}

// engine implements [sqlstore.Engine].
type engine struct {
	writer, reader *sql.DB
	patience       time.Duration

	mu     sync.RWMutex // read-locked while the database is in use
	closed bool
}

var _ sqlstore.Engine = (*engine)(nil)

var errClosed = fmt.Errorf("%w: the database is closed", store.ErrUnavailable)

// Write implements [sqlstore.Engine].
func (e *engine) Write(ctx context.Context, fn func(ctx context.Context, tx *sql.Tx) error) error {
	return e.use(ctx, func(ctx context.Context) error { return transaction(ctx, e.writer, fn) })
}

// Read implements [sqlstore.Engine].
func (e *engine) Read(ctx context.Context, fn func(ctx context.Context) error) error {
	return e.use(ctx, fn)
}

func (e *engine) use(ctx context.Context, fn func(ctx context.Context) error) error {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.closed {
		return errClosed
	}
	return again(ctx, e.patience, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
		defer cancel()
		return fn(ctx)
	})
}

// transaction runs fn in one. When ctx ends before the COMMIT is sent, database/sql rolls it back; after that, the answer
// is waited for.
func transaction(ctx context.Context, db *sql.DB, fn func(ctx context.Context, tx *sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing; where it fails, the server does it
	if err := fn(ctx, tx); err != nil {
		return err
	}
	return tx.Commit()
}

// again runs fn until it succeeds or fails for a reason that will not pass, for a limited time.
func again(ctx context.Context, patience time.Duration, fn func(ctx context.Context) error) error {
	pauses := retry.WithMaxDuration(patience, retry.WithJitterPercent(50,
		retry.WithCappedDuration(longestPause, retry.NewExponential(firstPause))))
	return retry.Do(ctx, pauses, func(ctx context.Context) error {
		err := fn(ctx)
		if transient(err) {
			return retry.RetryableError(err)
		}
		return err
	})
}

// Writer implements [sqlstore.Engine].
func (e *engine) Writer() *sql.DB { return e.writer }

// Reader implements [sqlstore.Engine].
func (e *engine) Reader() *sql.DB { return e.reader }

// Close implements [sqlstore.Engine].
func (e *engine) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	err := e.reader.Close()
	if e.writer != nil { // which there is not for reading the audit alone
		err = errors.Join(err, e.writer.Close())
	}
	return err
}
