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

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/driver"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

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

// late begins a call whose attempt stands still until another attempt at the same has been made, which the driver answers
// by other. Its own answer of the driver comes only then.
func (f *fixture) late(call string, other, own error) (Deletion, store.Sandbox, error) {
	f.Helper()
	if call != "create" {
		f.mustRun(map[string]any{"delete_after": "0s"})
	}
	if call == "start" {
		if _, err := f.Stop(f.Context(), web, nil); err != nil {
			f.Fatal(err)
		}
	}
	hold, goOn := held()
	f.driver.on(call, func(ctx context.Context, i driver.Instance) error {
		if f.driver.count(call) > 1 {
			return other
		}
		if err := hold(ctx, i); err != nil {
			return err
		}
		return own
	})
	var (
		d Deletion
		s store.Sandbox
	)
	answers := async(func() (_ any, err error) {
		switch call {
		case "create":
			s, err = f.Create(f.Context(), web.Workspace, Draft{Name: web.Name, Spec: steered(nil)})
		case "start":
			s, err = f.Start(f.Context(), web, nil)
		case "stop":
			s, err = f.Stop(f.Context(), web, nil)
		case "delete":
			d, err = f.Manager.Delete(f.Context(), web, nil)
		}
		return nil, err
	})
	begun, err := f.store.Sandbox(f.Context(), web.Workspace, web.Name)
	if err != nil {
		f.Fatal(err)
	}
	f.reschedule(f.Context(), begun, 0) // as if its lease had run out
	synctest.Wait()
	if n := f.driver.count(call); n != 2 {
		f.Fatalf("%d attempts", n)
	}
	goOn()
	err = <-answers
	if d != (Deletion{}) && d.ID != begun.ID || s.ID != "" && s.ID != begun.ID {
		f.Errorf("%s: the answer is about %s %s, not about %s", call, d.ID, s.ID, begun.ID)
	}
	return d, s, err
}

// A driver that refuses an attempt late, when another has had it done, has refused nothing.
func TestLateRefusal(t *testing.T) {
	for call, want := range map[string]openshellv1.SandboxPhase{"create": provisioning, "start": starting, "stop": stopped, "delete": 0} {
		t.Run(call, func(t *testing.T) {
			bubble(t, func(f *fixture) {
				d, s, err := f.late(call, nil, &driver.Refusal{Message: "too late"})
				if err != nil || s.Phase() != want || d.Gone != (call == "delete") {
					t.Errorf("%+v, %v, %v", d, s, err)
				}
			})
		})
	}
}

// A driver that has refused both attempts has refused.
func TestRefusedTwice(t *testing.T) {
	for _, call := range []string{"create", "start", "stop", "delete"} {
		t.Run(call, func(t *testing.T) {
			bubble(t, func(f *fixture) {
				no := &driver.Refusal{Message: "no"}
				_, _, err := f.late(call, no, no)
				var refused *DriverError
				if !errors.As(err, &refused) || refused.Action != call {
					t.Error(err)
				}
			})
		})
	}
}

// An attempt that the driver has done late, when it has refused another, is no success: what was asked for is not so.
func TestLateSuccess(t *testing.T) {
	for _, call := range []string{"create", "start", "stop", "delete"} {
		t.Run(call, func(t *testing.T) {
			bubble(t, func(f *fixture) {
				if d, s, err := f.late(call, &driver.Refusal{Message: "no"}, nil); err == nil {
					t.Errorf("%+v, %v", d, s)
				}
			})
		})
	}
}
