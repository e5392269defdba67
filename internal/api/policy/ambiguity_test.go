package policy_test

import (
	"strings"
	"testing"

	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/policy"
)

// Two endpoints in two rules, by the text of each.
func TestAmbiguities(t *testing.T) {
	const rest = "host: a.example.com, port: 443, protocol: rest, access: full"
	for name, test := range map[string]struct {
		left, right string
		differ      string // empty for no problem
	}{
		"the same":                       {rest, rest, ""},
		"what is allowed adds up":        {rest, "host: a.example.com, port: 443, protocol: rest, rules: [{allow: {method: GET}}]", ""},
		"other host":                     {rest + ", tls: skip", "host: b.example.com, port: 443", ""},
		"other port":                     {rest + ", tls: skip", "host: a.example.com, port: 80", ""},
		"tls":                            {"host: a.example.com, port: 443, tls: skip", "host: a.example.com, port: 443", "tls"},
		"tls, in capitals":               {"host: a.example.com, port: 443, tls: skip", "host: A.Example.COM, port: 443", "tls"},
		"one port of several":            {"host: a.example.com, ports: [80, 443], tls: skip", "host: a.example.com, ports: [443, 8443]", "tls"},
		"a wildcard":                     {"host: '*.example.com', port: 443, tls: skip", "host: a.example.com, port: 443", "tls"},
		"a wildcard, the other way":      {"host: a.example.com, port: 443, tls: skip", "host: '*.example.com', port: 443", "tls"},
		"within a label":                 {"host: '*-api.example.com', port: 443, tls: skip", "host: a-api.example.com, port: 443", "tls"},
		"not within that label":          {"host: '*-api.example.com', port: 443, tls: skip", "host: a-app.example.com, port: 443", ""},
		"not across labels":              {"host: '*.example.com', port: 443, tls: skip", "host: a.b.example.com, port: 443", ""},
		"across labels":                  {"host: '**.example.com', port: 443, tls: skip", "host: a.b.example.com, port: 443", "tls"},
		"two wildcards":                  {"host: '*.example.com', port: 443, tls: skip", "host: 'api.*.com', port: 443", "tls"},
		"two wildcards apart":            {"host: '*.example.com', port: 443, tls: skip", "host: '*.example.org', port: 443", ""},
		"two wildcards beside":           {"host: '*-a.example.com', port: 443, tls: skip", "host: '*-b.example.com', port: 443", ""},
		"two wildcards that meet":        {"host: 'a*.example.com', port: 443, tls: skip", "host: '*b.example.com', port: 443", "tls"},
		"no host takes any":              {"port: 443, allowed_ips: [10.0.0.0/8]", "host: a.example.com, port: 443", "allowed_ips"},
		"addresses in any order":         {"host: a.example.com, port: 1, allowed_ips: [10.0.0.0/8, 11.0.0.0/8]", "host: a.example.com, port: 1, allowed_ips: [11.0.0.0/8, ' 10.0.0.0/8']", ""},
		"addresses":                      {"host: a.example.com, port: 1, allowed_ips: [10.0.0.0/8]", "host: a.example.com, port: 1, allowed_ips: [11.0.0.0/8]", "allowed_ips"},
		"native TCP":                     {"host: a.example.com, port: 1, protocol: tcp", "host: a.example.com, port: 1", "protocol"},
		"native TCP and inspection":      {"host: a.example.com, port: 443, protocol: tcp", rest, "protocol"},
		"plain and inspected":            {"host: a.example.com, port: 443", rest + ", enforcement: enforce", ""},
		"protocols":                      {rest, "host: a.example.com, port: 443, protocol: graphql, access: full", "protocol"},
		"protocol in capitals":           {rest, "host: a.example.com, port: 443, protocol: REST, access: full", ""},
		"protocols under other paths":    {rest + ", path: /v1/**", "host: a.example.com, port: 443, protocol: graphql, access: full, path: /graphql", ""},
		"the more specific path wins":    {rest, "host: a.example.com, port: 443, protocol: graphql, access: full, path: /graphql", ""},
		"equally specific, apart":        {rest + ", path: /aaa", "host: a.example.com, port: 443, protocol: graphql, access: full, path: /bbb", ""},
		"equally specific, one question": {rest + ", path: /v?", "host: a.example.com, port: 443, protocol: graphql, access: full, path: /v1", "protocol"},
		"classes that meet":              {rest + ", path: '/v[12]'", "host: a.example.com, port: 443, protocol: graphql, access: full, path: '/v[23]'", "protocol"},
		"classes apart":                  {rest + ", path: '/v[12]'", "host: a.example.com, port: 443, protocol: graphql, access: full, path: '/v[34]'", ""},
		"negated class":                  {rest + ", path: '/v[!0]'", "host: a.example.com, port: 443, protocol: graphql, access: full, path: '/v[12]'", "protocol"},
		"negated class apart":            {rest + ", path: '/v[!0]'", "host: a.example.com, port: 443, protocol: graphql, access: full, path: '/v[00]'", ""},
		"stars cross in paths":           {rest + ", path: '/a*z'", "host: a.example.com, port: 443, protocol: graphql, access: full, path: '/a**z'", "protocol"},
		"broken class":                   {rest + ", path: '/v[ab'", "host: a.example.com, port: 443, protocol: graphql, access: full, path: '/v1[a'", "protocol"},
		"audit is the default":           {rest, rest + ", enforcement: audit", ""},
		"enforcement":                    {rest, rest + ", enforcement: enforce", "enforcement"},
		"several":                        {rest + ", allow_encoded_slash: true, websocket_credential_rewrite: true", rest + ", request_body_credential_rewrite: true", "allow_encoded_slash, websocket_credential_rewrite and request_body_credential_rewrite"},
		"signing":                        {rest + ", credential_signing: sigv4, signing_service: s3", rest + ", credential_signing: 'sigv4:body', signing_service: sts, signing_region: x", "credential_signing, signing_service and signing_region"},
		"binding":                        {"host: a.example.com, port: 443, credential_binding: {provider: a}", "host: a.example.com, port: 443, credential_binding: {provider: b}", "credential_binding.provider"},
		"GraphQL limit":                  {"host: h, port: 1, protocol: graphql, graphql_max_body_bytes: 65536", "host: h, port: 1, protocol: graphql, graphql_max_body_bytes: 1", "graphql_max_body_bytes"},
		"GraphQL limit, default":         {"host: h, port: 1, protocol: graphql, graphql_max_body_bytes: 65536", "host: h, port: 1, protocol: graphql", ""},
		"JSON-RPC limit":                 {"host: h, port: 1, protocol: json-rpc, json_rpc: {max_body_bytes: 1}", "host: h, port: 1, protocol: json-rpc", "json_rpc.max_body_bytes"},
		"MCP":                            {"host: h, port: 1, protocol: mcp, mcp: {strict_tool_names: false, max_body_bytes: 1}", "host: h, port: 1, protocol: mcp, mcp: {strict_tool_names: true}", "mcp.max_body_bytes and mcp.strict_tool_names"},
		"MCP default":                    {"host: h, port: 1, protocol: mcp", "host: h, port: 1, protocol: mcp, mcp: {strict_tool_names: true, versions: [2025-03-26]}", ""},
		"GraphQL over WebSocket":         {"host: h, port: 1, protocol: websocket, access: full", "host: h, port: 1, protocol: websocket, deny_rules: [{operation_type: query}]", "its GraphQL rules"},
		"advisor's mark":                 {"host: h, port: 1", "host: h, port: 1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := mustParse(t, "version: 1\nnetwork_policies:\n  a: {endpoints: [{"+test.left+"}]}\n  b: {endpoints: [{host: elsewhere.example.net, port: 443}, {"+test.right+"}]}\n")
			if name == "advisor's mark" {
				p.NetworkPolicies["a"].Endpoints[0].AdvisorProposed = true
			}
			p.NetworkPolicies["b"].Endpoints[0].Host = "elsewhere"
			p.NetworkPolicies["b"].Endpoints[0].AllowedIps = p.GetNetworkPolicies()["a"].GetEndpoints()[0].GetAllowedIps() // agrees with an endpoint for any host
			var want []string
			if test.differ != "" {
				want = []string{"network_policies.b.endpoints[1]: "}
			}
			err := policy.Ambiguities(p)
			wantProblems(t, err, false, want)
			if err != nil && !strings.Contains(err.Error(), "as network_policies.a.endpoints[0], but differs in "+test.differ+"; make them agree") {
				t.Errorf("%v, want it to differ in %s", err, test.differ)
			}
		})
	}
}

// One endpoint against many, many of one kind, and a port named twice.
func TestAmbiguitiesAmongMany(t *testing.T) {
	p := mustParse(t, `
version: 1
network_policies:
  a: {endpoints: [{host: "*.example.com", ports: [443, 443, 80]}, {host: b.example.com, port: 443, tls: skip}]}
  c: {endpoints: [{host: c.example.com, port: 443, tls: skip}, {host: c.example.com, port: 80}]}
  d: {endpoints: [{host: d.example.org, port: 443, tls: skip}]}
`)
	wantProblems(t, policy.Ambiguities(p), false, []string{
		"network_policies.a.endpoints[1]: on port 443 as network_policies.a.endpoints[0]",
		"network_policies.c.endpoints[0]: on port 443 as network_policies.a.endpoints[0]",
	})
	wantProblems(t, policy.Ambiguities(nil), false, nil)
	wantProblems(t, policy.Ambiguities(&sandboxv1.SandboxPolicy{}), false, nil)
}
