package lifecycle

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
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

// What others have written meanwhile stays all the same: which change of providers and which of the configuration was the last.
func TestRefusalKeepsWhatOthersWrote(t *testing.T) {
	for call, ask := range map[string]store.Decide{"stop": stopAsked(nil, nil, "new"), "delete": deleteAsked(nil, nil, "new")} {
		before := state(ready, reasonReady, store.OperationNone, false)
		before.Status.Provisioning = &openshellv1.SandboxProvisioning{AttemptId: "first", ConfigurationChangeId: "old", AttachmentChangeId: "old"}
		asked, err := ask(before, time.Unix(2, 0))
		if err != nil {
			t.Fatal(err)
		}
		want := proto.CloneOf(before.Status)
		for _, s := range []*openshellv1.SandboxStatus{want, asked.Write.Status} {
			s.Provisioning.ConfigurationChangeId, s.Provisioning.ConfigurationChangeTime = "policy", timestamppb.New(time.Unix(3, 0))
			s.Provisioning.AttachmentChangeId, s.Provisioning.AttachmentChangeTime = "attach", timestamppb.New(time.Unix(4, 0))
		}
		back, err := refused(*asked.Write, time.Unix(5, 0))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, back.Write.Status, protocmp.Transform()); diff != "" {
			t.Errorf("%s: the status (-want +got)\n%s", call, diff)
		}
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
