package policy

import (
	"maps"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v4"

	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
)

func (f *formatter) rule(key string, r *sandboxv1.NetworkPolicyRule, at *path) *yaml.Node {
	o := newObject()
	if r.GetName() != key {
		o.text("name", r.GetName())
	}
	if len(r.GetEndpoints()) > 0 {
		o.set("endpoints", listNode(r.GetEndpoints(), func(i int, e *sandboxv1.NetworkEndpoint) *yaml.Node {
			return f.endpoint(e, at.key("endpoints").item(i))
		}))
	}
	if len(r.GetBinaries()) > 0 {
		o.set("binaries", listNode(r.GetBinaries(), func(_ int, b *sandboxv1.NetworkBinary) *yaml.Node {
			binary := newObject()
			binary.set("path", textNode(b.GetPath()))
			return binary.Node
		}))
	}
	return o.Node
}

func (f *formatter) endpoint(e *sandboxv1.NetworkEndpoint, at *path) *yaml.Node {
	o := newObject()
	o.text("host", e.GetHost())
	o.text("path", e.GetPath())
	if all := ports(e); len(all) == 1 && all[0] != 0 {
		o.number("port", int64(all[0]))
	} else if len(all) > 0 {
		o.set("ports", listNode(all, func(_ int, port uint32) *yaml.Node {
			return numberNode(strconv.FormatUint(uint64(port), 10), "!!int")
		}))
	}
	o.text("protocol", e.GetProtocol())
	o.text("tls", formatWord(f, at.key("tls"), tlsWords, e.GetTls()))
	o.text("enforcement", formatWord(f, at.key("enforcement"), enforcementWords, e.GetEnforcement()))
	o.text("access", formatWord(f, at.key("access"), accessWords, e.GetAccess()))
	f.requests(o, e, at)
	o.texts("allowed_ips", e.GetAllowedIps())
	o.bool("allow_encoded_slash", e.GetAllowEncodedSlash())
	o.bool("websocket_credential_rewrite", e.GetWebsocketCredentialRewrite())
	o.bool("request_body_credential_rewrite", e.GetRequestBodyCredentialRewrite())
	o.bool("allow_uninspected_credentials", e.GetAllowUninspectedCredentials())
	o.text("persisted_queries", e.GetPersistedQueries())
	if len(e.GetGraphqlPersistedQueries()) > 0 {
		o.set("graphql_persisted_queries", namedNode(e.GetGraphqlPersistedQueries(), func(_ string, op *sandboxv1.GraphqlOperation) *yaml.Node {
			operation := newObject()
			operation.text("operation_type", op.GetOperationType())
			operation.text("operation_name", op.GetOperationName())
			operation.texts("fields", op.GetFields())
			return operation.Node
		}))
	}
	o.number("graphql_max_body_bytes", int64(e.GetGraphqlMaxBodyBytes()))
	o.text("credential_signing", e.GetCredentialSigning())
	o.text("signing_service", e.GetSigningService())
	o.text("signing_region", e.GetSigningRegion())
	if binding := e.GetCredentialBinding(); binding != nil {
		credential := newObject()
		credential.set("provider", textNode(binding.GetProvider()))
		o.set("credential_binding", credential.Node)
	}
	f.inspection(o, e, at)
	return o.Node
}

// formatWord reports enum numbers that have no written form.
func formatWord[E ~int32](f *formatter, at *path, words []word[E], value E) string {
	text, ok := wordFor(words, value)
	if !ok {
		f.add(at, "the value %d has no written form; expected %s", value, oneOf(texts(words)))
	}
	return text
}

// inspection writes the stanza of the JSON-RPC family.
func (f *formatter) inspection(o object, e *sandboxv1.NetworkEndpoint, at *path) {
	stanza := newObject()
	if !isProtocol(e, protocolMCP) {
		if e.GetMcp() != nil {
			f.add(at.key("mcp"), "is for protocol mcp only, not %s", show(e.GetProtocol()))
		}
		if e.GetJsonRpcMaxBodyBytes() > 0 {
			stanza.number("max_body_bytes", int64(e.GetJsonRpcMaxBodyBytes()))
			o.set("json_rpc", stanza.Node)
		}
		return
	}
	stanza.texts("versions", e.GetMcp().GetVersions())
	stanza.number("max_body_bytes", int64(e.GetJsonRpcMaxBodyBytes()))
	if e.GetMcp() != nil && e.GetMcp().StrictToolNames != nil {
		stanza.set("strict_tool_names", boolNode(e.GetMcp().GetStrictToolNames()))
	}
	if e.GetMcp() != nil && e.GetMcp().AllowAllKnownMcpMethods != nil {
		stanza.set("allow_all_known_mcp_methods", boolNode(e.GetMcp().GetAllowAllKnownMcpMethods()))
	}
	if len(stanza.Content) > 0 {
		o.set("mcp", stanza.Node)
	}
}

func (f *formatter) requests(o object, e *sandboxv1.NetworkEndpoint, at *path) {
	isMCP := isProtocol(e, protocolMCP)
	if len(e.GetRules()) > 0 {
		o.set("rules", listNode(e.GetRules(), func(i int, rule *sandboxv1.L7Rule) *yaml.Node {
			wrapped := newObject()
			wrapped.set("allow", f.request(rule.GetAllow(), isMCP, at.key("rules").item(i).key("allow")))
			return wrapped.Node
		}))
	}
	if len(e.GetDenyRules()) > 0 {
		o.set("deny_rules", listNode(e.GetDenyRules(), func(i int, rule *sandboxv1.L7DenyRule) *yaml.Node {
			return f.request(rule, isMCP, at.key("deny_rules").item(i))
		}))
	}
}

// request is what L7Allow and L7DenyRule have in common: everything.
type request interface {
	GetMethod() string
	GetPath() string
	GetCommand() string
	GetQuery() map[string]*sandboxv1.L7QueryMatcher
	GetOperationType() string
	GetOperationName() string
	GetFields() []string
	GetParams() map[string]*sandboxv1.L7QueryMatcher
}

func (f *formatter) request(r request, isMCP bool, at *path) *yaml.Node {
	o := newObject()
	o.text("method", r.GetMethod())
	o.text("path", r.GetPath())
	o.text("command", r.GetCommand())
	if len(r.GetQuery()) > 0 {
		o.set("query", f.matchers(r.GetQuery(), at.key("query")))
	}
	o.text("operation_type", r.GetOperationType())
	o.text("operation_name", r.GetOperationName())
	o.texts("fields", r.GetFields())
	params := maps.Clone(r.GetParams())
	if tool := params["name"]; isMCP && tool != nil {
		o.set("tool", f.matcher(tool, at.key("tool")))
		delete(params, "name")
	}
	if len(params) > 0 {
		o.set("params", f.matchers(params, at.key("params")))
	}
	return o.Node
}

// matchers keeps the dotted keys of the message, which Parse takes as well as nested ones.
func (f *formatter) matchers(entries map[string]*sandboxv1.L7QueryMatcher, at *path) *yaml.Node {
	return namedNode(entries, func(key string, m *sandboxv1.L7QueryMatcher) *yaml.Node { return f.matcher(m, at.key(key)) })
}

func (f *formatter) matcher(m *sandboxv1.L7QueryMatcher, at *path) *yaml.Node {
	if len(m.GetAny()) == 0 {
		return textNode(m.GetGlob())
	}
	if m.GetGlob() != "" {
		f.add(at, "has both a pattern and a list of patterns; the written form has one of them")
	}
	anyOf := newObject()
	anyOf.texts("any", slices.Clone(m.GetAny()))
	return anyOf.Node
}
