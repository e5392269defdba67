package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
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

// reaching is a policy with a network rule for each host, and something in every part that is fixed at the start.
func reaching(hosts ...string) *sandboxv1.SandboxPolicy {
	p := &sandboxv1.SandboxPolicy{
		Version: 1, Filesystem: &sandboxv1.FilesystemPolicy{ReadOnly: []string{"/usr"}, ReadWrite: []string{"/tmp"}},
		Landlock: &sandboxv1.LandlockPolicy{Compatibility: "best_effort"}, Process: &sandboxv1.ProcessPolicy{RunAsUser: "sandbox"},
		NetworkPolicies: map[string]*sandboxv1.NetworkPolicyRule{},
	}
	for _, host := range hosts {
		p.NetworkPolicies[strings.ReplaceAll(host, ".", "_")] = rule(host)
	}
	return p
}

func rule(host string) *sandboxv1.NetworkPolicyRule {
	return &sandboxv1.NetworkPolicyRule{
		Name: host, Endpoints: []*sandboxv1.NetworkEndpoint{{Host: host, Port: 443, Ports: []uint32{443}}},
		Binaries: []*sandboxv1.NetworkBinary{{Path: "/usr/bin/curl"}},
	}
}

func addRule(host string) []*openshellv1.PolicyMergeOperation {
	return []*openshellv1.PolicyMergeOperation{{Operation: &openshellv1.PolicyMergeOperation_AddRule{
		AddRule: &openshellv1.AddNetworkRule{RuleName: strings.ReplaceAll(host, ".", "_"), Rule: rule(host)},
	}}}
}

// updated makes a plain update of the sandbox "web".
func updated(t *testing.T, g *gatewaytest.Gateway, req *openshellv1.UpdateConfigRequest) (*openshellv1.UpdateConfigResponse, error) {
	t.Helper()
	full, _ := proto.Clone(req).(*openshellv1.UpdateConfigRequest)
	full.Sandbox, full.WorkspaceScope = "web", gatewaytest.Default()
	return g.OpenShell().UpdateConfig(call(t), full)
}

func mustUpdate(t *testing.T, g *gatewaytest.Gateway, req *openshellv1.UpdateConfigRequest) *openshellv1.UpdateConfigResponse {
	t.Helper()
	reply, err := updated(t, g, req)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

func withPolicy(p *sandboxv1.SandboxPolicy) gatewaytest.CreateOption {
	return gatewaytest.Request(func(r *openshellv1.CreateSandboxRequest) { r.Spec.Policy = p })
}

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

// A policy is checked at the creation, and kept in canonical form.
func TestCreateWithPolicy(t *testing.T) {
	g := gatewaytest.Start(t)
	create := func(p *sandboxv1.SandboxPolicy) (*openshellv1.SandboxResponse, error) {
		return g.OpenShell().CreateSandbox(call(t), &openshellv1.CreateSandboxRequest{Name: "web", WorkspaceScope: gatewaytest.Default(), Spec: &openshellv1.SandboxSpec{Policy: p}})
	}
	reserved := reaching()
	reserved.NetworkPolicies["_provider_p"] = rule("a.example.com")
	ambiguous := reaching("a.example.com")
	ambiguous.NetworkPolicies["again"] = rule("a.example.com")
	ambiguous.NetworkPolicies["again"].Endpoints[0].Tls = sandboxv1.NetworkTlsMode_NETWORK_TLS_MODE_SKIP
	for _, bad := range []*sandboxv1.SandboxPolicy{reserved, {Version: 2}, {Filesystem: &sandboxv1.FilesystemPolicy{ReadWrite: []string{"/"}}}} {
		_, err := create(bad)
		wantField(t, err, "spec.policy")
	}
	_, err := create(ambiguous)
	wantPlain(t, err, codes.FailedPrecondition, "can match the same traffic")
	if s, ok := g.Get(t, "web"); ok {
		t.Errorf("a refused create left %v", s)
	}
	mcp := reaching("a.example.com")
	endpoint := mcp.GetNetworkPolicies()["a_example_com"].GetEndpoints()[0]
	endpoint.Protocol, endpoint.Mcp = "mcp", &sandboxv1.McpOptions{AllowAllKnownMcpMethods: new(true)}
	reply, err := create(mcp)
	if err != nil {
		t.Fatal(err)
	}
	canonical := policy.Canonical(mcp)
	if diff := cmp.Diff(canonical, reply.GetSandbox().GetSpec().GetPolicy(), protocmp.Transform()); diff != "" || proto.Equal(canonical, mcp) {
		t.Errorf("spec.policy (-want +got)\n%s", diff)
	}
	g.WaitPhase(t, id(reply.GetSandbox()), ready)
	wantRevision(t, g, 0, canonical, 1, loaded)
}

// What is fixed once a process has come under it, and what is not.
func TestLivePolicy(t *testing.T) {
	g := gatewaytest.Start(t)
	for name, tc := range map[string]struct {
		edit func(*sandboxv1.SandboxPolicy)
		part string // that cannot be changed on a live sandbox; empty for one that can
	}{
		"network rules":    {func(p *sandboxv1.SandboxPolicy) { p.NetworkPolicies = nil }, ""},
		"a path is added":  {func(p *sandboxv1.SandboxPolicy) { p.Filesystem.ReadWrite = append(p.Filesystem.GetReadWrite(), "/var") }, ""},
		"a path is gone":   {func(p *sandboxv1.SandboxPolicy) { p.Filesystem.ReadOnly = nil }, "filesystem_policy.read_only"},
		"no filesystem":    {func(p *sandboxv1.SandboxPolicy) { p.Filesystem = nil }, "filesystem_policy"},
		"the workdir":      {func(p *sandboxv1.SandboxPolicy) { p.Filesystem.IncludeWorkdir = true }, "filesystem_policy.include_workdir"},
		"landlock":         {func(p *sandboxv1.SandboxPolicy) { p.Landlock.Compatibility = "hard_requirement" }, "landlock"},
		"no landlock":      {func(p *sandboxv1.SandboxPolicy) { p.Landlock = nil }, "landlock"},
		"the process":      {func(p *sandboxv1.SandboxPolicy) { p.Process.RunAsUser = "1000" }, "process"},
		"all but a little": {func(p *sandboxv1.SandboxPolicy) { p.Process.RunAsGroup = "sandbox" }, "process"},
	} {
		t.Run(name, func(t *testing.T) {
			next := reaching("a.example.com")
			tc.edit(next)
			web := g.MustCreate(t, "web", withPolicy(reaching("a.example.com")))
			defer g.MustDelete(t, "web")
			_, err := updated(t, g, &openshellv1.UpdateConfigRequest{Policy: next})
			if tc.part == "" {
				wantStatus(t, err, codes.OK, "")
				wantRevision(t, g, 2, next, 2, loaded)
				return
			}
			wantField(t, err, "policy")
			wantStatus(t, err, codes.InvalidArgument, tc.part)
			wantUnchanged(t, g, web)
			wantRevision(t, g, 0, reaching("a.example.com"), 1, loaded)
		})
	}
	t.Run("before the first start", func(t *testing.T) {
		web := g.MustCreate(t, "web", withPolicy(reaching("a.example.com")), gatewaytest.NoWait(), gatewaytest.Simulated(map[string]any{"never_ready": true}))
		other := &sandboxv1.SandboxPolicy{Version: 1, Process: &sandboxv1.ProcessPolicy{RunAsUser: "1000"}}
		mustUpdate(t, g, &openshellv1.UpdateConfigRequest{Policy: other})
		wantRevision(t, g, 2, other, 0, pending)
		now, _ := g.GetByID(t, id(web))
		if !proto.Equal(now.GetSpec().GetPolicy(), other) {
			t.Errorf("the baseline is %v", now.GetSpec().GetPolicy())
		}
	})
}

func TestUpdateConfigRefusals(t *testing.T) {
	g := gatewaytest.Start(t)
	web := g.MustCreate(t, "web", withPolicy(reaching("a.example.com")))
	try := func(req *openshellv1.UpdateConfigRequest) error { _, err := updated(t, g, req); return err }
	one := reaching("b.example.com")
	wantPlain(t, try(&openshellv1.UpdateConfigRequest{}), codes.InvalidArgument, "is required")
	wantPlain(t, try(&openshellv1.UpdateConfigRequest{SettingKey: " "}), codes.InvalidArgument, "is required")
	wantPlain(t, try(&openshellv1.UpdateConfigRequest{Policy: one, SettingKey: "ocsf_json_enabled"}), codes.InvalidArgument, "exclude each other")
	wantPlain(t, try(&openshellv1.UpdateConfigRequest{Policy: one, MergeOperations: addRule("c.example.com")}), codes.InvalidArgument, "exclude each other")
	wantPlain(t, try(&openshellv1.UpdateConfigRequest{SettingKey: "ocsf_json_enabled", MergeOperations: addRule("c.example.com")}), codes.InvalidArgument, "exclude each other")
	wantField(t, try(&openshellv1.UpdateConfigRequest{Policy: one, Annotations: map[string]string{"-": "x"}}), "annotations")
	wantField(t, try(&openshellv1.UpdateConfigRequest{Policy: one, RequestId: "one"}), "request_id")

	provider := reaching()
	provider.NetworkPolicies["_provider_github"] = rule("github.com")
	wantField(t, try(&openshellv1.UpdateConfigRequest{Policy: provider}), "policy")
	wantField(t, try(&openshellv1.UpdateConfigRequest{Policy: &sandboxv1.SandboxPolicy{Version: 2}}), "policy")
	ambiguous := reaching("a.example.com")
	ambiguous.NetworkPolicies["again"] = rule("a.example.com")
	ambiguous.NetworkPolicies["again"].Endpoints[0].Tls = sandboxv1.NetworkTlsMode_NETWORK_TLS_MODE_SKIP
	wantPlain(t, try(&openshellv1.UpdateConfigRequest{Policy: ambiguous}), codes.FailedPrecondition, "can match the same traffic")

	merge := func(op *openshellv1.PolicyMergeOperation) error {
		return try(&openshellv1.UpdateConfigRequest{MergeOperations: []*openshellv1.PolicyMergeOperation{op}})
	}
	wantField(t, merge(&openshellv1.PolicyMergeOperation{}), "merge_operations[0]")
	wantField(t, merge(&openshellv1.PolicyMergeOperation{Operation: &openshellv1.PolicyMergeOperation_RemoveRule{RemoveRule: &openshellv1.RemoveNetworkRule{}}}), "merge_operations[0].remove_rule.rule_name")
	target := &openshellv1.L7RuleTarget{RuleName: "none", Host: "none.example.com", Ports: []uint32{443}, AnyBinary: true}
	wantPlain(t, merge(&openshellv1.PolicyMergeOperation{Operation: &openshellv1.PolicyMergeOperation_AddDenyRules{AddDenyRules: &openshellv1.AddDenyRules{
		Target: target, DenyRules: []*sandboxv1.L7DenyRule{{Method: "GET", Path: "/"}},
	}}}), codes.NotFound, "none")
	binary := &openshellv1.AddNetworkRule{RuleName: "a_example_com", Rule: rule("a.example.com")}
	binary.Rule.Binaries[0].Path = "/usr/bin/wget"
	binary.Rule.Endpoints[0].Host = "b.example.com"
	wantPlain(t, merge(&openshellv1.PolicyMergeOperation{Operation: &openshellv1.PolicyMergeOperation_AddRule{AddRule: binary}}), codes.FailedPrecondition, "merge_operations[0]")

	for _, other := range []uint64{version(web) - 1, version(web) + 1} {
		for _, req := range []*openshellv1.UpdateConfigRequest{{Policy: one}, {Policy: reaching("a.example.com")}, {MergeOperations: addRule("b.example.com")}} {
			req.ExpectedResourceVersion = other
			wantReason(t, try(req), codes.Aborted, "openshell.nvidia.com", "RESOURCE_VERSION_CONFLICT", map[string]string{
				"recovery": "REFRESH_STATE", "current_resource_version": fmt.Sprint(version(web)),
			})
		}
		wantField(t, try(&openshellv1.UpdateConfigRequest{Policy: provider, ExpectedResourceVersion: other}), "policy") // before the version
	}
	at := func(name string, scope *datamodelv1.WorkspaceSelector) error {
		_, err := g.OpenShell().UpdateConfig(call(t), &openshellv1.UpdateConfigRequest{Sandbox: name, WorkspaceScope: scope, Policy: one})
		return err
	}
	wantField(t, at("web", nil), "workspace_scope")
	wantField(t, at("web", allWorkspaces()), "workspace_scope")
	wantPlain(t, at("", gatewaytest.Default()), codes.InvalidArgument, "sandbox is required")
	wantPlain(t, at("none", gatewaytest.Default()), codes.NotFound, "sandbox not found")
	wantPlain(t, at("web", workspace("nowhere")), codes.NotFound, "sandbox not found")
	wantUnchanged(t, g, web)
	wantRevision(t, g, 0, reaching("a.example.com"), 1, loaded)
}

func TestUpdateConfigLimits(t *testing.T) {
	g := gatewaytest.Start(t)
	g.MustCreate(t, "web")
	annotations := func(n int, value string) map[string]string {
		all := map[string]string{}
		for i := range n {
			all[fmt.Sprintf("a%d", i)] = value
		}
		return all
	}
	for name, tc := range map[string]struct {
		field          string
		within, beyond *openshellv1.UpdateConfigRequest
	}{
		"policy":      {"policy", &openshellv1.UpdateConfigRequest{Policy: policySized(262144)}, &openshellv1.UpdateConfigRequest{Policy: policySized(262145)}},
		"annotations": {"annotations", &openshellv1.UpdateConfigRequest{Annotations: annotations(128, "")}, &openshellv1.UpdateConfigRequest{Annotations: annotations(129, "")}},
		"a value": {"annotations[a0]", &openshellv1.UpdateConfigRequest{Annotations: annotations(1, strings.Repeat("x", 8192))},
			&openshellv1.UpdateConfigRequest{Annotations: annotations(1, strings.Repeat("x", 8193))}},
		"a key": {"annotations", &openshellv1.UpdateConfigRequest{Annotations: map[string]string{"a/" + strings.Repeat("x", 63): ""}},
			&openshellv1.UpdateConfigRequest{Annotations: map[string]string{"a/" + strings.Repeat("x", 64): ""}}},
	} {
		t.Run(name, func(t *testing.T) {
			web := g.Replace(t, "web")
			for _, req := range []*openshellv1.UpdateConfigRequest{tc.beyond, tc.within} {
				if req.GetPolicy() == nil {
					req.Policy = reaching("a.example.com")
				}
			}
			_, err := updated(t, g, tc.beyond)
			wantField(t, err, tc.field)
			wantUnchanged(t, g, web)
			_, err = updated(t, g, tc.within)
			wantStatus(t, err, codes.OK, "")
		})
	}
	t.Run("annotations in all", func(t *testing.T) {
		g.Replace(t, "web", gatewaytest.Request(func(r *openshellv1.CreateSandboxRequest) { r.Annotations = annotations(127, "") }))
		_, err := updated(t, g, &openshellv1.UpdateConfigRequest{Policy: reaching(), Annotations: map[string]string{"b": "", "c": ""}})
		wantField(t, err, "annotations")
		mustUpdate(t, g, &openshellv1.UpdateConfigRequest{Policy: reaching(), Annotations: map[string]string{"b": "", "a0": "new"}})
	})
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

// What is in a workspace that is being deleted can be changed until it is gone itself.
func TestUpdateConfigInATerminatingWorkspace(t *testing.T) {
	g := gatewaytest.Start(t)
	mustCreateTeam(t, g)
	_, err := g.OpenShell().CreateSandbox(call(t), &openshellv1.CreateSandboxRequest{Name: "web", WorkspaceScope: workspace("team"), Spec: &openshellv1.SandboxSpec{}})
	if err != nil {
		t.Fatal(err)
	}
	for _, req := range []*openshellv1.UpdateConfigRequest{{Policy: reaching("a.example.com")}, setting("ocsf_json_enabled", truth(true))} {
		_, err = deleteWorkspace(t, g, "team", false)
		wantPlain(t, err, codes.FailedPrecondition, "not empty")
		req.Sandbox, req.WorkspaceScope = "web", workspace("team")
		_, err = g.OpenShell().UpdateConfig(call(t), req)
		wantStatus(t, err, codes.OK, "")
	}
	_, err = deleteWorkspace(t, g, "team", false)
	wantPlain(t, err, codes.FailedPrecondition, "sandbox, sandbox policy, sandbox settings")
}

// However much is wrong with a policy, a client that takes 8 KiB of metadata is told.
func TestPolicyProblemsAreShort(t *testing.T) {
	g := gatewaytest.Start(t)
	g.MustCreate(t, "web", withPolicy(reaching()))
	wrong := reaching()
	for i := range 100 {
		wrong.Filesystem.ReadOnly = append(wrong.Filesystem.GetReadOnly(), strings.Repeat("é", 200)+fmt.Sprint(i))
	}
	conn, err := grpc.NewClient(g.Address(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithMaxHeaderListSize(8<<10))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_, err = openshellv1.NewOpenShellClient(conn).UpdateConfig(call(t), &openshellv1.UpdateConfigRequest{Sandbox: "web", WorkspaceScope: gatewaytest.Default(), Policy: wrong})
	wantField(t, err, "policy")
	wantStatus(t, err, codes.InvalidArgument, "must start with /")
}
