package server_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// conditionalCall is one of the conditional calls on a name, in the workspace "default" unless a scope is given.
type conditionalCall func(t *testing.T, g *gatewaytest.Gateway, name string, scope *datamodelv1.WorkspaceSelector, p *conditionalv1.SandboxPrecondition, requestID string) (proto.Message, error)

var conditionalCalls = map[string]conditionalCall{
	"delete": func(t *testing.T, g *gatewaytest.Gateway, name string, scope *datamodelv1.WorkspaceSelector, p *conditionalv1.SandboxPrecondition, requestID string) (proto.Message, error) {
		return g.Conditional().DeleteSandbox(call(t), &conditionalv1.ConditionalDeleteSandboxRequest{
			Precondition: p, Request: &openshellv1.DeleteSandboxRequest{Name: name, WorkspaceScope: scope, RequestId: requestID},
		})
	},
	"delete, allow_missing": func(t *testing.T, g *gatewaytest.Gateway, name string, scope *datamodelv1.WorkspaceSelector, p *conditionalv1.SandboxPrecondition, requestID string) (proto.Message, error) {
		return g.Conditional().DeleteSandbox(call(t), &conditionalv1.ConditionalDeleteSandboxRequest{
			Precondition: p, Request: &openshellv1.DeleteSandboxRequest{Name: name, WorkspaceScope: scope, RequestId: requestID, AllowMissing: true},
		})
	},
	"stop": func(t *testing.T, g *gatewaytest.Gateway, name string, scope *datamodelv1.WorkspaceSelector, p *conditionalv1.SandboxPrecondition, requestID string) (proto.Message, error) {
		return g.Conditional().StopSandbox(call(t), &conditionalv1.ConditionalStopSandboxRequest{
			Precondition: p, Request: &openshellv1.StopSandboxRequest{Name: name, WorkspaceScope: scope, RequestId: requestID},
		})
	},
	"start": func(t *testing.T, g *gatewaytest.Gateway, name string, scope *datamodelv1.WorkspaceSelector, p *conditionalv1.SandboxPrecondition, requestID string) (proto.Message, error) {
		return g.Conditional().StartSandbox(call(t), &conditionalv1.ConditionalStartSandboxRequest{
			Precondition: p, Request: &openshellv1.StartSandboxRequest{Name: name, WorkspaceScope: scope, RequestId: requestID},
		})
	},
	"attach": func(t *testing.T, g *gatewaytest.Gateway, name string, scope *datamodelv1.WorkspaceSelector, p *conditionalv1.SandboxPrecondition, requestID string) (proto.Message, error) {
		return g.Conditional().AttachSandboxProvider(call(t), &conditionalv1.ConditionalAttachSandboxProviderRequest{
			Precondition: p, Request: &openshellv1.AttachSandboxProviderRequest{Sandbox: name, WorkspaceScope: scope, RequestId: requestID, Provider: "none"}, // which is refused
		})
	},
	"detach": func(t *testing.T, g *gatewaytest.Gateway, name string, scope *datamodelv1.WorkspaceSelector, p *conditionalv1.SandboxPrecondition, requestID string) (proto.Message, error) {
		return g.Conditional().DetachSandboxProvider(call(t), &conditionalv1.ConditionalDetachSandboxProviderRequest{
			Precondition: p, Request: &openshellv1.DetachSandboxProviderRequest{Sandbox: name, WorkspaceScope: scope, RequestId: requestID, Provider: "none"},
		})
	},
	"update": func(t *testing.T, g *gatewaytest.Gateway, name string, scope *datamodelv1.WorkspaceSelector, p *conditionalv1.SandboxPrecondition, requestID string) (proto.Message, error) {
		return g.Conditional().UpdateSandboxConfig(call(t), &conditionalv1.ConditionalUpdateSandboxConfigRequest{
			Precondition: p, Request: &openshellv1.UpdateConfigRequest{Sandbox: name, WorkspaceScope: scope, RequestId: requestID, Policy: reaching("a.example.com")},
		})
	},
	"update of nothing": func(t *testing.T, g *gatewaytest.Gateway, name string, scope *datamodelv1.WorkspaceSelector, p *conditionalv1.SandboxPrecondition, requestID string) (proto.Message, error) {
		return g.Conditional().UpdateSandboxConfig(call(t), &conditionalv1.ConditionalUpdateSandboxConfigRequest{
			Precondition: p, Request: &openshellv1.UpdateConfigRequest{Sandbox: name, WorkspaceScope: scope, RequestId: requestID}, // which is refused
		})
	},
}

// wantUnchanged holds the sandbox under a name to what it was, to the last field.
func wantUnchanged(t *testing.T, g *gatewaytest.Gateway, before *openshellv1.Sandbox) {
	t.Helper()
	after, ok := g.Get(t, before.GetMetadata().GetName())
	if diff := cmp.Diff(before, after, protocmp.Transform()); !ok || diff != "" {
		t.Errorf("the sandbox (-before +after)\n%s", diff)
	}
}

func wantDeletion(t *testing.T, got proto.Message, err error, outcome openshellv1.DeletionOutcome, id string) {
	t.Helper()
	if err != nil {
		t.Error(err)
		return
	}
	want := &openshellv1.DeleteSandboxResponse{Outcome: outcome, SandboxId: id}
	if diff := cmp.Diff(proto.Message(want), got, protocmp.Transform()); diff != "" {
		t.Errorf("reply (-want +got)\n%s", diff)
	}
}

const (
	accepted      = openshellv1.DeletionOutcome_DELETION_OUTCOME_ACCEPTED
	finished      = openshellv1.DeletionOutcome_DELETION_OUTCOME_COMPLETED
	alreadyAbsent = openshellv1.DeletionOutcome_DELETION_OUTCOME_ALREADY_ABSENT
)

// A name that resolves to nothing.
func TestConditionalAbsent(t *testing.T) {
	g := gatewaytest.Start(t)
	for name, do := range conditionalCalls {
		t.Run(name, func(t *testing.T) {
			got, err := do(t, g, "web", gatewaytest.Default(), expect(anID), "")
			if name == "delete, allow_missing" {
				wantDeletion(t, got, err, alreadyAbsent, "")
				return
			}
			wantPlain(t, err, codes.NotFound, "sandbox not found")
		})
	}
}

// A name that resolves to another id, in whatever phase, with whatever version, is refused and nothing changes.
func TestConditionalIdentityMismatch(t *testing.T) {
	g := gatewaytest.Start(t)
	a := g.MustCreate(t, "web")
	b := g.Replace(t, "web")
	for _, phase := range []openshellv1.SandboxPhase{provisioning, ready, failed, deleting, stopped, starting, 5, 6, 9} {
		b = g.SetPhase(t, "web", phase)
		for name, do := range conditionalCalls {
			t.Run(phase.String()+"/"+name, func(t *testing.T) {
				for _, p := range []*conditionalv1.SandboxPrecondition{
					expect(id(a)), expect(id(a), b.GetMetadata().GetResourceVersion()), expect(id(a), 1), expect(anID),
				} {
					_, err := do(t, g, "web", gatewaytest.Default(), p, "")
					wantReason(t, err, codes.FailedPrecondition, "openshell.conditional.v1", "SANDBOX_IDENTITY_MISMATCH", map[string]string{
						"workspace": "default", "name": "web", "expected_id": p.GetId(), "current_id": id(b),
					})
					wantUnchanged(t, g, b)
				}
			})
		}
	}
}

// Another version is a conflict, also where the plain call would do nothing.
func TestConditionalVersionConflict(t *testing.T) {
	g := gatewaytest.Start(t)
	g.MustCreate(t, "web")
	for _, phase := range []openshellv1.SandboxPhase{provisioning, ready, failed, stopped, starting} {
		s := g.SetPhase(t, "web", phase)
		version := s.GetMetadata().GetResourceVersion()
		for name, do := range conditionalCalls {
			t.Run(phase.String()+"/"+name, func(t *testing.T) {
				for _, other := range []uint64{1, version - 1, version + 1, 1<<64 - 1} {
					_, err := do(t, g, "web", gatewaytest.Default(), expect(id(s), other), "")
					wantStatus(t, err, codes.Aborted, "sandbox 'web' in workspace 'default' (id "+id(s)+")")
					wantReason(t, err, codes.Aborted, "openshell.nvidia.com", "RESOURCE_VERSION_CONFLICT", map[string]string{
						"recovery": "REFRESH_STATE", "current_resource_version": strconv.FormatUint(version, 10),
					})
					wantUnchanged(t, g, s)
				}
			})
		}
	}
}

func TestConditionalDelete(t *testing.T) {
	g := gatewaytest.Start(t)
	del := conditionalCalls["delete"]
	t.Run("accepted", func(t *testing.T) {
		a := g.MustCreate(t, "web", gatewaytest.Simulated(map[string]any{"delete_after": "1h"}))
		got, err := del(t, g, "web", gatewaytest.Default(), expect(strings.ToUpper(id(a)), a.GetMetadata().GetResourceVersion()), "")
		wantDeletion(t, got, err, accepted, id(a))
		marked := g.WaitPhase(t, id(a), deleting)
		if marked.GetMetadata().GetDeletionTime() != nil {
			t.Error("a deletion time is set") // as upstream does not
		}
		// Once more, at whatever version.
		for _, p := range []*conditionalv1.SandboxPrecondition{expect(id(a)), expect(id(a), 1), expect(id(a), 999)} {
			got, err := del(t, g, "web", gatewaytest.Default(), p, "")
			wantDeletion(t, got, err, accepted, id(a))
			wantUnchanged(t, g, marked)
		}
	})
	t.Run("completed", func(t *testing.T) {
		a := g.MustCreate(t, "quick", gatewaytest.Simulated(map[string]any{"delete_after": "0s"}))
		got, err := del(t, g, "quick", gatewaytest.Default(), expect(id(a)), "")
		wantDeletion(t, got, err, finished, id(a))
		if s, ok := g.GetByID(t, id(a)); ok {
			t.Errorf("it is there: %v", s)
		}
	})
	t.Run("refused by the driver", func(t *testing.T) {
		a := g.MustCreate(t, "stuck", gatewaytest.Simulated(map[string]any{"delete_error": "the volume is busy"}))
		_, err := del(t, g, "stuck", gatewaytest.Default(), expect(id(a)), "")
		wantPlain(t, err, codes.Internal, "the volume is busy")
		after, ok := g.GetByID(t, id(a))
		if !ok || after.GetStatus().GetPhase() != ready || version(after) != version(a)+2 { // marked, and restored
			t.Errorf("after the refusal: %v", after)
		}
	})
}

// A create that the driver has not answered keeps a sandbox from being deleted; the conditional call says so in details.
func TestConditionalDeletePending(t *testing.T) {
	g := gatewaytest.Start(t)
	created := make(chan error, 1)
	go func() {
		_, err := g.OpenShell().CreateSandbox(t.Context(), &openshellv1.CreateSandboxRequest{
			Name: "web", WorkspaceScope: gatewaytest.Default(),
			Spec: &openshellv1.SandboxSpec{Template: &openshellv1.SandboxTemplate{DriverConfig: gatewaytest.DriverConfig(map[string]any{"create_takes": "1h"})}},
		})
		created <- err
	}()
	a := g.WaitName(t, "web")
	if !a.GetStatus().GetProvisioning().GetDriverOperationPending() {
		t.Fatalf("status %v", a.GetStatus())
	}
	_, err := conditionalCalls["delete"](t, g, "web", gatewaytest.Default(), expect(id(a), 99), "")
	wantReason(t, err, codes.FailedPrecondition, "openshell.conditional.v1", "OPERATION_PENDING", map[string]string{"name": "web", "current_id": id(a)})
	_, err = g.OpenShell().DeleteSandbox(call(t), &openshellv1.DeleteSandboxRequest{Name: "web", WorkspaceScope: gatewaytest.Default()})
	wantPlain(t, err, codes.FailedPrecondition, "pending")
	_, err = conditionalCalls["delete"](t, g, "web", gatewaytest.Default(), expect(anID), "")
	wantReason(t, err, codes.FailedPrecondition, "openshell.conditional.v1", "SANDBOX_IDENTITY_MISMATCH", nil)
	wantUnchanged(t, g, a)
	g.Kill(t)
	if err := <-created; err == nil { // whether the gateway or the connection to it broke it off
		t.Error("the create was answered")
	}
}

func TestConditionalStopAndStart(t *testing.T) {
	g := gatewaytest.Start(t)
	a := g.MustCreate(t, "web")
	stop, start := conditionalCalls["stop"], conditionalCalls["start"]
	phase := func(m proto.Message) openshellv1.SandboxPhase {
		reply, _ := m.(*openshellv1.SandboxResponse)
		return reply.GetSandbox().GetStatus().GetPhase()
	}
	got, err := stop(t, g, "web", gatewaytest.Default(), expect(id(a), a.GetMetadata().GetResourceVersion()), "")
	if err != nil || phase(got) != stopped {
		t.Fatalf("stop: %v, %v", got, err)
	}
	idle, _ := g.Get(t, "web")
	if got, err := stop(t, g, "web", gatewaytest.Default(), expect(id(a)), ""); err != nil || phase(got) != stopped {
		t.Errorf("stop again: %v, %v", got, err)
	}
	wantUnchanged(t, g, idle)
	got, err = start(t, g, "web", gatewaytest.Default(), expect(id(a), idle.GetMetadata().GetResourceVersion()), "")
	if err != nil || phase(got) != starting {
		t.Fatalf("start: %v, %v", got, err)
	}
	g.WaitPhase(t, id(a), ready)
	s := g.SetPhase(t, "web", provisioning)
	_, err = stop(t, g, "web", gatewaytest.Default(), expect(id(a)), "")
	wantPlain(t, err, codes.FailedPrecondition, "PROVISIONING")
	_, err = start(t, g, "web", gatewaytest.Default(), expect(id(a)), "")
	wantPlain(t, err, codes.FailedPrecondition, "PROVISIONING")
	wantUnchanged(t, g, s)
}

// Checks come in this order: the name, the shape of the precondition, the workspace_scope, the workspace, the request_id,
// and only then the sandbox. Each request breaks all the rules from one on.
func TestConditionalOrderOfChecks(t *testing.T) {
	g := gatewaytest.Start(t)
	web := g.MustCreate(t, "web")
	zero := uint64(0)
	notUUID, braces := "web", "{"+anID+"}"
	for call, do := range conditionalCalls {
		t.Run(call, func(t *testing.T) {
			_, err := do(t, g, "", nil, nil, "")
			wantPlain(t, err, codes.InvalidArgument, "sandbox is required")
			for field, bad := range map[string][]*conditionalv1.SandboxPrecondition{
				"precondition": {nil},
				"precondition.id": {
					{}, {ResourceVersion: &zero}, {ResourceVersion: new(uint64(7))}, expect(""), expect(notUUID), expect(braces),
					expect(strings.ReplaceAll(anID, "-", "")), expect("urn:uuid:" + anID), expect(anID + " "),
				},
				"precondition.resource_version": {expect(anID, 0)},
			} {
				for _, p := range bad {
					_, err := do(t, g, "web", nil, p, "")
					wantField(t, err, field)
				}
			}
			_, err = do(t, g, "web", nil, expect(anID), "")
			wantField(t, err, "workspace_scope")
			_, err = do(t, g, "web", allWorkspaces(), expect(anID), "")
			wantField(t, err, "workspace_scope")
			_, err = do(t, g, "web", workspace(""), expect(anID), "")
			wantPlain(t, err, codes.InvalidArgument, "workspace name")
			_, err = do(t, g, "web", workspace("nowhere"), expect(anID), "no UUID")
			if strings.HasPrefix(call, "delete") {
				wantPlain(t, err, codes.NotFound, "workspace 'nowhere' not found") // also with allow_missing
			} else {
				wantPlain(t, err, codes.NotFound, "sandbox not found")
			}
			_, err = do(t, g, "web", gatewaytest.Default(), expect(anID), "no UUID")
			wantField(t, err, "request_id")
			wantUnchanged(t, g, web)
		})
	}
}

// A request without the plain request in it names nothing.
func TestConditionalEmptyRequests(t *testing.T) {
	g := gatewaytest.Start(t)
	_, err := g.Conditional().DeleteSandbox(call(t), &conditionalv1.ConditionalDeleteSandboxRequest{Precondition: expect(anID)})
	wantPlain(t, err, codes.InvalidArgument, "sandbox is required")
	_, err = g.Conditional().StopSandbox(call(t), &conditionalv1.ConditionalStopSandboxRequest{})
	wantPlain(t, err, codes.InvalidArgument, "sandbox is required")
	_, err = g.Conditional().StartSandbox(call(t), nil)
	wantPlain(t, err, codes.InvalidArgument, "sandbox is required")
}

// The race that all this is about: the plan is made while web is A; when the call arrives, web is B.
func TestConditionalDeleteSparesTheReplacement(t *testing.T) {
	g := gatewaytest.Start(t)
	a := g.MustCreate(t, "web")
	b := g.Replace(t, "web")
	b = g.TouchVersion(t, "web", max(a.GetMetadata().GetResourceVersion(), b.GetMetadata().GetResourceVersion()))
	_, err := conditionalCalls["delete, allow_missing"](t, g, "web", gatewaytest.Default(), expect(id(a), a.GetMetadata().GetResourceVersion()), "")
	wantReason(t, err, codes.FailedPrecondition, "openshell.conditional.v1", "SANDBOX_IDENTITY_MISMATCH", nil)
	wantUnchanged(t, g, b)
}
