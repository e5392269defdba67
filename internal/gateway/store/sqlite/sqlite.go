// Package sqlite keeps the store in one SQLite file, or in memory.
//
// A file belongs to one process, by a lock of the operating system. All writes go through one goroutine, which takes
// whatever is waiting into one transaction, so that many clients share the cost of making it durable.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"

	"github.com/gofrs/flock"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store/migrations"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store/sqlstore"
)

// Memory is the path of a database that is gone once it is closed.
const Memory = ":memory:"

var dialect = sqlstore.Dialect{Now: nowFunction + "()", Unavailable: unavailable}

// Open opens the database at path, makes it if it is not there, and brings its schema up to date. It fails when another
// process, or another Open of this one, has the file.
func Open(ctx context.Context, path string) (*sqlstore.Store, error) {
	e, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("open database %s: %w", path, err)
	}
	s, err := e.start(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open database %s: %w", path, err), e.Close())
	}
	return s, nil
}

// OpenAudit opens the database at path for reading its audit, and leaves it as it is. It fails when there is none, and
// like [Open] when another process has the file.
func OpenAudit(ctx context.Context, path string) (*sqlstore.Audit, error) {
	a, err := openAudit(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("open database %s: %w", path, err)
	}
	return a, nil
}

func openAudit(ctx context.Context, path string) (*sqlstore.Audit, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("there is no database; name the one that the gateway has")
	}
	e := &engine{}
	var err error
	if e.lock, err = lockFile(path); err != nil {
		return nil, err
	}
	if e.reader, err = connect(path, url.Values{"mode": {"rw"}, "_query_only": {"1"}}); err != nil { // rw: what a killed gateway has left in its log is read too
		return nil, errors.Join(err, e.Close())
	}
	a, err := sqlstore.OpenAudit(ctx, e, dialect)
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return a, nil
}

// engine implements [sqlstore.Engine].
type engine struct {
	path           string
	file           os.FileInfo  // what is at the path; nil in memory
	lock           *flock.Flock // nil in memory; closed last, since SQLite's own locks go with any handle of the file
	writer, reader *sql.DB
	queue          *queue
}

func open(path string) (*engine, error) {
	e := &engine{path: path}
	if path == Memory {
		// One connection for all: in memory, each would have a database of its own.
		db, err := connect(Memory, url.Values{})
		if err != nil {
			return nil, err
		}
		e.writer, e.reader = db, db
		return e, e.startQueue()
	}
	err := makeFile(path)
	if err != nil {
		return nil, err
	}
	if e.lock, err = lockFile(path); err != nil {
		return nil, err
	}
	if e.file, err = os.Stat(path); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	// Every connection syncs every commit, and waits for others only so long. What the one that writes may have to undo of a
	// savepoint is kept in memory, and its log is folded into the database every 4,000 pages (16 MiB) instead of 1,000.
	if e.writer, err = connect(path, url.Values{"_journal_mode": {"WAL"}, "_pragma": {"temp_store(MEMORY)", "wal_autocheckpoint(4000)"}}); err == nil {
		e.reader, err = connect(path, url.Values{"_query_only": {"1"}})
	}
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	e.reader.SetMaxOpenConns(max(4, 2*runtime.GOMAXPROCS(0)))
	e.reader.SetMaxIdleConns(max(4, 2*runtime.GOMAXPROCS(0)))
	return e, e.startQueue()
}

// connect opens a pool of one connection, which is kept.
func connect(path string, params url.Values) (*sql.DB, error) {
	params.Set("_txlock", "immediate")
	params.Set("_synchronous", "FULL")
	params.Set("_foreign_keys", "1")
	params.Set("_busy_timeout", busyTimeoutMillis)
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: params.Encode()}).String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

// lockFile takes the lock that says which process a database belongs to. On Linux that is one of the database itself, by whatever
// name it is opened. Elsewhere it lies beside the database, since such a lock would be in the way of SQLite's own there.
func lockFile(path string) (*flock.Flock, error) {
	if runtime.GOOS != "linux" {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		}
		path += ".lock"
	}
	lock := flock.New(path, flock.SetPermissions(0o600))
	locked, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	if !locked {
		return nil, errors.New("it is in use by another gateway, and a SQLite file belongs to one process: stop the other gateway, or name another database")
	}
	return lock, nil
}

// makeFile makes an empty file that only its owner can read: environment variables are stored in clear.
func makeFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// start migrates the schema and takes over the work that an earlier process left behind: nobody else has this file, so
// whatever is put off is a timer, which will be put off again, or the lease of a process that is gone.
func (e *engine) start(ctx context.Context) (*sqlstore.Store, error) {
	if err := migrations.SQLite(ctx, e.writer); err != nil {
		return nil, err
	}
	if _, err := e.writer.ExecContext(ctx, "UPDATE sandboxes SET due_at = "+dialect.Now+" WHERE due_at IS NOT NULL"); err != nil {
		return nil, err
	}
	return sqlstore.Open(ctx, e, dialect)
}

func (e *engine) startQueue() error {
	var err error
	e.queue, err = newQueue(e.writer)
	if err != nil {
		return errors.Join(err, e.Close())
	}
	return nil
}

// Writer implements [sqlstore.Engine].
func (e *engine) Writer() *sql.DB { return e.writer }

// Reader implements [sqlstore.Engine].
func (e *engine) Reader() *sql.DB { return e.reader }

// Write implements [sqlstore.Engine].
func (e *engine) Write(ctx context.Context, fn func(ctx context.Context, tx *sql.Tx) error) error {
	if err := e.checkFile(); err != nil {
		return err
	}
	return e.queue.do(ctx, fn)
}

// Read implements [sqlstore.Engine].
func (e *engine) Read(ctx context.Context, fn func(ctx context.Context) error) error {
	if err := e.checkFile(); err != nil {
		return err
	}
	return fn(ctx)
}

// checkFile fails when the open file is not at its path any more: what is written into a file without a name is lost with the
// process, and another gateway could take the name, and with it the log that both would write.
func (e *engine) checkFile() error {
	if e.file == nil {
		return nil
	}
	now, err := os.Stat(e.path)
	switch {
	case err == nil && os.SameFile(now, e.file):
		return nil
	case err == nil:
		err = errors.New("another file is there")
	}
	return fmt.Errorf("%w: the database file %s was taken away from the running gateway (%w); put it back, or restart the gateway", store.ErrUnavailable, e.path, err)
}

// Close implements [sqlstore.Engine].
func (e *engine) Close() error {
	var errs []error
	if e.queue != nil {
		e.queue.close()
	}
	if e.reader != nil && e.reader != e.writer {
		errs = append(errs, e.reader.Close())
	}
	if e.writer != nil { // last, so that it folds the log into the database
		errs = append(errs, e.writer.Close())
	}
	if e.lock != nil {
		errs = append(errs, e.lock.Close())
	}
	return errors.Join(errs...)
}
