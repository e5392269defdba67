package pgtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func TestMain(m *testing.M) {
	if os.Getenv(envVictim) != "" {
		victim()
		return
	}
	Main(m)
}

func query[T any](t *testing.T, dsn, sql string) T {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	var value T
	if err := conn.QueryRow(t.Context(), sql).Scan(&value); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return value
}

func TestDatabasesAreEmptyAndApart(t *testing.T) {
	one, two := NewDatabase(t), NewDatabase(t)
	conn, err := pgx.Connect(t.Context(), one)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(t.Context(), "CREATE TABLE here (x int)"); err != nil {
		t.Fatal(err)
	}
	const tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
	if n := query[int](t, one, tables); n != 1 {
		t.Errorf("the first database has %d tables, want 1", n)
	}
	if n := query[int](t, two, tables); n != 0 {
		t.Errorf("the second database has %d tables, want none", n)
	}
}

func TestServerKeepsWhatDurabilityTestsRelyOn(t *testing.T) {
	dsn := NewDatabase(t)
	if os.Getenv(EnvServer) != "" {
		t.Skipf("%s names a server that somebody else configured", EnvServer)
	}
	for setting, want := range map[string]string{"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"} {
		if got := query[string](t, dsn, "SELECT current_setting('"+setting+"')"); got != want {
			t.Errorf("%s is %s, want %s", setting, got, want)
		}
	}
}

func TestStartTakesSettings(t *testing.T) {
	server := Start(t, WithSetting("fsync", "off"))
	if got := query[string](t, server.NewDatabase(t), "SELECT current_setting('fsync')"); got != "off" {
		t.Errorf("fsync is %s, want off", got)
	}
}

func TestStopLeavesNothing(t *testing.T) {
	server, err := start(nil)
	if err != nil {
		giveUp(t, err)
	}
	server.stop()
	if _, err := os.Stat(server.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory %s is still there: %v", server.dir, err)
	}
	if err := server.cmd.Process.Signal(syscall.Signal(0)); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("the server still runs: %v", err)
	}
}

func TestSweepTakesWhatNobodyUses(t *testing.T) {
	parent := t.TempDir()
	old := time.Now().Add(-time.Hour)
	place := func(name string, running bool, at time.Time) string {
		dir := filepath.Join(parent, name)
		if err := os.MkdirAll(filepath.Join(dir, "data"), 0o700); err != nil {
			t.Fatal(err)
		}
		if running {
			if err := os.WriteFile(filepath.Join(dir, "data", "postmaster.pid"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chtimes(dir, at, at); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	left := place(dirPrefix+"left", false, old)
	kept := []string{place(dirPrefix+"running", true, old), place(dirPrefix+"starting", false, time.Now()), place("another's", false, old)}
	sweep(parent)
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is still there: %v", left, err)
	}
	for _, dir := range kept {
		if _, err := os.Stat(dir); err != nil {
			t.Errorf("%s was taken: %v", dir, err)
		}
	}
}

const envVictim = "OPENSHELL_PGTEST_VICTIM"

// victim starts a server and waits to be killed.
func victim() {
	server, err := start(nil)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Printf("%d %s\n", server.cmd.Process.Pid, server.dir)
	<-server.ended
}

func TestKilledTestLeavesNoServer(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells a process that its parent has died")
	}
	if _, err := findBinaries(); err != nil {
		giveUp(t, err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envVictim+"=1")
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	var pid int
	var dir string
	if _, errScan := fmt.Sscan(line, &pid, &dir); errScan != nil {
		_ = cmd.Process.Kill()
		t.Fatalf("the victim said %q (%v)", line, err)
	}
	defer os.RemoveAll(dir)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()

	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	for !gone(pid) {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-deadline.C:
			if server, err := os.FindProcess(pid); err == nil {
				_ = server.Kill()
			}
			t.Fatalf("the server, process %d, outlived the test that started it", pid)
		}
	}
}

// gone reports whether a process has ended; nobody may have collected a zombie yet.
func gone(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

func TestOldOrMissingPostgreSQLIsNamed(t *testing.T) {
	dir := t.TempDir()
	if _, err := inspect(dir); err == nil {
		t.Error("an empty directory passes for an installation")
	}
	for _, name := range []string{"initdb", "postgres"} {
		script := "#!/bin/sh\necho 'postgres (PostgreSQL) 14.11 (Debian 14.11-1)'\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	found, err := inspect(dir)
	if err != nil || found.major != 14 {
		t.Errorf("inspect = %+v, %v, want version 14", found, err)
	}
}

// verdict records how a test ended instead of ending it.
type verdict struct {
	testing.TB
	skipped, failed bool
}

func (v *verdict) Helper()      {}
func (v *verdict) Skip(...any)  { v.skipped = true; runtime.Goexit() }
func (v *verdict) Fatal(...any) { v.failed = true; runtime.Goexit() }

func TestGiveUp(t *testing.T) {
	for _, c := range []struct {
		ci       string
		err      error
		wantSkip bool
	}{
		{"", &missingError{"nothing there"}, true},
		{"true", &missingError{"nothing there"}, false},
		{"", errors.New("broken"), false},
	} {
		t.Setenv("CI", c.ci)
		var v verdict
		done := make(chan struct{})
		go func() {
			defer close(done)
			giveUp(&v, c.err)
		}()
		<-done
		if v.skipped != c.wantSkip || v.failed == c.wantSkip {
			t.Errorf("CI=%q, %v: skipped %v, failed %v", c.ci, c.err, v.skipped, v.failed)
		}
	}
}

func TestServerURLIsNotRepeated(t *testing.T) {
	_, err := parseServer("host=x password=hunter2")
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("parseServer: %v, want an error without the password", err)
	}
}
