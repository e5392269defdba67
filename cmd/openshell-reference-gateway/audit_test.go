package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// audited makes a database with so many records, which is open until the test ends it.
func audited(t *testing.T, url string, n int) store.Store {
	t.Helper()
	s, err := gateway.OpenStore(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	err = s.Transact(t.Context(), func(tx store.Tx) error {
		for i := range n {
			if err := tx.Audit(store.AuditRecord{
				ID: fmt.Sprintf("%06d", i), Caller: store.Caller{IdentityProvider: "oidc", Issuer: "https://issuer", Subject: "ann"}, Method: "/a.B/C",
				Workspace: "default", Name: fmt.Sprint("web", i%2), SandboxID: "some-id",
				Expected: &store.Precondition{ID: "other-id", ResourceVersion: 1<<64 - 1}, Outcome: store.OutcomeIdentityMismatch,
			}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAuditCommand(t *testing.T) {
	const n = auditPage + 3
	url := "sqlite:" + filepath.Join(t.TempDir(), "gateway.db")
	s := audited(t, url, n)
	if _, code := printed(t, "audit", "--db-url", url); code != exitFailed {
		t.Errorf("exit code %d while another process has the file", code)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(t.TempDir(), "typo.db")
	for _, path := range []string{missing, ":memory:"} {
		if said := refused(t, exitFailed, "audit", "--db-url", "sqlite:"+path); !strings.Contains(said, "there is no database") {
			t.Errorf("%s: it says %q", path, said)
		}
	}
	if _, err := os.Stat(missing); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a database was made: %v", err)
	}
	for _, tc := range []struct {
		args []string
		want int
	}{
		{nil, n},
		{[]string{"--name", "web1"}, n / 2},
		{[]string{"--workspace", "default", "--name", "web1"}, n / 2},
		{[]string{"--workspace", "other"}, 0},
		{[]string{"--since", time.Now().Add(time.Hour).Format(time.RFC3339)}, 0},
		{[]string{"--since", time.Now().Add(-time.Hour).Format(time.RFC3339)}, n},
	} {
		lines, code := printed(t, append([]string{"audit", "--db-url", url}, tc.args...)...)
		if code != 0 || len(lines) != tc.want {
			t.Errorf("%v: exit code %d, %d lines; want %d", tc.args, code, len(lines), tc.want)
		}
		ids := map[string]bool{}
		for _, line := range lines {
			ids[line.ID] = true
			if line.Subject != "ann" || line.SandboxID != "some-id" || line.ExpectedID != "other-id" || line.ExpectedVersion != 1<<64-1 ||
				line.Outcome != store.OutcomeIdentityMismatch || line.SettledAt != nil || time.Since(line.At) > time.Hour {
				t.Fatalf("line %+v", line)
			}
		}
		if len(ids) != len(lines) {
			t.Errorf("%v: a record is there twice", tc.args)
		}
	}
	if _, code := printed(t, "audit", "--since", "yesterday"); code != exitUsage {
		t.Errorf("exit code %d for a bad flag", code)
	}
	if _, code := printed(t, "audit", "--help"); code != 0 {
		t.Errorf("exit code %d for --help", code)
	}
}

// printed runs a command and reads the lines of JSON that it prints.
func printed(t *testing.T, args ...string) ([]auditLine, int) {
	t.Helper()
	var out, stderr strings.Builder
	code := run(t.Context(), args, &out, &stderr)
	if code != 0 {
		t.Log(stderr.String())
		return nil, code
	}
	var lines []auditLine
	for scanner := bufio.NewScanner(strings.NewReader(out.String())); scanner.Scan(); {
		var line auditLine
		if json.Unmarshal(scanner.Bytes(), &line) == nil {
			lines = append(lines, line)
		}
	}
	return lines, code
}
