package server_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/policy"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// Statuses of revisions, for short.
const (
	pending    = openshellv1.PolicyStatus_POLICY_STATUS_PENDING
	loaded     = openshellv1.PolicyStatus_POLICY_STATUS_LOADED
	superseded = openshellv1.PolicyStatus_POLICY_STATUS_SUPERSEDED
)

// wantRevision holds a revision to its number, policy and status, and says when it was loaded.
func wantRevision(t *testing.T, g *gatewaytest.Gateway, version uint32, p *sandboxv1.SandboxPolicy, active uint32, status openshellv1.PolicyStatus) *openshellv1.SandboxPolicyRevision {
	t.Helper()
	reply, err := g.OpenShell().GetSandboxPolicyStatus(call(t), &openshellv1.GetSandboxPolicyStatusRequest{
		Sandbox: "web", Version: version, WorkspaceScope: gatewaytest.Default(),
	})
	if err != nil {
		t.Fatal(err)
	}
	got := reply.GetRevision()
	if diff := cmp.Diff(p, got.GetPolicy(), protocmp.Transform()); diff != "" {
		t.Errorf("policy of revision %d (-want +got)\n%s", version, diff)
	}
	if version != 0 && got.GetVersion() != version || got.GetPolicyHash() != policy.Hash(p) || got.GetStatus() != status ||
		got.GetCreatedTime() == nil || reply.GetActiveVersion() != active || (got.GetLoadedTime() != nil) != (status != pending) {
		t.Errorf("revision %d: %v of %v, active %d", version, got.GetStatus(), got, reply.GetActiveVersion())
	}
	return got
}

// The life of a policy: revisions count from 1, the newest is loaded by what runs, and the creation's stays in the spec.
func TestPolicyRevisions(t *testing.T) {
	g := gatewaytest.Start(t)
	p := reaching
	web := g.MustCreate(t, "web", withPolicy(p("a.example.com")))
	first := wantRevision(t, g, 0, p("a.example.com"), 1, loaded)
	if web.GetStatus().GetCurrentPolicyVersion() != 1 || first.GetVersion() != 1 {
		t.Errorf("status %v", web.GetStatus())
	}

	reply := mustUpdate(t, g, &openshellv1.UpdateConfigRequest{Policy: p("b.example.com"), Annotations: map[string]string{"why": "b"}, ExpectedResourceVersion: version(web)})
	want := &openshellv1.UpdateConfigResponse{Version: 2, PolicyHash: policy.Hash(p("b.example.com")), Annotations: map[string]string{"why": "b"}}
	if diff := cmp.Diff(want, reply, protocmp.Transform()); diff != "" {
		t.Errorf("reply (-want +got)\n%s", diff)
	}
	second := wantRevision(t, g, 2, p("b.example.com"), 2, loaded)
	if second.GetProvenance()["why"] != "b" || len(second.GetProvenance()) != 1 {
		t.Errorf("provenance %v", second.GetProvenance())
	}
	after := wantRevision(t, g, 1, p("a.example.com"), 2, superseded)
	if !proto.Equal(after.GetLoadedTime(), first.GetLoadedTime()) || !proto.Equal(after.GetCreatedTime(), first.GetCreatedTime()) {
		t.Errorf("the first was loaded at %v, and now at %v", first, after)
	}
	now, _ := g.Get(t, "web")
	if diff := cmp.Diff(p("a.example.com"), now.GetSpec().GetPolicy(), protocmp.Transform()); diff != "" || version(now) != version(web)+1 ||
		now.GetMetadata().GetAnnotations()["why"] != "b" || now.GetStatus().GetCurrentPolicyVersion() != 2 {
		t.Errorf("the sandbox is %v (spec.policy -want +got)\n%s", now, diff)
	}

	// The same again is no new revision, and writes nothing.
	for range 2 {
		if again := mustUpdate(t, g, &openshellv1.UpdateConfigRequest{Policy: p("b.example.com"), Annotations: map[string]string{"why": "b"}}); !proto.Equal(again, reply) {
			t.Errorf("again: %v", again)
		}
		wantUnchanged(t, g, now)
	}
	// For another reason it is one.
	reply = mustUpdate(t, g, &openshellv1.UpdateConfigRequest{Policy: p("b.example.com"), Annotations: map[string]string{"who": "c"}})
	if reply.GetVersion() != 3 || len(reply.GetAnnotations()) != 2 {
		t.Errorf("for another reason: %v", reply)
	}
}

// A sandbox that is stopped loads its policy when it is started.
func TestPolicyOfAStoppedSandbox(t *testing.T) {
	g := gatewaytest.Start(t)
	web := g.MustCreate(t, "web", withPolicy(reaching("a.example.com")))
	if _, err := g.OpenShell().StopSandbox(call(t), &openshellv1.StopSandboxRequest{Name: "web", WorkspaceScope: gatewaytest.Default()}); err != nil {
		t.Fatal(err)
	}
	both := reaching("a.example.com", "b.example.com")
	reply := mustUpdate(t, g, &openshellv1.UpdateConfigRequest{MergeOperations: addRule("b.example.com")})
	if reply.GetVersion() != 2 || reply.GetPolicyHash() != policy.Hash(both) {
		t.Errorf("merged: %v", reply)
	}
	wantRevision(t, g, 2, both, 1, pending)
	wantRevision(t, g, 1, reaching("a.example.com"), 1, superseded)
	if _, err := g.OpenShell().StartSandbox(call(t), &openshellv1.StartSandboxRequest{Name: "web", WorkspaceScope: gatewaytest.Default()}); err != nil {
		t.Fatal(err)
	}
	now := g.WaitPhase(t, id(web), ready)
	wantRevision(t, g, 0, both, 2, loaded)
	if again := mustUpdate(t, g, &openshellv1.UpdateConfigRequest{MergeOperations: addRule("b.example.com")}); again.GetVersion() != 2 {
		t.Errorf("merged again: %v", again)
	}
	wantUnchanged(t, g, now)
}

// A sandbox that was made without a policy has none until it is given one.
func TestPolicyFromNothing(t *testing.T) {
	g := gatewaytest.Start(t)
	web := g.MustCreate(t, "web")
	status := func() error {
		_, err := g.OpenShell().GetSandboxPolicyStatus(call(t), &openshellv1.GetSandboxPolicyStatusRequest{Sandbox: "web", WorkspaceScope: gatewaytest.Default()})
		return err
	}
	wantPlain(t, status(), codes.NotFound, "no policy revision found for this sandbox")
	nothing := mustUpdate(t, g, &openshellv1.UpdateConfigRequest{MergeOperations: []*openshellv1.PolicyMergeOperation{{
		Operation: &openshellv1.PolicyMergeOperation_RemoveRule{RemoveRule: &openshellv1.RemoveNetworkRule{RuleName: "none"}},
	}}})
	if nothing.GetVersion() != 0 || nothing.GetPolicyHash() == "" {
		t.Errorf("a merge that does nothing: %v", nothing)
	}
	wantUnchanged(t, g, web)
	wantPlain(t, status(), codes.NotFound, "no policy revision")
	if reply := mustUpdate(t, g, &openshellv1.UpdateConfigRequest{Policy: reaching("a.example.com")}); reply.GetVersion() != 1 {
		t.Errorf("the first: %v", reply)
	}
	now := g.WaitPhase(t, id(web), ready)
	if !proto.Equal(now.GetSpec().GetPolicy(), reaching("a.example.com")) {
		t.Errorf("the baseline is %v", now.GetSpec().GetPolicy())
	}
	// It belongs to this sandbox, and not to its name.
	g.Replace(t, "web")
	wantPlain(t, status(), codes.NotFound, "no policy revision found")
}

func TestListSandboxPolicies(t *testing.T) {
	g := gatewaytest.Start(t)
	g.MustCreate(t, "web", withPolicy(reaching()))
	g.MustCreate(t, "bare")
	const n = 70 // more than what is read at once
	for i := 2; i <= n; i++ {
		mustUpdate(t, g, &openshellv1.UpdateConfigRequest{Policy: reaching(fmt.Sprintf("h%d.example.com", i))})
	}
	list := func(req *openshellv1.ListSandboxPoliciesRequest) (*openshellv1.ListSandboxPoliciesResponse, error) {
		if req.GetWorkspaceScope() == nil {
			req.WorkspaceScope = gatewaytest.Default()
		}
		return g.OpenShell().ListSandboxPolicies(call(t), req)
	}
	for _, size := range []int32{0, 1, 32, 33, 69, 70, 71} {
		next := uint32(n)
		req := &openshellv1.ListSandboxPoliciesRequest{Sandbox: "web", PageSize: size}
		for {
			page, err := list(req)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range page.GetRevisions() {
				want := superseded
				if next == n {
					want = loaded
				}
				if r.GetVersion() != next || r.GetStatus() != want || r.GetPolicy() != nil || r.GetPolicyHash() == "" || r.GetCreatedTime() == nil || r.GetLoadedTime() == nil {
					t.Errorf("instead of revision %d there is %v", next, r)
				}
				next--
			}
			if req.PageToken = page.GetNextPageToken(); req.GetPageToken() == "" {
				break
			}
		}
		if next != 0 {
			t.Errorf("pages of %d end before revision %d", size, next)
		}
	}
	if page, err := list(&openshellv1.ListSandboxPoliciesRequest{Sandbox: "bare"}); err != nil || len(page.GetRevisions()) != 0 {
		t.Errorf("%v, %v", page, err)
	}
	page, err := list(&openshellv1.ListSandboxPoliciesRequest{Sandbox: "web", PageSize: 1})
	if err != nil {
		t.Fatal(err)
	}
	_, err = list(&openshellv1.ListSandboxPoliciesRequest{Sandbox: "bare", PageToken: page.GetNextPageToken()})
	wantPlain(t, err, codes.InvalidArgument, "page_token")
	_, err = list(&openshellv1.ListSandboxPoliciesRequest{Sandbox: "web", PageSize: -1})
	wantPlain(t, err, codes.InvalidArgument, "page_size")
	_, err = list(&openshellv1.ListSandboxPoliciesRequest{Sandbox: "none"})
	wantPlain(t, err, codes.NotFound, "sandbox not found")
	_, err = g.OpenShell().GetSandboxPolicyStatus(call(t), &openshellv1.GetSandboxPolicyStatusRequest{Sandbox: "web", Version: n + 1, WorkspaceScope: gatewaytest.Default()})
	wantPlain(t, err, codes.NotFound, "no policy revision found for this sandbox")
}
