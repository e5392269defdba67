package policy_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"

	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/policy"
)

func TestCanonical(t *testing.T) {
	p := mustParse(t, github)
	p.NetworkPolicies["tools"] = &sandboxv1.NetworkPolicyRule{Endpoints: []*sandboxv1.NetworkEndpoint{
		{Host: "a", Protocol: "mcp", ProviderCredentialed: true, TokenGrantOwner: "x", AdvisorProposed: true},
		{Host: "b", Protocol: "MCP", Mcp: &sandboxv1.McpOptions{Versions: []string{"2026-07-28", "later", "2025-03-26", "2025-06-18"}}},
		{Host: "c", Protocol: "rest", Mcp: &sandboxv1.McpOptions{}},
	}}
	unknown := protowire.AppendVarint(protowire.AppendTag(nil, 99, protowire.VarintType), 1)
	p.GetProcess().ProtoReflect().SetUnknown(unknown)
	p.GetNetworkPolicies()["github"].GetEndpoints()[0].ProtoReflect().SetUnknown(unknown)
	before := proto.CloneOf(p)

	want := proto.CloneOf(p)
	want.GetProcess().ProtoReflect().SetUnknown(nil)
	want.GetNetworkPolicies()["github"].GetEndpoints()[0].ProtoReflect().SetUnknown(nil)
	want.NetworkPolicies["tools"].Endpoints = []*sandboxv1.NetworkEndpoint{
		{Host: "a", Protocol: "mcp", AdvisorProposed: true, Mcp: &sandboxv1.McpOptions{Versions: []string{"2025-11-25"}}},
		{Host: "b", Protocol: "MCP", Mcp: &sandboxv1.McpOptions{Versions: []string{"2025-03-26", "2025-06-18", "2026-07-28", "later"}}},
		{Host: "c", Protocol: "rest", Mcp: &sandboxv1.McpOptions{}},
	}
	wantEqual(t, policy.Canonical(p), want)
	wantEqual(t, p, before)
	if policy.Canonical(nil) != nil {
		t.Error("Canonical(nil) is not nil")
	}
}

// The value is stored beside a revision, so it must not change with a new build or library. If this fails because the
// messages have new fields, or the encoding had to change, stored hashes of old policies are lost.
func TestHashStays(t *testing.T) {
	const want = "60f27ca83787006a8d86fb298a5e6c650d36e51c15b3e5cb70b44a79760af639"
	if got := policy.Hash(mustParse(t, github)); got != want {
		t.Errorf("Hash %s, want %s", got, want)
	}
}

// changes alters one field at a time, everywhere in a message, and calls check with the field's path.
func changes(t *testing.T, m protoreflect.Message, at string, check func(at string)) {
	m.Range(func(f protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		at := at + "." + string(f.Name())
		set := func(change func()) {
			before := proto.Clone(m.Interface())
			change()
			check(at)
			proto.Reset(m.Interface())
			proto.Merge(m.Interface(), before)
		}
		switch {
		case f.IsMap():
			set(func() { m.Clear(f) })
			for _, key := range sortedKeys(m.Get(f).Map()) {
				if f.MapValue().Message() != nil {
					changes(t, m.Mutable(f).Map().Mutable(key).Message(), at+"["+key.String()+"]", check)
				}
			}
		case f.IsList():
			set(func() { m.Mutable(f).List().Truncate(m.Get(f).List().Len() - 1) })
			if f.Message() != nil {
				changes(t, m.Mutable(f).List().Get(0).Message(), at+"[0]", check)
			}
		case f.Message() != nil:
			changes(t, m.Mutable(f).Message(), at, check)
		default:
			set(func() { m.Set(f, other(f, value)) })
		}
		return true
	})
}

func sortedKeys(m protoreflect.Map) []protoreflect.MapKey {
	all := map[string]protoreflect.MapKey{}
	m.Range(func(key protoreflect.MapKey, _ protoreflect.Value) bool {
		all[key.String()] = key
		return true
	})
	var keys []protoreflect.MapKey
	for _, name := range slices.Sorted(maps.Keys(all)) {
		keys = append(keys, all[name])
	}
	return keys
}

func other(f protoreflect.FieldDescriptor, value protoreflect.Value) protoreflect.Value {
	switch f.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(!value.Bool())
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(uint32(value.Uint()) + 1)
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(int32(value.Int()) + 1)
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(value.Float() + 1)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(3)
	default:
		return protoreflect.ValueOfString(value.String() + "x")
	}
}

// A change of any field is a change of the hash and of the meaning, save where the field has no say.
func TestEveryFieldCounts(t *testing.T) {
	original := fullPolicy(derived)
	original.Process.RunAsUser = "1"
	changed := proto.CloneOf(original)
	hash, count := policy.Hash(original), 0
	changes(t, changed.ProtoReflect(), "", func(at string) {
		count++
		if policy.Hash(changed) == hash {
			t.Errorf("%s: the hash does not change", at)
		}
		// Where both port fields are there, ports alone counts.
		if isPort := strings.HasSuffix(at, ".port"); policy.Equal(original, changed) != isPort {
			t.Errorf("%s: Equal is %t", at, !isPort)
		}
	})
	if count < 80 {
		t.Errorf("only %d fields were changed", count)
	}
	wantEqual(t, changed, original)
}

func TestEqual(t *testing.T) {
	endpoint := func(keys ...string) *sandboxv1.SandboxPolicy { return mustParse(t, endpointText(keys...)) }
	sections := func(text string) *sandboxv1.SandboxPolicy { return mustParse(t, "version: 1\n"+text) }
	marked := endpoint("port: 443")
	onlyEndpoint(marked).AdvisorProposed, onlyEndpoint(marked).ProviderCredentialed, onlyEndpoint(marked).TokenGrantOwner = true, true, "x"
	withoutName := endpoint("port: 443")
	withoutName.NetworkPolicies["r"].Name = ""
	onePort := endpoint("port: 443")
	onlyEndpoint(onePort).Ports = nil
	noAllow := endpoint("port: 443")
	onlyEndpoint(noAllow).Rules = []*sandboxv1.L7Rule{{}}
	bareMiddleware := &sandboxv1.SandboxPolicy{NetworkMiddlewares: map[string]*sandboxv1.NetworkMiddlewareConfig{"m": {Middleware: "x"}}}
	bareMCP := endpoint("protocol: mcp")
	onlyEndpoint(bareMCP).Mcp = nil
	for name, test := range map[string]struct {
		a, b *sandboxv1.SandboxPolicy
		want bool
	}{
		"nil and nil":                   {nil, nil, true},
		"nil and empty":                 {nil, &sandboxv1.SandboxPolicy{}, false},
		"version left out":              {&sandboxv1.SandboxPolicy{}, sections(""), true},
		"other version":                 {&sandboxv1.SandboxPolicy{Version: 2}, sections(""), false},
		"no filesystem section":         {sections(""), sections("filesystem_policy: {include_workdir: true}"), true},
		"empty filesystem section":      {sections(""), sections("filesystem_policy: {}"), false},
		"order of paths":                {sections("filesystem_policy: {read_only: [/a, /b]}"), sections("filesystem_policy: {read_only: [/b, /a, /b]}"), true},
		"separators in paths":           {sections("filesystem_policy: {read_only: [/a/b]}"), sections("filesystem_policy: {read_only: [//a/./b/]}"), true},
		"climbing paths stay":           {sections("filesystem_policy: {read_only: [/b]}"), sections("filesystem_policy: {read_only: [/a/../b]}"), false},
		"the other list":                {sections("filesystem_policy: {read_only: [/a]}"), sections("filesystem_policy: {read_write: [/a]}"), false},
		"no landlock section":           {sections(""), sections("landlock: {}"), true},
		"empty compatibility":           {sections("landlock: {compatibility: \"\"}"), sections("landlock: {compatibility: best_effort}"), true},
		"other compatibility":           {sections(""), sections("landlock: {compatibility: hard_requirement}"), false},
		"empty process section":         {sections(""), sections("process: {}"), true},
		"a process identity":            {sections("process: {}"), sections("process: {run_as_user: sandbox}"), false},
		"name is the key":               {withoutName, endpoint("port: 443"), true},
		"port and ports":                {onePort, endpoint("port: 443"), true},
		"order of ports":                {endpoint("ports: [1, 2]"), endpoint("ports: [2, 1]"), true},
		"case of the host":              {endpoint("path: /A"), mustParse(t, "version: 1\nnetwork_policies: {r: {endpoints: [{host: H.Example.com, path: /A}]}}"), true},
		"case of the path":              {endpoint("path: /A"), endpoint("path: /a"), false},
		"case of the protocol":          {endpoint("protocol: REST"), endpoint("protocol: rest"), true},
		"tcp is not nothing":            {endpoint("protocol: tcp"), endpoint(), false},
		"audit is the default":          {endpoint(), endpoint("enforcement: audit"), true},
		"enforce is not":                {endpoint(), endpoint("enforcement: enforce"), false},
		"deny is the default":           {endpoint(), endpoint("persisted_queries: deny"), true},
		"64 KiB are the default":        {endpoint("graphql_max_body_bytes: 65536"), endpoint("json_rpc: {max_body_bytes: 65536}"), true},
		"other limit":                   {endpoint("graphql_max_body_bytes: 65537"), endpoint(), false},
		"addresses in any spelling":     {endpoint(`allowed_ips: [" FE80::/10", 10.0.0.0/8]`), endpoint("allowed_ips: [10.0.0.0/8, fe80::/10]"), true},
		"MCP defaults":                  {bareMCP, endpoint("protocol: mcp", "mcp: {versions: [2025-11-25], strict_tool_names: true, allow_all_known_mcp_methods: false}"), true},
		"MCP strictness":                {bareMCP, endpoint("protocol: mcp", "mcp: {strict_tool_names: false}"), false},
		"order of rules":                {endpoint("rules: [{allow: {method: A}}, {allow: {method: B}}]"), endpoint("rules: [{allow: {method: B}}, {allow: {method: A}}]"), true},
		"order of patterns":             {endpoint("deny_rules: [{query: {q: {any: [a, b]}}}]"), endpoint("deny_rules: [{query: {q: {any: [b, a]}}}]"), true},
		"other pattern":                 {endpoint("deny_rules: [{query: {q: {any: [a, b]}}}]"), endpoint("deny_rules: [{query: {q: {any: [a, c]}}}]"), false},
		"a rule that allows nothing":    {noAllow, endpoint("port: 443", "rules: [{allow: {}}]"), true},
		"the gateway's marks":           {marked, endpoint("port: 443"), true},
		"middleware defaults":           {bareMiddleware, sections("network_middlewares: {m: {middleware: x, name: m, config: {}, on_error: fail_closed}}"), true},
		"middleware failure mode":       {bareMiddleware, sections("network_middlewares: {m: {middleware: x, on_error: fail_open}}"), false},
		"case of selectors":             {sections("network_middlewares: {m: {middleware: x, endpoints: {include: [A.b, c.d]}}}"), sections("network_middlewares: {m: {middleware: x, endpoints: {include: [C.D, a.b]}}}"), true},
		"order of a list in the config": {sections("network_middlewares: {m: {middleware: x, config: {l: [1, 2]}}}"), sections("network_middlewares: {m: {middleware: x, config: {l: [2, 1]}}}"), false},
		"number and text in the config": {sections("network_middlewares: {m: {middleware: x, config: {l: 1}}}"), sections("network_middlewares: {m: {middleware: x, config: {l: \"1\"}}}"), false},
		"JSON and YAML":                 {mustParse(t, `{"network_policies": {"r": {"binaries": [{"path": "/b"}]}}, "version": 1}`), sections("network_policies:\n  r:\n    binaries:\n    - path: /b"), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := policy.Equal(test.a, test.b); got != test.want {
				t.Errorf("Equal is %t\n%v\n%v", got, test.a, test.b)
			}
			if policy.Equal(test.b, test.a) != test.want {
				t.Error("the other way round it is not the same")
			}
		})
	}
}

// Order in a list is no meaning but belongs to the stored form, as upstream has it.
func TestHashKeepsOrder(t *testing.T) {
	a, b := mustParse(t, endpointText("ports: [1, 2]")), mustParse(t, endpointText("ports: [2, 1]"))
	if policy.Hash(a) == policy.Hash(b) {
		t.Error("lists in another order have the same hash")
	}
	null := &structpb.Struct{Fields: map[string]*structpb.Value{"a": structpb.NewNullValue()}}
	zero := &structpb.Struct{Fields: map[string]*structpb.Value{"a": structpb.NewNumberValue(0)}}
	withConfig := func(s *structpb.Struct) *sandboxv1.SandboxPolicy {
		return &sandboxv1.SandboxPolicy{NetworkMiddlewares: map[string]*sandboxv1.NetworkMiddlewareConfig{"m": {Config: s}}}
	}
	if policy.Hash(withConfig(null)) == policy.Hash(withConfig(zero)) || policy.Hash(withConfig(nil)) == policy.Hash(withConfig(&structpb.Struct{})) {
		t.Error("presence does not count")
	}
}
