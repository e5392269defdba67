package server_test

import (
	"maps"
	"slices"
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

// inspected is an endpoint whose requests are looked into.
func inspected(host string) *sandboxv1.NetworkEndpoint {
	return &sandboxv1.NetworkEndpoint{
		Host: host, Port: 443, Ports: []uint32{443}, Protocol: "rest", Access: sandboxv1.NetworkAccessPreset_NETWORK_ACCESS_PRESET_FULL,
	}
}

// startWithEndpoints has the providers "api" for api.example.com, "plain" for one that is not inspected, and "bound" for
// what a policy binds to it.
func startWithEndpoints(t *testing.T) *gatewaytest.Gateway {
	t.Helper()
	g := gatewaytest.Start(t)
	for name, endpoints := range map[string][]*sandboxv1.NetworkEndpoint{
		"api": {inspected("api.example.com")}, "plain": {{Host: "plain.example.com", Port: 443, Ports: []uint32{443}}}, "bound": nil,
	} {
		profile := tokenProfile(name)
		profile.Endpoints = endpoints
		importProfiles(t, g, nil, profile)
		mustCreateProvider(t, g, gatewaytest.Default(), name, name, nil)
	}
	return g
}

// bindingTo is a policy that has the provider's credential used at b.example.com.
func bindingTo(provider string) *sandboxv1.SandboxPolicy {
	p := reaching()
	endpoint := inspected("b.example.com")
	endpoint.CredentialBinding = &sandboxv1.NetworkCredentialBinding{Provider: provider}
	p.NetworkPolicies["b"] = &sandboxv1.NetworkPolicyRule{Name: "b", Endpoints: []*sandboxv1.NetworkEndpoint{endpoint}}
	return p
}

// skipping is a policy that treats api.example.com otherwise than the provider "api" does.
func skipping() *sandboxv1.SandboxPolicy {
	p := reaching("api.example.com")
	p.NetworkPolicies["api_example_com"].Endpoints[0].Tls = sandboxv1.NetworkTlsMode_NETWORK_TLS_MODE_SKIP
	return p
}

// A policy and providers that do not go together are refused, whichever comes to the other.
func TestPolicyAndProviders(t *testing.T) {
	g := startWithEndpoints(t)
	for name, tc := range map[string]struct {
		policy   *sandboxv1.SandboxPolicy
		provider string
		text     string
	}{
		"ambiguous":           {skipping(), "api", "can match the same traffic"},
		"not inspected":       {reaching(), "plain", "has no protocol to inspect"},
		"bound, and it has":   {bindingTo("api"), "api", "has endpoints of its own"},
		"bound to another":    {bindingTo("bound"), "api", "is not attached"},
		"credentials lead on": {reaching("api.example.com"), "api", "has no protocol to inspect"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := g.OpenShell().CreateSandbox(call(t), &openshellv1.CreateSandboxRequest{
				Name: "web", WorkspaceScope: gatewaytest.Default(), Spec: &openshellv1.SandboxSpec{Policy: tc.policy, Providers: []string{tc.provider}},
			})
			wantPlain(t, err, codes.FailedPrecondition, tc.text)
			if boundTo := tc.policy.GetNetworkPolicies()["b"]; boundTo == nil {
				web := g.MustCreate(t, "web", withPolicy(tc.policy))
				_, err = attach(t, g, "web", tc.provider, 0)
				wantPlain(t, err, codes.FailedPrecondition, tc.text)
				wantUnchanged(t, g, web)
				g.MustDelete(t, "web")
			}
			if tc.provider == "plain" { // which goes with no policy
				return
			}
			web := g.MustCreate(t, "web", gatewaytest.Request(func(r *openshellv1.CreateSandboxRequest) {
				r.Spec.Policy, r.Spec.Providers = reaching("other.example.com"), []string{tc.provider}
			}))
			_, err = updated(t, g, &openshellv1.UpdateConfigRequest{Policy: tc.policy})
			wantPlain(t, err, codes.FailedPrecondition, tc.text)
			wantUnchanged(t, g, web)
			g.MustDelete(t, "web")
		})
	}
	t.Run("bound", func(t *testing.T) {
		_, err := g.OpenShell().CreateSandbox(call(t), &openshellv1.CreateSandboxRequest{
			Name: "web", WorkspaceScope: gatewaytest.Default(), Spec: &openshellv1.SandboxSpec{Policy: bindingTo("bound")},
		})
		wantPlain(t, err, codes.FailedPrecondition, "is not attached")
		web := g.MustCreate(t, "web", gatewaytest.Request(func(r *openshellv1.CreateSandboxRequest) { r.Spec.Providers = []string{"bound"} }))
		mustUpdate(t, g, &openshellv1.UpdateConfigRequest{Policy: bindingTo("bound")})
		now, _ := g.GetByID(t, id(web))
		_, err = detach(t, g, "web", "bound", 0)
		wantPlain(t, err, codes.FailedPrecondition, "is not attached")
		wantUnchanged(t, g, now)
		mustUpdate(t, g, &openshellv1.UpdateConfigRequest{Policy: reaching()})
		if reply, err := detach(t, g, "web", "bound", 0); err != nil || !reply.GetDetached() {
			t.Errorf("%v, %v", reply, err)
		}
	})
}

// A profile is not changed in a way that a sandbox's policy does not go together with.
func TestProfileAndPolicies(t *testing.T) {
	g := startWithEndpoints(t)
	web := g.MustCreate(t, "web", gatewaytest.Request(func(r *openshellv1.CreateSandboxRequest) {
		r.Spec.Policy, r.Spec.Providers = reaching("a.example.com"), []string{"api"}
	}))
	update := func(endpoint *sandboxv1.NetworkEndpoint) *openshellv1.UpdateProviderProfilesResponse {
		t.Helper()
		profile := tokenProfile("api")
		profile.Endpoints = []*sandboxv1.NetworkEndpoint{endpoint}
		before, err := g.OpenShell().GetProviderProfile(call(t), &openshellv1.GetProviderProfileRequest{Id: "api"})
		if err != nil {
			t.Fatal(err)
		}
		reply, err := g.OpenShell().UpdateProviderProfiles(call(t), &openshellv1.UpdateProviderProfilesRequest{
			Id: "api", Profile: &openshellv1.ProviderProfileImportItem{Profile: profile}, ExpectedResourceVersion: before.GetProfile().GetResourceVersion(),
		})
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	refused := update(inspected("a.example.com"))
	if refused.GetUpdated() || len(refused.GetDiagnostics()) != 1 || refused.GetDiagnostics()[0].GetField() != "endpoints" ||
		!strings.Contains(refused.GetDiagnostics()[0].GetMessage(), "would break sandbox 'web'") {
		t.Errorf("%v", refused)
	}
	if got := config(t, g); got.GetPolicy().GetNetworkPolicies()["_provider_api"].GetEndpoints()[0].GetHost() != "api.example.com" {
		t.Errorf("after a refused update: %v", got)
	}
	if reply := update(inspected("b.example.com")); !reply.GetUpdated() {
		t.Errorf("%v", reply)
	}
	if got := config(t, g); got.GetPolicy().GetNetworkPolicies()["_provider_api"].GetEndpoints()[0].GetHost() != "b.example.com" {
		t.Errorf("%v", got)
	}
	wantUnchanged(t, g, web)
}

func config(t *testing.T, g *gatewaytest.Gateway) *sandboxv1.GetSandboxConfigResponse {
	t.Helper()
	reply, err := g.OpenShell().GetSandboxConfig(call(t), &sandboxv1.GetSandboxConfigRequest{Name: "web", WorkspaceScope: gatewaytest.Default()})
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// What counts in a sandbox: its own policy with the rules of its providers, or that of the whole gateway.
func TestGetSandboxConfig(t *testing.T) {
	g := startWithEndpoints(t)
	web := g.MustCreate(t, "web", withPolicy(reaching("a.example.com")))
	first := config(t, g)
	want := &sandboxv1.GetSandboxConfigResponse{
		Policy: reaching("a.example.com"), PolicyHash: policy.Hash(reaching("a.example.com")), Version: 1,
		PolicySource: sandboxv1.PolicySource_POLICY_SOURCE_SANDBOX, Workspace: "default", PolicyValidationFailureMode: "fail_closed",
		ConfigurationAdmitted: true, ProviderAttachmentEpoch: web.GetSpec().GetProviderAttachmentEpoch(),
		ConfigurationInstanceId: web.GetStatus().GetMainProcessInstanceId(),
		Settings: map[string]*sandboxv1.EffectiveSetting{
			"agent_policy_proposals_enabled": {}, "ocsf_json_enabled": {}, "ocsf_schema_version": {}, "proposal_approval_mode": {},
		},
		ConfigRevision: first.GetConfigRevision(), ProviderEnvRevision: first.GetProviderEnvRevision(),
	}
	if diff := cmp.Diff(want, first, protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	wantUnchanged(t, g, web)

	if _, err := attach(t, g, "web", "api", 0); err != nil {
		t.Fatal(err)
	}
	second := config(t, g)
	keys := slices.Sorted(maps.Keys(second.GetPolicy().GetNetworkPolicies()))
	if !slices.Equal(keys, []string{"_provider_api", "a_example_com"}) || second.GetVersion() != 1 || second.GetPolicyHash() == first.GetPolicyHash() ||
		second.GetConfigRevision() == first.GetConfigRevision() || second.GetProviderEnvRevision() == first.GetProviderEnvRevision() ||
		!second.GetPolicy().GetNetworkPolicies()["_provider_api"].GetEndpoints()[0].GetProviderCredentialed() || !second.GetConfigurationAdmitted() {
		t.Errorf("with a provider: %v", second)
	}
	wantRevision(t, g, 0, reaching("a.example.com"), 1, loaded) // as it was written
}

func TestGetSandboxConfigUnderTheGateways(t *testing.T) {
	g := startWithEndpoints(t)
	g.MustCreate(t, "web", gatewaytest.Request(func(r *openshellv1.CreateSandboxRequest) {
		r.Spec.Policy, r.Spec.Providers = reaching("a.example.com"), []string{"api"}
	}))
	mustUpdate(t, g, setting("ocsf_json_enabled", truth(false)))
	mustUpdate(t, g, setting("proposal_approval_mode", text("auto")))
	for _, req := range []*openshellv1.UpdateConfigRequest{setting("ocsf_json_enabled", truth(true)), {Policy: skipping()}} {
		if _, err := global(t, g, req); err != nil {
			t.Fatal(err)
		}
	}
	third := config(t, g)
	for key, want := range map[string]*sandboxv1.EffectiveSetting{
		"ocsf_json_enabled":      {Value: truth(true), Scope: sandboxv1.SettingScope_SETTING_SCOPE_GLOBAL},
		"proposal_approval_mode": {Value: text("auto"), Scope: sandboxv1.SettingScope_SETTING_SCOPE_SANDBOX},
		"ocsf_schema_version":    {},
	} {
		if !proto.Equal(third.GetSettings()[key], want) {
			t.Errorf("setting %s: %v", key, third.GetSettings()[key])
		}
	}
	if third.GetPolicySource() != sandboxv1.PolicySource_POLICY_SOURCE_GLOBAL || third.GetGlobalPolicyVersion() != 1 || third.GetVersion() != 1 ||
		len(third.GetPolicy().GetNetworkPolicies()) != 1 || third.GetSettingsRevision() != 2 || third.GetConfigurationAdmitted() || third.GetConfigurationError() == "" {
		t.Errorf("under the gateway's policy: %v", third) // which has a credential go where nobody looks
	}
}

func TestGetSandboxConfigOfNoPolicy(t *testing.T) {
	g := startWithEndpoints(t)
	g.MustCreate(t, "web", gatewaytest.Request(func(r *openshellv1.CreateSandboxRequest) { r.Spec.Providers = []string{"api"} }))
	if got := config(t, g); got.GetPolicy() != nil || got.GetPolicyHash() != "" || got.GetVersion() != 0 || got.GetConfigurationAdmitted() {
		t.Errorf("%v", got)
	}
	if _, err := global(t, g, &openshellv1.UpdateConfigRequest{Policy: reaching()}); err != nil {
		t.Fatal(err)
	}
	if got := config(t, g); got.GetPolicy() == nil || got.GetVersion() != 1 || !got.GetConfigurationAdmitted() {
		t.Errorf("under the gateway's policy: %v", got)
	}
	get := func(req *sandboxv1.GetSandboxConfigRequest) error {
		_, err := g.OpenShell().GetSandboxConfig(call(t), req)
		return err
	}
	wantField(t, get(&sandboxv1.GetSandboxConfigRequest{Name: "web"}), "workspace_scope")
	wantPlain(t, get(&sandboxv1.GetSandboxConfigRequest{WorkspaceScope: gatewaytest.Default()}), codes.InvalidArgument, "sandbox is required")
	wantPlain(t, get(&sandboxv1.GetSandboxConfigRequest{Name: "none", WorkspaceScope: gatewaytest.Default()}), codes.NotFound, "sandbox not found")
}
