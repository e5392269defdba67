// Package processtest runs gateways as processes of their own, the way users run them, for tests that kill them or need
// several on one database.
package processtest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/openshell-iac/terraform-provider-openshell/internal/testproc"
)

const (
	command      = "github.com/openshell-iac/terraform-provider-openshell/cmd/openshell-reference-gateway"
	startTimeout = time.Minute
	stopTimeout  = time.Minute
)

// Build builds the gateway for a test and its subtests, with further flags of go build.
func Build(tb testing.TB, flags ...string) (binary string) {
	tb.Helper()
	binary = filepath.Join(tb.TempDir(), "openshell-reference-gateway")
	args := append(append([]string{"build"}, flags...), "-o", binary, command)
	if output, err := exec.CommandContext(tb.Context(), "go", args...).CombinedOutput(); err != nil {
		tb.Fatalf("build the gateway: %v\n%s", err, output)
	}
	return binary
}

// Gateway is a process. It ends with the test.
type Gateway struct {
	// Address is the host and port it listens on, the same after a restart.
	Address string

	binary string
	args   []string
	cmd    *exec.Cmd
	ended  <-chan struct{}
	output output
}

// Start runs a gateway on a free port, in plaintext, with a database and further flags, and returns when it listens.
func Start(tb testing.TB, binary, databaseURL string, flags ...string) *Gateway {
	tb.Helper()
	g := &Gateway{
		Address: "127.0.0.1:0", binary: binary,
		args: append([]string{"--disable-tls", "--db-url", databaseURL, "--log-level", "warn"}, flags...),
	}
	tb.Cleanup(func() { g.Stop(tb) })
	if err := g.start(); err != nil {
		tb.Fatal(err)
	}
	return g
}

// Restart runs a gateway again that was killed or stopped, on the same port and database. It may be called from any
// goroutine, and fails the test without ending it.
func (g *Gateway) Restart(tb testing.TB) {
	tb.Helper()
	if err := g.start(); err != nil {
		tb.Error(err)
	}
}

// PID is the id of the running process.
func (g *Gateway) PID() int { return g.cmd.Process.Pid }

// Kill ends the process at once, with SIGKILL.
func (g *Gateway) Kill() {
	if g.cmd != nil {
		_ = g.cmd.Process.Kill()
		<-g.ended
		g.cmd = nil
	}
}

// Stop asks the process to drain and end. It does nothing when it was killed.
func (g *Gateway) Stop(tb testing.TB) {
	tb.Helper()
	if g.cmd == nil {
		return
	}
	select {
	case <-g.ended:
		tb.Errorf("the gateway at %s ended by itself, %s:\n%s", g.Address, g.cmd.ProcessState, g.output.tail())
	default:
		if err := g.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
			tb.Errorf("stop the gateway at %s: %v", g.Address, err)
		}
		select {
		case <-g.ended:
		case <-time.After(stopTimeout):
			tb.Errorf("the gateway at %s did not end within %s of SIGTERM:\n%s", g.Address, stopTimeout, g.output.tail())
		}
	}
	g.Kill()
}

func (g *Gateway) start() error {
	port := g.Address[strings.LastIndexByte(g.Address, ':')+1:]
	cmd := exec.Command(g.binary, append([]string{"--port", port}, g.args...)...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, "OPENSHELL_") })
	g.output.reset()
	cmd.Stdout, cmd.Stderr = &g.output, &g.output
	ended, err := testproc.Start(cmd, syscall.SIGKILL)
	if err != nil {
		return err
	}
	select {
	case g.Address = <-g.output.address:
		g.cmd, g.ended = cmd, ended
		return nil
	case <-ended:
		return fmt.Errorf("the gateway did not start: %s\n%s", cmd.ProcessState, g.output.tail())
	case <-time.After(startTimeout):
		_ = cmd.Process.Kill()
		<-ended
		return fmt.Errorf("the gateway did not listen within %s:\n%s", startTimeout, g.output.tail())
	}
}

// output keeps the end of what a process prints, and finds the address it listens on.
type output struct {
	mu      sync.Mutex
	last    []byte
	address chan string // gets one a start
	found   bool
}

const outputKept = 16 << 10

var listening = regexp.MustCompile(`(?m)^openshell-reference-gateway \S+ listens on http://(\S+)$`)

func (o *output) reset() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last, o.address, o.found = nil, make(chan string, 1), false
}

// Write implements [io.Writer].
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last = append(o.last, p...)
	if match := listening.FindSubmatch(o.last); match != nil && !o.found {
		o.found = true
		o.address <- string(match[1])
	}
	if excess := len(o.last) - outputKept; excess > 0 {
		o.last = bytes.Clone(o.last[excess:])
	}
	return len(p), nil
}

func (o *output) tail() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.last)
}
