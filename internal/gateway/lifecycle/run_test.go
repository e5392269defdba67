package lifecycle

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/driver"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

func TestCreateBecomesReady(t *testing.T) {
	bubble(t, func(f *fixture) {
		s := f.mustCreate(map[string]any{"ready_after": "20s"})
		if s.Phase() != provisioning || s.Operation.Pending || s.Status.GetProvisioning().GetDriverOperationPending() {
			f.Errorf("the reply is %v", s)
		}
		time.Sleep(19 * time.Second)
		f.want(s.ID, provisioning)
		time.Sleep(1100 * time.Millisecond)
		s = f.want(s.ID, ready)
		if s.Operation.Kind != store.OperationNone || !s.Operation.DueAt.IsZero() {
			f.Errorf("nothing is to come, but there is %+v", s.Operation)
		}
		if c := s.Status.GetConditions(); len(c) != 1 || c[0].GetStatus() != "True" || !s.Status.GetConfigurationActivated() ||
			uuid.Validate(s.Status.GetMainProcessInstanceId()) != nil || s.Status.GetMainProcessStartedTime() == nil {
			f.Errorf("status %v", s.Status)
		}
	})
}

func TestNeverReady(t *testing.T) {
	bubble(t, func(f *fixture) {
		s := f.mustCreate(map[string]any{"never_ready": true})
		time.Sleep(24 * time.Hour)
		if again := f.want(s.ID, provisioning); again.ResourceVersion != s.ResourceVersion {
			f.Errorf("version %d, was %d", again.ResourceVersion, s.ResourceVersion)
		}
		if n := f.driver.count("observe"); n > 3 {
			f.Errorf("the driver was asked %d times about what does not change", n)
		}
	})
}

// The row is there while the driver is busy, and cannot be deleted.
func TestCreatePending(t *testing.T) {
	bubble(t, func(f *fixture) {
		answered := async(func() (store.Sandbox, error) {
			return f.Create(f.Context(), store.DefaultWorkspace, Draft{Name: "web", Spec: steered(map[string]any{"create_takes": "2m"})})
		})
		time.Sleep(time.Minute)
		f.unanswered(answered)
		s, err := f.store.Sandbox(f.Context(), store.DefaultWorkspace, "web")
		if err != nil || !s.Operation.Pending || !s.Status.GetProvisioning().GetDriverOperationPending() || s.Status.GetProvisioning().GetDriverOperationId() == "" {
			f.Fatalf("%v, %v", s, err)
		}
		var pending *OperationPendingError
		if _, err := f.Manager.Delete(f.Context(), web, nil); !errors.As(err, &pending) {
			f.Errorf("delete: %v", err)
		}
		if err := <-answered; err != nil {
			f.Fatal(err)
		}
		if _, err := f.Manager.Delete(f.Context(), web, nil); err != nil {
			f.Errorf("delete: %v", err)
		}
		// Its lease was extended, so nobody else made the call too.
		if n := f.driver.count("create"); n != 1 {
			f.Errorf("the driver was called %d times", n)
		}
	})
}

func TestCreateRefused(t *testing.T) {
	bubble(t, func(f *fixture) {
		_, err := f.Create(f.Context(), store.DefaultWorkspace, Draft{Name: "web", Spec: steered(map[string]any{"create_error": "no such image"})})
		var refused *DriverError
		if !errors.As(err, &refused) || refused.Err.Error() != "no such image" {
			f.Errorf("error %v", err)
		}
		f.wantGone(refused.Sandbox.ID)
		f.mustCreate(nil) // the name is free
	})
}

func TestMainProcessEnds(t *testing.T) {
	for code, want := range map[int]openshellv1.SandboxPhase{0: completed, 3: failed} {
		bubble(t, func(f *fixture) {
			s := f.mustRun(map[string]any{"ready_after": "1s", "exit_after": "30s", "exit_code": code})
			time.Sleep(29 * time.Second)
			f.want(s.ID, ready)
			time.Sleep(1100 * time.Millisecond)
			s = f.want(s.ID, want)
			if s.Status.ExitCode == nil || int(s.Status.GetExitCode()) != code || s.Operation.Kind != store.OperationNone {
				f.Errorf("%v, %+v", s.Status, s.Operation)
			}
			if s, err := f.Start(f.Context(), web, nil); err != nil || s.Phase() != starting || s.Status.ExitCode != nil {
				f.Errorf("start: %v, %v", s, err)
			}
		})
	}
}

func restarting(p openshellv1.SandboxRestartPolicy, keys map[string]any) Draft {
	spec := steered(keys)
	spec.RestartPolicy = p
	return Draft{Name: "web", Spec: spec}
}

// It is started again at once, then after a back-off that doubles, and that begins anew once it has run for a while.
func TestRestartPolicy(t *testing.T) {
	bubble(t, func(f *fixture) {
		var started []time.Time
		f.driver.on("start", func(context.Context, driver.Instance) error {
			started = append(started, time.Now())
			return nil
		})
		s, err := f.Create(f.Context(), store.DefaultWorkspace, restarting(openshellv1.SandboxRestartPolicy_SANDBOX_RESTART_POLICY_ALWAYS,
			map[string]any{"ready_after": "0s", "exit_after": "2s"}))
		if err != nil {
			f.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		var pauses []time.Duration
		for i := 1; i < len(started); i++ {
			pauses = append(pauses, started[i].Sub(started[i-1]).Round(time.Second))
		}
		want := []time.Duration{3, 4, 6, 10} // two seconds of running, and a back-off of 1, 2, 4, 8
		if len(pauses) < len(want) {
			f.Fatalf("pauses %v", pauses)
		}
		for i, w := range want {
			if pauses[i] != w*time.Second {
				f.Errorf("pauses %v, want %v", pauses, want)
				break
			}
		}
		if s, err = f.store.SandboxByID(f.Context(), s.ID); err != nil || int(s.Status.GetRestartCount()) < len(started) || s.Status.ExitCode != nil {
			f.Errorf("%v, %v", s.Status, err)
		}
	})
	bubble(t, func(f *fixture) {
		s, err := f.Create(f.Context(), store.DefaultWorkspace, restarting(openshellv1.SandboxRestartPolicy_SANDBOX_RESTART_POLICY_ALWAYS,
			map[string]any{"ready_after": "0s", "exit_after": "11s"}))
		if err != nil {
			f.Fatal(err)
		}
		time.Sleep(10 * 11500 * time.Millisecond) // ten times, each at once
		if s, err = f.store.SandboxByID(f.Context(), s.ID); err != nil || s.Status.GetRestartCount() != 10 || s.Operation.Restarts > 1 {
			f.Errorf("%v, %+v, %v", s.Status, s.Operation, err)
		}
	})
}

func TestRestartOnFailureOnly(t *testing.T) {
	for code, want := range map[int]openshellv1.SandboxPhase{0: completed, 1: starting} {
		bubble(t, func(f *fixture) {
			s, err := f.Create(f.Context(), store.DefaultWorkspace, restarting(openshellv1.SandboxRestartPolicy_SANDBOX_RESTART_POLICY_ON_FAILURE,
				map[string]any{"ready_after": "0s", "exit_after": "1s", "exit_code": code}))
			if err != nil {
				f.Fatal(err)
			}
			time.Sleep(2500 * time.Millisecond) // ended at 1 s and 2 s; the next start is due at 3 s
			f.want(s.ID, want)
		})
	}
}

// A start by policy that the driver refuses is tried again, later and later.
func TestRestartRefused(t *testing.T) {
	bubble(t, func(f *fixture) {
		f.driver.on("start", refusing("no room"))
		s, err := f.Create(f.Context(), store.DefaultWorkspace, restarting(openshellv1.SandboxRestartPolicy_SANDBOX_RESTART_POLICY_ALWAYS,
			map[string]any{"ready_after": "0s", "exit_after": "1s"}))
		if err != nil {
			f.Fatal(err)
		}
		time.Sleep(5 * time.Second) // tried at 1 s, 2 s, 4 s; next at 8 s
		if got := f.want(s.ID, starting); f.driver.count("start") != 3 || got.Operation.Pending {
			f.Errorf("%d starts; %+v", f.driver.count("start"), got.Operation)
		}
		f.driver.on("start", nil)
		time.Sleep(3500 * time.Millisecond)
		f.want(s.ID, ready)
	})
}

// A gateway that restarts does not cut a back-off short.
func TestRestartWaitsThroughARestartOfTheGateway(t *testing.T) {
	bubble(t, func(f *fixture) {
		f.driver.on("start", refusing("no room"))
		s, err := f.Create(f.Context(), store.DefaultWorkspace, restarting(openshellv1.SandboxRestartPolicy_SANDBOX_RESTART_POLICY_ALWAYS,
			map[string]any{"ready_after": "0s", "exit_after": "1s"}))
		if err != nil {
			f.Fatal(err)
		}
		time.Sleep(5 * time.Second) // the next is due at 8 s
		f.kill()
		s = f.want(s.ID, starting)
		if err := f.store.Reschedule(f.Context(), s.ID, s.Operation.ID, 0); err != nil { // as when a file is opened
			f.Fatal(err)
		}
		before := f.driver.count("start")
		f.restart()
		time.Sleep(2 * time.Second)
		f.want(s.ID, starting)
		if n := f.driver.count("start"); n != before {
			f.Errorf("it was started %d times before its time", n-before)
		}
		time.Sleep(2 * time.Second)
		if n := f.driver.count("start"); n != before+1 {
			f.Errorf("it was started %d times", n-before)
		}
	})
}
