package server_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/apierr"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// mutation is a call with a request_id: one that can be made, or with other the same with another payload.
type mutation func(ctx context.Context, g *gatewaytest.Gateway, requestID string, other bool, opts ...grpc.CallOption) (proto.Message, error)

func either[T any](other bool, one, another T) T {
	if other {
		return another
	}
	return one
}

// mutations work on a gateway of startForMutations, in this order.
var mutations = []struct {
	name string
	do   mutation
}{
	{"CreateWorkspace", func(ctx context.Context, g *gatewaytest.Gateway, r string, other bool, opts ...grpc.CallOption) (proto.Message, error) {
		return g.OpenShell().CreateWorkspace(ctx, &openshellv1.CreateWorkspaceRequest{Name: "team", RequestId: r, Labels: either(other, nil, map[string]string{"a": "b"})}, opts...)
	}},
	{"DeleteWorkspace", func(ctx context.Context, g *gatewaytest.Gateway, r string, other bool, opts ...grpc.CallOption) (proto.Message, error) {
		return g.OpenShell().DeleteWorkspace(ctx, &openshellv1.DeleteWorkspaceRequest{Name: "team", RequestId: r, AllowMissing: other}, opts...)
	}},
	{"AddWorkspaceMember", func(ctx context.Context, g *gatewaytest.Gateway, r string, other bool, opts ...grpc.CallOption) (proto.Message, error) {
		return g.OpenShell().AddWorkspaceMember(ctx, &openshellv1.AddWorkspaceMemberRequest{
			WorkspaceScope: gatewaytest.Default(), PrincipalSubject: "ann", Role: either(other, roleUser, roleAdmin), RequestId: r,
		}, opts...)
	}},
	{"RemoveWorkspaceMember", func(ctx context.Context, g *gatewaytest.Gateway, r string, other bool, opts ...grpc.CallOption) (proto.Message, error) {
		return g.OpenShell().RemoveWorkspaceMember(ctx, &openshellv1.RemoveWorkspaceMemberRequest{
			WorkspaceScope: gatewaytest.Default(), PrincipalSubject: "ann", AllowMissing: other, RequestId: r,
		}, opts...)
	}},
	{"ImportProviderProfiles", func(ctx context.Context, g *gatewaytest.Gateway, r string, other bool, opts ...grpc.CallOption) (proto.Message, error) {
		req := importRequest(gatewaytest.Default(), tokenProfile("one"), tokenProfile(either(other, "two", "three")))
		req.RequestId = r
		return g.OpenShell().ImportProviderProfiles(ctx, req, opts...)
	}},
	{"UpdateProviderProfiles", func(ctx context.Context, g *gatewaytest.Gateway, r string, other bool, opts ...grpc.CallOption) (proto.Message, error) {
		req := importRequest(nil, tokenProfile("one"))
		req.Profiles[0].Profile.DisplayName = either(other, "New", "Newer")
		return g.OpenShell().UpdateProviderProfiles(ctx, &openshellv1.UpdateProviderProfilesRequest{
			Id: "one", Profile: req.GetProfiles()[0], ExpectedResourceVersion: 1, WorkspaceScope: gatewaytest.Default(), RequestId: r,
		}, opts...)
	}},
	{"DeleteProviderProfile", func(ctx context.Context, g *gatewaytest.Gateway, r string, other bool, opts ...grpc.CallOption) (proto.Message, error) {
		return g.OpenShell().DeleteProviderProfile(ctx, &openshellv1.DeleteProviderProfileRequest{Id: "one", WorkspaceScope: gatewaytest.Default(), AllowMissing: other, RequestId: r}, opts...)
	}},
	{"CreateProvider", func(ctx context.Context, g *gatewaytest.Gateway, r string, other bool, opts ...grpc.CallOption) (proto.Message, error) {
		return g.OpenShell().CreateProvider(ctx, &openshellv1.CreateProviderRequest{
			Provider:       &datamodelv1.Provider{Metadata: &datamodelv1.ObjectMeta{}, Type: "any", Config: map[string]string{"a": either(other, "b", "c")}}, // the name is invented
			WorkspaceScope: gatewaytest.Default(), RequestId: r,
		}, opts...)
	}},
	{"UpdateProvider", func(ctx context.Context, g *gatewaytest.Gateway, r string, other bool, opts ...grpc.CallOption) (proto.Message, error) {
		return g.OpenShell().UpdateProvider(ctx, &openshellv1.UpdateProviderRequest{
			Provider:       &datamodelv1.Provider{Metadata: &datamodelv1.ObjectMeta{Name: "p"}, Config: map[string]string{"a": either(other, "b", "c")}},
			WorkspaceScope: gatewaytest.Default(), RequestId: r,
		}, opts...)
	}},
	{"AttachSandboxProvider", func(ctx context.Context, g *gatewaytest.Gateway, r string, other bool, opts ...grpc.CallOption) (proto.Message, error) {
		return g.OpenShell().AttachSandboxProvider(ctx, &openshellv1.AttachSandboxProviderRequest{Sandbox: "bare", Provider: either(other, "p", "q"), WorkspaceScope: gatewaytest.Default(), RequestId: r}, opts...)
	}},
	{"AttachSandboxProvider of one that is", func(ctx context.Context, g *gatewaytest.Gateway, r string, other bool, opts ...grpc.CallOption) (proto.Message, error) {
		return g.OpenShell().AttachSandboxProvider(ctx, &openshellv1.AttachSandboxProviderRequest{Sandbox: "bare", Provider: either(other, "p", "q"), WorkspaceScope: gatewaytest.Default(), RequestId: r}, opts...)
	}},
	{"DetachSandboxProvider", func(ctx context.Context, g *gatewaytest.Gateway, r string, other bool, opts ...grpc.CallOption) (proto.Message, error) {
		return g.OpenShell().DetachSandboxProvider(ctx, &openshellv1.DetachSandboxProviderRequest{Sandbox: "bare", Provider: either(other, "p", "q"), WorkspaceScope: gatewaytest.Default(), RequestId: r}, opts...)
	}},
	{"conditional AttachSandboxProvider", func(ctx context.Context, g *gatewaytest.Gateway, r string, other bool, opts ...grpc.CallOption) (proto.Message, error) {
		bare, err := g.OpenShell().GetSandbox(ctx, &openshellv1.GetSandboxRequest{Name: "bare", WorkspaceScope: gatewaytest.Default()})
		if err != nil {
			return nil, err
		}
		req := conditionalAttach("bare", "p", expect(either(other, id(bare.GetSandbox()), anID)))
		req.Request.RequestId = r
		return g.Conditional().AttachSandboxProvider(ctx, req, opts...)
	}},
	{"CreateSandboxTemplate", func(ctx context.Context, g *gatewaytest.Gateway, r string, other bool, opts ...grpc.CallOption) (proto.Message, error) {
		req := templateRequest("small", nil)
		req.Template.Spec.Workload.Image, req.RequestId = either(other, "one", "two"), r
		return g.OpenShell().CreateSandboxTemplate(ctx, req, opts...)
	}},
	{"DeleteSandboxTemplate", func(ctx context.Context, g *gatewaytest.Gateway, r string, other bool, opts ...grpc.CallOption) (proto.Message, error) {
		return g.OpenShell().DeleteSandboxTemplate(ctx, &openshellv1.DeleteSandboxTemplateRequest{Name: "small", WorkspaceScope: gatewaytest.Default(), AllowMissing: other, RequestId: r}, opts...)
	}},
	{"UpdateConfig", func(ctx context.Context, g *gatewaytest.Gateway, r string, other bool, opts ...grpc.CallOption) (proto.Message, error) {
		return g.OpenShell().UpdateConfig(ctx, &openshellv1.UpdateConfigRequest{
			Sandbox: "bare", Policy: reaching(either(other, "a.example.com", "b.example.com")), WorkspaceScope: gatewaytest.Default(), RequestId: r,
		}, opts...)
	}},
	{"UpdateConfig by a merge", func(ctx context.Context, g *gatewaytest.Gateway, r string, other bool, opts ...grpc.CallOption) (proto.Message, error) {
		return g.OpenShell().UpdateConfig(ctx, &openshellv1.UpdateConfigRequest{
			Sandbox: "bare", MergeOperations: addRule(either(other, "c.example.com", "d.example.com")), WorkspaceScope: gatewaytest.Default(), RequestId: r,
			Annotations: map[string]string{"why": "merge"},
		}, opts...)
	}},
	{"UpdateConfig of a setting", func(ctx context.Context, g *gatewaytest.Gateway, r string, other bool, opts ...grpc.CallOption) (proto.Message, error) {
		return g.OpenShell().UpdateConfig(ctx, &openshellv1.UpdateConfigRequest{
			Sandbox: "bare", SettingKey: "ocsf_json_enabled", SettingValue: truth(other), WorkspaceScope: gatewaytest.Default(), RequestId: r,
		}, opts...)
	}},
	{"UpdateConfig of the whole gateway", func(ctx context.Context, g *gatewaytest.Gateway, r string, other bool, opts ...grpc.CallOption) (proto.Message, error) {
		return g.OpenShell().UpdateConfig(ctx, &openshellv1.UpdateConfigRequest{Global: true, SettingKey: "ocsf_json_enabled", DeleteSetting: other, SettingValue: truth(true), RequestId: r}, opts...)
	}},
	{"UpdateSandboxConfig", func(ctx context.Context, g *gatewaytest.Gateway, r string, other bool, opts ...grpc.CallOption) (proto.Message, error) {
		bare, err := g.OpenShell().GetSandbox(ctx, &openshellv1.GetSandboxRequest{Name: "bare", WorkspaceScope: gatewaytest.Default()})
		if err != nil {
			return nil, err
		}
		return g.Conditional().UpdateSandboxConfig(ctx, &conditionalv1.ConditionalUpdateSandboxConfigRequest{
			Precondition: expect(either(other, id(bare.GetSandbox()), anID)),
			Request:      &openshellv1.UpdateConfigRequest{Sandbox: "bare", Policy: reaching(), WorkspaceScope: gatewaytest.Default(), RequestId: r},
		}, opts...)
	}},
	{"ExposeService", func(ctx context.Context, g *gatewaytest.Gateway, r string, other bool, opts ...grpc.CallOption) (proto.Message, error) {
		req := exposeRequest("bare", "api", either[uint32](other, 80, 81))
		req.RequestId = r
		return g.OpenShell().ExposeService(ctx, req, opts...)
	}},
	{"DeleteService", func(ctx context.Context, g *gatewaytest.Gateway, r string, other bool, opts ...grpc.CallOption) (proto.Message, error) {
		return g.OpenShell().DeleteService(ctx, &openshellv1.DeleteServiceRequest{Sandbox: "bare", Name: "api", WorkspaceScope: gatewaytest.Default(), AllowMissing: other, RequestId: r}, opts...)
	}},
	{"DeleteProvider", func(ctx context.Context, g *gatewaytest.Gateway, r string, other bool, opts ...grpc.CallOption) (proto.Message, error) {
		return g.OpenShell().DeleteProvider(ctx, &openshellv1.DeleteProviderRequest{Name: "unused", WorkspaceScope: gatewaytest.Default(), AllowMissing: other, RequestId: r}, opts...)
	}},
}

func startForMutations(t *testing.T) *gatewaytest.Gateway {
	t.Helper()
	g := gatewaytest.Start(t)
	importProfiles(t, g, nil, tokenProfile("any"), tokenProfile("one")) // the latter is shadowed by one of the workspace
	for _, name := range []string{"p", "q", "unused"} {
		mustCreateProvider(t, g, gatewaytest.Default(), name, "any", nil)
	}
	g.MustCreate(t, "bare")
	g.MustCreate(t, "web", gatewaytest.Request(func(r *openshellv1.CreateSandboxRequest) { r.Spec.Providers = []string{"p"} }))
	return g
}

func replayedIn(header metadata.MD) bool {
	return strings.Join(header.Get(apierr.ReplayedHeader), "") == "true"
}

// A call that comes again is answered as it was, does nothing, and is told from another call with its request_id.
func TestMutationsAreMadeOnce(t *testing.T) {
	g := startForMutations(t)
	for _, m := range mutations {
		t.Run(m.name, func(t *testing.T) {
			requestID := uuid.NewString()
			var header metadata.MD
			first, err := m.do(call(t), g, requestID, false, grpc.Header(&header))
			if err != nil || replayedIn(header) {
				t.Fatalf("the first: %v, %v", header, err)
			}
			for range 2 {
				again, err := m.do(call(t), g, strings.ToUpper(requestID), false, grpc.Header(&header))
				if diff := cmp.Diff(first, again, protocmp.Transform()); diff != "" || err != nil || !replayedIn(header) {
					t.Errorf("again: %v, replayed %v (-first +again)\n%s", err, replayedIn(header), diff)
				}
			}
			_, err = m.do(call(t), g, requestID, true)
			wantReason(t, err, codes.FailedPrecondition, openshellDomain, "REQUEST_ID_PAYLOAD_MISMATCH", nil)
		})
	}
}

// What is gone cannot be shown again; a successor of its name is not shown instead.
func TestReplayOfWhatIsGone(t *testing.T) {
	g := startForMutations(t)
	create := func() (*openshellv1.CreateWorkspaceResponse, error) {
		return g.OpenShell().CreateWorkspace(call(t), &openshellv1.CreateWorkspaceRequest{Name: "team", RequestId: anID})
	}
	attach := func() (*openshellv1.AttachSandboxProviderResponse, error) {
		return g.OpenShell().AttachSandboxProvider(call(t), &openshellv1.AttachSandboxProviderRequest{Sandbox: "bare", Provider: "p", WorkspaceScope: gatewaytest.Default(), RequestId: anID})
	}
	update := func() (*openshellv1.UpdateConfigResponse, error) {
		return g.OpenShell().UpdateConfig(call(t), &openshellv1.UpdateConfigRequest{
			Sandbox: "bare", SettingKey: "ocsf_json_enabled", SettingValue: truth(true), WorkspaceScope: gatewaytest.Default(), RequestId: anID,
		})
	}
	if _, err := create(); err != nil {
		t.Fatal(err)
	}
	if _, err := attach(); err != nil {
		t.Fatal(err)
	}
	if _, err := update(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := deleteWorkspace(t, g, "team", false); err != nil {
			t.Fatal(err)
		}
		_, err := create()
		wantReason(t, err, codes.FailedPrecondition, openshellDomain, "REQUEST_REPLAY_UNAVAILABLE", nil)
		mustCreateTeam(t, g)
		b := g.Replace(t, "bare")
		_, err = attach()
		wantReason(t, err, codes.FailedPrecondition, openshellDomain, "REQUEST_REPLAY_UNAVAILABLE", nil)
		_, err = update()
		wantReason(t, err, codes.FailedPrecondition, openshellDomain, "REQUEST_REPLAY_UNAVAILABLE", nil)
		wantUnchanged(t, g, b)
	}
}

// An update of a provider that comes again shows the receipts of its own, and the provider as it is by now.
func TestReplayOfAProviderUpdate(t *testing.T) {
	g := startForMutations(t)
	update := func(value, requestID string) *openshellv1.ProviderResponse {
		t.Helper()
		reply, err := g.OpenShell().UpdateProvider(call(t), &openshellv1.UpdateProviderRequest{
			Provider:       &datamodelv1.Provider{Metadata: &datamodelv1.ObjectMeta{Name: "p"}, Config: map[string]string{"a": value}},
			WorkspaceScope: gatewaytest.Default(), RequestId: requestID,
		})
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	first := update("b", anID)
	second := update("c", "")
	first.Provider = second.GetProvider()
	if diff := cmp.Diff(first, update("b", anID), protocmp.Transform()); diff != "" || len(first.GetTargetReceipts()) != 1 {
		t.Errorf("(-want +again)\n%s", diff)
	}
}

// A call that was refused leaves nothing behind, also where its refusal has left a mark on a workspace.
func TestRefusedMutationsLeaveNoAdmission(t *testing.T) {
	g := startForMutations(t)
	attach := func() error {
		_, err := g.OpenShell().AttachSandboxProvider(call(t), &openshellv1.AttachSandboxProviderRequest{Sandbox: "bare", Provider: "late", WorkspaceScope: gatewaytest.Default(), RequestId: anID})
		return err
	}
	wantPlain(t, attach(), codes.FailedPrecondition, "provider 'late' not found")
	mustCreateProvider(t, g, gatewaytest.Default(), "late", "any", nil)
	wantStatus(t, attach(), codes.OK, "")

	mustCreateTeam(t, g)
	mustCreateProvider(t, g, workspace("team"), "p", "any", nil)
	del := func() error {
		_, err := g.OpenShell().DeleteWorkspace(call(t), &openshellv1.DeleteWorkspaceRequest{Name: "team", RequestId: anID})
		return err
	}
	wantPlain(t, del(), codes.FailedPrecondition, "not empty")
	wantPlain(t, del(), codes.FailedPrecondition, "not empty")
	if _, err := g.OpenShell().DeleteProvider(call(t), &openshellv1.DeleteProviderRequest{Name: "p", WorkspaceScope: workspace("team")}); err != nil {
		t.Fatal(err)
	}
	wantStatus(t, del(), codes.OK, "")
	wantStatus(t, del(), codes.OK, "") // this one is a replay
}

// Nothing that is derived from the value of a credential is kept either, so that nobody can try values on it: a call that
// differs in nothing else is the same call.
func TestFingerprintsKnowNoCredentials(t *testing.T) {
	g := startForMutations(t)
	create := func(value string) (*datamodelv1.Provider, error) {
		reply, err := g.OpenShell().CreateProvider(call(t), &openshellv1.CreateProviderRequest{
			Provider:       &datamodelv1.Provider{Metadata: &datamodelv1.ObjectMeta{Name: "new"}, Type: "any", Credentials: map[string]string{"TOKEN": value}},
			WorkspaceScope: gatewaytest.Default(), RequestId: anID,
		})
		return reply.GetProvider(), err
	}
	first, err := create("one")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := create("two"); err != nil || again.GetMetadata().GetId() != first.GetMetadata().GetId() {
		t.Errorf("%v, %v", again, err)
	}
	_, err = create("") // which is none
	var mismatch *apierr.RequestPayloadMismatch
	if !errors.As(apierr.From(err), &mismatch) {
		t.Errorf("error %v", err)
	}
}

// The request ids of one caller mean nothing to another.
func TestMutationsOfTwoCallers(t *testing.T) {
	g, callers := startWithOIDC(t)
	if _, err := g.OpenShell().ImportProviderProfiles(callers.as("root"), importRequest(nil, tokenProfile("any"))); err != nil {
		t.Fatal(err)
	}
	for _, subject := range []string{"eve", "mallory"} {
		if err := addMember(callers.as("root"), g, "default", subject, roleAdmin); err != nil {
			t.Fatal(err)
		}
	}
	create := func(subject string) string {
		t.Helper()
		reply, err := g.OpenShell().CreateProvider(callers.as(subject), &openshellv1.CreateProviderRequest{
			Provider: &datamodelv1.Provider{Type: "any"}, WorkspaceScope: gatewaytest.Default(), RequestId: anID,
		})
		if err != nil {
			t.Fatal(err)
		}
		return reply.GetProvider().GetMetadata().GetId()
	}
	if eve, mallory := create("eve"), create("mallory"); eve == mallory {
		t.Error("one was shown what the other had made")
	} else if create("eve") != eve || create("mallory") != mallory {
		t.Error("their own were not replayed")
	}
}
