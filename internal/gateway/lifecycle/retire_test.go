package lifecycle

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/driver"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// finishing makes a sandbox that is to be deleted once it has finished, and lets it finish.
func (f *fixture) finishing(code int, phase openshellv1.SandboxPhase) store.Sandbox {
	f.Helper()
	s, err := f.Create(f.Context(), store.DefaultWorkspace, Draft{
		Name: "web", Annotations: map[string]string{"openshell.nvidia.com/retention": "ephemeral"},
		Spec: steered(map[string]any{"ready_after": "1s", "exit_after": "30s", "exit_code": code}),
	})
	if err != nil {
		f.Fatal(err)
	}
	time.Sleep(31*time.Second + 100*time.Millisecond)
	return f.want(s.ID, phase)
}

// wantAudit holds the audit to the deletes of the gateway itself.
func (f *fixture) wantAudit(id string, outcomes ...store.Outcome) {
	f.Helper()
	var want []store.AuditRecord
	for _, outcome := range outcomes {
		want = append(want, store.AuditRecord{
			Caller: store.Caller{IdentityProvider: "gateway", Subject: "retention"}, Method: "retention",
			Workspace: "default", Name: "web", SandboxID: id, Expected: &store.Precondition{ID: id}, Outcome: outcome,
		})
	}
	got, err := f.store.ListAudit(context.Background(), store.AuditQuery{Limit: 100})
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(store.AuditRecord{}, "ID", "At", "SettledAt")); diff != "" || err != nil {
		f.Errorf("audit: %v (-want +got)\n%s", err, diff)
	}
}

// A finished sandbox can be read for a while, its exit code too, and then is gone.
func TestRetire(t *testing.T) {
	for code, phase := range map[int]openshellv1.SandboxPhase{0: completed, 3: failed} {
		bubble(t, func(f *fixture) {
			s := f.finishing(code, phase)
			time.Sleep(4500 * time.Millisecond)
			if s = f.want(s.ID, phase); int(s.Status.GetExitCode()) != code {
				f.Errorf("status %v", s.Status)
			}
			time.Sleep(time.Second)
			f.wantGone(s.ID)
			f.wantAudit(s.ID, store.OutcomeCompleted)
		})
	}
}

func TestRetireAfterARestartOfTheGateway(t *testing.T) {
	bubble(t, func(f *fixture) {
		s := f.finishing(0, completed)
		f.kill()
		time.Sleep(time.Minute)
		f.want(s.ID, completed)
		f.restart()
		time.Sleep(time.Second)
		f.wantGone(s.ID)
		f.wantAudit(s.ID, store.OutcomeCompleted)
	})
}

// A gateway that has started anew takes up what was put off at once. The exit code can be read all the same.
func TestRetireWaitsThroughARestartOfTheGateway(t *testing.T) {
	bubble(t, func(f *fixture) {
		s := f.finishing(3, failed)
		time.Sleep(time.Second)
		f.kill()
		if err := f.store.Reschedule(f.Context(), s.ID, s.Operation.ID, 0); err != nil { // as the store does when it is opened
			f.Fatal(err)
		}
		f.restart()
		time.Sleep(3 * time.Second)
		f.want(s.ID, failed)
		time.Sleep(2 * time.Second)
		f.wantGone(s.ID)
		f.wantAudit(s.ID, store.OutcomeCompleted)
	})
}

// Whoever is faster than the gateway decides what becomes of a finished sandbox.
func TestNotRetired(t *testing.T) {
	never := func(f *fixture, s store.Sandbox) {
		f.Helper()
		time.Sleep(10 * time.Second)
		if now := f.want(s.ID, completed); now.Operation.Kind != store.OperationNone {
			f.Errorf("there is %+v to come", now.Operation)
		}
		f.wantAudit(s.ID)
	}
	for name, then := range map[string]func(f *fixture, s store.Sandbox){
		"it is to be kept after all": func(f *fixture, s store.Sandbox) {
			if _, err := f.store.ChangeSandbox(f.Context(), web, nil, func(current store.Sandbox, _ time.Time) (store.Change, error) {
				current.Annotations = map[string]string{"openshell.nvidia.com/retention": "persistent"}
				return store.Change{Write: &current}, nil
			}); err != nil {
				f.Fatal(err)
			}
			never(f, s)
		},
		"it is started again": func(f *fixture, s store.Sandbox) {
			if _, err := f.Start(f.Context(), web, nil); err != nil {
				f.Fatal(err)
			}
			time.Sleep(20 * time.Second)
			f.want(s.ID, ready)
			f.wantAudit(s.ID)
			time.Sleep(20 * time.Second) // until it has finished again
			f.wantGone(s.ID)
			f.wantAudit(s.ID, store.OutcomeCompleted)
		},
		"it is started again just then": func(f *fixture, s store.Sandbox) {
			if _, err := f.Start(f.Context(), web, nil); err != nil {
				f.Fatal(err)
			}
			time.Sleep(retireAfter)
			if err := f.retire(f.Context(), s); err != nil { // by whoever had claimed it before
				f.Fatal(err)
			}
			time.Sleep(15 * time.Second)
			f.want(s.ID, ready)
			f.wantAudit(s.ID)
		},
		"it is replaced": func(f *fixture, s store.Sandbox) {
			if _, err := f.Manager.Delete(f.Context(), web, nil); err != nil {
				f.Fatal(err)
			}
			time.Sleep(time.Second)
			f.wantGone(s.ID)
			other := f.mustCreate(map[string]any{"ready_after": "1s", "exit_after": "1s"})
			time.Sleep(3 * time.Second)
			never(f, other)
		},
		"a stop changes nothing": func(f *fixture, s store.Sandbox) {
			if _, err := f.Stop(f.Context(), web, nil); err != nil {
				f.Fatal(err)
			}
			time.Sleep(6 * time.Second)
			f.wantGone(s.ID)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(f *fixture) { then(f, f.finishing(0, completed)) })
		})
	}
}

// What was stopped, or is started again by its restart policy, has not finished.
func TestOnlyWhatHasFinishedIsRetired(t *testing.T) {
	create := func(f *fixture, draft Draft) store.Sandbox {
		f.Helper()
		draft.Annotations = map[string]string{"openshell.nvidia.com/retention": "ephemeral"}
		s, err := f.Create(f.Context(), store.DefaultWorkspace, draft)
		if err != nil {
			f.Fatal(err)
		}
		return s
	}
	bubble(t, func(f *fixture) {
		s := create(f, Draft{Name: "web", Spec: steered(nil)})
		time.Sleep(time.Second)
		f.want(s.ID, ready)
		if _, err := f.Stop(f.Context(), web, nil); err != nil {
			f.Fatal(err)
		}
		time.Sleep(time.Hour)
		f.want(s.ID, stopped)
	})
	bubble(t, func(f *fixture) {
		s := create(f, restarting(openshellv1.SandboxRestartPolicy_SANDBOX_RESTART_POLICY_ALWAYS, map[string]any{"ready_after": "0s", "exit_after": "20s"}))
		time.Sleep(time.Hour)
		if s, err := f.store.SandboxByID(f.Context(), s.ID); err != nil || s.Status.GetRestartCount() < 10 {
			f.Errorf("%v, %v", s.Status, err)
		}
		f.wantAudit(s.ID)
	})
}

// When the driver refuses, the sandbox is as it was, and it is tried again, but not at once.
func TestRetireRefused(t *testing.T) {
	bubble(t, func(f *fixture) {
		s := f.finishing(0, completed)
		f.driver.on("delete", refusing("the volume is busy"))
		time.Sleep(6 * time.Second)
		f.want(s.ID, completed)
		time.Sleep(4 * time.Minute)
		f.wantAudit(s.ID, store.OutcomeRefused)
		f.kill()
		if err := f.store.Reschedule(f.Context(), s.ID, f.want(s.ID, completed).Operation.ID, 0); err != nil { // as the store does when it is opened
			f.Fatal(err)
		}
		f.restart()
		time.Sleep(time.Second)
		if n := f.driver.count("delete"); n != 1 {
			f.Errorf("the driver was asked %d times", n)
		}
		f.driver.on("delete", func(context.Context, driver.Instance) error { return nil })
		time.Sleep(time.Minute + time.Second)
		f.wantGone(s.ID)
		f.wantAudit(s.ID, store.OutcomeRefused, store.OutcomeCompleted)
	})
}
