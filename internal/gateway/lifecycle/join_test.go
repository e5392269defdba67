package lifecycle

import (
	"context"
	"errors"
	"testing"
	"time"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/driver"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// joining begins a stop or start, has a second call with a request_id join it, and answers the driver by end. The driver is asked
// but once: of two calls, the refusal of one would say nothing about the other.
func (f *fixture) joining(call string, end func(answer func(error))) (second *store.Request, failure error) {
	f.Helper()
	f.mustRun(map[string]any{"delete_after": "1h"})
	if call == "start" {
		if _, err := f.Stop(f.Context(), web, nil); err != nil {
			f.Fatal(err)
		}
	}
	hold, goOn := held()
	var refusal error
	f.driver.on(call, func(ctx context.Context, i driver.Instance) error {
		if err := hold(ctx, i); err != nil {
			return err
		}
		return refusal
	})
	first, second := admitted("1"), admitted("2")
	_ = async(func() (store.Sandbox, error) { return f.asked(call, first) })
	answers := async(func() (store.Sandbox, error) { return f.asked(call, second) })
	f.unanswered(answers)
	f.wantOutcome(first, store.OutcomePending)
	f.wantOutcome(second, store.OutcomePending)
	if n := f.driver.count(call); n != 1 {
		f.Errorf("the driver was asked %d times", n)
	}
	end(func(err error) { refusal = err; goOn() })
	return second, <-answers
}

func (f *fixture) asked(call string, r *store.Request) (store.Sandbox, error) {
	target := store.Target{Workspace: web.Workspace, Name: web.Name, Request: r}
	if call == "start" {
		return f.Start(f.Context(), target, nil)
	}
	return f.Stop(f.Context(), target, nil)
}

// What a call has joined is what comes of it, and when that fails, no admission is left: the same call may succeed later.
func TestOutcomeOfACallThatJoins(t *testing.T) {
	for _, call := range []string{"stop", "start"} {
		t.Run(call+", done", func(t *testing.T) {
			bubble(t, func(f *fixture) {
				second, err := f.joining(call, func(answer func(error)) { answer(nil) })
				if err != nil {
					t.Error(err)
				}
				f.wantOutcome(second, store.OutcomeDone)
			})
		})
		t.Run(call+", refused", func(t *testing.T) {
			bubble(t, func(f *fixture) {
				second, err := f.joining(call, func(answer func(error)) { answer(&driver.Refusal{Message: "busy"}) })
				var refused *DriverError
				if !errors.As(err, &refused) {
					t.Error(err)
				}
				f.wantOutcome(second, "none")
				f.driver.on(call, nil)
				if _, err := f.asked(call, second); err != nil {
					t.Errorf("once more: %v", err)
				}
				f.wantOutcome(second, store.OutcomeDone)
			})
		})
		t.Run(call+", broken off", func(t *testing.T) {
			bubble(t, func(f *fixture) {
				second, err := f.joining(call, func(func(error)) { f.kill() })
				if !errors.Is(err, errClosing) {
					t.Error(err)
				}
				f.wantOutcome(second, "none")
			})
		})
	}
}

func TestOutcomeOfACallThatJoinsWhatIsOvertaken(t *testing.T) {
	bubble(t, func(f *fixture) {
		second, err := f.joining("stop", func(answer func(error)) {
			if _, err := f.Delete(f.Context(), web, nil); err != nil {
				f.Fatal(err)
			}
			answer(nil)
		})
		var phase *PhaseError
		if !errors.As(err, &phase) {
			f.Errorf("the stop: %v", err)
		}
		f.wantOutcome(second, "none")
	})
}

// A restart by policy can be stopped while the driver is at it. Who has joined it by a start is told.
func TestStopOvertakesAJoinedRestart(t *testing.T) {
	bubble(t, func(f *fixture) {
		start, goOn := held()
		f.driver.on("start", start)
		s, err := f.Create(f.Context(), web.Workspace, restarting(openshellv1.SandboxRestartPolicy_SANDBOX_RESTART_POLICY_ALWAYS,
			map[string]any{"ready_after": "0s", "exit_after": "1s"}))
		if err != nil {
			f.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		f.want(s.ID, starting)
		r := admitted("1")
		answers := async(func() (store.Sandbox, error) { return f.asked("start", r) })
		f.unanswered(answers)
		stop, stopOn := held()
		f.driver.on("stop", stop)
		stopAnswers := async(func() (store.Sandbox, error) { return f.Stop(f.Context(), web, nil) })
		goOn()
		var phase *PhaseError
		if err := <-answers; !errors.As(err, &phase) {
			f.Errorf("the start: %v", err)
		}
		f.wantOutcome(r, "none")
		stopOn()
		if err := <-stopAnswers; err != nil {
			f.Errorf("the stop: %v", err)
		}
	})
}
