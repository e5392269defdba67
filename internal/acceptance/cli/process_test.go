//go:build unix

package cli

import (
	"strings"
	"testing"
)

// slow creates a resource and then waits for ever in its provisioner, having said so.
const slow = `resource "terraform_data" "web" {
  provisioner "local-exec" {
    command = "echo provisioner is waiting; exec sleep 600"
  }
}`

func TestSignals(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		signal  func(*Process) error
		exit    int
		written bool
	}{
		"interrupt": {(*Process).Interrupt, 1, true},
		"kill":      {(*Process).Kill, -1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ForEach(t, func(t *testing.T, c CLI) {
				t.Parallel()
				w := builtin(t, c, slow)
				p, err := w.Start(t.Context(), "apply", "-auto-approve", "-json")
				if err != nil {
					t.Fatal(err)
				}
				if err := p.WaitForOutput(t.Context(), "provisioner is waiting"); err != nil {
					t.Fatal(err)
				}
				if err := test.signal(p); err != nil {
					t.Fatal(err)
				}
				if r := p.Wait(); r.ExitCode != test.exit {
					t.Errorf("exit code %d; want %d\n%s%s", r.ExitCode, test.exit, r.Stdout, r.Stderr)
				}
				raw, err := w.RawState()
				if written := err == nil && strings.Contains(string(raw), "tainted"); written != test.written {
					t.Errorf("a tainted resource in the state: %t; want %t\n%s", written, test.written, raw)
				}
			})
		})
	}
}

// SIGTERM goes to the command alone, which passes nothing on: the provisioner is ended by the harness's clean-up.
func TestTerminate(t *testing.T) {
	t.Parallel()
	c := Require(t)
	c.Path = script(t, "terraform", "trap 'echo got TERM; exit 7' TERM\necho ready\nwhile :; do sleep 0.01; done")
	w := builtin(t, c, "")
	p, err := w.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.WaitForOutput(t.Context(), "ready"); err != nil {
		t.Fatal(err)
	}
	if err := p.Terminate(); err != nil {
		t.Fatal(err)
	}
	if r := p.Wait(); r.ExitCode != 7 || !strings.Contains(r.Stdout, "got TERM") {
		t.Errorf("exit code %d, output %q", r.ExitCode, r.Stdout)
	}
}

func TestContextBoundsACommand(t *testing.T) {
	t.Parallel()
	w := builtin(t, Require(t), data)
	r := w.Plan(canceled(t), "")
	if err := r.Err(); err == nil || !strings.Contains(err.Error(), "context canceled") {
		t.Errorf("a plan after the context's end: %v", err)
	}
	p, err := w.Start(t.Context(), "version")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.WaitForOutput(t.Context(), "never printed"); err == nil {
		t.Error("waiting for what an ended command did not print succeeded")
	}
	p.Wait()
}
