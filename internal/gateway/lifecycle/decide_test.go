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

// state is a row in a state that sandboxes can be in.
func state(phase openshellv1.SandboxPhase, why string, kind store.OperationKind, pending bool) store.Sandbox {
	s := store.Sandbox{
		ID: "a", Workspace: "default", Name: "web", ResourceVersion: 5,
		Spec: &openshellv1.SandboxSpec{}, Status: &openshellv1.SandboxStatus{},
		Operation: store.Operation{ID: "before", Kind: kind, Pending: pending},
	}
	setPhase(s.Status, phase, why, "", time.Unix(1, 0))
	return s
}

func backingOff() store.Sandbox {
	s := state(starting, reasonRestarting, store.OperationRestart, false)
	s.Status.NextRestartTime = timestamppb.New(time.Unix(99, 0))
	return s
}

// The table of accepted, idle and refused calls (contract, phases and lifecycle), under a precondition that holds and
// without one.
func TestWhatIsAcceptedInWhichPhase(t *testing.T) {
	const (
		accepted = "accepted" // a new operation
		idle     = "idle"     // success, the row as it was
		refused  = "refused"
		pending  = "pending"
	)
	unknown := openshellv1.SandboxPhase_SANDBOX_PHASE_UNKNOWN
	for name, tc := range map[string]struct {
		s                       store.Sandbox
		start, stop, deleteWant string
	}{
		"creating":            {state(provisioning, "", store.OperationCreate, true), refused, refused, pending},
		"provisioning":        {state(provisioning, "", store.OperationCreate, false), refused, refused, accepted},
		"ready":               {state(ready, "", store.OperationNone, false), idle, accepted, accepted},
		"ready, with an end":  {state(ready, "", store.OperationRun, false), idle, accepted, accepted},
		"failed":              {state(failed, reasonMainProcessFailed, store.OperationNone, false), accepted, idle, accepted},
		"timed out":           {state(failed, reasonProvisioningTimedOut, store.OperationNone, false), accepted, refused, accepted},
		"failed otherwise":    {state(failed, "Other", store.OperationNone, false), refused, refused, accepted},
		"deleting":            {state(deleting, "", store.OperationDelete, false), refused, refused, idle},
		"unknown":             {state(unknown, "", store.OperationNone, false), refused, refused, accepted},
		"stopping":            {state(stopping, "", store.OperationStop, false), refused, idle, accepted},
		"stopped":             {state(stopped, "", store.OperationNone, false), accepted, idle, accepted},
		"start pending":       {state(starting, "", store.OperationStart, true), idle, refused, pending},
		"starting":            {state(starting, "", store.OperationStart, false), idle, refused, accepted},
		"restart backing off": {backingOff(), accepted, accepted, accepted},
		"restart pending":     {state(starting, "", store.OperationRestart, true), idle, accepted, pending},
		"restarting":          {state(starting, "", store.OperationRestart, false), idle, accepted, accepted},
		"to be retired":       {state(completed, reasonMainProcessCompleted, store.OperationRetire, false), accepted, idle, accepted},
		"completed":           {state(completed, reasonMainProcessCompleted, store.OperationNone, false), accepted, idle, accepted},
	} {
		t.Run(name, func(t *testing.T) {
			for call, want := range map[string]string{"start": tc.start, "stop": tc.stop, "delete": tc.deleteWant} {
				ask := map[string]func(*store.Request, *store.Precondition, string) store.Decide{"start": startAsked, "stop": stopAsked, "delete": deleteAsked}[call]
				for _, p := range []*store.Precondition{nil, {ID: "a"}, {ID: "a", ResourceVersion: 5}} {
					before := proto.CloneOf(tc.s.Status)
					change, err := ask(nil, p, "new")(tc.s, time.Unix(2, 0))
					got := outcome(change, err)
					if got != want {
						t.Errorf("%s with %+v is %s (%v), want %s", call, p, got, err, want)
					}
					if diff := cmp.Diff(before, tc.s.Status, protocmp.Transform()); diff != "" {
						t.Errorf("%s modified the row it was shown:\n%s", call, diff)
					}
				}
			}
		})
	}
}

func outcome(change store.Change, err error) string {
	var phase *PhaseError
	var pending *OperationPendingError
	switch {
	case errors.As(err, &phase):
		return "refused"
	case errors.As(err, &pending):
		return "pending"
	case err != nil:
		return err.Error()
	case change.Write == nil && !change.Remove:
		return "idle"
	case change.Write != nil && change.Write.Operation.ID == "new" && change.Write.Operation.Before != nil:
		return "accepted"
	}
	return "something else"
}

// The version comes first for stop and start, in every phase. For delete it comes after what is pending and what is being
// deleted already.
func TestAnotherVersion(t *testing.T) {
	other := &store.Precondition{ID: "a", ResourceVersion: 4}
	for name, s := range map[string]store.Sandbox{
		"provisioning": state(provisioning, "", store.OperationCreate, false),
		"ready":        state(ready, "", store.OperationNone, false),
		"stopped":      state(stopped, "", store.OperationNone, false),
		"completed":    state(completed, "", store.OperationNone, false),
		"pending":      state(provisioning, "", store.OperationCreate, true),
		"deleting":     state(deleting, "", store.OperationDelete, false),
	} {
		for call, decide := range map[string]store.Decide{
			"start": startAsked(nil, other, "new"), "stop": stopAsked(nil, other, "new"), "delete": deleteAsked(nil, other, "new"),
		} {
			change, err := decide(s, time.Unix(2, 0))
			var conflict *store.VersionConflictError
			want := true
			if call == "delete" && (name == "pending" || name == "deleting") {
				want = false
			}
			if errors.As(err, &conflict) != want || change.Write != nil {
				t.Errorf("%s while %s: %v, %v", call, name, change, err)
			}
		}
	}
}

// Whoever comes back when the row carries another operation changes nothing.
func TestLateAnswersChangeNothing(t *testing.T) {
	change, err := during("an earlier one", removed(store.OutcomeRefused))(state(deleting, "", store.OperationDelete, false), time.Unix(2, 0))
	if err != nil || change != nothing {
		t.Errorf("%+v, %v", change, err)
	}
}

func TestBackoff(t *testing.T) {
	var got []time.Duration
	for n := range uint32(11) {
		got = append(got, backoffOf(n))
	}
	want := []time.Duration{0, 1, 2, 4, 8, 16, 32, 64, 128, 180, 180}
	for i := range want {
		want[i] *= time.Second
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if backoffOf(1<<32-1) != 180*time.Second {
		t.Error("the back-off of very many restarts is", backoffOf(1<<32-1))
	}
}
