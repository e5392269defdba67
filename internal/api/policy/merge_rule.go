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
		merged, warnings, err := m.mergeRules(existing, incoming)
		if err != nil {
			return err
		}
		return m.put(name, merged, warnings)
	}
	if other := m.sharing(incoming); other != "" {
		merged, warnings, err := m.mergeRules(m.policy.GetNetworkPolicies()[other], incoming)
		var undeclared *undeclaredGrant
		switch {
		case err == nil:
			return m.put(other, merged, warnings)
		case !errors.As(err, &undeclared):
			return err
		}
		m.warn("rule %s is added beside %s, which has the same endpoint: %s", show(name), show(other), undeclared.why)
	}
	return m.put(name, incoming, nil)
}

func (m *merger) put(name string, rule *sandboxv1.NetworkPolicyRule, warnings []string) error {
	m.policy.NetworkPolicies[name] = rule
	for _, warning := range warnings {
		m.warn("%s", warning)
	}
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
func (m *merger) mergeRules(existing, incoming *sandboxv1.NetworkPolicyRule) (*sandboxv1.NetworkPolicyRule, []string, error) {
	merged := proto.CloneOf(existing)
	var warnings []string
	for _, e := range incoming.GetEndpoints() {
		i := slices.IndexFunc(merged.GetEndpoints(), func(own *sandboxv1.NetworkEndpoint) bool { return sameEndpoint(own, e) })
		if i < 0 {
			merged.Endpoints = append(merged.Endpoints, proto.CloneOf(e))
			continue
		}
		more, err := m.mergeEndpoint(merged.GetEndpoints()[i], e)
		if err != nil {
			return nil, nil, err
		}
		warnings = append(warnings, more...)
	}
	if undeclared := checkGrants(existing, incoming, merged.GetEndpoints()); undeclared != "" {
		return nil, nil, &undeclaredGrant{MergeError: refuse(MergeConflict, m.index, "add_rule", "%s", undeclared), why: undeclared}
	}
	switch {
	case len(existing.GetBinaries()) == 0 && len(incoming.GetBinaries()) > 0:
		warnings = append(warnings, fmt.Sprintf("rule %s already grants its endpoints to any program and goes on doing so", show(existing.GetName())))
	case len(incoming.GetBinaries()) == 0:
		merged.Binaries = nil
	default:
		merged.Binaries = appendNew(merged.GetBinaries(), incoming.GetBinaries()...)
	}
	return merged, warnings, nil
}

// mergeEndpoint adds to an endpoint in place. What describes the traffic keeps the existing value; what grants adds up.
func (m *merger) mergeEndpoint(existing, incoming *sandboxv1.NetworkEndpoint) (warnings []string, err error) {
	at := fmt.Sprintf("%s:%d", existing.GetHost(), incoming.GetPort())
	adopts := existing.GetProtocol() == "" && existing.GetJsonRpcMaxBodyBytes() == 0 && isProtocol(incoming, protocolMCP)
	if has, wants := contract(existing), contract(incoming); !adopts && has != wants && (isProtocol(existing, protocolMCP) || isProtocol(incoming, protocolMCP)) {
		return nil, refuse(MergeConflict, m.index, "add_rule", "%s is inspected as %s, not as %s; make them agree, or replace the policy", at, has, wants)
	}
	if dropped := unmergeable(existing, incoming); len(dropped) > 0 {
		return nil, refuse(MergeConflict, m.index, "add_rule", "%s exists, and a merge cannot change its %s; replace the policy", at, enumerate(dropped, "and"))
	}
	setPorts(existing, append(slices.Clone(ports(existing)), ports(incoming)...))
	warnings = append(warnings, keep(at, "protocol", &existing.Protocol, incoming.GetProtocol(), show)...)
	if adopts {
		existing.Mcp, existing.JsonRpcMaxBodyBytes = proto.CloneOf(incoming.GetMcp()), incoming.GetJsonRpcMaxBodyBytes()
	}
	warnings = append(warnings, keep(at, "enforcement", &existing.Enforcement, incoming.GetEnforcement(), wording(enforcementWords))...)
	warnings = append(warnings, keep(at, "tls", &existing.Tls, incoming.GetTls(), wording(tlsWords))...)
	switch {
	case len(incoming.GetRules()) > 0:
		warnings = append(warnings, expandAccess(existing, at)...)
		existing.Rules = appendNew(existing.GetRules(), incoming.GetRules()...)
	case incoming.GetAccess() != 0 && len(existing.GetRules()) > 0:
		warnings = append(warnings, at+" has rules, so access is ignored")
	default:
		warnings = append(warnings, keep(at, "access", &existing.Access, incoming.GetAccess(), wording(accessWords))...)
	}
	existing.DenyRules = appendNew(existing.GetDenyRules(), incoming.GetDenyRules()...)
	existing.AllowedIps = extend(existing.GetAllowedIps(), incoming.GetAllowedIps(), strings.Clone)
	existing.AllowEncodedSlash = existing.GetAllowEncodedSlash() || incoming.GetAllowEncodedSlash()
	existing.WebsocketCredentialRewrite = existing.GetWebsocketCredentialRewrite() || incoming.GetWebsocketCredentialRewrite()
	existing.RequestBodyCredentialRewrite = existing.GetRequestBodyCredentialRewrite() || incoming.GetRequestBodyCredentialRewrite()
	existing.AllowUninspectedCredentials = existing.GetAllowUninspectedCredentials() || incoming.GetAllowUninspectedCredentials()
	existing.AdvisorProposed = existing.GetAdvisorProposed() && incoming.GetAdvisorProposed()
	return warnings, nil
}

// keep fills an unset field, and says so when a set one stays.
func keep[T comparable](at, name string, existing *T, incoming T, text func(T) string) []string {
	var unset T
	switch {
	case incoming == unset || *existing == incoming:
	case *existing == unset:
		*existing = incoming
	default:
		return []string{fmt.Sprintf("%s keeps %s %s; %s is ignored", at, name, text(*existing), text(incoming))}
	}
	return nil
}
