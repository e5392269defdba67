package server_test

import (
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
