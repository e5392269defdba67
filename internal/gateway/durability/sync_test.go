package durability

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/processtest"
	"github.com/openshell-iac/terraform-provider-openshell/internal/testproc"
)

const (
	// syncDelay is added to every sync, so that an answer which does not wait for it comes before it.
	syncDelay = 150 * time.Millisecond
	// quiet is how long nothing must be synced for the gateway to count as idle: longer than a delayed sync takes.
	quiet        = 4 * syncDelay
	quietTimeout = time.Minute
	acknowledged = 4
)

// The disk must have a change before it is acknowledged. Two gateways that are wrong show that the test can tell.
func TestSyncComesBeforeTheAcknowledgement(t *testing.T) {
	requireStrace(t)
	t.Run("as built", func(t *testing.T) {
		t.Parallel()
		if late := unsynced(t, processtest.Build(t)); late != 0 {
			t.Errorf("%d of %d acknowledgements came before the disk had the change", late, acknowledged)
		}
	})
	for name, edits := range map[string][]edit{
		"synchronous=OFF": {{"store/sqlite/sqlite.go", `params.Set("_synchronous", "FULL")`, `params.Set("_synchronous", "OFF")`}},
		"acknowledged before COMMIT": {
			{"store/sqlite/queue.go", "\t\tclose(r.done)\n", ""},
			{"store/sqlite/queue.go", "\tr.run(tx)\n", "\tr.run(tx)\n\tclose(r.done)\n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if late := unsynced(t, processtest.Build(t, "-overlay", overlay(t, edits))); late != acknowledged {
				t.Errorf("only %d of %d acknowledgements of this wrong gateway were found to come too early", late, acknowledged)
			}
		})
	}
}

func requireStrace(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("strace"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("strace is missing: install it (Debian: apt-get install strace)")
		}
		t.Skip("strace is missing; this test observes the gateway's system calls with it")
	}
}

// unsynced makes conditional deletes one by one and counts those that were answered although no sync of the write-ahead
// log had come back since they were asked for.
func unsynced(t *testing.T, binary string) (late int) {
	g := start(t, binary)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var ids [acknowledged]string
	for i := range ids {
		s, err := g.create(ctx, "s"+strconv.Itoa(i), map[string]any{"never_ready": true, "delete_after": "1h"})
		if err != nil {
			t.Fatal(err)
		}
		ids[i] = s.GetMetadata().GetId()
	}
	trace := attach(t, g.PID())
	for i, id := range ids {
		before := trace.idle(t)
		if err := g.deleteIf(ctx, "s"+strconv.Itoa(i), id); err != nil {
			t.Fatal(err)
		}
		if trace.syncs(t) == before {
			late++
		}
	}
	return late
}

// trace is strace at work on a process.
type trace struct{ file string }

// attach has strace write every sync of the process to a file once it has come back, after delaying it.
func attach(t *testing.T, pid int) trace {
	t.Helper()
	tr := trace{filepath.Join(t.TempDir(), "trace")}
	delay := fmt.Sprintf("inject=fsync,fdatasync:delay_enter=%d", syncDelay.Microseconds())
	cmd := exec.Command("strace", "-f", "-y", "-e", "trace=fsync,fdatasync", "-e", delay, "-o", tr.file, "-p", strconv.Itoa(pid))
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	ended, err := testproc.Start(cmd, syscall.SIGTERM)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it lets go of the process
		<-ended
	})
	if line, err := bufio.NewReader(stderr).ReadString('\n'); err != nil || !strings.Contains(line, "attached") {
		t.Fatalf("strace does not attach to the gateway: %s (%v)", line, err)
	}
	return tr
}

// syncs counts the syncs of the write-ahead log that have come back.
func (tr trace) syncs(t *testing.T) int {
	t.Helper()
	lines, err := os.ReadFile(tr.file)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range bytes.Lines(lines) {
		if bytes.Contains(line, []byte("-wal>")) && bytes.Contains(line, []byte("= 0")) {
			n++
		}
	}
	return n
}

// idle waits until the gateway has stopped syncing, and returns the count.
func (tr trace) idle(t *testing.T) int {
	t.Helper()
	ticker := time.NewTicker(quiet)
	defer ticker.Stop()
	timeout := time.After(quietTimeout)
	for last := -1; ; {
		n := tr.syncs(t)
		if n == last {
			return n
		}
		last = n
		select {
		case <-ticker.C:
		case <-timeout:
			t.Fatalf("the gateway syncs and syncs although nothing is asked of it: %d times", n)
		}
	}
}

// edit makes a source file of the gateway wrong.
type edit struct{ file, old, new string }

// overlay is an argument of go build that puts edited files in the place of the real ones.
func overlay(t *testing.T, edits []edit) string {
	t.Helper()
	replace := map[string]string{}
	texts := map[string]string{}
	for _, e := range edits {
		path, err := filepath.Abs(filepath.Join("..", e.file))
		if err != nil {
			t.Fatal(err)
		}
		if texts[path] == "" {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			texts[path] = string(text)
		}
		if strings.Count(texts[path], e.old) != 1 {
			t.Fatalf("%s does not contain once what is to be made wrong: %q", e.file, e.old)
		}
		texts[path] = strings.Replace(texts[path], e.old, e.new, 1)
	}
	dir := t.TempDir()
	for path, text := range texts {
		replace[path] = filepath.Join(dir, filepath.Base(path))
		if err := os.WriteFile(replace[path], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	content, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
