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

func text(value string) *sandboxv1.SettingValue {
	return &sandboxv1.SettingValue{Value: &sandboxv1.SettingValue_StringValue{StringValue: value}}
}

func truth(value bool) *sandboxv1.SettingValue {
	return &sandboxv1.SettingValue{Value: &sandboxv1.SettingValue_BoolValue{BoolValue: value}}
}

func setting(key string, value *sandboxv1.SettingValue) *openshellv1.UpdateConfigRequest {
	return &openshellv1.UpdateConfigRequest{SettingKey: key, SettingValue: value}
}

func unsetting(key string) *openshellv1.UpdateConfigRequest {
	return &openshellv1.UpdateConfigRequest{SettingKey: key, DeleteSetting: true}
}

// global makes an update of the whole gateway.
func global(t *testing.T, g *gatewaytest.Gateway, req *openshellv1.UpdateConfigRequest) (*openshellv1.UpdateConfigResponse, error) {
	t.Helper()
	full, _ := proto.Clone(req).(*openshellv1.UpdateConfigRequest)
	full.Global = true
	return g.OpenShell().UpdateConfig(call(t), full)
}

// wantReply holds the reply to an update to what it says.
func wantReply(t *testing.T, got *openshellv1.UpdateConfigResponse, err error, want *openshellv1.UpdateConfigResponse) {
	t.Helper()
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}

func wantGatewaySettings(t *testing.T, g *gatewaytest.Gateway, revision uint64, set map[string]*sandboxv1.SettingValue) {
	t.Helper()
	want := &sandboxv1.GetGatewayConfigResponse{SettingsRevision: revision, Settings: map[string]*sandboxv1.SettingValue{}}
	for _, key := range []string{"agent_policy_proposals_enabled", "ocsf_json_enabled", "ocsf_schema_version", "proposal_approval_mode"} {
		want.Settings[key] = &sandboxv1.SettingValue{}
		if value, there := set[key]; there {
			want.Settings[key] = value
		}
	}
	got, err := g.OpenShell().GetGatewayConfig(call(t), &sandboxv1.GetGatewayConfigRequest{})
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}

func TestSettings(t *testing.T) {
	type reply = openshellv1.UpdateConfigResponse
	for scope, update := range map[string]func(*testing.T, *gatewaytest.Gateway, *openshellv1.UpdateConfigRequest) (*reply, error){"sandbox": updated, "gateway": global} {
		t.Run(scope, func(t *testing.T) {
			g := gatewaytest.Start(t) // of its own: what is set for the whole gateway cannot be set for a sandbox
			web := g.MustCreate(t, "web")
			for i, tc := range []struct {
				req  *openshellv1.UpdateConfigRequest
				want *reply
			}{
				{unsetting("ocsf_json_enabled"), &reply{}},
				{setting("ocsf_json_enabled", truth(true)), &reply{SettingsRevision: 1}},
				{setting(" ocsf_json_enabled ", truth(true)), &reply{SettingsRevision: 1}}, // which is no change
				{setting("ocsf_json_enabled", truth(false)), &reply{SettingsRevision: 2}},
				{setting("ocsf_schema_version", text("")), &reply{SettingsRevision: 3}},
				{setting("ocsf_schema_version", text("1.3")), &reply{SettingsRevision: 4}},
				{setting("proposal_approval_mode", text("auto")), &reply{SettingsRevision: 5}},
				{setting("agent_policy_proposals_enabled", truth(true)), &reply{SettingsRevision: 6}},
				{unsetting("ocsf_schema_version"), &reply{SettingsRevision: 7, Deleted: true}},
				{unsetting("ocsf_schema_version"), &reply{SettingsRevision: 7}},
			} {
				t.Log(i)
				got, err := update(t, g, tc.req)
				wantReply(t, got, err, tc.want)
			}
			wantUnchanged(t, g, web)
			for key, bad := range map[string]*openshellv1.UpdateConfigRequest{
				"setting_key": setting("providers_v2_enabled", truth(true)), "setting_value": setting("ocsf_json_enabled", nil),
			} {
				_, err := update(t, g, bad)
				wantField(t, err, key)
			}
			for _, bad := range []*openshellv1.UpdateConfigRequest{unsetting("none"), setting("policy", text("x")), setting("ocsf_json_enable", truth(true))} {
				_, err := update(t, g, bad)
				wantField(t, err, "setting_key")
			}
			for _, bad := range []*openshellv1.UpdateConfigRequest{
				setting("ocsf_json_enabled", text("true")), setting("ocsf_json_enabled", &sandboxv1.SettingValue{}),
				setting("ocsf_schema_version", truth(true)), setting("ocsf_schema_version", text("1.2")), setting("proposal_approval_mode", text("")),
				setting("proposal_approval_mode", &sandboxv1.SettingValue{Value: &sandboxv1.SettingValue_BytesValue{BytesValue: []byte("auto")}}),
			} {
				_, err := update(t, g, bad)
				wantField(t, err, "setting_value")
			}
			_, err := update(t, g, &openshellv1.UpdateConfigRequest{Policy: reaching(), DeleteSetting: true})
			wantPlain(t, err, codes.InvalidArgument, "delete_setting")
			got, err := update(t, g, unsetting("none of these"))
			wantField(t, err, "setting_key")
			if got != nil {
				t.Errorf("reply %v", got)
			}
			if scope == "gateway" {
				wantGatewaySettings(t, g, 7, map[string]*sandboxv1.SettingValue{
					"ocsf_json_enabled": truth(false), "proposal_approval_mode": text("auto"), "agent_policy_proposals_enabled": truth(true),
				})
			}
		})
	}
}

// What is set for the whole gateway cannot be set for a sandbox; what a sandbox had is its own again afterwards.
func TestGatewaySettingsWin(t *testing.T) {
	g := gatewaytest.Start(t)
	web := g.MustCreate(t, "web")
	mustUpdate(t, g, setting("ocsf_json_enabled", truth(false)))
	if _, err := global(t, g, setting("ocsf_json_enabled", truth(true))); err != nil {
		t.Fatal(err)
	}
	for _, req := range []*openshellv1.UpdateConfigRequest{setting("ocsf_json_enabled", truth(true)), unsetting("ocsf_json_enabled")} {
		_, err := updated(t, g, req)
		wantPlain(t, err, codes.FailedPrecondition, "'ocsf_json_enabled' is managed for the whole gateway")
	}
	mustUpdate(t, g, setting("proposal_approval_mode", text("manual")))
	got, err := global(t, g, unsetting("ocsf_json_enabled"))
	wantReply(t, got, err, &openshellv1.UpdateConfigResponse{SettingsRevision: 2, Deleted: true})
	if reply := mustUpdate(t, g, unsetting("ocsf_json_enabled")); !reply.GetDeleted() || reply.GetSettingsRevision() != 3 {
		t.Errorf("the sandbox's own: %v", reply)
	}
	wantUnchanged(t, g, web)

	// With annotations the row is written, and a version is compared in any case.
	reply := mustUpdate(t, g, &openshellv1.UpdateConfigRequest{
		SettingKey: "ocsf_json_enabled", SettingValue: truth(true), Annotations: map[string]string{"why": "x"}, ExpectedResourceVersion: version(web),
	})
	wantReply(t, reply, nil, &openshellv1.UpdateConfigResponse{SettingsRevision: 4, Annotations: map[string]string{"why": "x"}})
	_, err = updated(t, g, &openshellv1.UpdateConfigRequest{SettingKey: "ocsf_json_enabled", SettingValue: truth(false), ExpectedResourceVersion: version(web)})
	wantReason(t, err, codes.Aborted, "openshell.nvidia.com", "RESOURCE_VERSION_CONFLICT", map[string]string{"current_resource_version": fmt.Sprint(version(web) + 1)})
	if reply := mustUpdate(t, g, setting("ocsf_json_enabled", truth(true))); reply.GetSettingsRevision() != 4 {
		t.Errorf("the refused update has changed something: %v", reply)
	}
	// They are the sandbox's own, and not its name's.
	g.Replace(t, "web")
	if reply := mustUpdate(t, g, unsetting("ocsf_json_enabled")); reply.GetDeleted() || reply.GetSettingsRevision() != 0 {
		t.Errorf("of the successor: %v", reply)
	}
}

// While the whole gateway has a policy, sandboxes cannot be given others.
func TestGatewayPolicy(t *testing.T) {
	g := gatewaytest.Start(t)
	web := g.MustCreate(t, "web", withPolicy(reaching("a.example.com")))
	status := func(version uint32) (*openshellv1.GetSandboxPolicyStatusResponse, error) {
		return g.OpenShell().GetSandboxPolicyStatus(call(t), &openshellv1.GetSandboxPolicyStatusRequest{Global: true, Version: version})
	}
	_, err := status(0)
	wantPlain(t, err, codes.NotFound, "no global policy revision found")
	one, two := &sandboxv1.SandboxPolicy{Version: 1}, reaching("b.example.com")
	type reply = openshellv1.UpdateConfigResponse
	set := func(p *sandboxv1.SandboxPolicy) *openshellv1.UpdateConfigRequest {
		return &openshellv1.UpdateConfigRequest{Policy: p}
	}
	for i, tc := range []struct {
		req  *openshellv1.UpdateConfigRequest
		want *reply
	}{
		{unsetting("policy"), &reply{}},
		{set(one), &reply{Version: 1, PolicyHash: policy.Hash(one), SettingsRevision: 1}},
		{set(one), &reply{Version: 1, PolicyHash: policy.Hash(one), SettingsRevision: 1}},
		{set(two), &reply{Version: 2, PolicyHash: policy.Hash(two), SettingsRevision: 2}},
		{unsetting("policy"), &reply{SettingsRevision: 3, Deleted: true}},
		{unsetting("policy"), &reply{SettingsRevision: 3}},
		{set(two), &reply{Version: 3, PolicyHash: policy.Hash(two), SettingsRevision: 4}}, // in force anew
	} {
		t.Log(i)
		got, err := global(t, g, tc.req)
		wantReply(t, got, err, tc.want)
	}
	for version, want := range map[uint32]openshellv1.PolicyStatus{0: loaded, 1: superseded, 2: superseded, 3: loaded} {
		got, err := status(version)
		r := got.GetRevision()
		if err != nil || r.GetStatus() != want || r.GetLoadedTime() == nil || r.GetCreatedTime() == nil || r.GetPolicy() == nil || got.GetActiveVersion() != 0 {
			t.Errorf("revision %d: %v, %v", version, got, err)
		}
	}
	list, err := g.OpenShell().ListSandboxPolicies(call(t), &openshellv1.ListSandboxPoliciesRequest{Global: true})
	if err != nil || len(list.GetRevisions()) != 3 || list.GetRevisions()[0].GetVersion() != 3 || list.GetRevisions()[0].GetPolicy() != nil {
		t.Errorf("%v, %v", list, err)
	}
	wantGatewaySettings(t, g, 4, nil)

	for _, req := range []*openshellv1.UpdateConfigRequest{set(reaching("c.example.com")), {MergeOperations: addRule("c.example.com")}} {
		_, err := updated(t, g, req)
		wantPlain(t, err, codes.FailedPrecondition, "managed for the whole gateway")
	}
	wantUnchanged(t, g, web)
	wantRevision(t, g, 0, reaching("a.example.com"), 1, loaded)
	mustUpdate(t, g, setting("ocsf_json_enabled", truth(true)))
	if _, err := global(t, g, unsetting("policy")); err != nil {
		t.Fatal(err)
	}
	mustUpdate(t, g, set(reaching("c.example.com")))
}

func TestGatewayUpdateRefusals(t *testing.T) {
	g := gatewaytest.Start(t)
	policyOf := reaching("a.example.com")
	bound := reaching("a.example.com")
	bound.NetworkPolicies["a_example_com"].Endpoints[0].CredentialBinding = &sandboxv1.NetworkCredentialBinding{Provider: "p"}
	reserved := reaching()
	reserved.NetworkPolicies["_provider_p"] = rule("a.example.com")
	for name, tc := range map[string]struct {
		req  *openshellv1.UpdateConfigRequest
		code codes.Code
		text string
	}{
		"nothing":          {&openshellv1.UpdateConfigRequest{}, codes.InvalidArgument, "is required"},
		"two changes":      {&openshellv1.UpdateConfigRequest{Policy: policyOf, SettingKey: "ocsf_json_enabled", SettingValue: truth(true)}, codes.InvalidArgument, "exclude each other"},
		"a sandbox":        {&openshellv1.UpdateConfigRequest{Policy: policyOf, Sandbox: "web"}, codes.InvalidArgument, "must be omitted"},
		"a workspace":      {&openshellv1.UpdateConfigRequest{Policy: policyOf, WorkspaceScope: gatewaytest.Default()}, codes.InvalidArgument, "must be omitted"},
		"annotations":      {&openshellv1.UpdateConfigRequest{Policy: policyOf, Annotations: map[string]string{"a": "b"}}, codes.InvalidArgument, "annotations"},
		"merge operations": {&openshellv1.UpdateConfigRequest{MergeOperations: addRule("b.example.com")}, codes.InvalidArgument, "merge_operations"},
		"a binding":        {&openshellv1.UpdateConfigRequest{Policy: bound}, codes.FailedPrecondition, "credential_binding"},
		"a provider rule":  {&openshellv1.UpdateConfigRequest{Policy: reserved}, codes.InvalidArgument, "_provider_"},
		"request_id":       {&openshellv1.UpdateConfigRequest{Policy: policyOf, RequestId: "one"}, codes.InvalidArgument, "request_id"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := global(t, g, tc.req)
			wantStatus(t, err, tc.code, tc.text)
		})
	}
	if _, err := global(t, g, &openshellv1.UpdateConfigRequest{Policy: policyOf, ExpectedResourceVersion: 99}); err != nil { // which is ignored
		t.Error(err)
	}
	_, err := g.OpenShell().GetSandboxPolicyStatus(call(t), &openshellv1.GetSandboxPolicyStatusRequest{Global: true, Sandbox: "web"})
	wantPlain(t, err, codes.InvalidArgument, "must be omitted")
	_, err = g.OpenShell().ListSandboxPolicies(call(t), &openshellv1.ListSandboxPoliciesRequest{Global: true, WorkspaceScope: gatewaytest.Default()})
	wantPlain(t, err, codes.InvalidArgument, "must be omitted")
	_, err = g.Conditional().UpdateSandboxConfig(call(t), conditionalUpdate(expect(anID), &openshellv1.UpdateConfigRequest{Global: true, Policy: policyOf}))
	wantField(t, err, "global")
}
