// Package pgtest starts a throw-away PostgreSQL for tests, from binaries that the machine has.
//
// A package that wants databases says so once and then takes an empty one for each test:
//
//	func TestMain(m *testing.M) { pgtest.Main(m) }
//	func TestStore(t *testing.T) { dsn := pgtest.NewDatabase(t) … }
//
// The server starts with the first database and ends with the test process, also when that is killed (on Linux). Where
// PostgreSQL is missing the test is skipped, and fails if CI=true.
package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/openshell-iac/terraform-provider-openshell/internal/testproc"
)

// startTimeout bounds both initdb and the start of the server.
const startTimeout = 2 * time.Minute

// Option changes how a server is started.
type Option func(*options)

type options struct{ settings []string }

// WithSetting sets a parameter of postgresql.conf. The defaults are PostgreSQL's own where a test could tell the
// difference; above all fsync is on.
func WithSetting(name, value string) Option {
	return func(o *options) { o.settings = append(o.settings, "-c", name+"="+value) }
}

// Server is a running PostgreSQL with a directory of its own. It listens on a socket in there and on no port.
type Server struct {
	dir   string
	url   *url.URL
	cmd   *exec.Cmd
	ended <-chan struct{}
}

// Start starts a server for one test, which ends with it.
func Start(tb testing.TB, opts ...Option) *Server {
	tb.Helper()
	server, err := start(opts)
	if err != nil {
		giveUp(tb, err)
	}
	tb.Cleanup(server.stop)
	return server
}

// DSN is a URL of a database on the server, the empty string being the superuser's own.
func (s *Server) DSN(database string) string { return dsn(s.url, database) }

// NewDatabase makes an empty database and returns its URL.
func (s *Server) NewDatabase(tb testing.TB) string {
	tb.Helper()
	return newDatabase(tb, s.url)
}

func start(opts []Option) (_ *Server, err error) {
	found, err := findBinaries()
	if err != nil {
		return nil, err
	}
	who, err := findAccount()
	if err != nil {
		return nil, err
	}
	dir, err := who.ownDir()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(dir)
		}
	}()
	sweep(filepath.Dir(dir))
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if err := initialize(ctx, found, who, dir); err != nil {
		return nil, err
	}
	s := &Server{dir: dir, url: &url.URL{
		Scheme: "postgres", User: url.User("postgres"), Path: "/postgres", RawQuery: url.Values{"host": {dir}}.Encode(),
	}}
	if err := s.run(found, who, opts); err != nil {
		return nil, err
	}
	if err := s.awaitReady(ctx); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// dirPrefix begins the name of every server's directory.
const dirPrefix = "openshell-postgres-"

// sweep removes the directories of servers whose tests were killed: nobody has started them for long, and they do not run.
func sweep(parent string) {
	dirs, _ := filepath.Glob(filepath.Join(parent, dirPrefix+"*")) // fails only for a bad pattern
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err != nil || time.Since(info.ModTime()) < 2*startTimeout {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, "data", "postmaster.pid")); errors.Is(err, fs.ErrNotExist) {
			os.RemoveAll(dir) // as far as it is ours
		}
	}
}

// initialize makes the data directory. Its collation sorts by language where PostgreSQL was built with ICU, so that a
// query shows which forgot to ask for byte order.
func initialize(ctx context.Context, found binaries, who account, dir string) error {
	var output []byte
	var err error
	for _, collation := range [][]string{{"--locale-provider=icu", "--icu-locale=en-US"}, nil} {
		args := append([]string{"-D", filepath.Join(dir, "data"), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"}, collation...)
		cmd := exec.CommandContext(ctx, found.initdb, args...)
		cmd.Dir = dir
		who.assume(cmd)
		output, err = cmd.CombinedOutput()
		if err == nil || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", found.initdb, err, output)
	}
	return nil
}

// run starts the server process.
func (s *Server) run(found binaries, who account, opts []Option) error {
	o := options{settings: []string{
		"-c", "listen_addresses=", "-c", "unix_socket_directories=" + s.dir, "-c", "unix_socket_permissions=0700", "-c", "max_connections=300",
	}}
	for _, opt := range opts {
		opt(&o)
	}
	log, err := os.Create(s.logPath())
	if err != nil {
		return err
	}
	defer log.Close() // the process has its own handle
	s.cmd = exec.Command(found.postgres, append([]string{"-D", filepath.Join(s.dir, "data")}, o.settings...)...)
	s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr = s.dir, log, log
	who.assume(s.cmd)
	s.ended, err = testproc.Start(s.cmd, syscall.SIGQUIT)
	return err
}

func (s *Server) logPath() string { return filepath.Join(s.dir, "log") }

// awaitReady waits until the server takes connections.
func (s *Server) awaitReady(ctx context.Context) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		conn, err := pgx.Connect(ctx, s.DSN(""))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-ticker.C:
		case <-s.ended:
			return fmt.Errorf("PostgreSQL ended while starting:\n%s", s.logTail())
		case <-ctx.Done():
			return fmt.Errorf("PostgreSQL took no connection within %s: %w\n%s", startTimeout, err, s.logTail())
		}
	}
}

func (s *Server) logTail() []byte {
	log, err := os.ReadFile(s.logPath())
	if err != nil {
		return []byte(err.Error())
	}
	return log[max(0, bytes.LastIndexByte(log[:max(0, len(log)-4000)], '\n')):]
}

// stop ends the server at once, as its data is not wanted any more.
func (s *Server) stop() {
	if err := s.cmd.Process.Signal(syscall.SIGQUIT); err != nil && !errors.Is(err, os.ErrProcessDone) {
		_ = s.cmd.Process.Kill()
	}
	<-s.ended
	os.RemoveAll(s.dir)
}
