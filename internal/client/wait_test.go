package client

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

const (
	provisioning = openshellv1.SandboxPhase_SANDBOX_PHASE_PROVISIONING
	failed       = openshellv1.SandboxPhase_SANDBOX_PHASE_ERROR
	stopped      = openshellv1.SandboxPhase_SANDBOX_PHASE_STOPPED
	stopping     = openshellv1.SandboxPhase_SANDBOX_PHASE_STOPPING
	starting     = openshellv1.SandboxPhase_SANDBOX_PHASE_STARTING
	completed    = openshellv1.SandboxPhase_SANDBOX_PHASE_COMPLETED
)

// turn gives our sandbox a phase at the nth read.
func turn(n int, to func(f *fake)) hook {
	return func(f *fake, nth int, _ any) error {
		if nth == n {
			to(f)
		}
		return nil
	}
}

func TestWaitFor(t *testing.T) {
	phase := func(p openshellv1.SandboxPhase) func(*fake) {
		return func(f *fake) { f.sandboxes["web"].Status.Phase = p }
	}
	isFailed := func(t *testing.T, err error) { t.Helper(); want[*FailedError](t, err) }
	isGone := func(id string) func(*testing.T, error) {
		return func(t *testing.T, err error) {
			t.Helper()
			if e := as[*GoneError](t, err); e.Gone.CurrentID != id {
				t.Errorf("%+v", e)
			}
		}
	}
	for name, tc := range map[string]struct {
		goal Goal
		to   func(*fake)
		err  func(*testing.T, error)
	}{
		"ready":                      {goal: Ready, to: phase(ready)},
		"a job that has completed":   {goal: Ready, to: phase(completed)},
		"completed":                  {goal: Completed, to: phase(completed)},
		"failed":                     {goal: Ready, to: phase(failed), err: isFailed},
		"job failed":                 {goal: Completed, to: phase(failed), err: isFailed},
		"stopped by somebody":        {goal: Ready, to: phase(stopped), err: isFailed},
		"deleted by somebody":        {goal: Ready, to: phase(deleting), err: isFailed},
		"gone":                       {goal: Ready, to: func(f *fake) { delete(f.sandboxes, "web") }, err: isGone("")},
		"replaced by a ready one":    {goal: Ready, to: func(f *fake) { f.put("web", idB, ready) }, err: isGone(idB)},
		"a phase from the future":    {goal: Ready, to: phase(99), err: isTimeout},
		"ready is not yet completed": {goal: Completed, to: phase(ready), err: isTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			f.put("web", idA, provisioning)
			f.hooks["GetSandbox"] = turn(5, tc.to)
			serve(t, f, func(ctx context.Context, c *Client) {
				ctx, cancel := context.WithTimeout(ctx, time.Minute)
				defer cancel()
				sb, err := c.WaitFor(ctx, web, tc.goal)
				switch {
				case tc.err != nil:
					tc.err(t, err)
				case err != nil || IDOf(sb) != idA:
					t.Errorf("%v, %v", sb, err)
				}
			})
		})
	}
}

func isTimeout(t *testing.T, err error) {
	t.Helper()
	if e := as[*WaitError](t, err); !errors.Is(e, context.DeadlineExceeded) || e.Elapsed != time.Minute {
		t.Errorf("%+v", e)
	}
}

// A read error during a wait is borne until the time limit, which then names it.
func TestWaitForBearsTrouble(t *testing.T) {
	f := newFake()
	f.put("web", idA, ready)
	f.hooks["GetSandbox"] = func(_ *fake, nth int, _ any) error {
		if nth < 30 {
			return unavailable()
		}
		return nil
	}
	serve(t, f, func(ctx context.Context, c *Client) {
		if _, err := c.WaitFor(ctx, web, Ready); err != nil {
			t.Error(err)
		}
		f.hooks["GetSandbox"] = refuse(codes.Unavailable)
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		_, err := c.WaitFor(ctx, web, Ready)
		isTimeout(t, err)
		hasCode(codes.Unavailable)(t, as[*WaitError](t, err).Last)
		f.hooks["GetSandbox"] = refuse(codes.PermissionDenied)
		_, err = c.WaitFor(context.WithoutCancel(ctx), web, Ready)
		hasCode(codes.PermissionDenied)(t, err)
	})
}

const (
	stopCall  = "ConditionalSandboxes/StopSandbox"
	startCall = "ConditionalSandboxes/StartSandbox"
)

func TestStop(t *testing.T) {
	for name, tc := range map[string]struct {
		from  openshellv1.SandboxPhase
		hook  hook // of GetSandbox
		calls int
		want  openshellv1.SandboxPhase
	}{
		"ready":     {from: ready, calls: 1, want: stopped},
		"stopped":   {from: stopped, want: stopped},
		"completed": {from: completed, want: completed},
		"failed":    {from: failed, want: failed},
		"provisioning": {from: provisioning, calls: 1, want: stopped,
			hook: turn(4, func(f *fake) { f.sandboxes["web"].Status.Phase = ready })},
		"stopping": {from: stopping, want: stopped,
			hook: turn(4, func(f *fake) { f.sandboxes["web"].Status.Phase = stopped })},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			f.put("web", idA, tc.from)
			if tc.hook != nil {
				f.hooks["GetSandbox"] = tc.hook
			}
			serve(t, f, func(ctx context.Context, c *Client) {
				sb, err := c.Stop(ctx, web)
				if err != nil || sb.GetStatus().GetPhase() != tc.want {
					t.Errorf("%v, %v", sb, err)
				}
				if f.count(stopCall) != tc.calls || f.count("OpenShell/StopSandbox") != 0 {
					t.Errorf("calls %v", f.calls)
				}
			})
		})
	}
}

// True starts only what is stopped; a finished job is not run again.
func TestStart(t *testing.T) {
	for from, calls := range map[openshellv1.SandboxPhase]int{stopped: 1, ready: 0, completed: 0, failed: 0, provisioning: 0, starting: 0} {
		f := newFake()
		f.put("web", idA, from)
		serve(t, f, func(ctx context.Context, c *Client) {
			_, started, err := c.Start(ctx, web)
			if err != nil || started != (calls == 1) || f.count(startCall) != calls {
				t.Errorf("from %v: started %v, %v, calls %v", from, started, err, f.calls)
			}
		})
	}
}

// Credentials are proved before the first change. While that fails in passing, nothing is sent, and so no answer is lost.
func TestStartBeforeAccessIsProved(t *testing.T) {
	for name, byOthers := range map[string]bool{"started here": false, "started by somebody else": true} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			f.put("web", idA, stopped)
			const failures = 10 * readAttempts
			f.hooks["GetCurrentUser"] = func(f *fake, nth int, _ any) error {
				if nth == failures && byOthers {
					f.sandboxes["web"].Status.Phase = starting
				}
				if nth <= failures {
					return unavailable()
				}
				return nil
			}
			serve(t, f, func(ctx context.Context, c *Client) {
				sb, started, err := c.Start(ctx, web)
				if err != nil || started == byOthers || sb.GetStatus().GetPhase() != starting {
					t.Errorf("%v, started %v, %v", sb, started, err)
				}
				if n := f.count(startCall); n == 1 == byOthers {
					t.Errorf("%d starts", n)
				}
			})
		})
	}
}

func TestSwitchingSparesStrangers(t *testing.T) {
	t.Run("replaced before", func(t *testing.T) {
		f := newFake()
		f.put("web", idB, ready)
		serve(t, f, func(ctx context.Context, c *Client) {
			_, err := c.Stop(ctx, web)
			want[*GoneError](t, err)
			if f.count(stopCall) != 0 {
				t.Error("sent")
			}
		})
	})
	t.Run("replaced between read and call", func(t *testing.T) {
		f := newFake()
		f.put("web", idA, ready)
		f.hooks[stopCall] = func(f *fake, _ int, _ any) error { f.put("web", idB, ready); return nil }
		serve(t, f, func(ctx context.Context, c *Client) {
			_, err := c.Stop(ctx, web)
			if e := as[*GoneError](t, err); e.Gone.CurrentID != idB || f.sandboxes["web"].GetStatus().GetPhase() != ready {
				t.Errorf("%+v", e)
			}
		})
	})
	t.Run("unaware gateway", func(t *testing.T) {
		f := newFake()
		f.serving = false
		f.put("web", idA, ready)
		serve(t, f, func(ctx context.Context, c *Client) {
			_, err := c.Stop(ctx, web)
			want[*NotSupportedError](t, err)
		})
	})
}

// A lost answer is not sent again blindly: the phase tells.
func TestStopLostReply(t *testing.T) {
	f := newFake()
	f.put("web", idA, ready)
	f.hooks["lose "+stopCall] = refuse(codes.Unavailable)
	serve(t, f, func(ctx context.Context, c *Client) {
		if sb, err := c.Stop(ctx, web); err != nil || sb.GetStatus().GetPhase() != stopped {
			t.Errorf("%v, %v", sb, err)
		}
		f.put("web", idA, ready)
		delete(f.hooks, "lose "+stopCall)
		f.hooks[stopCall] = refuse(codes.Unavailable)
		_, err := c.Stop(ctx, web)
		if e := as[*UnansweredChangeError](t, err); status.Code(e.Answer) != codes.Unavailable || e.Err != nil || e.Observed.Phase != "ready" {
			t.Errorf("%+v", e)
		}
		if n := f.count(stopCall); n != 2 {
			t.Errorf("%d stops", n)
		}
		ctx, cancel := context.WithCancel(ctx)
		f.hooks[stopCall] = func(*fake, int, any) error { cancel(); return unavailable() }
		_, err = c.Stop(ctx, web)
		if e := as[*UnansweredChangeError](t, err); !errors.Is(e, context.Canceled) || strings.Contains(e.Error(), "not stopped") {
			t.Error(e)
		}
	})
}
