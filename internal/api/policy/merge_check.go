package policy

import (
	"net/netip"
	"slices"
	"strings"
	"unicode"

	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

// checkOperation judges an operation by itself.
func checkOperation(operation *openshellv1.PolicyMergeOperation, index int) error {
	invalid := func(field, format string, args ...any) error {
		return refuse(MergeInvalid, index, field, format, args...)
	}
	blank := func(text string) bool { return strings.TrimSpace(text) == "" }
	switch op := operation.GetOperation().(type) {
	case *openshellv1.PolicyMergeOperation_AddRule:
		return checkAddRule(op.AddRule, index)
	case *openshellv1.PolicyMergeOperation_RemoveEndpoint:
		if blank(op.RemoveEndpoint.GetHost()) || op.RemoveEndpoint.GetPort() == 0 {
			return invalid("remove_endpoint", "needs a host and a port")
		}
	case *openshellv1.PolicyMergeOperation_RemoveRule:
		if blank(op.RemoveRule.GetRuleName()) {
			return invalid("remove_rule.rule_name", "is missing")
		}
	case *openshellv1.PolicyMergeOperation_RemoveBinary:
		if blank(op.RemoveBinary.GetRuleName()) || blank(op.RemoveBinary.GetBinaryPath()) {
			return invalid("remove_binary", "needs a rule_name and a binary_path")
		}
	case *openshellv1.PolicyMergeOperation_AddDenyRules:
		if len(op.AddDenyRules.GetDenyRules()) == 0 {
			return invalid("add_deny_rules.deny_rules", "must not be empty")
		}
		if problem := targetProblem(op.AddDenyRules.GetTarget()); problem != "" {
			return invalid("add_deny_rules.target", "%s", problem)
		}
	case *openshellv1.PolicyMergeOperation_AddAllowRules:
		rules, target := op.AddAllowRules.GetRules(), op.AddAllowRules.GetTarget()
		if len(rules) == 0 || slices.ContainsFunc(rules, func(r *sandboxv1.L7Rule) bool { return r.GetAllow() == nil }) {
			return invalid("add_allow_rules.rules", "must not be empty, and each needs an allow")
		}
		if problem := targetProblem(target); problem != "" {
			return invalid("add_allow_rules.target", "%s", problem)
		}
		if problem := blockedHost(target.GetHost()); problem != "" {
			return invalid("add_allow_rules.target.host", "%s", problem)
		}
	default:
		return invalid("", "has no operation that this gateway knows")
	}
	return nil
}

func checkAddRule(op *openshellv1.AddNetworkRule, index int) error {
	name := strings.TrimSpace(op.GetRuleName())
	switch {
	case name == "":
		return refuse(MergeInvalid, index, "add_rule.rule_name", "is missing")
	case isProviderRule(name):
		return refuse(MergeInvalid, index, "add_rule.rule_name", "names that start with %s belong to the rules of attached providers; choose another", providerRulePrefix)
	case len(op.GetRule().GetEndpoints()) == 0:
		return refuse(MergeInvalid, index, "add_rule.rule", "needs at least one endpoint")
	}
	for _, endpoint := range op.GetRule().GetEndpoints() {
		if problem := blockedHost(endpoint.GetHost()); problem != "" {
			return refuse(MergeInvalid, index, "add_rule.rule", "%s", problem)
		}
		for _, entry := range endpoint.GetAllowedIps() {
			if prefix, ok := parseIPs(entry); ok && blocked(prefix) {
				return refuse(MergeInvalid, index, "add_rule.rule", "allowed_ips %s reaches addresses that sandboxes are never let to (loopback, link-local, unspecified)", show(entry))
			}
		}
	}
	alone := &sandboxv1.SandboxPolicy{Version: 1, NetworkPolicies: map[string]*sandboxv1.NetworkPolicyRule{name: op.GetRule()}}
	if err := Validate(alone); err != nil {
		return refuse(MergeInvalid, index, "add_rule.rule", "%v", err)
	}
	return nil
}

// targetProblem says what is wrong with the declaration of an L7 target; empty if nothing is. An omitted list of programs
// must never come to mean any program, hence the exclusive choice.
func targetProblem(target *openshellv1.L7RuleTarget) string {
	name, host := target.GetRuleName(), target.GetHost()
	switch {
	case target == nil:
		return "is missing"
	case name == "" || strings.TrimSpace(name) != name || strings.ContainsFunc(name, unicode.IsControl):
		return "rule_name must be the key of a rule"
	case isProviderRule(name):
		return "the rules of attached providers cannot be changed"
	case host == "" || strings.ContainsAny(host, "/?#@") || hostProblem(host) != "" ||
		strings.ContainsFunc(host, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }):
		return "host must be the host of an endpoint, as it is written there"
	case len(target.GetPorts()) == 0 || slices.ContainsFunc(target.GetPorts(), func(p uint32) bool { return p < 1 || p > 65535 }):
		return "ports must list all ports of the endpoint, each from 1 to 65535"
	case target.GetAnyBinary() == (len(target.GetBinaries()) > 0):
		return "must have exactly one of any_binary and binaries"
	case slices.ContainsFunc(target.GetBinaries(), func(b *sandboxv1.NetworkBinary) bool { return strings.TrimSpace(b.GetPath()) == "" }):
		return "binaries must have paths"
	}
	return ""
}

// Destinations that a sandbox is never let to, whatever its policy says.
var blockedPrefixes = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/32"),
	netip.MustParsePrefix("127.0.0.0/8"),
	netip.MustParsePrefix("169.254.0.0/16"),
	netip.MustParsePrefix("::/128"),
	netip.MustParsePrefix("::1/128"),
	netip.MustParsePrefix("fe80::/10"),
	netip.MustParsePrefix("::ffff:0.0.0.0/128"),
	netip.MustParsePrefix("::ffff:127.0.0.0/104"),
	netip.MustParsePrefix("::ffff:169.254.0.0/112"),
}

func blocked(prefix netip.Prefix) bool { return slices.ContainsFunc(blockedPrefixes, prefix.Overlaps) }

func blockedHost(host string) string {
	name := strings.ToLower(strings.TrimSuffix(strings.TrimSpace(host), "."))
	prefix, isAddress := parseIPs(name)
	if isAddress && blocked(prefix) || name == "localhost" || name == "metadata.google.internal" {
		return "sandboxes are never let to " + show(host) + " (loopback, link-local, unspecified or cloud metadata)"
	}
	return ""
}
