package policy_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/policy"
)

const github = `
version: 1
filesystem_policy:
  include_workdir: true
  read_only: [/usr, /etc]
  read_write: [/tmp]
landlock:
  compatibility: hard_requirement
process:
  run_as_user: "1500"
network_policies:
  github:
    name: GitHub, read only
    endpoints:
      - host: api.github.com
        port: 443
        protocol: rest
        enforcement: enforce
        access: read-only
    binaries:
      - { path: /usr/bin/curl }
network_middlewares:
  redact:
    middleware: openshell/regex
    order: 10
    config: { mode: redact, limit: 3, terms: [a, ~, true, 1.5] }
    on_error: fail_open
    endpoints:
      include: ["*.github.com"]
      exclude: [raw.github.com]
`

func githubPolicy() *sandboxv1.SandboxPolicy {
	config, err := structpb.NewStruct(map[string]any{"mode": "redact", "limit": 3, "terms": []any{"a", nil, true, 1.5}})
	if err != nil {
		panic(err)
	}
	return &sandboxv1.SandboxPolicy{
		Version:    1,
		Filesystem: &sandboxv1.FilesystemPolicy{IncludeWorkdir: true, ReadOnly: []string{"/usr", "/etc"}, ReadWrite: []string{"/tmp"}},
		Landlock:   &sandboxv1.LandlockPolicy{Compatibility: "hard_requirement"},
		Process:    &sandboxv1.ProcessPolicy{RunAsUser: "1500"},
		NetworkPolicies: map[string]*sandboxv1.NetworkPolicyRule{"github": {
			Name: "GitHub, read only",
			Endpoints: []*sandboxv1.NetworkEndpoint{{
				Host: "api.github.com", Port: 443, Ports: []uint32{443}, Protocol: "rest",
				Enforcement: sandboxv1.NetworkEnforcementMode_NETWORK_ENFORCEMENT_MODE_ENFORCE,
				Access:      sandboxv1.NetworkAccessPreset_NETWORK_ACCESS_PRESET_READ_ONLY,
			}},
			Binaries: []*sandboxv1.NetworkBinary{{Path: "/usr/bin/curl"}},
		}},
		NetworkMiddlewares: map[string]*sandboxv1.NetworkMiddlewareConfig{"redact": {
			Name: "redact", Middleware: "openshell/regex", Order: 10, Config: config, OnError: "fail_open",
			Endpoints: &sandboxv1.MiddlewareEndpointSelector{Include: []string{"*.github.com"}, Exclude: []string{"raw.github.com"}},
		}},
	}
}

func mustParse(t testing.TB, text string) *sandboxv1.SandboxPolicy {
	t.Helper()
	p, err := policy.Parse(text)
	if err != nil {
		t.Fatalf("Parse: %v\n%s", err, text)
	}
	return p
}

func wantEqual(t testing.TB, got, want proto.Message) {
	t.Helper()
	if !proto.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestParse(t *testing.T) {
	wantEqual(t, mustParse(t, github), githubPolicy())
}

func TestParseJSON(t *testing.T) {
	text := `{
	"version": 1,
	"process": {"run_as_user": "sandbox"},
	"network_policies": {"a\/b": {"endpoints": [{"host": "x.example.com", "ports": [443, 80]}], "name": "caf\u00e9 \ud83d\ude00 \\ud83d"}}
}`
	wantEqual(t, mustParse(t, text), &sandboxv1.SandboxPolicy{
		Version: 1,
		Process: &sandboxv1.ProcessPolicy{RunAsUser: "sandbox"},
		NetworkPolicies: map[string]*sandboxv1.NetworkPolicyRule{"a/b": {
			Name:      `café 😀 \ud83d`,
			Endpoints: []*sandboxv1.NetworkEndpoint{{Host: "x.example.com", Port: 443, Ports: []uint32{443, 80}}},
		}},
	})
}

// endpointText puts an endpoint's keys, one a line, into a policy.
func endpointText(keys ...string) string {
	return "version: 1\nnetwork_policies:\n  r:\n    endpoints:\n      - host: h.example.com\n        " + strings.Join(keys, "\n        ") + "\n"
}

func onlyEndpoint(p *sandboxv1.SandboxPolicy) *sandboxv1.NetworkEndpoint {
	return p.GetNetworkPolicies()["r"].GetEndpoints()[0]
}

// The message must be what upstream's reader makes of the same text.
func TestParseEndpoint(t *testing.T) {
	matcher := func(glob string, anyOf ...string) *sandboxv1.L7QueryMatcher {
		return &sandboxv1.L7QueryMatcher{Glob: glob, Any: anyOf}
	}
	for name, test := range map[string]struct {
		keys []string
		want *sandboxv1.NetworkEndpoint
	}{
		"a port becomes both fields": {[]string{"port: 443"}, &sandboxv1.NetworkEndpoint{Port: 443, Ports: []uint32{443}}},
		"the first port counts":      {[]string{"ports: [8443, 443]"}, &sandboxv1.NetworkEndpoint{Port: 8443, Ports: []uint32{8443, 443}}},
		"both that agree":            {[]string{"port: 443", "ports: [8443, 443]"}, &sandboxv1.NetworkEndpoint{Port: 8443, Ports: []uint32{8443, 443}}},
		"modes": {
			[]string{"tls: skip", "enforcement: audit", "access: full"},
			&sandboxv1.NetworkEndpoint{
				Tls: sandboxv1.NetworkTlsMode_NETWORK_TLS_MODE_SKIP, Enforcement: sandboxv1.NetworkEnforcementMode_NETWORK_ENFORCEMENT_MODE_AUDIT,
				Access: sandboxv1.NetworkAccessPreset_NETWORK_ACCESS_PRESET_FULL,
			},
		},
		"empty words are none":   {[]string{`tls: ""`, `access: ""`, `persisted_queries: ""`}, &sandboxv1.NetworkEndpoint{}},
		"MCP without its stanza": {[]string{"protocol: MCP"}, &sandboxv1.NetworkEndpoint{Protocol: "MCP", Mcp: &sandboxv1.McpOptions{Versions: []string{"2025-11-25"}}}},
		"JSON-RPC limit":         {[]string{"protocol: json-rpc", "json_rpc: {max_body_bytes: 9}"}, &sandboxv1.NetworkEndpoint{Protocol: "json-rpc", JsonRpcMaxBodyBytes: 9}},
		"both limits that agree": {[]string{"protocol: mcp", "json_rpc: {max_body_bytes: 9}", "mcp: {max_body_bytes: 9}"}, &sandboxv1.NetworkEndpoint{Protocol: "mcp", JsonRpcMaxBodyBytes: 9, Mcp: &sandboxv1.McpOptions{Versions: []string{"2025-11-25"}}}},
		"unquoted, sorted versions": {
			[]string{"protocol: mcp", "mcp: {versions: [2026-07-28, 2025-03-26], max_body_bytes: 7, strict_tool_names: false, allow_all_known_mcp_methods: true}"},
			&sandboxv1.NetworkEndpoint{Protocol: "mcp", JsonRpcMaxBodyBytes: 7, Mcp: &sandboxv1.McpOptions{
				Versions: []string{"2025-03-26", "2026-07-28"}, StrictToolNames: new(false), AllowAllKnownMcpMethods: new(true),
			}},
		},
		"matchers, tool and nested params": {
			[]string{`rules: [{allow: {query: {a: "x*", b: {any: [y, z]}}, tool: {any: [t]}, params: {arguments: {any: first, p.q: {any: [s]}}}}}]`, "deny_rules: [{method: GET, tool: rm}]"},
			&sandboxv1.NetworkEndpoint{
				Rules: []*sandboxv1.L7Rule{{Allow: &sandboxv1.L7Allow{
					Query:  map[string]*sandboxv1.L7QueryMatcher{"a": matcher("x*"), "b": matcher("", "y", "z")},
					Params: map[string]*sandboxv1.L7QueryMatcher{"name": matcher("", "t"), "arguments.any": matcher("first"), "arguments.p.q": matcher("", "s")},
				}}},
				DenyRules: []*sandboxv1.L7DenyRule{{Method: "GET", Params: map[string]*sandboxv1.L7QueryMatcher{"name": matcher("rm")}}},
			},
		},
		"tool beside an equal params.name": {
			[]string{"deny_rules: [{tool: rm, params: {name: rm}}]"},
			&sandboxv1.NetworkEndpoint{DenyRules: []*sandboxv1.L7DenyRule{{Params: map[string]*sandboxv1.L7QueryMatcher{"name": matcher("rm")}}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.want.Host = "h.example.com"
			wantEqual(t, onlyEndpoint(mustParse(t, endpointText(test.keys...))), test.want)
		})
	}
}

func TestParseDefaults(t *testing.T) {
	got := mustParse(t, "version: 1\nfilesystem_policy: {}\nlandlock: {}\nprocess: {}\nnetwork_policies: {r: {}}\nnetwork_middlewares: {m: {middleware: x}}\n")
	wantEqual(t, got, &sandboxv1.SandboxPolicy{
		Version:            1,
		Filesystem:         &sandboxv1.FilesystemPolicy{},
		Landlock:           &sandboxv1.LandlockPolicy{Compatibility: "best_effort"},
		Process:            &sandboxv1.ProcessPolicy{},
		NetworkPolicies:    map[string]*sandboxv1.NetworkPolicyRule{"r": {Name: "r"}},
		NetworkMiddlewares: map[string]*sandboxv1.NetworkMiddlewareConfig{"m": {Name: "m", Middleware: "x", Config: &structpb.Struct{}}},
	})
	wantEqual(t, mustParse(t, "version: 1"), &sandboxv1.SandboxPolicy{Version: 1})
}

func TestParseAliases(t *testing.T) {
	got := mustParse(t, `
version: 1
network_policies:
  a: &a { endpoints: [{ host: &host h.example.com, port: 443 }], binaries: &b [{ path: /bin/sh }] }
  b: { endpoints: [{ host: *host, port: 80 }], binaries: *b }
  c: *a
`)
	if a, c := got.GetNetworkPolicies()["a"], got.GetNetworkPolicies()["c"]; c.GetName() != "c" || !proto.Equal(a.GetEndpoints()[0], c.GetEndpoints()[0]) {
		t.Errorf("c is %v, want what a is", c)
	}
	if b := got.GetNetworkPolicies()["b"]; b.GetEndpoints()[0].GetHost() != "h.example.com" || b.GetBinaries()[0].GetPath() != "/bin/sh" {
		t.Errorf("b is %v", b)
	}
}

// Each problem is written as line:column path: part of the message.
func TestParseProblems(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"nothing":            {"", []string{"0:0 : the text is empty"}},
		"comments only":      {"# nothing\n", []string{"0:0 : the text is empty"}},
		"null":               {"~\n", []string{"1:1 : must be keys with values, not null"}},
		"a word":             {"hello", []string{"1:1 : must be keys with values, not \"hello\""}},
		"not UTF-8":          {"a: \xe9", []string{"0:0 : the text is not valid UTF-8"}},
		"control character":  {"a: \x01", []string{"0:0 : not valid YAML"}},
		"two documents":      {"version: 1\n---\nversion: 1\n", []string{"2:1 : a second document"}},
		"bad syntax":         {"version: 1\nlandlock: {", []string{"3:1 : not valid YAML"}},
		"tab":                {"version: 1\nprocess:\n\trun_as_user: x\n", []string{"3:1 : indented with a tab"}},
		"unknown anchor":     {"version: *v\n", []string{"1:10 : unknown anchor 'v'"}},
		"no version":         {"process: {}\n", []string{"1:1 : version is missing"}},
		"another version":    {"version: 2\n", []string{"1:10 version: must be 1, not 2"}},
		"version as text":    {"version: \"1\"\n", []string{`1:10 version: must be a whole number in plain decimal, not "1"`}},
		"octal":              {"version: 01\n", []string{`1:10 version: must be a whole number in plain decimal`}},
		"fraction":           {"version: 1.0\n", []string{`1:10 version: must be a whole number in plain decimal`}},
		"unknown key":        {"version: 1\nprocess: {user: x}\n", []string{"2:11 process.user: unknown key; expected run_as_group or run_as_user"}},
		"protobuf's name":    {"version: 1\nfilesystem: {}\n", []string{"2:1 filesystem: unknown key; write filesystem_policy"}},
		"duplicate key":      {"version: 1\nprocess: {}\nversion: 1\n", []string{"3:1 version: the key is already on line 1"}},
		"merge key":          {"version: 1\nprocess: {<<: {run_as_user: x}}\n", []string{"2:11 process: merge keys (<<) are not allowed"}},
		"key that is a list": {"version: 1\nprocess: {[a]: b}\n", []string{"2:11 process: a key must be text"}},
		"key that is number": {"version: 1\nnetwork_policies: {1: {}}\n", []string{`2:20 network_policies: the key "1" must be text; put quotes around it`}},
		"null section":       {"version: 1\nnetwork_policies:\n", []string{"2:18 network_policies: must be keys with values, not null; remove the key"}},
		"list as section":    {"version: 1\nlandlock: []\n", []string{"2:11 landlock: must be keys with values, not a list"}},
		"number as text":     {"version: 1\nprocess: {run_as_user: 1500}\n", []string{`2:24 process.run_as_user: must be text; put quotes around "1500"`}},
		"yes":                {"version: 1\nfilesystem_policy: {include_workdir: yes}\n", []string{`2:38 filesystem_policy.include_workdir: must be true or false, not "yes"`}},
		"tagged yes":         {"version: 1\nfilesystem_policy: {include_workdir: !!bool yes}\n", []string{`2:38 filesystem_policy.include_workdir: must be true or false, not "yes"`}},
		"text as list":       {"version: 1\nfilesystem_policy: {read_only: /usr}\n", []string{`2:32 filesystem_policy.read_only: must be a list, not "/usr"`}},
		"null in a list":     {"version: 1\nfilesystem_policy: {read_only: [/usr, ~]}\n", []string{"2:39 filesystem_policy.read_only[1]: must be text, not null"}},
		"unknown word":       {"version: 1\nlandlock: {compatibility: best}\n", []string{`2:27 landlock.compatibility: must be best_effort or hard_requirement, not "best"`}},
		"quoted in the path": {"version: 1\nnetwork_policies: {a.b: {c: 1}}\n", []string{`2:26 network_policies["a.b"].c: unknown key`}},
		"removed word":       {endpointText("tls: terminate"), []string{`6:14 network_policies.r.endpoints[0].tls: must be skip, not "terminate"; leave it out`}},
		"gateway's mark":     {endpointText("advisor_proposed: true"), []string{"6:9 network_policies.r.endpoints[0].advisor_proposed: unknown key; the gateway sets it"}},
		"harness of 0.0":     {"version: 1\nnetwork_policies: {r: {binaries: [{path: /a, harness: true}]}}\n", []string{"2:46 network_policies.r.binaries[0].harness: unknown key; OpenShell 0.1 has dropped it"}},
		"binary without":     {"version: 1\nnetwork_policies: {r: {binaries: [{}]}}\n", []string{"2:35 network_policies.r.binaries[0]: path is missing"}},
		"ports disagree":     {endpointText("port: 443", "ports: [80]"), []string{"5:9 network_policies.r.endpoints[0].port: 443 is not among ports"}},
		"stray MCP":          {endpointText("protocol: rest", "mcp: {}"), []string{`7:14 network_policies.r.endpoints[0].mcp: is for protocol mcp only, not "rest"`}},
		"limits disagree":    {endpointText("protocol: mcp", "json_rpc: {max_body_bytes: 1}"), []string{"7:19 network_policies.r.endpoints[0].json_rpc: does not count with protocol mcp"}},
		"no MCP versions":    {endpointText("protocol: mcp", "mcp: {versions: []}"), []string{"7:25 network_policies.r.endpoints[0].mcp.versions: must not be empty"}},
		"binding without":    {endpointText("credential_binding: {}"), []string{"6:29 network_policies.r.endpoints[0].credential_binding: provider is missing"}},
		"rule without allow": {endpointText("rules: [{}]"), []string{"6:17 network_policies.r.endpoints[0].rules[0]: allow is missing"}},
		"tool disagrees":     {endpointText("deny_rules: [{tool: a, params: {name: b}}]"), []string{"6:22 network_policies.r.endpoints[0].deny_rules[0].tool: says something else than params.name"}},
		"params collide":     {endpointText("deny_rules: [{params: {a.b: x, a: {b: y}}}]"), []string{`6:44 network_policies.r.endpoints[0].deny_rules[0].params.a.b: "a.b" is already given`}},
		"matcher's key":      {endpointText("deny_rules: [{query: {q: {all: [x]}}}]"), []string{"6:34 network_policies.r.endpoints[0].deny_rules[0].query.q: any is missing", "6:35 network_policies.r.endpoints[0].deny_rules[0].query.q.all: unknown key; expected any"}},
		"inexact number":     {"version: 1\nnetwork_middlewares: {m: {middleware: x, config: {n: 9007199254740993}}}\n", []string{"2:54 network_middlewares.m.config.n: the number cannot be kept exactly"}},
		"infinity":           {"version: 1\nnetwork_middlewares: {m: {middleware: x, config: {n: [.inf]}}}\n", []string{"2:55 network_middlewares.m.config.n[0]: must be text, a number"}},
		"grouped digits":     {"version: 1\nnetwork_middlewares: {m: {middleware: x, config: {n: 1_000}}}\n", []string{"2:54 network_middlewares.m.config.n: must be text, a number"}},
		"no middleware":      {"version: 1\nnetwork_middlewares: {m: {config: ~}}\n", []string{"2:26 network_middlewares.m: middleware is missing", "2:35 network_middlewares.m.config: must be keys with values, not null"}},
		"all at once": {
			"version: 3\nlandlock: 1\n" + strings.TrimPrefix(endpointText("port: x", "access: all", "bogus: 1"), "version: 1\n"),
			[]string{
				"1:10 version: must be 1", "2:11 landlock: must be keys with values", "7:15 network_policies.r.endpoints[0].port: must be a whole number",
				"8:17 network_policies.r.endpoints[0].access: must be read-only, read-write or full", "9:9 network_policies.r.endpoints[0].bogus: unknown key",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := policy.Parse(test.text)
			wantProblems(t, err, true, test.want)
		})
	}
}

// wantProblems compares an error with "line:column path: part of the message", or without the position.
func wantProblems(t *testing.T, err error, positions bool, want []string) {
	t.Helper()
	var found *policy.Error
	if !errors.As(err, &found) {
		if len(want) > 0 || err != nil {
			t.Fatalf("error %v, want %q", err, want)
		}
		return
	}
	ok := len(found.Problems) == len(want)
	for i := range min(len(found.Problems), len(want)) {
		p := found.Problems[i]
		head, message, _ := strings.Cut(want[i], ": ")
		got := p.Path
		if positions {
			got = fmt.Sprintf("%d:%d %s", p.Line, p.Column, p.Path)
		}
		ok = ok && got == head && strings.Contains(p.Message, message)
	}
	if !ok {
		t.Errorf("problems:\n%v\nwant:\n  %s", err, strings.Join(want, "\n  "))
	}
}

func TestErrorIsShort(t *testing.T) {
	var text strings.Builder
	text.WriteString("version: 1\nnetwork_policies:\n  " + strings.Repeat("é", 900) + ":\n")
	for i := range 1500 {
		fmt.Fprintf(&text, "    %s%d: 1\n", strings.Repeat("é", 200), i)
	}
	_, err := policy.Parse(text.String())
	var found *policy.Error
	if !errors.As(err, &found) || len(found.Problems) != 1000 || found.Omitted != 500 {
		t.Fatalf("%d problems kept, want 1000 of 1500", len(found.Problems))
	}
	if text := err.Error(); len(text) > 40_000 || !strings.HasPrefix(text, "1500 problems:\n") || !strings.HasSuffix(text, "and 1475 more") {
		t.Errorf("%d bytes: %.80s … %s", len(text), text, text[len(text)-40:])
	}
}

// Content is judged with the positions of the text, at the nearest place where a value is not written.
func TestParseAndValidate(t *testing.T) {
	_, err := policy.ParseAndValidate(`version: 1
filesystem_policy:
  read_write: [/tmp, /]
network_policies:
  _provider_x: {}
  a:
    endpoints: &e
      - host: "*.com"
        protocol: rest
  b:
    endpoints: *e
`)
	wantProblems(t, err, true, []string{
		"3:22 filesystem_policy.read_write[1]: must not be the root directory",
		"5:3 network_policies._provider_x: keys that start with _provider_ belong to the rules of attached providers",
		"8:9 network_policies.a.endpoints[0].host: a wildcard needs at least three labels",
		"8:9 network_policies.a.endpoints[0].port: is missing",
		"8:9 network_policies.b.endpoints[0].host: a wildcard needs at least three labels",
		"8:9 network_policies.b.endpoints[0].port: is missing",
		"9:9 network_policies.a.endpoints[0].protocol: rest needs access or rules",
		"9:9 network_policies.b.endpoints[0].protocol: rest needs access or rules",
	})
	got, err := policy.ParseAndValidate(github)
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, got, githubPolicy())
}
