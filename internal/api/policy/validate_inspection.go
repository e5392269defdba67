package policy

import (
	"maps"
	"slices"
	"strings"

	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
)

// validateInspection judges what an endpoint says about the requests it lets through.
func validateInspection(e *sandboxv1.NetworkEndpoint, at *path, found *problems) {
	validateModes(e, at, found)
	checkChoice(e.GetPersistedQueries(), persistedQueries, at.key("persisted_queries"), found)
	protocol := strings.ToLower(e.GetProtocol())
	switch {
	case protocol == protocolTCP:
		validateTCP(e, at, found)
	case protocol != "" && !slices.Contains(inspected, protocol):
		found.add(at.key("protocol"), "must be %s, not %s", oneOf(append([]string{protocolTCP}, inspected...)), show(e.GetProtocol()))
	case protocol != "":
		validateAllowed(e, protocol, at, found)
	case len(e.GetDenyRules()) > 0:
		found.add(at.key("deny_rules"), "need a protocol that inspects requests")
	}
	if len(e.GetRules()) > 0 && e.GetAccess() != 0 {
		found.add(at.key("rules"), "cannot be combined with access")
	}
	if protocol == protocolSQL && e.GetEnforcement() == sandboxv1.NetworkEnforcementMode_NETWORK_ENFORCEMENT_MODE_ENFORCE {
		found.add(at.key("enforcement"), "must be audit with protocol sql")
	}
	if protocol == protocolGraphQL {
		validateOperations(e, at, found)
	}
	validateMCP(e, at.key("mcp"), found)
}

// validateModes refuses enum numbers without a written form, the two removed ones of tls among them.
func validateModes(e *sandboxv1.NetworkEndpoint, at *path, found *problems) {
	if _, ok := wordFor(tlsWords, e.GetTls()); !ok {
		found.add(at.key("tls"), "has the unknown or removed value %d; leave it out to have TLS handled automatically", e.GetTls())
	}
	if _, ok := wordFor(enforcementWords, e.GetEnforcement()); !ok {
		found.add(at.key("enforcement"), "has the unknown value %d; expected %s", e.GetEnforcement(), oneOf(texts(enforcementWords)))
	}
	if _, ok := wordFor(accessWords, e.GetAccess()); !ok {
		found.add(at.key("access"), "has the unknown value %d; expected %s", e.GetAccess(), oneOf(texts(accessWords)))
	}
}

// validateTCP: tcp is not inspected, so nothing that needs inspection may stand beside it.
func validateTCP(e *sandboxv1.NetworkEndpoint, at *path, found *problems) {
	for _, field := range []struct {
		key string
		set bool
	}{
		{"path", e.GetPath() != ""},
		{"enforcement", e.GetEnforcement() != 0},
		{"access", e.GetAccess() != 0},
		{"rules", len(e.GetRules()) > 0},
		{"deny_rules", len(e.GetDenyRules()) > 0},
		{"allow_encoded_slash", e.GetAllowEncodedSlash()},
		{"websocket_credential_rewrite", e.GetWebsocketCredentialRewrite()},
		{"request_body_credential_rewrite", e.GetRequestBodyCredentialRewrite()},
		{"persisted_queries", e.GetPersistedQueries() != ""},
		{"graphql_persisted_queries", len(e.GetGraphqlPersistedQueries()) > 0},
		{"graphql_max_body_bytes", e.GetGraphqlMaxBodyBytes() > 0},
		{"json_rpc", e.GetJsonRpcMaxBodyBytes() > 0},
	} {
		if field.set {
			found.add(at.key(field.key), "cannot be combined with protocol tcp, which is not inspected")
		}
	}
}

// validateAllowed sees that an inspected endpoint allows something, in a way its protocol knows.
func validateAllowed(e *sandboxv1.NetworkEndpoint, protocol string, at *path, found *problems) {
	isMCP := protocol == protocolMCP
	everyMethod := isMCP && e.GetMcp().GetAllowAllKnownMcpMethods()
	hasRules, hasAccess := len(e.GetRules()) > 0, e.GetAccess() != 0
	switch {
	case hasAccess && isMCP:
		found.add(at.key("access"), "is not for protocol mcp; write rules, or mcp.allow_all_known_mcp_methods: true")
	case hasAccess && protocol == protocolJSONRPC:
		found.add(at.key("access"), `is not for protocol json-rpc; write rules, such as allow: {method: "*"}`)
	case hasRules || hasAccess || everyMethod:
	case isMCP:
		found.add(at.key("rules"), "are needed with protocol mcp, or mcp.allow_all_known_mcp_methods: true")
	case protocol == protocolJSONRPC:
		found.add(at.key("rules"), "are needed with protocol json-rpc")
	default:
		found.add(at.key("protocol"), "%s needs access or rules to say what is allowed", protocol)
	}
	if hasRules && !everyMethod && !slices.ContainsFunc(e.GetRules(), allowsSomething) {
		found.add(at.key("rules"), "would deny every request, since no rule says what it allows")
	}
}

// allowsSomething follows upstream, for whom query alone says nothing.
func allowsSomething(rule *sandboxv1.L7Rule) bool {
	a := rule.GetAllow()
	return a.GetMethod() != "" || a.GetPath() != "" || a.GetCommand() != "" || a.GetOperationType() != "" ||
		a.GetOperationName() != "" || len(a.GetFields()) > 0 || len(a.GetParams()) > 0
}

func validateOperations(e *sandboxv1.NetworkEndpoint, at *path, found *problems) {
	check := func(operationType string, at *path) {
		if !slices.Contains(operationTypes, operationType) {
			found.add(at.key("operation_type"), "must be %s, not %s", oneOf(operationTypes), show(operationType))
		}
	}
	for i, rule := range e.GetRules() {
		check(rule.GetAllow().GetOperationType(), at.key("rules").item(i).key("allow"))
	}
	for i, rule := range e.GetDenyRules() {
		check(rule.GetOperationType(), at.key("deny_rules").item(i))
	}
	registry := at.key("graphql_persisted_queries")
	for _, key := range slices.Sorted(maps.Keys(e.GetGraphqlPersistedQueries())) {
		check(e.GetGraphqlPersistedQueries()[key].GetOperationType(), registry.key(key))
	}
}

func validateMCP(e *sandboxv1.NetworkEndpoint, at *path, found *problems) {
	if e.GetMcp() == nil {
		return
	}
	if !isProtocol(e, protocolMCP) {
		found.add(at, "is for protocol mcp only, not %s", show(e.GetProtocol()))
		return
	}
	seen := map[string]bool{}
	for i, version := range e.GetMcp().GetVersions() {
		at := at.key("versions").item(i)
		switch {
		case !slices.Contains(mcpVersions, version):
			found.add(at, "must be %s, not %s", oneOf(mcpVersions), show(version))
		case seen[version]:
			found.add(at, "%s is listed twice", version)
		}
		seen[version] = true
	}
}
