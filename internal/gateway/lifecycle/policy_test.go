package lifecycle

import (
	"context"
	"testing"
	"time"

	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/driver"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// givePolicy writes the wish for a revision, as an update does.
func (f *fixture) givePolicy(id string, version uint32) store.Sandbox {
	f.Helper()
	s, err := f.store.ChangeSandbox(f.Context(), store.Target{ID: id}, nil, func(current store.Sandbox, _ time.Time) (store.Change, error) {
		SetPolicy(&current, version, "hash")
		return store.Change{Write: &current}, nil
	})
	if err != nil {
		f.Fatal(err)
	}
	return s
}

// wantPolicy holds a sandbox to the revisions that it is to have and has loaded.
func (f *fixture) wantPolicy(s store.Sandbox, wanted, loaded uint32) {
	f.Helper()
	admission := s.Status.GetConfigurationAdmission()
	state := openshellv1.ConfigurationAdmissionState_CONFIGURATION_ADMISSION_STATE_ACCEPTED
	if wanted != loaded {
		state = openshellv1.ConfigurationAdmissionState_CONFIGURATION_ADMISSION_STATE_PENDING
	}
	if admission.GetPolicyVersion() != wanted || s.Status.GetCurrentPolicyVersion() != loaded || admission.GetState() != state {
		f.Errorf("want revision %d, of which %d is loaded: %v", wanted, loaded, s.Status)
	}
}

func TestPolicyIsLoadedByWhatRuns(t *testing.T) {
	bubble(t, func(f *fixture) {
		spec := steered(map[string]any{"ready_after": "1m"})
		spec.Policy = &sandboxv1.SandboxPolicy{Version: 1}
		s, err := f.Create(f.Context(), store.DefaultWorkspace, Draft{Name: "web", Spec: spec})
		if err != nil {
			f.Fatal(err)
		}
		f.wantPolicy(s, 1, 0)
		f.wantPolicy(f.givePolicy(s.ID, 2), 2, 0)
		time.Sleep(2 * time.Minute)
		f.wantPolicy(f.want(s.ID, ready), 2, 2)
		f.wantPolicy(f.givePolicy(s.ID, 3), 3, 3)
		if _, err := f.Stop(f.Context(), web, nil); err != nil {
			f.Fatal(err)
		}
		f.wantPolicy(f.givePolicy(s.ID, 4), 4, 3)
		if _, err := f.Start(f.Context(), web, nil); err != nil {
			f.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		f.wantPolicy(f.want(s.ID, ready), 4, 4)
	})
}

// A policy that is given while a delete or a stop is under way is not lost when the driver refuses that.
func TestPolicyOutlivesARefusal(t *testing.T) {
	for call, ask := range map[string]func(f *fixture) error{
		"delete": func(f *fixture) error { _, err := f.Delete(f.Context(), web, nil); return err },
		"stop":   func(f *fixture) error { _, err := f.Stop(f.Context(), web, nil); return err },
	} {
		t.Run(call, func(t *testing.T) {
			bubble(t, func(f *fixture) {
				s := f.mustRun(nil)
				f.driver.on(call, func(ctx context.Context, i driver.Instance) error {
					f.wantPolicy(f.givePolicy(i.ID, 1), 1, 0)
					return refusing("busy")(ctx, i)
				})
				if err := ask(f); err == nil {
					f.Error("it was not refused")
				}
				f.wantPolicy(f.want(s.ID, ready), 1, 1)
			})
		})
	}
}
