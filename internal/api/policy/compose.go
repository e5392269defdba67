package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

// Attached is a provider of a sandbox.
type Attached struct {
	// Name is the provider's, and Profile that of its type.
	Name    string
	Profile *openshellv1.ProviderProfile
}

// credentialed says that the credentials of a profile can be used at its endpoints.
func (a Attached) credentialed() bool {
	return len(a.Profile.GetCredentials()) > 0 ||
		slices.ContainsFunc(a.Profile.GetEndpoints(), func(e *sandboxv1.NetworkEndpoint) bool { return e.GetCredentialSigning() != "" })
}

// Compose returns the policy that counts in a sandbox: a canonical one, with a rule for each attached provider whose
// profile has endpoints, and marks on the endpoints that can get a credential. The arguments are left as they are.
//
// Keys and marks are upstream's (NVIDIA/OpenShell 0.1, crates/*-policy/src/compose.rs and grpc/policy.rs at 0b37da61).
func Compose(policy *sandboxv1.SandboxPolicy, attached []Attached) *sandboxv1.SandboxPolicy {
	composed := proto.CloneOf(policy)
	if composed == nil {
		composed = &sandboxv1.SandboxPolicy{}
	}
	if composed.GetNetworkPolicies() == nil {
		composed.NetworkPolicies = map[string]*sandboxv1.NetworkPolicyRule{}
	}
	for _, a := range attached {
		if len(a.Profile.GetEndpoints()) == 0 {
			continue
		}
		key := freeKey(composed.GetNetworkPolicies(), providerRuleKey(a.Name))
		composed.NetworkPolicies[key] = proto.CloneOf(&sandboxv1.NetworkPolicyRule{
			Name: key, Endpoints: a.Profile.GetEndpoints(), Binaries: a.Profile.GetBinaries(),
		})
	}
	return Mark(composed, attached)
}

// Mark returns the canonical policy with marks on the endpoints that can get a credential of an attached provider, as
// [Compose] does, without rules for the providers: so it is for the policy of a whole gateway.
func Mark(policy *sandboxv1.SandboxPolicy, attached []Attached) *sandboxv1.SandboxPolicy {
	marked := Canonical(policy)
	mark(marked, credentialScopes(marked, attached))
	return marked
}

// providerRuleKey is the key of a provider's rule.
func providerRuleKey(provider string) string {
	name := strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9', r == '_':
			return r
		case 'A' <= r && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '_'
	}, provider), "_")
	if name == "" {
		name = "unnamed"
	}
	return providerRulePrefix + name
}

// freeKey appends a number to a key that is taken.
func freeKey(taken map[string]*sandboxv1.NetworkPolicyRule, key string) string {
	for free, n := key, 2; ; free, n = fmt.Sprintf("%s_%d", key, n), n+1 {
		if _, is := taken[free]; !is {
			return free
		}
	}
}

// credentialScopes are the endpoints where credentials are used: those of profiles that have any and, for profiles without
// endpoints, those that the policy binds to their providers.
func credentialScopes(policy *sandboxv1.SandboxPolicy, attached []Attached) []*sandboxv1.NetworkEndpoint {
	var scopes []*sandboxv1.NetworkEndpoint
	bindable := map[string]bool{}
	for _, a := range attached {
		if a.credentialed() {
			scopes = append(scopes, a.Profile.GetEndpoints()...)
		}
		bindable[a.Name] = len(a.Profile.GetEndpoints()) == 0
	}
	for _, rule := range policy.GetNetworkPolicies() {
		for _, endpoint := range rule.GetEndpoints() {
			if binding := endpoint.GetCredentialBinding(); binding != nil && bindable[binding.GetProvider()] {
				scopes = append(scopes, endpoint)
			}
		}
	}
	return scopes
}

// mark marks the endpoints that traffic of a scope can come to.
func mark(policy *sandboxv1.SandboxPolicy, scopes []*sandboxv1.NetworkEndpoint) {
	for _, rule := range policy.GetNetworkPolicies() {
		for _, endpoint := range rule.GetEndpoints() {
			endpoint.ProviderCredentialed = slices.ContainsFunc(scopes, func(scope *sandboxv1.NetworkEndpoint) bool { return inScope(endpoint, scope) })
		}
	}
}

func inScope(endpoint, scope *sandboxv1.NetworkEndpoint) bool {
	here, there := ports(endpoint), ports(scope)
	samePort := len(here) == 0 || len(there) == 0 || slices.ContainsFunc(here, func(p uint32) bool { return slices.Contains(there, p) })
	a, b := starGlob(strings.ToLower(endpoint.GetHost()), '.'), starGlob(strings.ToLower(scope.GetHost()), '.')
	return samePort && a.overlaps(b) && pathCovers(scope.GetPath(), endpoint.GetPath())
}

// pathCovers says that a path of one endpoint takes in that of another.
func pathCovers(wide, narrow string) bool {
	switch {
	case slices.Contains(anyPath, wide), wide == narrow:
		return true
	case slices.Contains(anyPath, narrow), strings.ContainsAny(narrow, "*?["):
		return false
	}
	return pathsOverlap(wide, narrow)
}

// Uninspected reports endpoints that can get a credential and whose traffic nobody looks into, unless they allow that
// themselves. The policy must come from [Compose]. Upstream answers FAILED_PRECONDITION.
func Uninspected(effective *sandboxv1.SandboxPolicy) error {
	var found problems
	at := (*path)(nil).key("network_policies")
	for _, key := range slices.Sorted(maps.Keys(effective.GetNetworkPolicies())) {
		for i, endpoint := range effective.GetNetworkPolicies()[key].GetEndpoints() {
			why := ""
			switch {
			case !endpoint.GetProviderCredentialed() || endpoint.GetAllowUninspectedCredentials():
				continue
			case strings.TrimSpace(endpoint.GetProtocol()) == "":
				why = "has no protocol to inspect"
			case endpoint.GetTls() == sandboxv1.NetworkTlsMode_NETWORK_TLS_MODE_SKIP:
				why = "skips TLS"
			default:
				continue
			}
			found.add(at.key(key).key("endpoints").item(i), "can get a credential of a provider and %s; have it inspected, or set allow_uninspected_credentials", why)
		}
	}
	return found.err()
}

// Bindings reports endpoints that are bound to a provider that is not attached, or whose profile has endpoints of its own.
// Upstream answers FAILED_PRECONDITION.
func Bindings(policy *sandboxv1.SandboxPolicy, attached []Attached) error {
	var found problems
	at := (*path)(nil).key("network_policies")
	for _, key := range slices.Sorted(maps.Keys(policy.GetNetworkPolicies())) {
		for i, endpoint := range policy.GetNetworkPolicies()[key].GetEndpoints() {
			if endpoint.GetCredentialBinding() == nil {
				continue
			}
			at, provider := at.key(key).key("endpoints").item(i).key("credential_binding").key("provider"), endpoint.GetCredentialBinding().GetProvider()
			switch n := slices.IndexFunc(attached, func(a Attached) bool { return a.Name == provider }); {
			case n < 0:
				found.add(at, "%s is not attached to the sandbox", show(provider))
			case len(attached[n].Profile.GetEndpoints()) > 0:
				found.add(at, "the profile of %s has endpoints of its own, which its credentials are for", show(provider))
			}
		}
	}
	return found.err()
}
