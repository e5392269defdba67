package server_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
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
