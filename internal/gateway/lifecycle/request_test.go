package lifecycle

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

func admitted(requestID string) *store.Request {
	return &store.Request{
		ID: uuid.NewString(), Method: "/a.B/C", Caller: store.Caller{Key: "a"},
		Admission: &store.Admission{Scope: "s", RequestID: requestID, Fingerprint: "f"},
	}
}

// wantOutcome holds an admission to its outcome; "none" means that there is no admission.
func (f *fixture) wantOutcome(r *store.Request, want store.Outcome) {
	f.Helper()
	got, found, err := f.store.Admitted(f.Context(), r.Admission.Scope, r.Admission.RequestID)
	switch {
	case err != nil:
		f.Fatal(err)
	case found != (want != "none"), found && got.Outcome != want:
		f.Errorf("admission %v %+v, want %q", found, got, want)
	}
}

// An outcome that nobody knows when the gateway dies is known once another has done the work.
func TestOutcomeAfterACrash(t *testing.T) {
	asked := func(r *store.Request) store.Target {
		return store.Target{Workspace: web.Workspace, Name: web.Name, Request: r}
	}
	for name, tc := range map[string]struct {
		call    string
		prepare func(f *fixture)
		do      func(f *fixture, r *store.Request) error
		want    store.Outcome
		refused bool
	}{
		"create": {"create", func(*fixture) {}, func(f *fixture, r *store.Request) error {
			_, err := f.Create(f.Context(), store.DefaultWorkspace, Draft{Name: "web", Spec: steered(nil), Request: r})
			return err
		}, store.OutcomeDone, false},
		"create, refused": {"create", func(*fixture) {}, func(f *fixture, r *store.Request) error {
			_, err := f.Create(f.Context(), store.DefaultWorkspace, Draft{Name: "web", Spec: steered(nil), Request: r})
			return err
		}, "none", true},
		"stop": {"stop", func(f *fixture) { f.mustRun(nil) }, func(f *fixture, r *store.Request) error {
			_, err := f.Stop(f.Context(), asked(r), nil)
			return err
		}, store.OutcomeDone, false},
		"start": {"start", func(f *fixture) {
			f.mustRun(nil)
			if _, err := f.Stop(f.Context(), web, nil); err != nil {
				f.Fatal(err)
			}
		}, func(f *fixture, r *store.Request) error {
			_, err := f.Start(f.Context(), asked(r), nil)
			return err
		}, store.OutcomeDone, false},
		"delete, completed": {"delete", func(f *fixture) { f.mustRun(map[string]any{"delete_after": "0s"}) }, func(f *fixture, r *store.Request) error {
			_, err := f.Delete(f.Context(), asked(r), nil)
			return err
		}, store.OutcomeCompleted, false},
		"delete, accepted": {"delete", func(f *fixture) { f.mustRun(map[string]any{"delete_after": "1h"}) }, func(f *fixture, r *store.Request) error {
			_, err := f.Delete(f.Context(), asked(r), nil)
			return err
		}, store.OutcomeAccepted, false},
		"delete, refused": {"delete", func(f *fixture) { f.mustRun(nil) }, func(f *fixture, r *store.Request) error {
			_, err := f.Delete(f.Context(), asked(r), nil)
			return err
		}, "none", true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(f *fixture) {
				tc.prepare(f)
				hold, goOn := held()
				f.driver.on(tc.call, hold)
				r := admitted("1")
				answers := async(func() (struct{}, error) { return struct{}{}, tc.do(f, r) })
				f.unanswered(answers)
				f.wantOutcome(r, store.OutcomePending)
				f.kill()
				if err := <-answers; !errors.Is(err, errClosing) {
					t.Errorf("the call that was broken off: %v", err)
				}
				f.wantOutcome(r, store.OutcomePending)
				goOn()
				f.driver.on(tc.call, nil)
				if tc.refused {
					f.driver.on(tc.call, refusing("no"))
				}
				f.restart()
				time.Sleep(2 * lease)
				f.wantOutcome(r, tc.want)
			})
		})
	}
}

// A stop that a delete overtakes has no outcome, since it was neither refused nor is what it asked for so.
func TestOutcomeOfWhatIsOvertaken(t *testing.T) {
	bubble(t, func(f *fixture) {
		f.mustRun(map[string]any{"delete_after": "1h"})
		hold, goOn := held()
		f.driver.on("stop", hold)
		stop, del := admitted("1"), admitted("2")
		answers := async(func() (store.Sandbox, error) {
			return f.Stop(f.Context(), store.Target{Workspace: web.Workspace, Name: web.Name, Request: stop}, nil)
		})
		if _, err := f.Delete(f.Context(), store.Target{Workspace: web.Workspace, Name: web.Name, Request: del}, nil); err != nil {
			t.Fatal(err)
		}
		goOn()
		var phase *PhaseError
		if err := <-answers; !errors.As(err, &phase) {
			t.Errorf("the stop: %v", err)
		}
		f.wantOutcome(stop, store.OutcomePending)
		f.wantOutcome(del, store.OutcomeAccepted)
	})
}
