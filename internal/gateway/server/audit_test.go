package server_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// Who deleted, or tried to delete, which sandbox under which precondition, and what came of it.
func TestAuditOfDeletes(t *testing.T) {
	const plain, conditional = "/openshell.v1.OpenShell/DeleteSandbox", "/openshell.conditional.v1.ConditionalSandboxes/DeleteSandbox"
	g := gatewaytest.Start(t)
	a := g.MustCreate(t, "web", gatewaytest.Simulated(map[string]any{"delete_after": "1h"}))
	record := func(method string, expected *store.Precondition, outcome store.Outcome) store.AuditRecord {
		return store.AuditRecord{
			Caller: store.Caller{IdentityProvider: "local_dev", Subject: "unauthenticated-local-dev"}, Method: method,
			Workspace: "default", Name: "web", SandboxID: id(a), Expected: expected, Outcome: outcome,
		}
	}
	var want []store.AuditRecord
	for _, step := range []struct {
		del    onceCall
		record *store.AuditRecord
	}{
		{deletes(expect(anID), true), new(record(conditional, &store.Precondition{ID: anID}, store.OutcomeIdentityMismatch))},
		{deletes(expect(id(a), 99), true), new(record(conditional, &store.Precondition{ID: id(a), ResourceVersion: 99}, store.OutcomeVersionConflict))},
		{deletes(expect(id(a)), true), new(record(conditional, &store.Precondition{ID: id(a)}, store.OutcomeAccepted))},
		{deletes(nil, true), new(record(plain, nil, store.OutcomeAlreadyDeleting))},
	} {
		_, _ = step.del(call(t), g, "")
		want = append(want, *step.record)
		got := g.Audit(t)
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(store.AuditRecord{}, "ID", "At")); diff != "" {
			t.Fatalf("(-want +got)\n%s", diff)
		}
	}
}

// The record of an accepted delete says how it ended.
func TestAuditOfTheEnd(t *testing.T) {
	for name, tc := range map[string]struct {
		keys    map[string]any
		gone    bool
		outcome store.Outcome
	}{
		"at once":               {map[string]any{"delete_after": "0s"}, true, store.OutcomeCompleted},
		"later":                 {map[string]any{"delete_after": "10ms"}, true, store.OutcomeCompleted},
		"refused by the driver": {map[string]any{"delete_error": "the volume is busy"}, false, store.OutcomeRefused},
	} {
		t.Run(name, func(t *testing.T) {
			g := gatewaytest.Start(t)
			a := g.MustCreate(t, "web", gatewaytest.Simulated(tc.keys))
			_, _ = deletes(nil, false)(call(t), g, "")
			if tc.gone {
				g.WaitGone(t, id(a))
			}
			records := g.Audit(t)
			if len(records) != 1 || records[0].Outcome != tc.outcome || records[0].SettledAt.Before(records[0].At) || records[0].SandboxID != id(a) {
				t.Errorf("audit %+v", records)
			}
		})
	}
}

// A sandbox that is to be kept only while it runs is deleted by the gateway, after its exit code could be read.
func TestEphemeralSandbox(t *testing.T) {
	t.Parallel()
	g := gatewaytest.Start(t)
	keep := g.MustCreate(t, "keep", gatewaytest.NoWait(), gatewaytest.Simulated(map[string]any{"exit_after": "0s"}))
	web := g.MustCreate(t, "web", gatewaytest.NoWait(), gatewaytest.Simulated(map[string]any{"exit_after": "0s", "exit_code": 3}),
		gatewaytest.Request(func(r *openshellv1.CreateSandboxRequest) {
			r.Annotations = map[string]string{"openshell.nvidia.com/retention": "ephemeral"}
		}))
	w := watch(call(t), t, g, nil)
	if s := w.until(failed); s.GetStatus().GetExitCode() != 3 {
		t.Errorf("status %v", s.GetStatus())
	}
	g.WaitGone(t, id(web))
	if s, ok := g.GetByID(t, id(keep)); !ok || s.GetStatus().GetPhase() != openshellv1.SandboxPhase_SANDBOX_PHASE_COMPLETED {
		t.Errorf("the other one: %v", s)
	}
	want := []store.AuditRecord{{
		Caller: store.Caller{IdentityProvider: "gateway", Subject: "retention"}, Method: "retention",
		Workspace: "default", Name: "web", SandboxID: id(web), Expected: &store.Precondition{ID: id(web)}, Outcome: store.OutcomeCompleted,
	}}
	if diff := cmp.Diff(want, g.Audit(t), cmpopts.IgnoreFields(store.AuditRecord{}, "ID", "At", "SettledAt")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// Nothing is recorded of a delete that finds nothing, nor of one that its caller may not make.
func TestAuditOfNothing(t *testing.T) {
	g := gatewaytest.Start(t)
	for _, del := range []onceCall{deletes(nil, true), deletes(nil, false), deletes(expect(anID), true), deletes(expect("x"), true)} {
		_, _ = del(call(t), g, "")
	}
	if records := g.Audit(t); len(records) != 0 {
		t.Errorf("audit %+v", records)
	}
}
