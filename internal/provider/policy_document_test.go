package provider

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"google.golang.org/protobuf/reflect/protoreflect"

	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/policy"
)

// readPolicyDocument checks and reads a document whose configuration is given as JSON.
func readPolicyDocument(t *testing.T, config string) (string, diagnostics) {
	t.Helper()
	s := newServer(t)
	in := &tfprotov6.DynamicValue{JSON: []byte(config)}
	checked, err := s.ValidateDataResourceConfig(t.Context(), &tfprotov6.ValidateDataResourceConfigRequest{TypeName: "openshell_policy_document", Config: in})
	if err != nil {
		t.Fatal(err)
	}
	if diags := diagnostics(checked.Diagnostics); len(diags) > 0 {
		return "", diags
	}
	read, err := s.ReadDataSource(t.Context(), &tfprotov6.ReadDataSourceRequest{TypeName: "openshell_policy_document", Config: in})
	if err != nil {
		t.Fatal(err)
	}
	return s.decode(policyDocumentType(), read.State).text(policyText), read.Diagnostics
}

// Every construct of a policy can be written with types, and means what the policy file means.
func TestPolicyDocument(t *testing.T) {
	const config = `{
		"filesystem_policy": {"include_workdir": true, "read_only": ["/usr", "/etc"], "read_write": ["/tmp"]},
		"landlock": {"compatibility": "hard_requirement"},
		"process": {"run_as_user": "1500", "run_as_group": "sandbox"},
		"network_policies": {
			"rest": {"name": "A <name>", "binaries": [{"path": "/usr/bin/curl"}], "endpoints": [
				{"host": "api.example.com", "port": 443, "protocol": "rest", "tls": null, "enforcement": "enforce", "path": "/v1/**", "allowed_ips": ["10.0.0.0/8"],
					"allow_encoded_slash": true, "request_body_credential_rewrite": true, "allow_uninspected_credentials": true, "credential_binding": {"provider": "p"},
					"rules": [{"allow": {"method": "GET", "path": "/**", "query": {"q": ["a*", "b"], "r": ["c"]}}}], "deny_rules": [{"method": "GET", "path": "/x"}]},
				{"host": "aws.example.com", "ports": [443, 8443], "protocol": "rest", "access": "full", "credential_signing": "sigv4", "signing_service": "s3", "signing_region": "us-east-1"},
				{"host": "raw.example.com", "port": 443, "tls": "skip"}
			]},
			"others": {"endpoints": [
				{"host": "ws.example.com", "port": 443, "protocol": "websocket", "access": "read-write", "websocket_credential_rewrite": true},
				{"host": "gql.example.com", "port": 443, "protocol": "graphql", "persisted_queries": "allow_registered", "graphql_max_body_bytes": 1000,
					"graphql_persisted_queries": {"abc": {"operation_type": "query", "operation_name": "n", "fields": ["f"]}},
					"rules": [{"allow": {"operation_type": "mutation", "operation_name": "n*", "fields": ["g"]}}]},
				{"host": "sql.example.com", "port": 5432, "protocol": "sql", "rules": [{"allow": {"command": "SELECT"}}]},
				{"host": "rpc.example.com", "port": 443, "protocol": "json-rpc", "json_rpc": {"max_body_bytes": 2000}, "rules": [{"allow": {"method": "m"}}]},
				{"host": "mcp.example.com", "port": 443, "protocol": "mcp",
					"mcp": {"versions": ["2025-06-18"], "max_body_bytes": 3000, "strict_tool_names": false, "allow_all_known_mcp_methods": true},
					"rules": [{"allow": {"method": "tools/call", "tool": ["a", "b"]}}], "deny_rules": [{"method": "tools/call", "params": {"name": ["c"]}}]}
			]}
		},
		"network_middlewares": {"redact": {"name": "R", "middleware": "openshell/regex", "order": 3, "on_error": "fail_open", "config": "{\"limit\": 3, \"deep\": [{\"a\": null}]}",
			"endpoints": {"include": ["*.example.com"], "exclude": ["raw.example.com"]}}}
	}`
	const same = `
version: 1
filesystem_policy: {include_workdir: true, read_only: [/usr, /etc], read_write: [/tmp]}
landlock: {compatibility: hard_requirement}
process: {run_as_user: "1500", run_as_group: sandbox}
network_policies:
  rest:
    name: A <name>
    binaries: [{path: /usr/bin/curl}]
    endpoints:
      - {host: api.example.com, port: 443, protocol: rest, enforcement: enforce, path: /v1/**, allowed_ips: [10.0.0.0/8],
         allow_encoded_slash: true, request_body_credential_rewrite: true, allow_uninspected_credentials: true, credential_binding: {provider: p},
         rules: [{allow: {method: GET, path: /**, query: {q: {any: ["a*", b]}, r: c}}}], deny_rules: [{method: GET, path: /x}]}
      - {host: aws.example.com, ports: [443, 8443], protocol: rest, access: full, credential_signing: sigv4, signing_service: s3, signing_region: us-east-1}
      - {host: raw.example.com, port: 443, tls: skip}
  others:
    endpoints:
      - {host: ws.example.com, port: 443, protocol: websocket, access: read-write, websocket_credential_rewrite: true}
      - {host: gql.example.com, port: 443, protocol: graphql, persisted_queries: allow_registered, graphql_max_body_bytes: 1000,
         graphql_persisted_queries: {abc: {operation_type: query, operation_name: n, fields: [f]}},
         rules: [{allow: {operation_type: mutation, operation_name: "n*", fields: [g]}}]}
      - {host: sql.example.com, port: 5432, protocol: sql, rules: [{allow: {command: SELECT}}]}
      - {host: rpc.example.com, port: 443, protocol: json-rpc, json_rpc: {max_body_bytes: 2000}, rules: [{allow: {method: m}}]}
      - {host: mcp.example.com, port: 443, protocol: mcp,
         mcp: {versions: ["2025-06-18"], max_body_bytes: 3000, strict_tool_names: false, allow_all_known_mcp_methods: true},
         rules: [{allow: {method: tools/call, tool: {any: [a, b]}}}], deny_rules: [{method: tools/call, tool: c}]}
network_middlewares:
  redact:
    {name: R, middleware: openshell/regex, order: 3, on_error: fail_open, config: {limit: 3, deep: [{a: null}]},
     endpoints: {include: ["*.example.com"], exclude: [raw.example.com]}}
`
	text, diags := readPolicyDocument(t, config)
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	got, err := policy.Parse(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	want, err := policy.ParseAndValidate(same)
	if err != nil {
		t.Fatal(err)
	}
	if policy.Hash(got) != policy.Hash(want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if again, _ := readPolicyDocument(t, config); again != text || !strings.HasPrefix(text, `{"filesystem_policy":`) {
		t.Errorf("the text is not always the same:\n%s\n%s", text, again)
	}
}

// A policy without rules is one, too.
func TestPolicyDocumentEmpty(t *testing.T) {
	if text, diags := readPolicyDocument(t, `{}`); len(diags) > 0 || text != `{"version":1}` {
		t.Errorf("%q %v", text, diags)
	}
}

// Each problem stands on the attribute it is about.
func TestPolicyDocumentProblems(t *testing.T) {
	endpoint := func(more string) string {
		return `{"network_policies": {"a.b": {"endpoints": [{"host": "x.example.com", "port": 1}, {` + more + `}]}}}`
	}
	const at = `network_policies.ElementKeyString("a.b").endpoints.ElementKeyInt(1)`
	middleware := func(more string) string {
		return `{"network_middlewares": {"m": {"middleware": "x", "endpoints": {"include": ["a.b"]}` + more + `}}}`
	}
	for name, tc := range map[string]struct{ config, attribute, says string }{
		"path":             {`{"filesystem_policy": {"read_write": ["/tmp", "/"]}}`, "filesystem_policy.read_write.ElementKeyInt(1)", "root directory"},
		"word":             {`{"landlock": {"compatibility": "best"}}`, "landlock.compatibility", "hard_requirement"},
		"identity":         {`{"process": {"run_as_user": "root"}}`, "process.run_as_user", "sandbox"},
		"no port":          {endpoint(`"host": "y.example.com"`), at + ".port", "is missing"},
		"null in a list":   {endpoint(`"host": "y.example.com", "port": 1, "allowed_ips": [null]`), at + ".allowed_ips.ElementKeyInt(0)", "null"},
		"tls":              {endpoint(`"host": "y.example.com", "port": 1, "tls": "terminate"`), at + ".tls", "skip"},
		"rules and access": {endpoint(`"host": "y.example.com", "port": 1, "protocol": "rest", "access": "full", "rules": [{"allow": {"method": "*"}}]`), at + ".rules", "access"},
		"operation":        {endpoint(`"host": "y.example.com", "port": 1, "protocol": "graphql", "rules": [{"allow": {"method": "*"}}]`), at + ".rules.ElementKeyInt(0).allow.operation_type", "mutation"},
		"no patterns":      {endpoint(`"host": "y.example.com", "port": 1, "protocol": "rest", "rules": [{"allow": {"method": "*", "query": {"q": [null, "a"]}}}]`), at + `.rules.ElementKeyInt(0).allow.query.ElementKeyString("q").ElementKeyInt(0)`, "null"},
		"ambiguous":        {endpoint(`"host": "x.example.com", "port": 1, "tls": "skip"`), at, "differs in tls"},
		"reserved name":    {`{"network_policies": {"_provider_x": {}}}`, `network_policies.ElementKeyString("_provider_x")`, "_provider_"},
		"null rule":        {`{"network_policies": {"x": null}}`, `network_policies.ElementKeyString("x")`, "null"},
		"config":           {middleware(`, "config": "{"`), `network_middlewares.ElementKeyString("m").config`, "text of a JSON object"},
		"list for config":  {middleware(`, "config": "[]"`), `network_middlewares.ElementKeyString("m").config`, "object"},
		"inside config":    {middleware(`, "config": "{\"a\": [12345678901234567890]}"`), `network_middlewares.ElementKeyString("m").config`, "config.a[0]"},
		"no middleware":    {`{"network_middlewares": {"m": {"middleware": "", "endpoints": {"include": ["a.b"]}}}}`, `network_middlewares.ElementKeyString("m").middleware`, "name"},
	} {
		t.Run(name, func(t *testing.T) {
			_, diags := readPolicyDocument(t, tc.config)
			if len(diags.errors()) != 1 || !diags.at(tc.attribute) || !strings.Contains(diags.String(), tc.says) {
				t.Errorf("want one error on %s that says %q, got\n%s", tc.attribute, tc.says, diags)
			}
		})
	}
}

// What is not known yet is not judged.
func TestPolicyDocumentUnknown(t *testing.T) {
	ctx := t.Context()
	s, ty := newServer(t), policyDocumentType()
	landlock := object(t, ty.AttributeTypes["landlock"])
	config := full(ty, values{"landlock": full(landlock, values{"compatibility": unknownText})})
	reply, err := s.ValidateDataResourceConfig(ctx, &tfprotov6.ValidateDataResourceConfigRequest{TypeName: "openshell_policy_document", Config: s.dynamic(ty, config)})
	if err != nil || len(reply.Diagnostics) > 0 {
		t.Error(err, diagnostics(reply.Diagnostics))
	}
}

// The schema has a place for every field of a policy, so that none is forgotten when the API grows; and no sets, which
// make plans of many rules take minutes.
func TestPolicyDocumentCoversPolicies(t *testing.T) {
	written := map[string]string{
		"filesystem": "filesystem_policy", "json_rpc_max_body_bytes": "json_rpc",
		"advisor_proposed": "", "provider_credentialed": "", "token_grant_owner": "", // set by the gateway
		"version": "", // always 1
	}
	var walk func(m protoreflect.MessageDescriptor, ty tftypes.Type, at string)
	walk = func(m protoreflect.MessageDescriptor, ty tftypes.Type, at string) {
		for {
			if l, ok := ty.(tftypes.List); ok {
				ty = l.ElementType
			} else if e, ok := ty.(tftypes.Map); ok {
				ty = e.ElementType
			} else {
				break
			}
		}
		o, ok := ty.(tftypes.Object)
		if !ok {
			if m.Name() != "L7QueryMatcher" && m.Name() != "Struct" {
				t.Errorf("%s: %v for %s", at, ty, m.FullName())
			}
			return
		}
		for i := range m.Fields().Len() {
			f := m.Fields().Get(i)
			name := string(f.Name())
			if other, ok := written[name]; ok {
				name = other
			}
			inner := o.AttributeTypes[name]
			switch message := f.Message(); {
			case name == "":
			case inner == nil:
				t.Errorf("%s has no %s", at, name)
			case f.IsMap() && f.MapValue().Message() != nil:
				walk(f.MapValue().Message(), inner, at+"."+name)
			case !f.IsMap() && message != nil:
				walk(message, inner, at+"."+name)
			}
		}
	}
	ty := policyDocumentType()
	walk((&sandboxv1.SandboxPolicy{}).ProtoReflect().Descriptor(), ty, "policy")
	if found := sets(ty, ""); len(found) > 0 {
		t.Errorf("sets at %v", found)
	}
}

func sets(ty tftypes.Type, at string) []string {
	switch ty := ty.(type) {
	case tftypes.Set:
		return []string{at}
	case tftypes.List:
		return sets(ty.ElementType, at)
	case tftypes.Map:
		return sets(ty.ElementType, at)
	case tftypes.Object:
		var found []string
		for _, name := range slices.Sorted(maps.Keys(ty.AttributeTypes)) {
			found = append(found, sets(ty.AttributeTypes[name], at+"."+name)...)
		}
		return found
	default:
		return nil
	}
}
