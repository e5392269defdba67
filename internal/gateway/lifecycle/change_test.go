package lifecycle

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/driver"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

func TestStopAndStart(t *testing.T) {
	bubble(t, func(f *fixture) {
		s := f.mustRun(nil)
		stop, goOn := held()
		f.driver.on("stop", stop)
		first := async(func() (store.Sandbox, error) { return f.Stop(f.Context(), web, nil) })
		f.want(s.ID, stopping)
		second := async(func() (store.Sandbox, error) { return f.Stop(f.Context(), web, nil) })
		f.unanswered(first)
		f.unanswered(second)
		goOn()
		for _, answered := range []<-chan error{first, second} {
			if err := <-answered; err != nil {
				f.Error(err)
			}
		}
		was := f.want(s.ID, stopped)
		if again, err := f.Stop(f.Context(), web, nil); err != nil || again.ResourceVersion != was.ResourceVersion {
			f.Errorf("stopping what is stopped: %v, %v", again, err)
		}

		started, err := f.Start(f.Context(), web, nil)
		if err != nil || started.Phase() != starting || started.ID != s.ID {
			f.Fatalf("start: %v, %v", started, err)
		}
		if again, err := f.Start(f.Context(), web, nil); err != nil || again.ResourceVersion != started.ResourceVersion {
			f.Errorf("starting what starts: %v, %v", again, err)
		}
		time.Sleep(time.Second)
		f.want(s.ID, ready)
	})
}

// A refusal of the driver leaves everything as it was, the timers included.
func TestRefusals(t *testing.T) {
	for _, call := range []string{"start", "stop", "delete"} {
		bubble(t, func(f *fixture) {
			f.mustRun(map[string]any{"ready_after": "100ms", "exit_after": "1m"})
			if call == "start" {
				if _, err := f.Stop(f.Context(), web, nil); err != nil {
					f.Fatal(err)
				}
			}
			before, err := f.store.Sandbox(f.Context(), web.Workspace, web.Name)
			if err != nil {
				f.Fatal(err)
			}
			f.driver.on(call, refusing("not now"))
			switch call {
			case "start":
				_, err = f.Start(f.Context(), web, nil)
			case "stop":
				_, err = f.Stop(f.Context(), web, nil)
			case "delete":
				_, err = f.Manager.Delete(f.Context(), web, nil)
			}
			var refused *DriverError
			if !errors.As(err, &refused) || refused.Action != call || refused.Err.Error() != "not now" {
				f.Errorf("%s: error %v", call, err)
			}
			after := f.want(before.ID, before.Phase())
			before.ResourceVersion += 2 // there and back
			before.Operation.DueAt, after.Operation.DueAt = time.Time{}, time.Time{}
			if diff := cmp.Diff(before, after, protocmp.Transform()); diff != "" {
				f.Errorf("%s: the row (-before +after)\n%s", call, diff)
			}
			if call != "start" {
				time.Sleep(time.Minute)
				f.want(before.ID, completed) // as it would have
			}
		})
	}
}

func TestDelete(t *testing.T) {
	bubble(t, func(f *fixture) {
		s := f.mustRun(map[string]any{"delete_after": "20s"})
		d, err := f.Manager.Delete(f.Context(), web, &store.Precondition{ID: s.ID})
		if err != nil || d != (Deletion{ID: s.ID}) {
			f.Fatalf("%+v, %v", d, err)
		}
		was := f.want(s.ID, deleting)
		if diff := cmp.Diff(s.Status.GetConditions(), was.Status.GetConditions(), protocmp.Transform()); diff != "" {
			f.Errorf("conditions were rewritten:\n%s", diff)
		}
		time.Sleep(10 * time.Second)
		if d, err := f.Manager.Delete(f.Context(), web, &store.Precondition{ID: s.ID, ResourceVersion: 999}); err != nil || d != (Deletion{ID: s.ID}) {
			f.Errorf("once more: %+v, %v", d, err)
		}
		if again := f.want(s.ID, deleting); again.ResourceVersion != was.ResourceVersion {
			f.Errorf("the second delete wrote version %d", again.ResourceVersion)
		}
		time.Sleep(9 * time.Second)
		f.want(s.ID, deleting)
		time.Sleep(1100 * time.Millisecond)
		f.wantGone(s.ID)
	})
}

func TestDeleteWithinTheCall(t *testing.T) {
	bubble(t, func(f *fixture) {
		s := f.mustRun(map[string]any{"delete_after": "0s"})
		d, err := f.Manager.Delete(f.Context(), web, nil)
		if err != nil || d != (Deletion{ID: s.ID, Gone: true}) {
			f.Errorf("%+v, %v", d, err)
		}
		f.wantGone(s.ID)
	})
}

// The driver may find out late that it cannot delete.
func TestDeleteRefusedLater(t *testing.T) {
	bubble(t, func(f *fixture) {
		s := f.mustRun(map[string]any{"delete_after": "5s", "delete_error": "the volume is busy"})
		if d, err := f.Manager.Delete(f.Context(), web, nil); err != nil || d.Gone {
			f.Fatalf("%+v, %v", d, err)
		}
		time.Sleep(4 * time.Second)
		f.want(s.ID, deleting)
		time.Sleep(1100 * time.Millisecond)
		f.want(s.ID, ready)
	})
}

// A delete that comes while the sandbox is being stopped wins. The answer to the stop comes late and changes nothing.
func TestDeleteOvertakesStop(t *testing.T) {
	bubble(t, func(f *fixture) {
		s := f.mustRun(map[string]any{"delete_after": "10s"})
		stop, goOn := held()
		f.driver.on("stop", stop)
		stopAnswer := async(func() (store.Sandbox, error) { return f.Stop(f.Context(), web, nil) })
		if _, err := f.Manager.Delete(f.Context(), web, nil); err != nil {
			f.Fatal(err)
		}
		was := f.want(s.ID, deleting)
		goOn()
		var phase *PhaseError
		if err := <-stopAnswer; !errors.As(err, &phase) {
			f.Errorf("stop: %v", err)
		}
		if now := f.want(s.ID, deleting); now.ResourceVersion != was.ResourceVersion {
			f.Errorf("the late answer wrote version %d", now.ResourceVersion)
		}
		time.Sleep(11 * time.Second)
		f.wantGone(s.ID)
	})
}

// When such a delete is refused, the stop it had overtaken is taken up again.
func TestRefusedDeleteGoesBackToTheStop(t *testing.T) {
	bubble(t, func(f *fixture) {
		s := f.mustRun(map[string]any{"delete_after": "1s", "delete_error": "the volume is busy"})
		stop, goOn := held()
		f.driver.on("stop", stop)
		stopAnswer := async(func() (store.Sandbox, error) { return f.Stop(f.Context(), web, nil) })
		if _, err := f.Manager.Delete(f.Context(), web, nil); err != nil {
			f.Fatal(err)
		}
		goOn() // too late to count
		if err := <-stopAnswer; err == nil {
			f.Error("the stop was answered as if it had counted")
		}
		f.want(s.ID, deleting)
		time.Sleep(2 * time.Second)
		f.want(s.ID, stopped)
	})
}

// What the driver saw before a delete is no news after it.
func TestLateObservation(t *testing.T) {
	bubble(t, func(f *fixture) {
		s := f.mustCreate(map[string]any{"ready_after": "1s", "delete_after": "1h"})
		observe, goOn := held()
		f.driver.on("observe", observe)
		time.Sleep(2 * time.Second) // the manager is asking now
		synctest.Wait()
		if _, err := f.Manager.Delete(f.Context(), web, nil); err != nil {
			f.Fatal(err)
		}
		goOn()
		time.Sleep(time.Minute)
		f.want(s.ID, deleting)
	})
}

// A late answer about A does not reach B, which has A's name and version.
func TestLateAnswerAndSuccessor(t *testing.T) {
	bubble(t, func(f *fixture) {
		create, goOn := held()
		f.driver.on("create", create)
		answered := async(func() (store.Sandbox, error) {
			return f.Create(f.Context(), store.DefaultWorkspace, Draft{Name: "web", Spec: steered(nil)})
		})
		// As another process would, that takes over and has the create refused.
		a, err := f.store.ChangeSandbox(f.Context(), web, nil, removed(store.OutcomeCompleted))
		if err != nil {
			f.Fatal(err)
		}
		b, err := f.store.CreateSandbox(f.Context(), store.DefaultWorkspace, func(time.Time) store.Sandbox {
			b := a
			b.ID, b.Operation = uuid.NewString(), store.Operation{}
			return b
		})
		if err != nil {
			f.Fatal(err)
		}
		goOn()
		if err := <-answered; !errors.Is(err, store.ErrNotFound) {
			f.Errorf("create: %v", err)
		}
		time.Sleep(time.Minute)
		now := f.want(b.ID, provisioning)
		if diff := cmp.Diff(b, now, protocmp.Transform()); diff != "" {
			f.Errorf("the successor (-before +after)\n%s", diff)
		}
	})
}

// Who calls may give up, or go away: what was begun is brought to its end.
func TestWorkOutlivesItsCall(t *testing.T) {
	bubble(t, func(f *fixture) {
		create, goOn := held()
		f.driver.on("create", create)
		ctx, cancel := context.WithCancel(f.Context())
		answered := async(func() (store.Sandbox, error) {
			return f.Create(ctx, store.DefaultWorkspace, Draft{Name: "web", Spec: steered(nil)})
		})
		cancel()
		if err := <-answered; !errors.Is(err, context.Canceled) {
			f.Error(err)
		}
		goOn()
		time.Sleep(time.Second)
		s, err := f.store.Sandbox(f.Context(), web.Workspace, web.Name)
		if err != nil || s.Phase() != ready {
			f.Errorf("%v, %v", s, err)
		}
	})
}

// Nothing that is under way when the process dies stays so.
func TestTakeOver(t *testing.T) {
	for _, call := range []string{"create", "start", "stop", "delete"} {
		bubble(t, func(f *fixture) {
			if call != "create" {
				f.mustRun(nil)
			}
			if call == "start" {
				if _, err := f.Stop(f.Context(), web, nil); err != nil {
					f.Fatal(err)
				}
			}
			busy, _ := held()
			f.driver.on(call, busy)
			answered := async(func() (any, error) {
				switch call {
				case "create":
					return f.Create(f.Context(), store.DefaultWorkspace, Draft{Name: "web", Spec: steered(nil)})
				case "start":
					return f.Start(f.Context(), web, nil)
				case "stop":
					return f.Stop(f.Context(), web, nil)
				default:
					return f.Manager.Delete(f.Context(), web, nil)
				}
			})
			f.kill()
			if err := <-answered; !errors.Is(err, store.ErrUnavailable) {
				f.Errorf("%s: %v", call, err)
			}
			s, err := f.store.Sandbox(f.Context(), web.Workspace, web.Name)
			if err != nil {
				f.Fatal(err)
			}
			f.driver.on(call, nil)
			f.restart()
			time.Sleep(time.Second)
			switch call {
			case "create", "start":
				f.want(s.ID, ready)
			case "stop":
				f.want(s.ID, stopped)
			case "delete":
				f.wantGone(s.ID)
			}
		})
	}
}

// A process that is killed leaves leases behind, which run out.
func TestLeaseRunsOut(t *testing.T) {
	bubble(t, func(f *fixture) {
		s, err := f.store.CreateSandbox(f.Context(), store.DefaultWorkspace, born(newID(), newID(), newID(), Draft{Name: "web", Spec: steered(nil)}))
		if err != nil {
			f.Fatal(err)
		}
		time.Sleep(lease - time.Second)
		f.want(s.ID, provisioning)
		if n := f.driver.count("create"); n != 0 {
			f.Errorf("%d calls within the lease", n)
		}
		time.Sleep(3 * time.Second)
		f.want(s.ID, ready)
	})
}

// Two processes may be at the same operation; it takes effect once.
func TestTwoManagers(t *testing.T) {
	bubble(t, func(f *fixture) {
		other := New(f.store, f.driver, quiet)
		defer other.Close(f.Context())
		s := f.mustRun(map[string]any{"delete_after": "1s"})
		stop, goOn := held()
		f.driver.on("stop", stop)
		answers := []<-chan error{
			async(func() (store.Sandbox, error) { return f.Stop(f.Context(), web, nil) }),
			async(func() (store.Sandbox, error) { return other.Stop(f.Context(), web, nil) }),
		}
		goOn()
		for _, answered := range answers {
			if err := <-answered; err != nil {
				f.Error(err)
			}
		}
		if now := f.want(s.ID, stopped); now.ResourceVersion != s.ResourceVersion+2 {
			f.Errorf("version %d, was %d", now.ResourceVersion, s.ResourceVersion)
		}
		for _, m := range []*Manager{f.Manager, other} {
			if d, err := m.Delete(f.Context(), web, nil); err != nil || d.ID != s.ID {
				f.Errorf("%+v, %v", d, err)
			}
		}
		time.Sleep(2 * time.Second)
		f.wantGone(s.ID)
	})
}

// Many sandboxes at once keep their times.
func TestManyAtOnce(t *testing.T) {
	bubble(t, func(f *fixture) {
		const n = 3 * concurrency
		for range n {
			_, err := f.Create(f.Context(), store.DefaultWorkspace, Draft{Name: newID(), Spec: steered(map[string]any{"ready_after": "5s"})})
			if err != nil {
				f.Fatal(err)
			}
		}
		time.Sleep(6 * time.Second)
		synctest.Wait()
		all, err := f.store.ListSandboxes(f.Context(), store.ListQuery{Limit: 2 * n})
		if err != nil || len(all) != n {
			f.Fatal(len(all), err)
		}
		for _, s := range all {
			if s.Phase() != ready {
				f.Fatalf("%s is %v", s.Name, s.Phase())
			}
		}
	})
}

// A driver that is slow with some does not keep others waiting.
func TestSlowCallsDoNotBlockOthers(t *testing.T) {
	bubble(t, func(f *fixture) {
		for range 2 * concurrency { // left behind by a process that died
			if _, err := f.store.CreateSandbox(f.Context(), store.DefaultWorkspace,
				born(newID(), newID(), newID(), Draft{Name: newID(), Spec: steered(map[string]any{"create_takes": "1h"})})); err != nil {
				f.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		s := f.mustRun(nil)
		if _, err := f.Manager.Delete(f.Context(), store.Target{ID: s.ID}, nil); err != nil {
			f.Fatal(err)
		}
		time.Sleep(time.Second)
		f.wantGone(s.ID)
	})
}

// A driver that fails to say how a sandbox does is asked again.
func TestObserveFails(t *testing.T) {
	bubble(t, func(f *fixture) {
		f.driver.on("observe", func(context.Context, driver.Instance) error { return errors.New("connection refused") })
		s := f.mustCreate(nil)
		time.Sleep(5 * time.Second)
		f.want(s.ID, provisioning)
		f.driver.on("observe", nil)
		time.Sleep(2 * time.Second)
		f.want(s.ID, ready)
	})
}
