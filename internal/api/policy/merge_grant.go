package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
)

// undeclaredGrant refuses a merge that would grant a program an endpoint the operation did not name it with. In a rule of
// its own the same operation is harmless.
type undeclaredGrant struct{ *MergeError }

func (e *undeclaredGrant) Unwrap() error { return e.MergeError }

// checkGrants compares what existing grants with what it would grant with the merged endpoints and incoming's programs.
// It returns the first grant that incoming does not declare; empty if there is none.
func checkGrants(existing, incoming *sandboxv1.NetworkPolicyRule, merged []*sandboxv1.NetworkEndpoint) string {
	switch has, brings := len(existing.GetBinaries()) > 0, len(incoming.GetBinaries()) > 0; {
	case has && !brings:
		return fmt.Sprintf("rule %s names programs, and the operation none; name the programs that the endpoints are for", show(existing.GetName()))
	case !has && brings:
		return fmt.Sprintf("rule %s names no program, and the operation does; choose another rule_name, or replace the policy", show(existing.GetName()))
	}
	added := newProgram(existing, incoming)
	unnamed := unnamedPrograms(existing, incoming)
	for _, e := range merged {
		at := e.GetHost() + e.GetPath()
		if added != "" {
			if undeclared := portsWhere(e, func(port uint32) bool { return !declares(incoming, e, port) }); len(undeclared) > 0 {
				return fmt.Sprintf("%s would also get %s on ports %v, which the operation does not declare in full", added, at, undeclared)
			}
		}
		changed := portsWhere(e, func(port uint32) bool { return !grantsAlready(existing, e, port) })
		if undeclared := slices.DeleteFunc(slices.Clone(changed), func(port uint32) bool { return names(incoming, e, port) }); len(undeclared) > 0 {
			return fmt.Sprintf("%s would also change on ports %v; declare every port of the endpoint", at, undeclared)
		}
		if len(changed) > 0 && len(unnamed) > 0 {
			return fmt.Sprintf("%s would get %s on ports %v as well; declare every program of the rule", enumerate(unnamed, "and"), at, changed)
		}
	}
	return ""
}

// newProgram is one that incoming brings; empty if there is none.
func newProgram(existing, incoming *sandboxv1.NetworkPolicyRule) string {
	for _, b := range incoming.GetBinaries() {
		if !hasProgram(existing, b) {
			return show(b.GetPath())
		}
	}
	return ""
}

// unnamedPrograms lists the programs of existing that incoming does not name.
func unnamedPrograms(existing, incoming *sandboxv1.NetworkPolicyRule) []string {
	var unnamed []string
	for _, b := range existing.GetBinaries() {
		if !hasProgram(incoming, b) {
			unnamed = append(unnamed, show(b.GetPath()))
		}
	}
	return unnamed
}

func hasProgram(rule *sandboxv1.NetworkPolicyRule, program *sandboxv1.NetworkBinary) bool {
	return slices.ContainsFunc(rule.GetBinaries(), func(b *sandboxv1.NetworkBinary) bool { return b.GetPath() == program.GetPath() })
}

func portsWhere(e *sandboxv1.NetworkEndpoint, is func(port uint32) bool) []uint32 {
	return slices.DeleteFunc(slices.Clone(ports(e)), func(port uint32) bool { return !is(port) })
}

func names(rule *sandboxv1.NetworkPolicyRule, e *sandboxv1.NetworkEndpoint, port uint32) bool {
	return slices.ContainsFunc(rule.GetEndpoints(), func(declared *sandboxv1.NetworkEndpoint) bool {
		return strings.EqualFold(declared.GetHost(), e.GetHost()) && declared.GetPath() == e.GetPath() && slices.Contains(ports(declared), port)
	})
}

// declares reports whether the operation states all that e grants on the port. What it leaves unset and a merge keeps
// anyway counts as stated.
func declares(incoming *sandboxv1.NetworkPolicyRule, e *sandboxv1.NetworkEndpoint, port uint32) bool {
	return slices.ContainsFunc(incoming.GetEndpoints(), func(declared *sandboxv1.NetworkEndpoint) bool {
		return slices.Contains(ports(declared), port) && covers(declared, e, true)
	})
}

// grantsAlready reports whether existing grants the same on the port, no more and no less. Provenance counts: a host that
// the policy advisor proposed is not let to private addresses.
func grantsAlready(existing *sandboxv1.NetworkPolicyRule, e *sandboxv1.NetworkEndpoint, port uint32) bool {
	return slices.ContainsFunc(existing.GetEndpoints(), func(had *sandboxv1.NetworkEndpoint) bool {
		return had.GetAdvisorProposed() == e.GetAdvisorProposed() && slices.Contains(ports(had), port) && covers(had, e, false) && covers(e, had, false)
	})
}

// covers reports whether has includes what wants grants. A value that wants leaves unset asks for nothing; with lenient, one
// that has leaves unset goes along as well.
func covers(has, wants *sandboxv1.NetworkEndpoint, lenient bool) bool {
	if !strings.EqualFold(has.GetHost(), wants.GetHost()) || has.GetPath() != wants.GetPath() {
		return false
	}
	if contract(has) != contract(wants) && (isProtocol(has, protocolMCP) || isProtocol(wants, protocolMCP)) {
		return false
	}
	return fits(strings.ToLower(has.GetProtocol()), strings.ToLower(wants.GetProtocol()), lenient) &&
		fits(has.GetTls(), wants.GetTls(), lenient) &&
		(lenient && has.GetEnforcement() == 0 || fits(enforcement(has), wants.GetEnforcement(), false)) &&
		fits(has.GetAccess(), wants.GetAccess(), lenient && len(has.GetRules()) == 0) &&
		len(kept(has, wants, lenient)) == 0 &&
		containsAll(has.GetRules(), wants.GetRules()) && containsAll(has.GetDenyRules(), wants.GetDenyRules()) &&
		len(missing(wants.GetAllowedIps(), has.GetAllowedIps())) == 0 &&
		coversSwitches(has, wants)
}

func coversSwitches(has, wants *sandboxv1.NetworkEndpoint) bool {
	return (has.GetAllowEncodedSlash() || !wants.GetAllowEncodedSlash()) &&
		(has.GetWebsocketCredentialRewrite() || !wants.GetWebsocketCredentialRewrite()) &&
		(has.GetRequestBodyCredentialRewrite() || !wants.GetRequestBodyCredentialRewrite()) &&
		(has.GetAllowUninspectedCredentials() || !wants.GetAllowUninspectedCredentials())
}

// fits reports whether a value that a merge keeps serves what is wanted.
func fits[T comparable](has, wants T, lenient bool) bool {
	var unset T
	return wants == unset || has == wants || lenient && has == unset
}

// unmergeable lists the fields that incoming sets to something else and that a merge leaves as they are.
func unmergeable(existing, incoming *sandboxv1.NetworkEndpoint) []string {
	return kept(existing, incoming, false)
}

func kept(has, wants *sandboxv1.NetworkEndpoint, lenient bool) []string {
	registry := func(e *sandboxv1.NetworkEndpoint) string {
		alone := &sandboxv1.NetworkEndpoint{GraphqlPersistedQueries: e.GetGraphqlPersistedQueries()}
		return string(encode(alone.ProtoReflect(), inOrder))
	}
	var differ []string
	for _, field := range []struct {
		name string
		fits bool
	}{
		{"persisted_queries", fits(has.GetPersistedQueries(), wants.GetPersistedQueries(), lenient)},
		{"graphql_persisted_queries", fits(registry(has), registry(wants), lenient)},
		{"graphql_max_body_bytes", fits(has.GetGraphqlMaxBodyBytes(), wants.GetGraphqlMaxBodyBytes(), lenient)},
		{"json_rpc.max_body_bytes", isProtocol(wants, protocolMCP) || fits(has.GetJsonRpcMaxBodyBytes(), wants.GetJsonRpcMaxBodyBytes(), lenient)},
		{"credential_signing", fits(has.GetCredentialSigning(), wants.GetCredentialSigning(), lenient)},
		{"signing_service", fits(has.GetSigningService(), wants.GetSigningService(), lenient)},
		{"signing_region", fits(has.GetSigningRegion(), wants.GetSigningRegion(), lenient)},
		{"credential_binding", fits(has.GetCredentialBinding().GetProvider(), wants.GetCredentialBinding().GetProvider(), lenient)},
	} {
		if !field.fits {
			differ = append(differ, field.name)
		}
	}
	return differ
}

// contract describes how requests are inspected. On a host and port there can be one MCP contract and nothing beside it.
func contract(e *sandboxv1.NetworkEndpoint) string {
	if !isProtocol(e, protocolMCP) {
		return "protocol " + show(strings.ToLower(e.GetProtocol()))
	}
	return fmt.Sprintf("mcp (versions %s, strict_tool_names %t, allow_all_known_mcp_methods %t, max_body_bytes %d)",
		strings.Join(e.GetMcp().GetVersions(), " "), strictToolNames(e), e.GetMcp().GetAllowAllKnownMcpMethods(), bodyBytes(e.GetJsonRpcMaxBodyBytes()))
}

// newInspectionConflict refuses contracts on one host and port that cannot stand together, unless they did before.
func newInspectionConflict(before, after *sandboxv1.SandboxPolicy) error {
	had := inspectionConflicts(before)
	conflicts := inspectionConflicts(after)
	for _, place := range slices.Sorted(maps.Keys(conflicts)) {
		if len(missing(conflicts[place], had[place])) > 0 {
			return &MergeError{Code: MergeConflict, Message: fmt.Sprintf(
				"%s would be inspected as %s; a sandbox inspects one host and port in one way, even in different rules or under different paths",
				place, enumerate(conflicts[place], "and"))}
		}
	}
	return nil
}

func inspectionConflicts(policy *sandboxv1.SandboxPolicy) map[string][]string {
	contracts := map[string]map[string]bool{} // by host and port; true for MCP
	for _, rule := range policy.GetNetworkPolicies() {
		for _, e := range rule.GetEndpoints() {
			for _, port := range ports(e) {
				place := fmt.Sprintf("%s:%d", strings.ToLower(e.GetHost()), port)
				if contracts[place] == nil {
					contracts[place] = map[string]bool{}
				}
				if e.GetProtocol() != "" {
					contracts[place][contract(e)] = isProtocol(e, protocolMCP)
				}
			}
		}
	}
	conflicts := map[string][]string{}
	for place, found := range contracts {
		if len(found) > 1 && slices.Contains(slices.Collect(maps.Values(found)), true) {
			conflicts[place] = slices.Sorted(maps.Keys(found))
		}
	}
	return conflicts
}
