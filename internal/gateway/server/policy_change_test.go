package server_test

import (
	"fmt"
	"strings"
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

// The limits of a policy at their edges.
func TestPolicyLimits(t *testing.T) {
	g := gatewaytest.Start(t)
	g.MustCreate(t, "web")
	paths := func(n int) *sandboxv1.SandboxPolicy {
		p := reaching()
		p.Filesystem.ReadOnly = nil
		for i := range n - len(p.GetFilesystem().GetReadWrite()) {
			p.Filesystem.ReadOnly = append(p.Filesystem.ReadOnly, fmt.Sprint("/p", i))
		}
		return p
	}
	pathOf := func(size int) *sandboxv1.SandboxPolicy {
		p := reaching()
		p.Filesystem.ReadOnly = []string{"/" + strings.Repeat("p", size-1)}
		return p
	}
	middlewares := func(n, patterns int) *sandboxv1.SandboxPolicy {
		p := reaching()
		p.NetworkMiddlewares = map[string]*sandboxv1.NetworkMiddlewareConfig{}
		for i := range n {
			endpoints := &sandboxv1.MiddlewareEndpointSelector{}
			for j := range patterns {
				endpoints.Include = append(endpoints.Include, fmt.Sprintf("h%d.example.com", j))
			}
			p.NetworkMiddlewares[fmt.Sprint("m", i)] = &sandboxv1.NetworkMiddlewareConfig{Middleware: "any", Order: int32(i), Endpoints: endpoints}
		}
		return p
	}
	port := func(port uint32) *sandboxv1.SandboxPolicy {
		p := reaching("a.example.com")
		p.NetworkPolicies["a_example_com"].Endpoints[0].Port, p.NetworkPolicies["a_example_com"].Endpoints[0].Ports = 0, []uint32{port}
		return p
	}
	user := func(id string) *sandboxv1.SandboxPolicy {
		p := reaching()
		p.Process = &sandboxv1.ProcessPolicy{RunAsUser: id, RunAsGroup: id}
		return p
	}
	for name, tc := range map[string]struct{ within, beyond *sandboxv1.SandboxPolicy }{
		"paths":             {paths(256), paths(257)},
		"size of a path":    {pathOf(4096), pathOf(4097)},
		"middlewares":       {middlewares(10, 1), middlewares(11, 1)},
		"patterns of hosts": {middlewares(1, 32), middlewares(1, 33)},
		"least port":        {port(1), port(0)},
		"greatest port":     {port(65535), port(65536)},
		"least user":        {user("1"), user("0")},
		"greatest user":     {user("4294967294"), user("4294967295")},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := g.OpenShell().CreateSandbox(call(t), createRequest(func(r *openshellv1.CreateSandboxRequest) { r.Spec.Policy = tc.beyond }))
			wantField(t, err, "spec.policy")
			g.Replace(t, "web", withPolicy(tc.within))
			_, err = updated(t, g, &openshellv1.UpdateConfigRequest{Policy: tc.beyond})
			wantField(t, err, "policy")
		})
	}
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
