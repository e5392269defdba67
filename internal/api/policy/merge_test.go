package policy_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/policy"
)

type operations = []*openshellv1.PolicyMergeOperation

// rules reads the inside of network_policies.
func rules(t testing.TB, text string) *sandboxv1.SandboxPolicy {
	t.Helper()
	return mustParse(t, "version: 1\nnetwork_policies: {"+text+"}\n")
}

// addRule makes an operation that adds a rule with the given endpoints and programs.
func addRule(t testing.TB, name, rule string) *openshellv1.PolicyMergeOperation {
	t.Helper()
	return &openshellv1.PolicyMergeOperation{Operation: &openshellv1.PolicyMergeOperation_AddRule{AddRule: &openshellv1.AddNetworkRule{
		RuleName: name, Rule: rules(t, fmt.Sprintf("x: {name: %q, %s}", name, rule)).GetNetworkPolicies()["x"],
	}}}
}

func removeRule(name string) *openshellv1.PolicyMergeOperation {
	return &openshellv1.PolicyMergeOperation{Operation: &openshellv1.PolicyMergeOperation_RemoveRule{RemoveRule: &openshellv1.RemoveNetworkRule{RuleName: name}}}
}

func removeEndpoint(name, host string, port uint32) *openshellv1.PolicyMergeOperation {
	return &openshellv1.PolicyMergeOperation{Operation: &openshellv1.PolicyMergeOperation_RemoveEndpoint{RemoveEndpoint: &openshellv1.RemoveNetworkEndpoint{RuleName: name, Host: host, Port: port}}}
}

func removeBinary(name, path string) *openshellv1.PolicyMergeOperation {
	return &openshellv1.PolicyMergeOperation{Operation: &openshellv1.PolicyMergeOperation_RemoveBinary{RemoveBinary: &openshellv1.RemoveNetworkBinary{RuleName: name, BinaryPath: path}}}
}

func target(rule, host string, binaries []string, ports ...uint32) *openshellv1.L7RuleTarget {
	t := &openshellv1.L7RuleTarget{RuleName: rule, Host: host, Ports: ports, AnyBinary: len(binaries) == 0}
	for _, path := range binaries {
		t.Binaries = append(t.Binaries, &sandboxv1.NetworkBinary{Path: path})
	}
	return t
}

func addAllow(t *openshellv1.L7RuleTarget, methods ...string) *openshellv1.PolicyMergeOperation {
	op := &openshellv1.AddAllowRules{Target: t}
	for _, method := range methods {
		op.Rules = append(op.Rules, &sandboxv1.L7Rule{Allow: &sandboxv1.L7Allow{Method: method, Path: "/new"}})
	}
	return &openshellv1.PolicyMergeOperation{Operation: &openshellv1.PolicyMergeOperation_AddAllowRules{AddAllowRules: op}}
}

func addDeny(t *openshellv1.L7RuleTarget, methods ...string) *openshellv1.PolicyMergeOperation {
	op := &openshellv1.AddDenyRules{Target: t}
	for _, method := range methods {
		op.DenyRules = append(op.DenyRules, &sandboxv1.L7DenyRule{Method: method, Path: "/new"})
	}
	return &openshellv1.PolicyMergeOperation{Operation: &openshellv1.PolicyMergeOperation_AddDenyRules{AddDenyRules: op}}
}

const (
	curl = "binaries: [{path: /usr/bin/curl}]"
	git  = "binaries: [{path: /usr/bin/git}]"
	both = "binaries: [{path: /usr/bin/curl}, {path: /usr/bin/git}]"
	full = "{host: a.example.com, port: 443, protocol: rest, access: full}"
)

func TestMerge(t *testing.T) {
	for name, test := range map[string]struct {
		current    string
		operations operations
		want       string
	}{
		"nothing to do": {"a: {endpoints: [" + full + "], " + curl + "}", operations{removeRule("b"), removeEndpoint("", "b.example.com", 443), removeEndpoint("b", "a.example.com", 443), removeBinary("b", "/x"), removeBinary("a", "/x")}, "a: {endpoints: [" + full + "], " + curl + "}"},

		"a new rule":                {"", operations{addRule(t, "a", "endpoints: [{host: a.example.com, ports: [443, 80, 443]}], binaries: [{path: /b}, {path: /b}]")}, "a: {endpoints: [{host: a.example.com, ports: [80, 443]}], binaries: [{path: /b}]}"},
		"the same rule again":       {"a: {endpoints: [" + full + "], " + curl + "}", operations{addRule(t, "a", "endpoints: ["+full+"], "+curl)}, "a: {endpoints: [" + full + "], " + curl + "}"},
		"an endpoint more":          {"a: {endpoints: [" + full + "], " + curl + "}", operations{addRule(t, "a", "endpoints: [{host: b.example.com, port: 1}], "+curl)}, "a: {endpoints: [" + full + ", {host: b.example.com, port: 1}], " + curl + "}"},
		"a program more":            {"a: {endpoints: [" + full + "], " + curl + "}", operations{addRule(t, "a", "endpoints: ["+full+"], "+git)}, "a: {endpoints: [" + full + "], " + both + "}"},
		"a program, fields unsaid":  {"a: {endpoints: [{host: a.example.com, port: 443, protocol: rest, access: full, enforcement: enforce}], " + curl + "}", operations{addRule(t, "a", "endpoints: [{host: A.example.com, port: 443}], "+git)}, "a: {endpoints: [{host: a.example.com, port: 443, protocol: rest, access: full, enforcement: enforce}], " + both + "}"},
		"a port more":               {"a: {endpoints: [{host: a.example.com, port: 443}], " + curl + "}", operations{addRule(t, "a", "endpoints: [{host: a.example.com, ports: [80, 443]}], "+curl)}, "a: {endpoints: [{host: a.example.com, ports: [80, 443]}], " + curl + "}"},
		"inspection comes":          {"a: {endpoints: [{host: a.example.com, port: 443}], " + curl + "}", operations{addRule(t, "a", "endpoints: ["+full+"], "+curl)}, "a: {endpoints: [" + full + "], " + curl + "}"},
		"what is there stays":       {"a: {endpoints: [{host: a.example.com, port: 443, protocol: rest, access: full, enforcement: enforce}], " + curl + "}", operations{addRule(t, "a", "endpoints: [{host: a.example.com, port: 443, protocol: websocket, access: read-only, enforcement: audit, tls: skip}], "+curl)}, "a: {endpoints: [{host: a.example.com, port: 443, protocol: rest, access: full, enforcement: enforce, tls: skip}], " + curl + "}"},
		"rules add up":              {"a: {endpoints: [{host: a.example.com, port: 443, protocol: rest, rules: [{allow: {method: GET}}]}], " + curl + "}", operations{addRule(t, "a", "endpoints: [{host: a.example.com, port: 443, protocol: rest, rules: [{allow: {method: GET}}, {allow: {method: PUT}}, {allow: {method: PUT}}]}], "+curl)}, "a: {endpoints: [{host: a.example.com, port: 443, protocol: rest, rules: [{allow: {method: GET}}, {allow: {method: PUT}}]}], " + curl + "}"},
		"a preset is written out":   {"a: {endpoints: [{host: a.example.com, port: 443, protocol: rest, access: read-only}], " + curl + "}", operations{addRule(t, "a", "endpoints: [{host: a.example.com, port: 443, protocol: rest, rules: [{allow: {method: PUT}}]}], "+curl)}, "a: {endpoints: [{host: a.example.com, port: 443, protocol: rest, rules: [{allow: {method: GET, path: '**'}}, {allow: {method: HEAD, path: '**'}}, {allow: {method: OPTIONS, path: '**'}}, {allow: {method: PUT}}]}], " + curl + "}"},
		"rules beat a preset":       {"a: {endpoints: [{host: a.example.com, port: 443, protocol: rest, rules: [{allow: {method: GET}}]}], " + curl + "}", operations{addRule(t, "a", "endpoints: ["+full+"], "+curl)}, "a: {endpoints: [{host: a.example.com, port: 443, protocol: rest, rules: [{allow: {method: GET}}]}], " + curl + "}"},
		"lists and switches add up": {"a: {endpoints: [{host: a.example.com, port: 443, allowed_ips: [10.0.0.0/8], allow_encoded_slash: true}], " + curl + "}", operations{addRule(t, "a", "endpoints: [{host: a.example.com, port: 443, allowed_ips: [10.0.0.0/8, 11.0.0.0/8], websocket_credential_rewrite: true, request_body_credential_rewrite: true, allow_uninspected_credentials: true}], "+curl)}, "a: {endpoints: [{host: a.example.com, port: 443, allowed_ips: [10.0.0.0/8, 11.0.0.0/8], allow_encoded_slash: true, websocket_credential_rewrite: true, request_body_credential_rewrite: true, allow_uninspected_credentials: true}], " + curl + "}"},
		"MCP comes":                 {"a: {endpoints: [{host: a.example.com, port: 443}], " + curl + "}", operations{addRule(t, "a", "endpoints: [{host: a.example.com, port: 443, protocol: mcp, mcp: {max_body_bytes: 9, allow_all_known_mcp_methods: true}}], "+curl)}, "a: {endpoints: [{host: a.example.com, port: 443, protocol: mcp, mcp: {max_body_bytes: 9, allow_all_known_mcp_methods: true}}], " + curl + "}"},
		"MCP, defaults said":        {"a: {endpoints: [{host: a.example.com, port: 443, protocol: mcp, rules: [{allow: {method: a}}]}], " + curl + "}", operations{addRule(t, "a", "endpoints: [{host: a.example.com, port: 443, protocol: mcp, mcp: {versions: [2025-11-25], strict_tool_names: true, max_body_bytes: 65536}, rules: [{allow: {method: b}}]}], "+curl)}, "a: {endpoints: [{host: a.example.com, port: 443, protocol: mcp, rules: [{allow: {method: a}}, {allow: {method: b}}]}], " + curl + "}"},

		"another rule has the endpoint":  {"z: {endpoints: [" + full + "], " + curl + "}", operations{addRule(t, "a", "endpoints: ["+full+"], "+git)}, "z: {endpoints: [" + full + "], " + both + "}"},
		"the first of them":              {"y: {endpoints: [" + full + "], " + curl + "}, z: {endpoints: [" + full + "], " + curl + "}", operations{addRule(t, "a", "endpoints: ["+full+"], "+git)}, "y: {endpoints: [" + full + "], " + both + "}, z: {endpoints: [" + full + "], " + curl + "}"},
		"but it would grant more":        {"z: {endpoints: [" + full + ", {host: b.example.com, port: 1}], " + curl + "}", operations{addRule(t, "a", "endpoints: ["+full+"], "+git)}, "z: {endpoints: [" + full + ", {host: b.example.com, port: 1}], " + curl + "}, a: {endpoints: [" + full + "], " + git + "}"},
		"the other path is another":      {"z: {endpoints: [" + full + "], " + curl + "}", operations{addRule(t, "a", "endpoints: [{host: a.example.com, port: 443, protocol: rest, access: full, path: /x}], "+git)}, "z: {endpoints: [" + full + "], " + curl + "}, a: {endpoints: [{host: a.example.com, port: 443, protocol: rest, access: full, path: /x}], " + git + "}"},
		"one has programs, one has none": {"z: {endpoints: [" + full + "], " + curl + "}", operations{addRule(t, "a", "endpoints: ["+full+"]")}, "z: {endpoints: [" + full + "], " + curl + "}, a: {endpoints: [" + full + "]}"},
		"one has none, one has programs": {"z: {endpoints: [" + full + "]}", operations{addRule(t, "a", "endpoints: ["+full+"], "+curl)}, "z: {endpoints: [" + full + "]}, a: {endpoints: [" + full + "], " + curl + "}"},
		"neither has programs":           {"z: {endpoints: [" + full + "]}", operations{addRule(t, "z", "endpoints: [{host: b.example.com, port: 1}]")}, "z: {endpoints: [" + full + ", {host: b.example.com, port: 1}]}"},
		"rules are read by their key":    {"z: {name: a, endpoints: [" + full + "], " + curl + "}", operations{addRule(t, "z", "endpoints: ["+full+"], "+git)}, "z: {name: a, endpoints: [" + full + "], " + both + "}"},
		"operations see each other":      {"", operations{addRule(t, "a", "endpoints: ["+full+"], "+curl), addRule(t, "a", "endpoints: ["+full+"], "+git), removeBinary("a", "/usr/bin/curl")}, "a: {endpoints: [" + full + "], " + git + "}"},
		"a rule goes":                    {"a: {}, b: {}", operations{removeRule(" a ")}, "b: {}"},
		"a rule goes with its program":   {"a: {" + curl + "}", operations{removeBinary("a", "/usr/bin/curl")}, ""},
		"an endpoint goes everywhere":    {"a: {endpoints: [{host: A.example.com, ports: [80, 443]}, {host: b.example.com, port: 1}]}, b: {endpoints: [{host: a.example.com, port: 443}]}", operations{removeEndpoint("", "a.example.COM", 443)}, "a: {endpoints: [{host: A.example.com, port: 80}, {host: b.example.com, port: 1}]}"},
		"an endpoint goes from a rule":   {"a: {endpoints: [{host: a.example.com, port: 443}]}, b: {endpoints: [{host: a.example.com, port: 443}]}", operations{removeEndpoint("b", "a.example.com", 443)}, "a: {endpoints: [{host: a.example.com, port: 443}]}"},
		"a rule without endpoints stays": {"a: {}, b: {endpoints: [{host: a.example.com, port: 443}]}", operations{removeEndpoint("", "a.example.com", 443)}, "a: {}"},

		"allow":               {"a: {endpoints: [" + full + "], " + both + "}", operations{addAllow(target("a", "A.example.com", []string{"/usr/bin/git", "/usr/bin/curl"}, 443), "GET", "GET")}, "a: {endpoints: [{host: a.example.com, port: 443, protocol: rest, rules: [{allow: {method: '*', path: '**'}}, {allow: {method: GET, path: /new}}]}], " + both + "}"},
		"allow on WebSocket":  {"a: {endpoints: [{host: a.example.com, port: 443, protocol: websocket, access: read-write}]}", operations{addAllow(target("a", "a.example.com", nil, 443), "GET")}, "a: {endpoints: [{host: a.example.com, port: 443, protocol: websocket, rules: [{allow: {method: GET, path: '**'}}, {allow: {method: WEBSOCKET_TEXT, path: '**'}}, {allow: {method: GET, path: /new}}]}]}"},
		"allow, writes":       {"a: {endpoints: [{host: a.example.com, port: 443, protocol: rest, access: read-write}]}", operations{addAllow(target("a", "a.example.com", nil, 443), "DELETE")}, "a: {endpoints: [{host: a.example.com, port: 443, protocol: rest, rules: [{allow: {method: GET, path: '**'}}, {allow: {method: HEAD, path: '**'}}, {allow: {method: OPTIONS, path: '**'}}, {allow: {method: POST, path: '**'}}, {allow: {method: PUT, path: '**'}}, {allow: {method: PATCH, path: '**'}}, {allow: {method: DELETE, path: /new}}]}]}"},
		"allow, only reading": {"a: {endpoints: [{host: a.example.com, port: 443, protocol: websocket, access: read-only}]}", operations{addAllow(target("a", "a.example.com", nil, 443), "X")}, "a: {endpoints: [{host: a.example.com, port: 443, protocol: websocket, rules: [{allow: {method: GET, path: '**'}}, {allow: {method: X, path: /new}}]}]}"},
		"deny":                {"a: {endpoints: [{host: a.example.com, ports: [80, 443], protocol: rest, access: full}]}", operations{addDeny(target("a", "a.example.com", nil, 443, 80), "GET", "PUT"), addDeny(target("a", "a.example.com", nil, 80, 443), "PUT")}, "a: {endpoints: [{host: a.example.com, ports: [80, 443], protocol: rest, access: full, deny_rules: [{method: GET, path: /new}, {method: PUT, path: /new}]}]}"},
	} {
		t.Run(name, func(t *testing.T) {
			current := rules(t, test.current)
			before := proto.CloneOf(current)
			got, err := policy.Merge(current, test.operations)
			if err != nil {
				t.Fatal(err)
			}
			want := rules(t, test.want)
			wantEqual(t, got.Policy, policy.Canonical(want))
			if got.Changed == proto.Equal(before, got.Policy) {
				t.Errorf("Changed is %t", got.Changed)
			}
			wantEqual(t, current, before)
		})
	}
}

func TestMergeRefuses(t *testing.T) {
	anyPath := func(t *openshellv1.L7RuleTarget, path string) *openshellv1.L7RuleTarget {
		t.Path = &path
		return t
	}
	rule := "a: {endpoints: [" + full + "], " + curl + "}"
	mcp := "{host: a.example.com, port: 443, protocol: mcp, mcp: {allow_all_known_mcp_methods: true}}"
	for name, test := range map[string]struct {
		current   string
		operation *openshellv1.PolicyMergeOperation
		code      policy.MergeCode
		message   string
	}{
		"no operation":               {rule, &openshellv1.PolicyMergeOperation{}, policy.MergeInvalid, "merge_operations[1]: has no operation"},
		"a rule without name":        {rule, addRule(t, " ", "endpoints: ["+full+"]"), policy.MergeInvalid, "merge_operations[1].add_rule.rule_name: is missing"},
		"a provider's rule":          {rule, addRule(t, "_provider_x", "endpoints: ["+full+"]"), policy.MergeInvalid, "add_rule.rule_name: names that start with _provider_"},
		"a rule without endpoints":   {rule, addRule(t, "b", curl), policy.MergeInvalid, "add_rule.rule: needs at least one endpoint"},
		"an invalid rule":            {rule, addRule(t, "b", "endpoints: [{host: h}]"), policy.MergeInvalid, "add_rule.rule: network_policies.b.endpoints[0].port: is missing"},
		"loopback":                   {rule, addRule(t, "b", "endpoints: [{host: 127.1.2.3, port: 1}]"), policy.MergeInvalid, `sandboxes are never let to "127.1.2.3"`},
		"localhost":                  {rule, addRule(t, "b", "endpoints: [{host: LocalHost., port: 1}]"), policy.MergeInvalid, "sandboxes are never let to"},
		"metadata":                   {rule, addRule(t, "b", "endpoints: [{host: metadata.google.internal, port: 1}]"), policy.MergeInvalid, "sandboxes are never let to"},
		"metadata's address":         {rule, addRule(t, "b", "endpoints: [{host: 169.254.169.254, port: 1}]"), policy.MergeInvalid, "sandboxes are never let to"},
		"unspecified":                {rule, addRule(t, "b", "endpoints: [{host: '::', port: 1}]"), policy.MergeInvalid, "sandboxes are never let to"},
		"a range with loopback":      {rule, addRule(t, "b", "endpoints: [{host: h, port: 1, allowed_ips: [10.0.0.0/8, 126.0.0.0/7]}]"), policy.MergeInvalid, `allowed_ips "126.0.0.0/7" reaches addresses`},
		"loopback in IPv6":           {rule, addRule(t, "b", "endpoints: [{host: h, port: 1, allowed_ips: ['::ffff:127.0.0.1']}]"), policy.MergeInvalid, "reaches addresses"},
		"everything":                 {rule, addRule(t, "b", "endpoints: [{host: h, port: 1, allowed_ips: [0.0.0.0/0]}]"), policy.MergeInvalid, "reaches addresses"},
		"remove an endpoint":         {rule, removeEndpoint("a", " ", 1), policy.MergeInvalid, "remove_endpoint: needs a host and a port"},
		"remove a portless endpoint": {rule, removeEndpoint("a", "h", 0), policy.MergeInvalid, "remove_endpoint: needs a host and a port"},
		"remove a rule":              {rule, removeRule(" "), policy.MergeInvalid, "remove_rule.rule_name: is missing"},
		"remove a program":           {rule, removeBinary("a", ""), policy.MergeInvalid, "remove_binary: needs a rule_name and a binary_path"},
		"remove a nameless program":  {rule, removeBinary("", "/x"), policy.MergeInvalid, "remove_binary: needs a rule_name and a binary_path"},
		"remove from no program":     {"a: {endpoints: [" + full + "]}", removeBinary("a", "/x"), policy.MergeConflict, `rule "a" names no program`},

		"a program gets more":           {"a: {endpoints: [" + full + ", {host: b.example.com, port: 1}], " + curl + "}", addRule(t, "a", "endpoints: ["+full+"], "+git), policy.MergeConflict, `"/usr/bin/git" would also get b.example.com on ports [1]`},
		"no program beside one":         {rule, addRule(t, "a", "endpoints: ["+full+"]"), policy.MergeConflict, `merge_operations[1].add_rule: rule "a" names programs, and the operation none; name the programs`},
		"no program, an endpoint more":  {rule, addRule(t, "a", "endpoints: ["+full+", {host: b.example.com, port: 1}]"), policy.MergeConflict, `name the programs that the endpoints are for`},
		"a program beside none":         {"a: {endpoints: [" + full + "]}", addRule(t, "a", "endpoints: ["+full+"], "+curl), policy.MergeConflict, `rule "a" names no program, and the operation does; choose another rule_name`},
		"a program gets a port more":    {"a: {endpoints: [{host: a.example.com, ports: [80, 443]}], " + curl + "}", addRule(t, "a", "endpoints: [{host: a.example.com, port: 443}], "+git), policy.MergeConflict, `"/usr/bin/git" would also get a.example.com on ports [80]`},
		"a program gets rules more":     {"a: {endpoints: [{host: a.example.com, port: 443, protocol: rest, rules: [{allow: {method: GET}}]}], " + curl + "}", addRule(t, "a", "endpoints: [{host: a.example.com, port: 443, protocol: rest, rules: [{allow: {method: PUT}}]}], "+git), policy.MergeConflict, `"/usr/bin/git" would also get a.example.com`},
		"another program gets more":     {"a: {endpoints: [" + full + "], " + both + "}", addRule(t, "a", "endpoints: [{host: b.example.com, port: 1}], "+curl), policy.MergeConflict, `"/usr/bin/git" would get b.example.com on ports [1] as well; declare every program`},
		"another port changes":          {"a: {endpoints: [{host: a.example.com, ports: [80, 443], protocol: rest, rules: [{allow: {method: GET}}]}], " + curl + "}", addRule(t, "a", "endpoints: [{host: a.example.com, port: 443, protocol: rest, rules: [{allow: {method: PUT}}]}], "+curl), policy.MergeConflict, "a.example.com would also change on ports [80]; declare every port"},
		"MCP beside REST":               {rule, addRule(t, "a", "endpoints: ["+mcp+"], "+curl), policy.MergeConflict, `is inspected as protocol "rest", not as mcp`},
		"another MCP":                   {"a: {endpoints: [" + mcp + "], " + curl + "}", addRule(t, "a", "endpoints: [{host: a.example.com, port: 443, protocol: mcp, mcp: {allow_all_known_mcp_methods: true, versions: [2025-03-26]}}], "+curl), policy.MergeConflict, "versions 2025-11-25"},
		"MCP under another path":        {rule, addRule(t, "b", "endpoints: [{host: A.example.com, port: 443, path: /mcp, protocol: mcp, mcp: {allow_all_known_mcp_methods: true}}], "+git), policy.MergeConflict, "a.example.com:443 would be inspected as mcp"},
		"what a merge cannot change":    {rule, addRule(t, "a", "endpoints: [{host: a.example.com, port: 443, protocol: rest, access: full, credential_signing: sigv4, signing_service: s3, persisted_queries: deny, graphql_persisted_queries: {a: {operation_type: query}}, graphql_max_body_bytes: 1, json_rpc: {max_body_bytes: 1}, signing_region: x, credential_binding: {provider: p}}], "+curl), policy.MergeConflict, "a merge cannot change its persisted_queries, graphql_persisted_queries, graphql_max_body_bytes, json_rpc.max_body_bytes, credential_signing, signing_service, signing_region and credential_binding"},
		"the result would be ambiguous": {rule, addRule(t, "b", "endpoints: [{host: '*.example.com', port: 443, tls: skip}], "+git), policy.MergeConflict, "the merged policy would not be valid: network_policies.b.endpoints[0]: can match the same traffic"},

		"allow nothing":            {rule, addAllow(target("a", "a.example.com", []string{"/usr/bin/curl"}, 443)), policy.MergeInvalid, "add_allow_rules.rules: must not be empty"},
		"deny nothing":             {rule, addDeny(target("a", "a.example.com", []string{"/usr/bin/curl"}, 443)), policy.MergeInvalid, "add_deny_rules.deny_rules: must not be empty"},
		"no target":                {rule, addDeny(nil, "GET"), policy.MergeInvalid, "add_deny_rules.target: is missing"},
		"a target's rule":          {rule, addAllow(target("a ", "h", nil, 1), "GET"), policy.MergeInvalid, "add_allow_rules.target: rule_name must be the key of a rule"},
		"a target's provider":      {rule, addAllow(target("_provider_x", "h", nil, 1), "GET"), policy.MergeInvalid, "the rules of attached providers cannot be changed"},
		"a target's host":          {rule, addDeny(target("a", "h/x", nil, 1), "GET"), policy.MergeInvalid, "host must be the host of an endpoint"},
		"a target's blocked host":  {rule, addAllow(target("a", "localhost", nil, 1), "GET"), policy.MergeInvalid, "add_allow_rules.target.host: sandboxes are never let to"},
		"a target's ports":         {rule, addDeny(target("a", "h", nil), "GET"), policy.MergeInvalid, "ports must list all ports"},
		"a target's highest port":  {rule, addDeny(target("a", "h", nil, 65536), "GET"), policy.MergeInvalid, "ports must list all ports"},
		"a target's programs":      {rule, addDeny(&openshellv1.L7RuleTarget{RuleName: "a", Host: "h", Ports: []uint32{1}}, "GET"), policy.MergeInvalid, "must have exactly one of any_binary and binaries"},
		"a target's blank program": {rule, addDeny(target("a", "h", []string{" "}, 1), "GET"), policy.MergeInvalid, "binaries must have paths"},
		"an unknown rule":          {rule, addDeny(target("b", "a.example.com", nil, 443), "GET"), policy.MergeNotFound, `rule "b" has no endpoint with host "a.example.com", ports [443]`},
		"an unknown host":          {rule, addDeny(target("a", "*.example.com", nil, 443), "GET"), policy.MergeNotFound, `rule "a" has no endpoint`},
		"an unknown path":          {rule, addDeny(anyPath(target("a", "a.example.com", []string{"/usr/bin/curl"}, 443), "/x"), "GET"), policy.MergeNotFound, `path "/x"`},
		"several endpoints":        {"a: {endpoints: [" + full + ", {host: a.example.com, port: 443, protocol: rest, access: full, path: /x}]}", addDeny(target("a", "a.example.com", nil, 443), "GET"), policy.MergeConflict, `name one of their paths: "", "/x"`},
		"other programs":           {rule, addDeny(target("a", "a.example.com", []string{"/usr/bin/git"}, 443), "GET"), policy.MergeConflict, `rule "a" is for /usr/bin/curl, and the target declares /usr/bin/git`},
		"no program for one":       {rule, addDeny(target("a", "a.example.com", nil, 443), "GET"), policy.MergeConflict, `rule "a" is for /usr/bin/curl, and the target declares no program`},
		"other ports":              {"a: {endpoints: [{host: a.example.com, ports: [80, 443], protocol: rest, access: full}]}", addDeny(target("a", "a.example.com", nil, 443), "GET"), policy.MergeConflict, "the endpoint has ports [80 443], and the target declares [443]"},
		"not inspected":            {"a: {endpoints: [{host: a.example.com, port: 443}]}", addAllow(target("a", "a.example.com", nil, 443), "GET"), policy.MergeConflict, `has protocol ""; rules can be added for rest and websocket only`},
		"not by method and path":   {"a: {endpoints: [" + mcp + "]}", addAllow(target("a", "a.example.com", nil, 443), "GET"), policy.MergeConflict, `has protocol "mcp"`},
	} {
		t.Run(name, func(t *testing.T) {
			current := rules(t, test.current)
			before := proto.CloneOf(current)
			// All or nothing: the first operation would succeed.
			got, err := policy.Merge(current, operations{addRule(t, "first", "endpoints: [{host: first.example.org, port: 1}]"), test.operation})
			var refused *policy.MergeError
			if !errors.As(err, &refused) || refused.Code != test.code || !strings.Contains(refused.Message, test.message) {
				t.Errorf("%v, want code %d and %q", err, test.code, test.message)
			} else if !strings.HasPrefix(refused.Message, "merge_operations[1]") && !strings.Contains(test.message, "would be") && !strings.Contains(test.message, "would not be") {
				t.Errorf("it is not put on the operation: %v", err)
			}
			if got != nil {
				t.Errorf("a result in spite of the error: %v", got)
			}
			wantEqual(t, current, before)
		})
	}
	_, err := policy.Merge(rules(t, "a: {endpoints: [{host: h}]}"), nil)
	var refused *policy.MergeError
	if !errors.As(err, &refused) || refused.Code != policy.MergeConflict || !strings.Contains(refused.Message, "the current policy is not valid") {
		t.Errorf("an invalid policy: %v", err)
	}
}

func TestMergeIntoNothing(t *testing.T) {
	got, err := policy.Merge(nil, operations{addRule(t, "a", "endpoints: ["+full+"]")})
	if err != nil || !got.Changed || len(got.Policy.GetNetworkPolicies()) != 1 {
		t.Errorf("%v, %v", got, err)
	}
	got, err = policy.Merge(nil, nil)
	if err != nil || got.Changed {
		t.Errorf("%v, %v", got, err)
	}
}

// What the policy advisor proposed is kept apart, since its hosts are not let to private addresses.
func TestMergeKeepsAdvisorsProposalsApart(t *testing.T) {
	proposal := addRule(t, "p", "endpoints: [{host: a.example.com, port: 443}], "+git)
	proposal.GetAddRule().GetRule().GetEndpoints()[0].AdvisorProposed = true
	got, err := policy.Merge(rules(t, "a: {endpoints: [{host: a.example.com, port: 443}], "+curl+"}"), operations{proposal})
	if err != nil {
		t.Fatal(err)
	}
	if p := got.Policy.GetNetworkPolicies()["p"]; !p.GetEndpoints()[0].GetAdvisorProposed() || len(got.Policy.GetNetworkPolicies()["a"].GetBinaries()) != 1 {
		t.Errorf("%v", got.Policy)
	}
	// An author who names the same endpoint for one of two programs would lift the mark for the other.
	_, err = policy.Merge(got.Policy, operations{addRule(t, "p", "endpoints: [{host: a.example.com, port: 443}], "+curl)})
	if err == nil || !strings.Contains(err.Error(), `"/usr/bin/git" would get a.example.com on ports [443] as well`) {
		t.Errorf("%v", err)
	}
}

// An inspection that was in conflict before does not block other changes, nor those that ease it.
func TestMergeEasesConflicts(t *testing.T) {
	current := rules(t, `
a: {endpoints: [{host: a.example.com, port: 443, path: /x, protocol: rest, access: full}]},
b: {endpoints: [{host: a.example.com, port: 443, path: /mcp, protocol: mcp, mcp: {allow_all_known_mcp_methods: true}}]}`)
	for _, operation := range []*openshellv1.PolicyMergeOperation{addRule(t, "c", "endpoints: [{host: c.example.com, port: 1}]"), removeRule("a")} {
		if _, err := policy.Merge(current, operations{operation}); err != nil {
			t.Errorf("%v: %v", operation, err)
		}
	}
}
