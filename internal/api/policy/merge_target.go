package policy

import (
	"fmt"
	"slices"
	"strings"

	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

func (m *merger) addAllowRules(op *openshellv1.AddAllowRules) error {
	e, err := m.target(op.GetTarget(), "add_allow_rules")
	if err != nil {
		return err
	}
	expandAccess(e)
	e.Rules = appendNew(e.GetRules(), op.GetRules()...)
	return nil
}

func (m *merger) addDenyRules(op *openshellv1.AddDenyRules) error {
	e, err := m.target(op.GetTarget(), "add_deny_rules")
	if err != nil {
		return err
	}
	e.DenyRules = appendNew(e.GetDenyRules(), op.GetDenyRules()...)
	return nil
}

// target finds the one endpoint that the target names. The target must declare all its ports and all programs of its
// rule, for all of them get what is added. A wildcard host is a name here, it matches itself only.
func (m *merger) target(t *openshellv1.L7RuleTarget, field string) (*sandboxv1.NetworkEndpoint, error) {
	rule := m.policy.GetNetworkPolicies()[t.GetRuleName()]
	var candidates []*sandboxv1.NetworkEndpoint
	for _, e := range rule.GetEndpoints() {
		if strings.EqualFold(e.GetHost(), t.GetHost()) && (t.Path == nil || e.GetPath() == t.GetPath()) &&
			slices.ContainsFunc(ports(e), func(p uint32) bool { return slices.Contains(t.GetPorts(), p) }) {
			candidates = append(candidates, e)
		}
	}
	conflict := func(format string, args ...any) (*sandboxv1.NetworkEndpoint, error) {
		return nil, refuse(MergeConflict, m.index, field, format, args...)
	}
	switch len(candidates) {
	case 0:
		return nil, refuse(MergeNotFound, m.index, field, "rule %s has no endpoint with host %s, ports %v%s", show(t.GetRuleName()), show(t.GetHost()), t.GetPorts(), withPath(t))
	case 1:
	default:
		var paths []string
		for _, e := range candidates {
			paths = append(paths, show(e.GetPath()))
		}
		slices.Sort(paths)
		return conflict("rule %s has several endpoints with host %s and these ports; name one of their paths: %s", show(t.GetRuleName()), show(t.GetHost()), strings.Join(paths, ", "))
	}
	e := candidates[0]
	if has, declared := programs(rule.GetBinaries()), programs(t.GetBinaries()); !slices.Equal(has, declared) {
		return conflict("rule %s is for %s, and the target declares %s; declare all programs of the rule", show(t.GetRuleName()), inWords(has), inWords(declared))
	}
	if has, declared := sortedPorts(ports(e)), sortedPorts(t.GetPorts()); !slices.Equal(has, declared) {
		return conflict("the endpoint has ports %v, and the target declares %v; declare all ports of the endpoint", has, declared)
	}
	if !isProtocol(e, protocolREST) && !isProtocol(e, protocolWebSocket) {
		return conflict("%s has protocol %s; rules can be added for rest and websocket only, replace the policy", place(e), show(e.GetProtocol()))
	}
	return e, nil
}

func place(e *sandboxv1.NetworkEndpoint) string { return fmt.Sprintf("%s:%v", e.GetHost(), ports(e)) }

func withPath(t *openshellv1.L7RuleTarget) string {
	if t.Path == nil {
		return ""
	}
	return ", path " + show(t.GetPath())
}

func programs(binaries []*sandboxv1.NetworkBinary) []string {
	paths := make([]string, len(binaries))
	for i, b := range binaries {
		paths[i] = b.GetPath()
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

func inWords(programs []string) string {
	if len(programs) == 0 {
		return "no program"
	}
	return strings.Join(programs, ", ")
}

func sortedPorts(all []uint32) []uint32 { return slices.Compact(slices.Sorted(slices.Values(all))) }

// expandAccess writes a preset out as rules, so that others can stand beside them.
func expandAccess(e *sandboxv1.NetworkEndpoint) {
	if e.GetAccess() == 0 {
		return
	}
	var rules []*sandboxv1.L7Rule
	for _, method := range presetMethods(e) {
		rules = append(rules, &sandboxv1.L7Rule{Allow: &sandboxv1.L7Allow{Method: method, Path: "**"}})
	}
	e.Access = 0
	e.Rules = appendNew(e.GetRules(), rules...)
}

// presetMethods are the methods a preset stands for (upstream's policy schema, "Access Presets").
func presetMethods(e *sandboxv1.NetworkEndpoint) []string {
	writes := e.GetAccess() == sandboxv1.NetworkAccessPreset_NETWORK_ACCESS_PRESET_READ_WRITE
	switch {
	case e.GetAccess() == sandboxv1.NetworkAccessPreset_NETWORK_ACCESS_PRESET_FULL:
		return []string{"*"}
	case isProtocol(e, protocolWebSocket) && writes:
		return []string{"GET", "WEBSOCKET_TEXT"}
	case isProtocol(e, protocolWebSocket):
		return []string{"GET"}
	case writes:
		return []string{"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH"}
	default:
		return []string{"GET", "HEAD", "OPTIONS"}
	}
}
