package policy_test

import (
	"maps"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/policy"
)

// attached is a provider whose profile has these endpoints, and a credential if it is to.
func attached(t *testing.T, name, endpoints string, credential bool) policy.Attached {
	t.Helper()
	profile := &openshellv1.ProviderProfile{
		Endpoints: rules(t, "x: {endpoints: ["+endpoints+"]}").GetNetworkPolicies()["x"].GetEndpoints(),
		Binaries:  []*sandboxv1.NetworkBinary{{Path: "/usr/bin/git"}},
	}
	if credential {
		profile.Credentials = []*openshellv1.ProviderProfileCredential{{Name: "token"}}
	}
	return policy.Attached{Name: name, Profile: profile}
}

func TestCompose(t *testing.T) {
	base := rules(t, "own: {endpoints: [{host: own.example.com, port: 1}], "+curl+"}")
	before := proto.CloneOf(base)
	providers := []policy.Attached{
		attached(t, "My GitHub!", full, true), attached(t, "my-github", "{host: b.example.com, port: 2}", false),
		attached(t, "...", "{host: c.example.com, port: 3}", false), attached(t, "none", "", true),
	}
	got := policy.Compose(base, providers)
	wantEqual(t, base, before)
	keys := slices.Sorted(maps.Keys(got.GetNetworkPolicies()))
	if want := []string{"_provider_my_github", "_provider_my_github_2", "_provider_unnamed", "own"}; !slices.Equal(keys, want) {
		t.Fatalf("rules %v, want %v", keys, want)
	}
	first := got.GetNetworkPolicies()["_provider_my_github"]
	if first.GetName() != "_provider_my_github" || first.GetEndpoints()[0].GetHost() != "a.example.com" || first.GetBinaries()[0].GetPath() != "/usr/bin/git" {
		t.Errorf("rule %v", first)
	}
	for key, rule := range got.GetNetworkPolicies() {
		if marked := rule.GetEndpoints()[0].GetProviderCredentialed(); marked != (key == "_provider_my_github") {
			t.Errorf("%s is marked: %v", key, marked)
		}
	}
	if policy.Hash(policy.Compose(base, nil)) != policy.Hash(base) {
		t.Error("without providers it is another policy")
	}
	if only := policy.Compose(nil, providers[:1]); len(only.GetNetworkPolicies()) != 1 {
		t.Errorf("of nothing: %v", only)
	}
}

// Which endpoint of a policy can get the credentials of a provider, whose own is base.
func TestMark(t *testing.T) {
	const base = "host: a.example.com, port: 443, protocol: rest, access: full"
	for name, tc := range map[string]struct {
		provider, endpoint string
		want               bool
	}{
		"the same":               {base, "host: a.example.com, port: 443", true},
		"in capitals":            {base, "host: A.Example.com, port: 443", true},
		"a wildcard":             {base, "host: '*.example.com', port: 443", true},
		"another host":           {base, "host: b.example.com, port: 443", false},
		"another port":           {base, "host: a.example.com, port: 80", false},
		"one of the ports":       {base, "host: a.example.com, ports: [80, 443]", true},
		"a path of all":          {base, "host: a.example.com, port: 443, protocol: rest, access: full, path: /v1", true},
		"all of a path":          {base + ", path: /v1/**", "host: a.example.com, port: 443", false},
		"a path of a path":       {base + ", path: /v1/**", "host: a.example.com, port: 443, protocol: rest, access: full, path: /v1/x", true},
		"another path":           {base + ", path: /v1/**", "host: a.example.com, port: 443, protocol: rest, access: full, path: /v2/x", false},
		"some path":              {base + ", path: /v1/**", "host: a.example.com, port: 443, protocol: rest, access: full, path: /v1/*", false},
		"bound":                  {"", "host: b.example.com, port: 443, credential_binding: {provider: p}", true},
		"bound to one with some": {base, "host: b.example.com, port: 443, credential_binding: {provider: p}", false},
		"bound to another":       {"", "host: b.example.com, port: 443, credential_binding: {provider: q}", false},
	} {
		t.Run(name, func(t *testing.T) {
			endpoints := ""
			if tc.provider != "" {
				endpoints = "{" + tc.provider + "}"
			}
			p := rules(t, "own: {endpoints: [{"+tc.endpoint+"}]}")
			got := policy.Mark(p, []policy.Attached{attached(t, "p", endpoints, true)})
			if marked := got.GetNetworkPolicies()["own"].GetEndpoints()[0].GetProviderCredentialed(); marked != tc.want {
				t.Errorf("marked: %v", marked)
			}
		})
	}
	signing := attached(t, "p", "{"+base+", credential_signing: sigv4, signing_service: s3}", false)
	if got := policy.Compose(nil, []policy.Attached{signing}); !got.GetNetworkPolicies()["_provider_p"].GetEndpoints()[0].GetProviderCredentialed() {
		t.Error("an endpoint whose requests are signed is not marked")
	}
}

func TestUninspected(t *testing.T) {
	for name, tc := range map[string]struct {
		endpoint string
		want     []string
	}{
		"inspected":   {"host: h, port: 443, protocol: rest, access: full", nil},
		"no protocol": {"host: h, port: 443", []string{"network_policies._provider_p.endpoints[0]: has no protocol to inspect"}},
		"no TLS":      {"host: h, port: 443, protocol: rest, access: full, tls: skip", []string{"network_policies._provider_p.endpoints[0]: skips TLS"}},
		"allowed":     {"host: h, port: 443, allow_uninspected_credentials: true", nil},
	} {
		t.Run(name, func(t *testing.T) {
			for _, credential := range []bool{true, false} {
				effective := policy.Compose(nil, []policy.Attached{attached(t, "p", "{"+tc.endpoint+"}", credential)})
				want := tc.want
				if !credential {
					want = nil
				}
				wantProblems(t, policy.Uninspected(effective), false, want)
			}
		})
	}
}

func TestBindings(t *testing.T) {
	p := rules(t, "a: {endpoints: [{host: h, port: 1}, {host: i, port: 1, credential_binding: {provider: p}}]}")
	const at = "network_policies.a.endpoints[1].credential_binding.provider: "
	wantProblems(t, policy.Bindings(p, []policy.Attached{attached(t, "p", "", true)}), false, nil)
	wantProblems(t, policy.Bindings(p, []policy.Attached{attached(t, "q", "", true)}), false, []string{at + `"p" is not attached`})
	wantProblems(t, policy.Bindings(p, []policy.Attached{attached(t, "p", full, true)}), false, []string{at + `the profile of "p" has endpoints of its own`})
}
