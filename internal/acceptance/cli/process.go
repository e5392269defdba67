package cli

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"time"
)

const (
	// commandTimeout bounds a command whose context has no deadline.
	commandTimeout = 5 * time.Minute
	// interruptGrace is what a command may take to end after its context did, before it is killed.
	interruptGrace = 20 * time.Second
)

// Process is a running command. Whoever starts one calls [Process.Wait].
type Process struct {
	args   []string
	cmd    *exec.Cmd
	stdout output
	stderr output
	done   chan struct{}
	err    error // of cmd.Wait; read after done
}

// Start runs a command without waiting for its end. When ctx ends the command is interrupted, and killed if that does not
// help; without a deadline in ctx it gets five minutes.
func (w *WorkingDir) Start(ctx context.Context, args ...string) (*Process, error) {
	cancel := func() {}
	if _, ok := ctx.Deadline(); !ok {
		ctx, cancel = context.WithTimeout(ctx, commandTimeout)
	}
	p := &Process{args: args, cmd: exec.CommandContext(ctx, w.cli.Path, args...), done: make(chan struct{})}
	p.stdout.changed = make(chan struct{})
	p.stderr.changed = make(chan struct{})
	p.cmd.Dir, p.cmd.Env = w.Path, w.env
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	p.cmd.Cancel = p.Interrupt
	p.cmd.WaitDelay = interruptGrace
	ownGroup(p.cmd)
	if err := p.cmd.Start(); err != nil {
		cancel()
		return nil, fmt.Errorf("starting %s %s: %w", w.cli.Path, strings.Join(args, " "), err)
	}
	go func() {
		defer cancel()
		p.err = p.cmd.Wait()
		// Provider processes that outlived a killed command would go on for ever.
		_ = killGroup(p.cmd.Process)
		if p.err != nil && ctx.Err() != nil {
			p.err = fmt.Errorf("ended early: %w", context.Cause(ctx))
		}
		close(p.done)
	}()
	return p, nil
}

// Interrupt does what Ctrl-C in a terminal does: the command and its provider processes get SIGINT.
func (p *Process) Interrupt() error { return interruptGroup(p.cmd.Process) }

// Terminate sends SIGTERM to the command alone, as a CI runner or a service manager does.
func (p *Process) Terminate() error { return terminate(p.cmd.Process) }

// Kill ends the command and its provider processes at once, without giving them a chance to write anything.
func (p *Process) Kill() error { return killGroup(p.cmd.Process) }

// WaitForOutput returns once the command has printed text on standard output. It fails when the command or ctx ends first.
func (p *Process) WaitForOutput(ctx context.Context, text string) error {
	for {
		printed, changed := p.stdout.snapshot()
		if strings.Contains(printed, text) {
			return nil
		}
		select {
		case <-changed:
		case <-p.done:
			if printed, _ := p.stdout.snapshot(); strings.Contains(printed, text) {
				return nil
			}
			return fmt.Errorf("the command ended before it printed %q: %w", text, p.Wait().failureOrOutput())
		case <-ctx.Done():
			return fmt.Errorf("waiting for the command to print %q: %w", text, context.Cause(ctx))
		}
	}
}

// Done is closed once the command has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait returns the result once the command has ended.
func (p *Process) Wait() Result {
	<-p.done
	stdout, _ := p.stdout.snapshot()
	stderr, _ := p.stderr.snapshot()
	r := newResult(p.args, p.cmd.ProcessState.ExitCode(), stdout, stderr, p.err)
	r.CPU = p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
	return r
}

// output collects what a command prints and tells when there is more.
type output struct {
	mu      sync.Mutex
	buf     bytes.Buffer
	changed chan struct{}
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.changed)
	o.changed = make(chan struct{})
	return o.buf.Write(b)
}

func (o *output) snapshot() (string, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String(), o.changed
}
