package server_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

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
