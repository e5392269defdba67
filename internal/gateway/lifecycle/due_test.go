package lifecycle

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/driver"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

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
		if err != nil || len(all.Rows) != n {
			f.Fatal(len(all.Rows), err)
		}
		for _, s := range all.Rows {
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

// closing is a store that has a manager closed when it has just claimed something.
type closing struct {
	store.Store
	close func()
}

func (c *closing) ClaimDue(ctx context.Context, limit int, lease time.Duration) ([]store.Sandbox, error) {
	claimed, err := c.Store.ClaimDue(ctx, limit, lease)
	if len(claimed) > 0 {
		go c.close()
		<-ctx.Done()
	}
	return claimed, err
}

// What is claimed by a manager that closes is not kept from others until its lease runs out.
func TestClosingGivesBack(t *testing.T) {
	bubble(t, func(f *fixture) {
		f.kill()
		for range 2 {
			if _, err := f.store.CreateSandbox(f.Context(), store.DefaultWorkspace, born(newID(), newID(), newID(), Draft{Name: newID(), Spec: steered(nil)})); err != nil {
				f.Fatal(err)
			}
		}
		time.Sleep(lease)
		made, closed := make(chan struct{}), make(chan struct{})
		f.Manager = New(&closing{f.store, func() {
			<-made
			f.Manager.Close(context.Background())
			close(closed)
		}}, f.driver, quiet)
		close(made)
		<-closed
		if n := f.busy.Load(); n != 0 {
			f.Errorf("%d workers count as busy", n)
		}
		due, err := f.store.ClaimDue(f.Context(), 10, lease)
		if err != nil || len(due) != 2 {
			f.Errorf("%d are due, %v", len(due), err)
		}
	})
}

// Only what is due before the loop wakes by itself wakes it.
func TestReschedulingWakesTheLoop(t *testing.T) {
	bubble(t, func(f *fixture) {
		s := f.mustRun(nil)
		m := &Manager{store: f.store, log: quiet, wake: make(chan struct{}, 1)} // without a loop
		m.reschedule(f.Context(), s, idle)
		if len(m.wake) != 0 {
			f.Error("it was woken for what it would have found by itself")
		}
		m.reschedule(f.Context(), s, idle-1)
		if len(m.wake) != 1 {
			f.Error("it was not woken")
		}
	})
}
