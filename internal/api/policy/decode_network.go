package policy

import (
	"math"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
)

func (d *decoder) rule(name string, node *yaml.Node, at *path) *sandboxv1.NetworkPolicyRule {
	r := &sandboxv1.NetworkPolicyRule{}
	d.object(node, at, fields{
		"name":      d.string(&r.Name),
		"endpoints": list(d, &r.Endpoints, d.endpoint),
		"binaries": list(d, &r.Binaries, func(node *yaml.Node, at *path) *sandboxv1.NetworkBinary {
			b := &sandboxv1.NetworkBinary{}
			d.object(node, at, fields{"path": d.string(&b.Path)}, "path")
			return b
		}),
	})
	if r.GetName() == "" {
		r.Name = name
	}
	return r
}

// written holds what an endpoint's text says in other fields than the message.
type written struct {
	mcp          *sandboxv1.McpOptions
	mcpNode      *yaml.Node
	mcpBytes     uint32
	jsonRPCNode  *yaml.Node
	jsonRPCBytes uint32
}

func (d *decoder) endpoint(node *yaml.Node, at *path) *sandboxv1.NetworkEndpoint {
	e := &sandboxv1.NetworkEndpoint{}
	var w written
	ok := d.object(node, at, fields{
		"host":     d.string(&e.Host),
		"path":     d.string(&e.Path),
		"port":     number(d, &e.Port, 0, math.MaxUint16),
		"ports":    list(d, &e.Ports, d.port),
		"protocol": d.string(&e.Protocol),
		"tls":      enum(d, &e.Tls, tlsWords, "; leave it out to have TLS handled automatically"),

		"enforcement": enum(d, &e.Enforcement, enforcementWords, ""),
		"access":      enum(d, &e.Access, accessWords, ""),
		"rules":       list(d, &e.Rules, d.allowRule),
		"deny_rules":  list(d, &e.DenyRules, d.denyRule),
		"allowed_ips": d.strings(&e.AllowedIps),

		"allow_encoded_slash":             d.bool(&e.AllowEncodedSlash),
		"websocket_credential_rewrite":    d.bool(&e.WebsocketCredentialRewrite),
		"request_body_credential_rewrite": d.bool(&e.RequestBodyCredentialRewrite),
		"allow_uninspected_credentials":   d.bool(&e.AllowUninspectedCredentials),

		"persisted_queries":         d.choice(&e.PersistedQueries, persistedQueries),
		"graphql_persisted_queries": named(d, &e.GraphqlPersistedQueries, d.operation),
		"graphql_max_body_bytes":    number(d, &e.GraphqlMaxBodyBytes, 0, math.MaxUint32),

		"credential_signing": d.choice(&e.CredentialSigning, signings),
		"signing_service":    d.string(&e.SigningService),
		"signing_region":     d.string(&e.SigningRegion),
		"credential_binding": func(node *yaml.Node, at *path) {
			e.CredentialBinding = &sandboxv1.NetworkCredentialBinding{}
			d.object(node, at, fields{"provider": d.string(&e.CredentialBinding.Provider)}, "provider")
		},

		"json_rpc": func(node *yaml.Node, at *path) {
			w.jsonRPCNode = node
			d.object(node, at, fields{"max_body_bytes": number(d, &w.jsonRPCBytes, 0, math.MaxUint32)})
		},
		"mcp": func(node *yaml.Node, at *path) {
			w.mcp, w.mcpNode = &sandboxv1.McpOptions{}, node
			d.mcp(node, at, w.mcp, &w.mcpBytes)
		},
	})
	if ok {
		d.joinPorts(node, at, e)
		d.joinInspection(at, e, w)
	}
	return e
}

func (d *decoder) port(node *yaml.Node, at *path) uint32 {
	return uint32(d.integer(node, at, 0, math.MaxUint16))
}

// joinPorts fills port and ports from each other, as upstream's reader does.
func (d *decoder) joinPorts(node *yaml.Node, at *path, e *sandboxv1.NetworkEndpoint) {
	switch {
	case len(e.GetPorts()) == 0 && e.GetPort() != 0:
		e.Ports = []uint32{e.GetPort()}
	case len(e.GetPorts()) > 0:
		if e.GetPort() != 0 && !slices.Contains(e.GetPorts(), e.GetPort()) {
			d.fail(node, at.key("port"), "%d is not among ports, which count alone when both are given; write ports only", e.GetPort())
		}
		e.Port = e.GetPorts()[0]
	}
}

// joinInspection puts the two stanzas of the JSON-RPC family into the message.
func (d *decoder) joinInspection(at *path, e *sandboxv1.NetworkEndpoint, w written) {
	if !isProtocol(e, protocolMCP) {
		if w.mcp != nil {
			d.fail(w.mcpNode, at.key(protocolMCP), "is for protocol mcp only, not %s", show(e.GetProtocol()))
		}
		e.JsonRpcMaxBodyBytes = w.jsonRPCBytes
		return
	}
	if w.jsonRPCNode != nil && w.jsonRPCBytes != w.mcpBytes {
		d.fail(w.jsonRPCNode, at.key("json_rpc"), "does not count with protocol mcp; write mcp.max_body_bytes")
	}
	e.Mcp = w.mcp
	if e.GetMcp() == nil {
		e.Mcp = &sandboxv1.McpOptions{}
	}
	defaultMCP(e.GetMcp())
	e.JsonRpcMaxBodyBytes = w.mcpBytes
}

func (d *decoder) mcp(node *yaml.Node, at *path, m *sandboxv1.McpOptions, bytes *uint32) {
	d.object(node, at, fields{
		"versions": func(node *yaml.Node, at *path) {
			before := len(d.kept)
			d.strings(&m.Versions)(node, at)
			if len(m.GetVersions()) == 0 && len(d.kept) == before {
				d.fail(node, at, "must not be empty; leave it out for %s", defaultMCPVersion)
			}
		},
		"max_body_bytes":              number(d, bytes, 0, math.MaxUint32),
		"strict_tool_names":           d.optionalBool(&m.StrictToolNames),
		"allow_all_known_mcp_methods": d.optionalBool(&m.AllowAllKnownMcpMethods),
	})
}

func (d *decoder) operation(_ string, node *yaml.Node, at *path) *sandboxv1.GraphqlOperation {
	o := &sandboxv1.GraphqlOperation{}
	d.object(node, at, fields{
		"operation_type": d.string(&o.OperationType),
		"operation_name": d.string(&o.OperationName),
		"fields":         d.strings(&o.Fields),
	})
	return o
}

func (d *decoder) allowRule(node *yaml.Node, at *path) *sandboxv1.L7Rule {
	a := &sandboxv1.L7Allow{}
	d.object(node, at, fields{"allow": func(node *yaml.Node, at *path) {
		d.request(node, at, fields{
			"method": d.string(&a.Method), "path": d.string(&a.Path), "command": d.string(&a.Command),
			"query":          named(d, &a.Query, d.matcher),
			"operation_type": d.string(&a.OperationType), "operation_name": d.string(&a.OperationName),
			"fields": d.strings(&a.Fields),
		}, &a.Params)
	}}, "allow")
	return &sandboxv1.L7Rule{Allow: a}
}

func (d *decoder) denyRule(node *yaml.Node, at *path) *sandboxv1.L7DenyRule {
	r := &sandboxv1.L7DenyRule{}
	d.request(node, at, fields{
		"method": d.string(&r.Method), "path": d.string(&r.Path), "command": d.string(&r.Command),
		"query":          named(d, &r.Query, d.matcher),
		"operation_type": d.string(&r.OperationType), "operation_name": d.string(&r.OperationName),
		"fields": d.strings(&r.Fields),
	}, &r.Params)
	return r
}

// request decodes the properties of a request. Nested params become dotted keys; tool is params.name.
func (d *decoder) request(node *yaml.Node, at *path, known fields, params *map[string]*sandboxv1.L7QueryMatcher) {
	var tool *sandboxv1.L7QueryMatcher
	flat := map[string]*sandboxv1.L7QueryMatcher{}
	known["tool"] = func(node *yaml.Node, at *path) { tool = d.matcher("", node, at) }
	known["params"] = func(node *yaml.Node, at *path) { d.params(node, at, "", flat) }
	d.object(node, at, known)
	if tool != nil {
		if name := flat["name"]; name != nil && !sameMatcher(name, tool) {
			d.fail(node, at.key("tool"), "says something else than params.name; keep one of them")
		}
		flat["name"] = tool
	}
	if len(flat) > 0 {
		*params = flat
	}
}

func (d *decoder) params(node *yaml.Node, at *path, prefix string, flat map[string]*sandboxv1.L7QueryMatcher) {
	d.entries(node, at, func(name string, key, value *yaml.Node) {
		at, dotted := at.key(name), prefix+name
		if value.Kind == yaml.AliasNode {
			value = d.resolve(value, at)
		}
		if value == nil {
			return
		}
		if value.Kind == yaml.MappingNode && !isAnyOf(value) {
			d.params(value, at, dotted+".", flat)
			return
		}
		if _, again := flat[dotted]; again {
			d.fail(key, at, "%s is already given in another spelling", show(dotted))
		}
		flat[dotted] = d.matcher("", value, at)
	})
}

// isAnyOf tells {any: [...]} from params that nest under a key named any, by upstream's rule.
func isAnyOf(node *yaml.Node) bool {
	return len(node.Content) == 2 && node.Content[0].Value == "any" && node.Content[1].Kind == yaml.SequenceNode
}

// matcher decodes a pattern or {any: [patterns]}.
func (d *decoder) matcher(_ string, node *yaml.Node, at *path) *sandboxv1.L7QueryMatcher {
	m := &sandboxv1.L7QueryMatcher{}
	if node.Kind == yaml.AliasNode {
		node = d.resolve(node, at)
	}
	switch {
	case node == nil:
	case node.Kind == yaml.MappingNode:
		d.object(node, at, fields{"any": d.strings(&m.Any)}, "any")
	default:
		d.string(&m.Glob)(node, at)
	}
	return m
}

func sameMatcher(a, b *sandboxv1.L7QueryMatcher) bool {
	return a.GetGlob() == b.GetGlob() && strings.Join(a.GetAny(), "\x00") == strings.Join(b.GetAny(), "\x00")
}
