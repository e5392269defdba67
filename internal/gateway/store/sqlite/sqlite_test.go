package sqlite_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"google.golang.org/protobuf/testing/protocmp"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store/sqlite"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store/sqlstore"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store/storetest"
)

func mustOpen(t *testing.T, path string) *sqlstore.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustClose(t *testing.T, s *sqlstore.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestFile(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store {
		s := mustOpen(t, filepath.Join(t.TempDir(), "a.db"))
		t.Cleanup(func() { mustClose(t, s) })
		return s
	})
}

func TestMemory(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store {
		s := mustOpen(t, sqlite.Memory)
		t.Cleanup(func() { mustClose(t, s) })
		return s
	})
}

// build makes a row named web, whose operation is due an hour from now.
func build() store.Build {
	id, operationID := uuid.NewString(), uuid.NewString()
	return func(now time.Time) store.Sandbox {
		return store.Sandbox{
			ID: id, Name: "web", Spec: &openshellv1.SandboxSpec{}, Status: &openshellv1.SandboxStatus{},
			Operation: store.Operation{ID: operationID, Kind: store.OperationDelete, Since: now, DueAt: now.Add(time.Hour)},
		}
	}
}

// Whatever is in a file's name, it is that file and no other.
func TestPaths(t *testing.T) {
	for _, name := range []string{"plain.db", "with space.db", "a?b=c&d#e%41.db", "ünïcödé.db", "'quoted\".db", ":memory:x"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "new folder", name)
			s := mustOpen(t, path)
			created, err := s.CreateSandbox(t.Context(), store.DefaultWorkspace, build())
			if err != nil {
				t.Fatal(err)
			}
			mustClose(t, s)
			if _, err := os.Stat(path); err != nil {
				t.Error(err)
			}
			s = mustOpen(t, path)
			defer mustClose(t, s)
			if _, err := s.SandboxByID(t.Context(), created.ID); err != nil {
				t.Error(err)
			}
		})
	}
}

// The environment of sandboxes may be secret.
func TestFilesAreTheOwners(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, filepath.Join(dir, "sub", "a.db"))
	defer mustClose(t, s)
	if _, err := s.CreateSandbox(t.Context(), store.DefaultWorkspace, build()); err != nil {
		t.Fatal(err)
	}
	files := 0
	err := filepath.Walk(filepath.Join(dir, "sub"), func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		files++
		return err
	})
	if err != nil || files < 4 { // the folder, the database, its log and the index of that
		t.Errorf("%d files, %v", files, err)
	}
}

func TestOneProcessAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	names := []string{path, filepath.Join(t.TempDir(), "link.db")}
	first := mustOpen(t, path)
	if err := os.Symlink(path, names[1]); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS == "linux" {
		names = append(names, filepath.Join(filepath.Dir(path), "other.db"))
		if err := os.Link(path, names[2]); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range names {
		s, err := sqlite.Open(t.Context(), name)
		if err == nil {
			mustClose(t, s)
			t.Fatalf("%s was opened twice", name)
		}
		if !strings.Contains(err.Error(), "in use by another gateway") {
			t.Errorf("error %v", err)
		}
	}
	if _, err := first.CreateSandbox(t.Context(), store.DefaultWorkspace, build()); err != nil {
		t.Errorf("the first cannot go on: %v", err)
	}
	mustClose(t, first)
	mustClose(t, mustOpen(t, path))
}

// Another process cannot be at work on the file, so everything that was under way is taken up at once.
func TestReopen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	s := mustOpen(t, path)
	created, err := s.CreateSandbox(t.Context(), store.DefaultWorkspace, build())
	if err != nil {
		t.Fatal(err)
	}
	workspace, err := s.Workspace(t.Context(), store.DefaultWorkspace)
	if err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)

	s = mustOpen(t, path)
	defer mustClose(t, s)
	if again, err := s.Workspace(t.Context(), store.DefaultWorkspace); err != nil || again.ID != workspace.ID {
		t.Errorf("the workspace is %s, was %s (%v)", again.ID, workspace.ID, err)
	}
	claimed, err := s.ClaimDue(t.Context(), 9, 0)
	if err != nil || len(claimed) != 1 {
		t.Fatal(claimed, err)
	}
	claimed[0].Operation.DueAt = created.Operation.DueAt
	if diff := cmp.Diff(created, claimed[0], protocmp.Transform()); diff != "" {
		t.Errorf("(-before +after)\n%s", diff)
	}
}

// A workspace id tells databases apart.
func TestDatabasesHaveTheirOwnWorkspaceID(t *testing.T) {
	seen := map[string]bool{}
	for range 2 {
		s := mustOpen(t, sqlite.Memory)
		w, err := s.Workspace(t.Context(), store.DefaultWorkspace)
		mustClose(t, s)
		if err != nil || seen[w.ID] {
			t.Errorf("workspace %s: %v", w.ID, err)
		}
		seen[w.ID] = true
	}
}

func TestClosed(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "a.db"))
	mustClose(t, s)
	if _, err := s.CreateSandbox(t.Context(), store.DefaultWorkspace, build()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("error %v", err)
	}
}

// A database in memory hangs on one connection, which a caller who gives up must not take along.
func TestMemoryOutlivesCancelledCalls(t *testing.T) {
	s := mustOpen(t, sqlite.Memory)
	defer mustClose(t, s)
	if _, err := s.CreateSandbox(t.Context(), store.DefaultWorkspace, build()); err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*time.Microsecond)
		_, _ = s.ListSandboxes(ctx, store.ListQuery{Limit: 10})
		_, _ = s.Sandbox(ctx, store.DefaultWorkspace, "web")
		cancel()
	}
	if _, err := s.Sandbox(t.Context(), store.DefaultWorkspace, "web"); err != nil {
		t.Error(err)
	}
}

// What a gateway wrote into a file that has no name any more would be gone with the process. So it says that it cannot serve,
// until the file is back.
func TestFileTakenAway(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open file cannot be moved there")
	}
	for name, replace := range map[string]bool{"removed": false, "replaced": true} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a.db")
			s := mustOpen(t, path)
			defer mustClose(t, s)
			if err := os.Rename(path, path+".moved"); err != nil {
				t.Fatal(err)
			}
			if replace {
				if err := os.WriteFile(path, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, err := s.CreateSandbox(t.Context(), store.DefaultWorkspace, build())
			if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), path) {
				t.Errorf("a write: %v", err)
			}
			if _, err := s.Workspace(t.Context(), store.DefaultWorkspace); !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("a read: %v", err)
			}
			if err := os.Rename(path+".moved", path); err != nil {
				t.Fatal(err)
			}
			if _, err := s.CreateSandbox(t.Context(), store.DefaultWorkspace, build()); err != nil {
				t.Errorf("once it is back: %v", err)
			}
		})
	}
}

func TestOpenFailures(t *testing.T) {
	notADatabase := filepath.Join(t.TempDir(), "text.db")
	if err := os.WriteFile(notADatabase, []byte(strings.Repeat("this is no database\n", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{
		"a folder":       t.TempDir(),
		"no database":    notADatabase,
		"below a file":   filepath.Join(notADatabase, "a.db"),
		"a missing root": filepath.Join("/proc/none", "a.db"),
	} {
		t.Run(name, func(t *testing.T) {
			s, err := sqlite.Open(t.Context(), path)
			if err == nil {
				mustClose(t, s)
				t.Fatal("it was opened")
			}
			if !strings.Contains(err.Error(), path) && !strings.Contains(err.Error(), filepath.Dir(path)) {
				t.Errorf("the error does not name the file: %v", err)
			}
		})
	}
}

// Reading the audit changes nothing, whatever the file is.
func TestOpenAuditLeavesTheFileAsItIs(t *testing.T) {
	own, empty, text := filepath.Join(t.TempDir(), "own.db"), filepath.Join(t.TempDir(), "empty.db"), filepath.Join(t.TempDir(), "notes.txt")
	s := mustOpen(t, own)
	if err := s.Transact(t.Context(), func(tx store.Tx) error {
		if _, err := tx.CreateSandbox(store.DefaultWorkspace, build()); err != nil { // of which an operation is to be taken up later
			return err
		}
		return tx.Audit(store.AuditRecord{ID: "a"})
	}); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	for path, content := range map[string]string{empty: "", text: "not a database"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for path, records := range map[string]int{own: 1, empty: -1, text: -1} {
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		a, err := sqlite.OpenAudit(t.Context(), path)
		switch {
		case records < 0 && err == nil:
			t.Errorf("%s: it has an audit", path)
		case records < 0:
			if !strings.Contains(err.Error(), "there is no audit of a gateway in it") {
				t.Errorf("%s: %v", path, err)
			}
		case err != nil:
			t.Fatal(err)
		default:
			got, err := a.ListAudit(t.Context(), store.AuditQuery{Limit: 9})
			if err := errors.Join(err, a.Close()); err != nil || len(got) != records {
				t.Errorf("%s: %d records, %v", path, len(got), err)
			}
		}
		if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
			t.Errorf("%s has changed (%v)", path, err)
		}
	}
}
