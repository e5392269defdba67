package policy

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
)

// addRule merges into the rule of that name. Without one it refines another rule that has the endpoint, unless that
// would grant more than was declared or the endpoint comes from the policy advisor; else it adds the rule.
func (m *merger) addRule(name string, rule *sandboxv1.NetworkPolicyRule) error {
	incoming := normalRule(name, rule)
	if m.policy.NetworkPolicies == nil {
		m.policy.NetworkPolicies = map[string]*sandboxv1.NetworkPolicyRule{}
	}
	if existing, ok := m.policy.GetNetworkPolicies()[name]; ok {
		merged, err := m.mergeRules(existing, incoming)
		if err != nil {
			return err
		}
		m.policy.NetworkPolicies[name] = merged
		return nil
	}
	if other := m.sharing(incoming); other != "" {
		merged, err := m.mergeRules(m.policy.GetNetworkPolicies()[other], incoming)
		var undeclared *undeclaredGrant
		switch {
		case err == nil:
			m.policy.NetworkPolicies[other] = merged
			return nil
		case !errors.As(err, &undeclared):
			return err
		}
	}
	m.policy.NetworkPolicies[name] = incoming
	return nil
}

// sharing returns the first rule that has one of the endpoints.
func (m *merger) sharing(incoming *sandboxv1.NetworkPolicyRule) string {
	if slices.ContainsFunc(incoming.GetEndpoints(), (*sandboxv1.NetworkEndpoint).GetAdvisorProposed) {
		return ""
	}
	for _, key := range slices.Sorted(maps.Keys(m.policy.GetNetworkPolicies())) {
		for _, e := range m.policy.GetNetworkPolicies()[key].GetEndpoints() {
			if slices.ContainsFunc(incoming.GetEndpoints(), func(i *sandboxv1.NetworkEndpoint) bool { return sameEndpoint(e, i) }) {
				return key
			}
		}
	}
	return ""
}

// normalRule returns a canonical copy with sorted ports and without repetitions.
func normalRule(name string, rule *sandboxv1.NetworkPolicyRule) *sandboxv1.NetworkPolicyRule {
	alone := Canonical(&sandboxv1.SandboxPolicy{NetworkPolicies: map[string]*sandboxv1.NetworkPolicyRule{name: rule}})
	normal := alone.GetNetworkPolicies()[name]
	if normal.GetName() == "" {
		normal.Name = name
	}
	normal.Binaries = appendNew(nil, normal.GetBinaries()...)
	for _, e := range normal.GetEndpoints() {
		normalEndpoint(e)
	}
	return normal
}

func normalEndpoint(e *sandboxv1.NetworkEndpoint) {
	setPorts(e, ports(e))
	e.Rules = appendNew(nil, e.GetRules()...)
	e.DenyRules = appendNew(nil, e.GetDenyRules()...)
	e.AllowedIps = extend(nil, e.GetAllowedIps(), strings.Clone)
}

// sameEndpoint reports whether a merge takes two endpoints for one: host, path and a port.
func sameEndpoint(a, b *sandboxv1.NetworkEndpoint) bool {
	return strings.EqualFold(a.GetHost(), b.GetHost()) && a.GetPath() == b.GetPath() &&
		slices.ContainsFunc(ports(a), func(p uint32) bool { return slices.Contains(ports(b), p) })
}

// mergeRules returns what existing becomes with incoming added to it.
func (m *merger) mergeRules(existing, incoming *sandboxv1.NetworkPolicyRule) (*sandboxv1.NetworkPolicyRule, error) {
	merged := proto.CloneOf(existing)
	for _, e := range incoming.GetEndpoints() {
		i := slices.IndexFunc(merged.GetEndpoints(), func(own *sandboxv1.NetworkEndpoint) bool { return sameEndpoint(own, e) })
		if i < 0 {
			merged.Endpoints = append(merged.Endpoints, proto.CloneOf(e))
			continue
		}
		if err := m.mergeEndpoint(merged.GetEndpoints()[i], e); err != nil {
			return nil, err
		}
	}
	if undeclared := checkGrants(existing, incoming, merged.GetEndpoints()); undeclared != "" {
		return nil, &undeclaredGrant{refuse(MergeConflict, m.index, "add_rule", "%s", undeclared)}
	}
	merged.Binaries = appendNew(merged.GetBinaries(), incoming.GetBinaries()...)
	return merged, nil
}

// mergeEndpoint adds to an endpoint in place. What describes the traffic keeps the existing value; what grants adds up.
func (m *merger) mergeEndpoint(existing, incoming *sandboxv1.NetworkEndpoint) error {
	at := fmt.Sprintf("%s:%d", existing.GetHost(), incoming.GetPort())
	adopts := existing.GetProtocol() == "" && existing.GetJsonRpcMaxBodyBytes() == 0 && isProtocol(incoming, protocolMCP)
	if has, wants := contract(existing), contract(incoming); !adopts && has != wants && (isProtocol(existing, protocolMCP) || isProtocol(incoming, protocolMCP)) {
		return refuse(MergeConflict, m.index, "add_rule", "%s is inspected as %s, not as %s; make them agree, or replace the policy", at, has, wants)
	}
	if dropped := unmergeable(existing, incoming); len(dropped) > 0 {
		return refuse(MergeConflict, m.index, "add_rule", "%s exists, and a merge cannot change its %s; replace the policy", at, enumerate(dropped, "and"))
	}
	setPorts(existing, append(slices.Clone(ports(existing)), ports(incoming)...))
	fill(&existing.Protocol, incoming.GetProtocol())
	if adopts {
		existing.Mcp, existing.JsonRpcMaxBodyBytes = proto.CloneOf(incoming.GetMcp()), incoming.GetJsonRpcMaxBodyBytes()
	}
	fill(&existing.Enforcement, incoming.GetEnforcement())
	fill(&existing.Tls, incoming.GetTls())
	switch {
	case len(incoming.GetRules()) > 0:
		expandAccess(existing)
		existing.Rules = appendNew(existing.GetRules(), incoming.GetRules()...)
	case len(existing.GetRules()) == 0:
		fill(&existing.Access, incoming.GetAccess())
	}
	existing.DenyRules = appendNew(existing.GetDenyRules(), incoming.GetDenyRules()...)
	existing.AllowedIps = extend(existing.GetAllowedIps(), incoming.GetAllowedIps(), strings.Clone)
	existing.AllowEncodedSlash = existing.GetAllowEncodedSlash() || incoming.GetAllowEncodedSlash()
	existing.WebsocketCredentialRewrite = existing.GetWebsocketCredentialRewrite() || incoming.GetWebsocketCredentialRewrite()
	existing.RequestBodyCredentialRewrite = existing.GetRequestBodyCredentialRewrite() || incoming.GetRequestBodyCredentialRewrite()
	existing.AllowUninspectedCredentials = existing.GetAllowUninspectedCredentials() || incoming.GetAllowUninspectedCredentials()
	existing.AdvisorProposed = existing.GetAdvisorProposed() && incoming.GetAdvisorProposed()
	return nil
}

// fill sets a field that is unset.
func fill[T comparable](existing *T, incoming T) {
	var unset T
	if *existing == unset {
		*existing = incoming
	}
}
