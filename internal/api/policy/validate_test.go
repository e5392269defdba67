package policy_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/policy"
)

// texts returns count different ones.
func texts(format string, count int) []string {
	all := make([]string, count)
	for i := range all {
		all[i] = fmt.Sprintf(format, i)
	}
	return all
}

func TestValidateSections(t *testing.T) {
	filesystem := func(readOnly, readWrite []string) *sandboxv1.SandboxPolicy {
		return &sandboxv1.SandboxPolicy{Filesystem: &sandboxv1.FilesystemPolicy{ReadOnly: readOnly, ReadWrite: readWrite}}
	}
	identity := func(user, group string) *sandboxv1.SandboxPolicy {
		return &sandboxv1.SandboxPolicy{Process: &sandboxv1.ProcessPolicy{RunAsUser: user, RunAsGroup: group}}
	}
	rule := func(key string) *sandboxv1.SandboxPolicy {
		return &sandboxv1.SandboxPolicy{NetworkPolicies: map[string]*sandboxv1.NetworkPolicyRule{key: {}}}
	}
	for name, test := range map[string]struct {
		policy *sandboxv1.SandboxPolicy
		want   []string
	}{
		"nil":               {nil, nil},
		"empty":             {&sandboxv1.SandboxPolicy{}, nil},
		"upstream's own":    {githubPolicy(), nil},
		"version 1":         {&sandboxv1.SandboxPolicy{Version: 1}, nil},
		"version 2":         {&sandboxv1.SandboxPolicy{Version: 2}, []string{"version: must be 1, not 2"}},
		"256 paths":         {filesystem(texts("/r%d", 200), texts("/w%d", 56)), nil},
		"257 paths":         {filesystem(texts("/r%d", 200), texts("/w%d", 57)), []string{"filesystem_policy: lists 257 paths; at most 256"}},
		"a path of 4096":    {filesystem([]string{"/" + strings.Repeat("a", 4095)}, nil), nil},
		"a path of 4097":    {filesystem(nil, []string{"/" + strings.Repeat("a", 4096)}), []string{"filesystem_policy.read_write[0]: has 4097 bytes; a path has at most 4096"}},
		"relative paths":    {filesystem([]string{"/a", "b"}, []string{""}), []string{`filesystem_policy.read_only[1]: must start with /, not "b"`, `filesystem_policy.read_write[0]: must start with /, not ""`}},
		"climbing paths":    {filesystem([]string{"/a/..b", "/a/../b", ".."}, nil), []string{"filesystem_policy.read_only[1]: must not contain ..", "filesystem_policy.read_only[2]: must start", "filesystem_policy.read_only[2]: must not contain .."}},
		"the root":          {filesystem([]string{"/"}, []string{"/", "//"}), []string{"filesystem_policy.read_write[0]: must not be the root directory", "filesystem_policy.read_write[1]: must not be the root directory"}},
		"landlock":          {&sandboxv1.SandboxPolicy{Landlock: &sandboxv1.LandlockPolicy{Compatibility: "hard"}}, []string{"landlock.compatibility: must be best_effort or hard_requirement"}},
		"landlock unset":    {&sandboxv1.SandboxPolicy{Landlock: &sandboxv1.LandlockPolicy{}}, nil},
		"identities":        {identity("sandbox", "1"), nil},
		"highest id":        {identity("4294967294", ""), nil},
		"root":              {identity("0", "root"), []string{`process.run_as_user: must be "sandbox" or a number from 1 to 4294967294, not "0"`, "process.run_as_group: must be"}},
		"beyond the ids":    {identity("4294967295", "-1"), []string{"process.run_as_user: must be", "process.run_as_group: must be"}},
		"a provider's rule": {rule("_provider_github"), []string{"network_policies._provider_github: keys that start with _provider_"}},
		"nearly one":        {rule("provider_github"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			wantProblems(t, policy.Validate(test.policy), false, test.want)
		})
	}
}

func TestValidateSize(t *testing.T) {
	p := &sandboxv1.SandboxPolicy{Version: 1, NetworkPolicies: map[string]*sandboxv1.NetworkPolicyRule{"r": {Name: strings.Repeat("x", policy.MaxEncodedBytes-100)}}}
	p.NetworkPolicies["r"].Name += strings.Repeat("x", policy.MaxEncodedBytes-proto.Size(p))
	if size := proto.Size(p); size != 262_144 {
		t.Fatalf("%d bytes", size)
	}
	wantProblems(t, policy.Validate(p), false, nil)
	p.NetworkPolicies["r"].Name += "x"
	wantProblems(t, policy.Validate(p), false, []string{": the policy takes 262145 encoded bytes; a gateway takes at most 262144"})
}

func TestValidateEndpoints(t *testing.T) {
	const at = "network_policies.r.endpoints[0]."
	rest := func(keys ...string) []string { return append([]string{"port: 443", "protocol: rest"}, keys...) }
	for name, test := range map[string]struct {
		keys []string // below host: h.example.com
		want []string
	}{
		"plain":                        {[]string{"port: 443"}, nil},
		"lowest port":                  {[]string{"port: 1"}, nil},
		"no port":                      {nil, []string{"port: is missing"}},
		"port 0":                       {[]string{"port: 0"}, []string{"port: is missing"}},
		"port 0 among others":          {[]string{"ports: [443, 0]"}, []string{"ports[1]: must be from 1 to 65535, not 0"}},
		"addresses":                    {[]string{"port: 1", `allowed_ips: [10.0.0.7/8, 10.1.2.3, "fe80::/10", "::1"]`}, nil},
		"not addresses":                {[]string{"port: 1", "allowed_ips: [10.0.0.0/33, example.com, \"fe80::1%eth0\"]"}, []string{"allowed_ips[0]: must be an IP address or a range", "allowed_ips[1]: must", "allowed_ips[2]: must"}},
		"path":                         {rest("access: full", "path: /v1/**"), nil},
		"any path":                     {rest("access: full", `path: "**"`), nil},
		"relative path":                {rest("access: full", "path: v1"), []string{`path: must start with / or be **, not "v1"`}},
		"access":                       {rest("access: full"), nil},
		"rules":                        {rest("rules: [{allow: {method: GET}}]"), nil},
		"neither":                      {rest(), []string{"protocol: rest needs access or rules"}},
		"neither, WebSocket":           {[]string{"port: 1", "protocol: websocket"}, []string{"protocol: websocket needs access or rules"}},
		"neither, GraphQL":             {[]string{"port: 1", "protocol: graphql"}, []string{"protocol: graphql needs access or rules"}},
		"neither, SQL":                 {[]string{"port: 1", "protocol: sql"}, []string{"protocol: sql needs access or rules"}},
		"both":                         {rest("access: full", "rules: [{allow: {method: GET}}]"), []string{"rules: cannot be combined with access"}},
		"rules that allow nothing":     {rest("rules: [{allow: {}}, {allow: {query: {q: x}}}]"), []string{"rules: would deny every request"}},
		"one rule that does":           {rest("rules: [{allow: {}}, {allow: {params: {q: x}}}]"), nil},
		"denial":                       {rest("access: full", "deny_rules: [{method: GET}]"), nil},
		"denial without protocol":      {[]string{"port: 1", "deny_rules: [{method: GET}]"}, []string{"deny_rules: need a protocol"}},
		"unknown protocol":             {[]string{"port: 1", "protocol: ftp"}, []string{`protocol: must be tcp, rest, websocket, graphql, sql, json-rpc or mcp, not "ftp"`}},
		"protocol in capitals":         {[]string{"port: 1", "protocol: REST", "access: full"}, nil},
		"SQL enforced":                 {[]string{"port: 1", "protocol: sql", "access: full", "enforcement: enforce"}, []string{"enforcement: must be audit with protocol sql"}},
		"SQL audited":                  {[]string{"port: 1", "protocol: sql", "access: full", "enforcement: audit"}, nil},
		"persisted queries":            {rest("access: full", "persisted_queries: allow_registered"), nil},
		"JSON-RPC":                     {[]string{"port: 1", "protocol: json-rpc", "rules: [{allow: {method: \"*\"}}]"}, nil},
		"JSON-RPC without rules":       {[]string{"port: 1", "protocol: json-rpc"}, []string{"rules: are needed with protocol json-rpc"}},
		"JSON-RPC with access":         {[]string{"port: 1", "protocol: json-rpc", "access: full"}, []string{"access: is not for protocol json-rpc"}},
		"MCP":                          {[]string{"port: 1", "protocol: mcp", "rules: [{allow: {method: initialize}}]", "deny_rules: [{tool: x}]"}, nil},
		"MCP, all methods":             {[]string{"port: 1", "protocol: mcp", "mcp: {allow_all_known_mcp_methods: true}", "rules: [{allow: {}}]"}, nil},
		"MCP, all methods, no rules":   {[]string{"port: 1", "protocol: mcp", "mcp: {allow_all_known_mcp_methods: true}"}, nil},
		"MCP without rules":            {[]string{"port: 1", "protocol: mcp"}, []string{"rules: are needed with protocol mcp"}},
		"MCP with access":              {[]string{"port: 1", "protocol: mcp", "access: full"}, []string{"access: is not for protocol mcp"}},
		"MCP versions":                 {[]string{"port: 1", "protocol: mcp", "mcp: {allow_all_known_mcp_methods: true, versions: [2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28]}"}, nil},
		"MCP versions twice and other": {[]string{"port: 1", "protocol: mcp", "mcp: {allow_all_known_mcp_methods: true, versions: [latest, 2025-06-18, 2025-06-18]}"}, []string{"mcp.versions[1]: 2025-06-18 is listed twice", "mcp.versions[2]: must be 2025-03-26, 2025-06-18, 2025-11-25 or 2026-07-28, not \"latest\""}},
		"GraphQL operations": {
			[]string{"port: 1", "protocol: graphql", "rules: [{allow: {operation_type: query}}, {allow: {operation_name: x}}]", "deny_rules: [{operation_type: all}]", "graphql_persisted_queries: {h: {}}"},
			[]string{`rules[1].allow.operation_type: must be query, mutation or subscription, not ""`, `deny_rules[0].operation_type: must be`, `graphql_persisted_queries.h.operation_type: must be`},
		},
		"signing":                 {rest("access: full", "credential_signing: sigv4", "signing_service: s3"), nil},
		"signing without service": {rest("access: full", `credential_signing: "sigv4:body"`), []string{"signing_service: is needed with credential_signing"}},
		"signing and rewriting":   {rest("access: full", `credential_signing: "sigv4:no_body"`, "signing_service: s3", "request_body_credential_rewrite: true"), []string{"request_body_credential_rewrite: cannot be combined with credential_signing"}},
		"binding":                 {rest("access: full", "credential_binding: {provider: work}"), nil},
		"binding with blanks":     {rest("access: full", `credential_binding: {provider: " work"}`), []string{`credential_binding.provider: must be the exact name of an attached provider, not " work"`}},
		"TCP":                     {[]string{"port: 1", "protocol: tcp", "allowed_ips: [10.0.0.0/8]"}, nil},
		"TCP, nothing else": {
			[]string{
				"port: 1", "protocol: tcp", "path: /", "enforcement: audit", "access: full", "rules: [{allow: {method: GET}}]", "deny_rules: [{method: GET}]", "allow_encoded_slash: true",
				"websocket_credential_rewrite: true", "request_body_credential_rewrite: true", "persisted_queries: deny", "graphql_persisted_queries: {h: {}}", "graphql_max_body_bytes: 1", "json_rpc: {max_body_bytes: 1}",
			},
			[]string{
				"path: cannot be combined with protocol tcp", "enforcement: cannot", "access: cannot", "rules: cannot", "deny_rules: cannot", "allow_encoded_slash: cannot", "websocket_credential_rewrite: cannot",
				"request_body_credential_rewrite: cannot", "persisted_queries: cannot", "graphql_persisted_queries: cannot", "graphql_max_body_bytes: cannot", "json_rpc: cannot", "rules: cannot be combined with access",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := make([]string, len(test.want))
			for i := range want {
				want[i] = at + test.want[i]
			}
			wantProblems(t, policy.Validate(mustParse(t, endpointText(test.keys...))), false, want)
		})
	}
}

// What the written form cannot say, but a message can.
func TestValidateMessages(t *testing.T) {
	const at = "network_policies.r.endpoints[0]."
	for name, test := range map[string]struct {
		endpoint *sandboxv1.NetworkEndpoint
		want     []string
	}{
		"unknown enum numbers": {&sandboxv1.NetworkEndpoint{Host: "h", Port: 1, Tls: 2, Enforcement: 3, Access: 4}, []string{"tls: has the unknown or removed value", "enforcement: has the unknown value", "access: has the unknown value"}},
		"a port too high":      {&sandboxv1.NetworkEndpoint{Host: "h", Port: 65536}, []string{"port: must be from 1 to 65535, not 65536"}},
		"words":                {&sandboxv1.NetworkEndpoint{Host: "h", Port: 1, CredentialSigning: "v4", SigningService: "s", PersistedQueries: "all"}, []string{"credential_signing: must be sigv4, sigv4:body or sigv4:no_body", "persisted_queries: must be deny or allow_registered"}},
		"MCP elsewhere":        {&sandboxv1.NetworkEndpoint{Host: "h", Port: 1, Mcp: &sandboxv1.McpOptions{}}, []string{"mcp: is for protocol mcp only"}},
		"MCP options missing":  {&sandboxv1.NetworkEndpoint{Host: "h", Port: 1, Protocol: "mcp", Rules: []*sandboxv1.L7Rule{{Allow: &sandboxv1.L7Allow{Method: "m"}}}}, nil},
		"a rule without allow": {&sandboxv1.NetworkEndpoint{Host: "h", Port: 1, Protocol: "rest", Rules: []*sandboxv1.L7Rule{{}}}, []string{"rules: would deny every request"}},
		"no host":              {&sandboxv1.NetworkEndpoint{Port: 1}, []string{"host: is missing; only allowed_ips"}},
		"blank host":           {&sandboxv1.NetworkEndpoint{Host: " ", Port: 1}, []string{"host: is missing"}},
		"addresses for a host": {&sandboxv1.NetworkEndpoint{Port: 1, AllowedIps: []string{"10.0.0.0/8"}}, nil},
		"TCP needs a host":     {&sandboxv1.NetworkEndpoint{Port: 1, AllowedIps: []string{"10.0.0.0/8"}, Protocol: "tcp"}, []string{"host: is needed with protocol tcp"}},
		"binding needs a host": {&sandboxv1.NetworkEndpoint{Port: 1, AllowedIps: []string{"10.0.0.0/8"}, CredentialBinding: &sandboxv1.NetworkCredentialBinding{Provider: "p"}}, []string{"credential_binding: needs a host"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := &sandboxv1.SandboxPolicy{NetworkPolicies: map[string]*sandboxv1.NetworkPolicyRule{"r": {Endpoints: []*sandboxv1.NetworkEndpoint{test.endpoint}}}}
			want := make([]string, len(test.want))
			for i := range want {
				want[i] = at + test.want[i]
			}
			wantProblems(t, policy.Validate(p), false, want)
		})
	}
}

func TestValidateHosts(t *testing.T) {
	for host, problems := range map[string]struct{ plain, tcp string }{
		"example.com":                    {},
		"localhost":                      {},
		"x_y.example.com":                {},
		"*.example.com":                  {},
		"**.example.com":                 {},
		"*-api.example.com":              {},
		"api.*.example.com":              {},
		"10.0.0.1":                       {tcp: "must be a host name"},
		"[::1]":                          {tcp: "must be a host name"},
		"example.com.":                   {tcp: "without a trailing dot"},
		"-a.example.com":                 {tcp: "must be a host name"},
		"a b.example.com":                {tcp: "must be a host name"},
		strings.Repeat("a", 63) + ".com": {},
		strings.Repeat("a", 64) + ".com": {tcp: "must be a host name"},
		strings.Repeat("a.", 126) + "a":  {},
		strings.Repeat("a.", 126) + "aa": {tcp: "at most 253 bytes"},
		"*":                              {"a wildcard needs at least three labels", "a wildcard needs at least three labels"},
		"**":                             {"a wildcard needs at least three labels", "a wildcard needs at least three labels"},
		"*.com":                          {"a wildcard needs at least three labels", "a wildcard needs at least three labels"},
		"a.*":                            {"a wildcard needs at least three labels", "a wildcard needs at least three labels"},
		"a**.example.com":                {"** must be the whole first label", "** must be the whole first label"},
		"api.**.example.com":             {"a wildcard must be a whole label *", "a wildcard must be a whole label *"},
		"api.x*.example.com":             {"a wildcard must be a whole label *", "a wildcard must be a whole label *"},
	} {
		for protocol, want := range map[string]string{"": problems.plain, "tcp": problems.tcp} {
			p := &sandboxv1.SandboxPolicy{NetworkPolicies: map[string]*sandboxv1.NetworkPolicyRule{"r": {Endpoints: []*sandboxv1.NetworkEndpoint{{Host: host, Port: 1, Protocol: protocol}}}}}
			err := policy.Validate(p)
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), "network_policies.r.endpoints[0].host: ") || !strings.Contains(err.Error(), want)) {
				t.Errorf("%q with protocol %q: %v, want %q", host, protocol, err, want)
			}
		}
	}
}

func TestValidateMiddlewares(t *testing.T) {
	const at = "network_middlewares."
	middleware := func(order int, include, exclude []string) *sandboxv1.NetworkMiddlewareConfig {
		return &sandboxv1.NetworkMiddlewareConfig{Middleware: "x", Order: int32(order), Endpoints: &sandboxv1.MiddlewareEndpointSelector{Include: include, Exclude: exclude}}
	}
	several := func(count int) map[string]*sandboxv1.NetworkMiddlewareConfig {
		all := map[string]*sandboxv1.NetworkMiddlewareConfig{}
		for i := range count {
			all[fmt.Sprint("m", i)] = middleware(i, []string{"a.b"}, nil)
		}
		return all
	}
	one := func(m *sandboxv1.NetworkMiddlewareConfig) map[string]*sandboxv1.NetworkMiddlewareConfig {
		return map[string]*sandboxv1.NetworkMiddlewareConfig{"m": m}
	}
	sameOrder := several(2)
	sameOrder["m1"].Order = 0
	infinite := middleware(0, []string{"a"}, nil)
	infinite.Config = &structpb.Struct{Fields: map[string]*structpb.Value{"k": structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{structpb.NewNumberValue(math.NaN())}})}}
	for name, test := range map[string]struct {
		middlewares map[string]*sandboxv1.NetworkMiddlewareConfig
		want        []string
	}{
		"ten":             {several(10), nil},
		"eleven":          {several(11), []string{"network_middlewares: lists 11 middlewares; at most 10"}},
		"same order":      {sameOrder, []string{at + `m1.order: 0 is already the order of "m0"`}},
		"32 patterns":     {one(middleware(0, texts("a%d", 20), texts("b%d", 12))), nil},
		"33 patterns":     {one(middleware(0, texts("a%d", 20), texts("b%d", 13))), []string{at + "m.endpoints: lists 33 host patterns; at most 32"}},
		"no patterns":     {one(middleware(0, nil, []string{"a"})), []string{at + "m.endpoints.include: must list at least one"}},
		"nothing":         {map[string]*sandboxv1.NetworkMiddlewareConfig{"": {OnError: "x"}}, []string{`network_middlewares[""]: the key must not be empty`, `network_middlewares[""].middleware: must name`, `network_middlewares[""].on_error: must be fail_closed or fail_open`, `network_middlewares[""].endpoints.include: must`}},
		"any host":        {one(middleware(0, []string{"**", "*", "a[0-9].b?"}, nil)), nil},
		"broken patterns": {one(middleware(0, []string{"", "a b", "a..b", "{a,b}"}, []string{"a**.b", "a["})), []string{at + "m.endpoints.include[0]: a host pattern must not be empty", at + "m.endpoints.include[1]: a host pattern must not contain blanks", at + "m.endpoints.include[2]: a host pattern must not contain empty labels", at + "m.endpoints.include[3]: a host pattern must not contain braces", at + "m.endpoints.exclude[0]: ** must be a whole label", at + "m.endpoints.exclude[1]: a host pattern has a bracket"}},
		"not a number":    {one(infinite), []string{at + "m.config.k[0]: is no number that JSON knows"}},
	} {
		t.Run(name, func(t *testing.T) {
			wantProblems(t, policy.Validate(&sandboxv1.SandboxPolicy{NetworkMiddlewares: test.middlewares}), false, test.want)
		})
	}
}

// Traffic that a middleware must see cannot skip TLS inspection.
func TestValidateMiddlewareAndSkippedTLS(t *testing.T) {
	for name, test := range map[string]struct {
		host, include, exclude, mode string
		conflict                     bool
	}{
		"same host":                      {host: "a.example.com", include: "a.example.com", conflict: true},
		"same host in capitals":          {host: "A.example.com", include: "a.EXAMPLE.com", conflict: true},
		"fail_closed in words":           {host: "a.example.com", include: "a.example.com", mode: "fail_closed", conflict: true},
		"it may fail open":               {host: "a.example.com", include: "a.example.com", mode: "fail_open"},
		"other host":                     {host: "a.example.com", include: "b.example.com"},
		"pattern":                        {host: "a.example.com", include: "*.example.com", conflict: true},
		"one label only":                 {host: "a.b.example.com", include: "*.example.com"},
		"several labels":                 {host: "a.b.example.com", include: "**.example.com", conflict: true},
		"at least one label":             {host: "example.com", include: "**.example.com"},
		"everything":                     {host: "a.example.com", include: "**", conflict: true},
		"both are patterns":              {host: "*.example.com", include: "a.**.com", conflict: true},
		"excluded":                       {host: "a.example.com", include: "*.example.com", exclude: "a.example.com"},
		"excluded by pattern":            {host: "a.example.com", include: "**", exclude: "*.example.com"},
		"the known host is not excluded": {host: "*.example.com", include: "a.example.com", exclude: "b.example.com", conflict: true},
		"the known host is excluded":     {host: "*.example.com", include: "a.example.com", exclude: "a.*.com"},
		"the pattern is excluded":        {host: "*.example.com", include: "**.com", exclude: "*.example.com"},
		"everything is excluded":         {host: "*.example.com", include: "*.example.com", exclude: "**"},
		"a part of it is excluded":       {host: "*.example.com", include: "**.com", exclude: "a.example.com", conflict: true},
	} {
		t.Run(name, func(t *testing.T) {
			m := &sandboxv1.NetworkMiddlewareConfig{Middleware: "x", OnError: test.mode, Endpoints: &sandboxv1.MiddlewareEndpointSelector{Include: []string{test.include}}}
			if test.exclude != "" {
				m.Endpoints.Exclude = []string{test.exclude}
			}
			p := &sandboxv1.SandboxPolicy{
				NetworkMiddlewares: map[string]*sandboxv1.NetworkMiddlewareConfig{"m": m},
				NetworkPolicies: map[string]*sandboxv1.NetworkPolicyRule{"r": {Endpoints: []*sandboxv1.NetworkEndpoint{
					{Host: test.host, Port: 443}, {Host: test.host, Port: 1, Tls: sandboxv1.NetworkTlsMode_NETWORK_TLS_MODE_SKIP},
				}}},
			}
			var want []string
			if test.conflict {
				want = []string{"network_middlewares.m.endpoints: can match network_policies.r.endpoints[1]"}
			}
			wantProblems(t, policy.Validate(p), false, want)
		})
	}
}
