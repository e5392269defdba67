package policy_test

import (
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"

	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/policy"
)

const formatted = `version: 1
filesystem_policy:
  include_workdir: true
  read_only:
  - /usr
  - /etc
  read_write:
  - /tmp
landlock:
  compatibility: hard_requirement
process:
  run_as_user: "1500"
network_policies:
  github:
    name: "GitHub, read only"
    endpoints:
    - host: api.github.com
      port: 443
      protocol: rest
      enforcement: enforce
      access: read-only
    binaries:
    - path: /usr/bin/curl
network_middlewares:
  redact:
    middleware: openshell/regex
    order: 10
    config:
      limit: 3
      mode: redact
      terms:
      - a
      - null
      - true
      - 1.5e+00
    on_error: fail_open
    endpoints:
      include:
      - "*.github.com"
      exclude:
      - raw.github.com
`

func mustFormat(t testing.TB, p *sandboxv1.SandboxPolicy) string {
	t.Helper()
	text, err := policy.Format(p)
	if err != nil {
		t.Fatalf("Format: %v\n%v", err, p)
	}
	return text
}

func TestFormat(t *testing.T) {
	for range 20 { // maps are visited in another order each time
		if got := mustFormat(t, githubPolicy()); got != formatted {
			t.Fatalf("got:\n%s\nwant:\n%s", got, formatted)
		}
	}
}

// What is left out in a message is left out in the text, and a section that is there is written even if it is empty.
func TestFormatSparse(t *testing.T) {
	for want, p := range map[string]*sandboxv1.SandboxPolicy{
		"version: 1\n": {},
		"version: 1\nfilesystem_policy:\n  include_workdir: false\nlandlock:\n  compatibility: best_effort\nprocess: {}\n": {
			Filesystem: &sandboxv1.FilesystemPolicy{}, Landlock: &sandboxv1.LandlockPolicy{}, Process: &sandboxv1.ProcessPolicy{},
		},
		"version: 1\nnetwork_policies:\n  r:\n    endpoints:\n    - host: h\n      ports:\n      - 80\n      - 443\n": {
			NetworkPolicies: map[string]*sandboxv1.NetworkPolicyRule{"r": {Name: "r", Endpoints: []*sandboxv1.NetworkEndpoint{{Host: "h", Port: 80, Ports: []uint32{80, 443}}}}},
		},
		"version: 1\nnetwork_policies:\n  r:\n    endpoints:\n    - ports:\n      - 0\n": {
			NetworkPolicies: map[string]*sandboxv1.NetworkPolicyRule{"r": {Endpoints: []*sandboxv1.NetworkEndpoint{{Ports: []uint32{0}}}}},
		},
		"version: 1\nnetwork_policies:\n  r:\n    endpoints:\n    - port: 80\n": {
			NetworkPolicies: map[string]*sandboxv1.NetworkPolicyRule{"r": {Endpoints: []*sandboxv1.NetworkEndpoint{{Port: 80}}}},
		},
	} {
		if got := mustFormat(t, p); got != want {
			t.Errorf("got:\n%s\nwant:\n%s", got, want)
		}
	}
}

// The name parameter has a word of its own with MCP, and only there.
func TestFormatRequests(t *testing.T) {
	rule := "rules: [{allow: {method: tools/call, params: {name: {any: [a, b*]}, x.y: z}, query: {q: '*'}}}]"
	for protocol, want := range map[string]string{
		"mcp": `
          tool:
            any:
            - a
            - "b*"
          params:
            x.y: z
`,
		"rest": `
          params:
            name:
              any:
              - a
              - "b*"
            x.y: z
`,
	} {
		text := mustFormat(t, mustParse(t, endpointText("port: 1", "protocol: "+protocol, rule)))
		if want = "      - allow:\n          method: tools/call\n          query:\n            q: \"*\"" + want; !strings.Contains(text, want) {
			t.Errorf("%s:\n%s\nwant in it:\n%s", protocol, text, want)
		}
	}
}

func TestFormatTrickyText(t *testing.T) {
	for _, text := range []string{
		"", " ", "yes", "No", "ON", "y", "~", "null", "Null", "true", "0", "007", "0x1F", "1_000", "1e3", ".inf", "-.INF", ".NaN", "nan", "2025-11-25", "12:30:45",
		"<<", "=", "-", "- a", "a: b", "a #b", "#a", "*a", "&a", "!a", "%a", "@a", "`a", "|", ">", "{a}", "[a]", "'", `"`, `\`, "\t", "a\nb", "a\r\nb\n", "\n", "\x00", "\x1b", "\u0085", "\u2028", "\ufeff", "\U0001F600", "café", "a b", "?", "? a", "/usr/bin", "---", "...", strings.Repeat("long ", 500),
	} {
		p := &sandboxv1.SandboxPolicy{
			Version: 1, Process: &sandboxv1.ProcessPolicy{RunAsUser: text},
			NetworkMiddlewares: map[string]*sandboxv1.NetworkMiddlewareConfig{
				text: {Name: "n", Middleware: text, Config: &structpb.Struct{Fields: map[string]*structpb.Value{text: structpb.NewStringValue(text)}}},
			},
		}
		wantEqual(t, mustParse(t, mustFormat(t, p)), p)
	}
}

func TestFormatNumbers(t *testing.T) {
	for _, number := range []float64{0, math.Copysign(0, -1), 1, -1, 0.1, 1e-300, 1e300, 1 << 53, 1<<53 + 2, -(1 << 60), math.MaxFloat64, math.SmallestNonzeroFloat64} {
		p := &sandboxv1.SandboxPolicy{Version: 1, NetworkMiddlewares: map[string]*sandboxv1.NetworkMiddlewareConfig{
			"m": {Name: "m", Config: &structpb.Struct{Fields: map[string]*structpb.Value{"n": structpb.NewNumberValue(number)}}},
		}}
		got := mustParse(t, mustFormat(t, p)).GetNetworkMiddlewares()["m"].GetConfig().GetFields()["n"].GetNumberValue()
		if math.Float64bits(got) != math.Float64bits(number) {
			t.Errorf("%g came back as %g", number, got)
		}
	}
}

// populate sets every field of a message to something distinct, lists to two items and maps to two entries. So a field
// that comes with regenerated protos and is not handled makes the tests fail by name.
func populate(m protoreflect.Message, n *int, skip map[protoreflect.FullName]bool) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if skip[f.FullName()] {
			continue
		}
		switch {
		case f.IsMap():
			for range 2 {
				*n++
				entry := m.Mutable(f).Map().NewValue()
				if f.MapValue().Message() != nil {
					populate(entry.Message(), n, skip)
				}
				m.Mutable(f).Map().Set(protoreflect.ValueOfString(fmt.Sprint("key", *n)).MapKey(), entry)
			}
		case f.IsList():
			for range 2 {
				*n++
				if f.Message() != nil {
					populate(m.Mutable(f).List().AppendMutable().Message(), n, skip)
				} else {
					m.Mutable(f).List().Append(scalar(f, *n))
				}
			}
		case f.Message() != nil && f.Message().FullName() == "google.protobuf.Struct":
			config, err := structpb.NewStruct(map[string]any{"a": 1, "b": []any{"x", false, nil}, "c": map[string]any{"d": 0.5}})
			if err != nil {
				panic(err)
			}
			m.Set(f, protoreflect.ValueOfMessage(config.ProtoReflect()))
		case f.Message() != nil:
			populate(m.Mutable(f).Message(), n, skip)
		default:
			*n++
			m.Set(f, scalar(f, *n))
		}
	}
}

func scalar(f protoreflect.FieldDescriptor, n int) protoreflect.Value {
	switch f.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(uint32(n))
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(int32(n))
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(1)
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(fmt.Sprint(f.Name(), n))
	default:
		panic("no value for " + f.FullName())
	}
}

// derived are the fields that the written form has no key for.
var derived = map[protoreflect.FullName]bool{
	"openshell.sandbox.v1.NetworkEndpoint.advisor_proposed":      true,
	"openshell.sandbox.v1.NetworkEndpoint.provider_credentialed": true,
	"openshell.sandbox.v1.NetworkEndpoint.token_grant_owner":     true,
}

// fullPolicy has every field that can be written, in the form that Parse gives it.
func fullPolicy(skip map[protoreflect.FullName]bool) *sandboxv1.SandboxPolicy {
	p, n := &sandboxv1.SandboxPolicy{}, 0
	populate(p.ProtoReflect(), &n, skip)
	p.Version = 1
	p.Landlock.Compatibility = "hard_requirement"
	for _, m := range p.GetNetworkMiddlewares() {
		m.OnError = "fail_open"
	}
	for _, rule := range p.GetNetworkPolicies() {
		for _, e := range rule.GetEndpoints() {
			e.Port = e.GetPorts()[0]
			e.Protocol, e.Mcp.Versions = "mcp", []string{"2025-03-26", "2026-07-28"}
			e.PersistedQueries, e.CredentialSigning = "allow_registered", "sigv4"
			for _, r := range e.GetRules() {
				oneForm(r.GetAllow().GetQuery(), r.GetAllow().GetParams())
			}
			for _, r := range e.GetDenyRules() {
				oneForm(r.GetQuery(), r.GetParams())
			}
		}
	}
	return p
}

// oneForm makes each matcher either a pattern or a list of them, in turn.
func oneForm(all ...map[string]*sandboxv1.L7QueryMatcher) {
	for _, matchers := range all {
		keys := maps.Keys(matchers)
		i := 0
		for key := range keys {
			if i%2 == 0 {
				matchers[key].Glob = ""
			} else {
				matchers[key].Any = nil
			}
			i++
		}
	}
}

func TestEveryFieldSurvivesTheRoundTrip(t *testing.T) {
	p := fullPolicy(derived)
	wantEqual(t, mustParse(t, mustFormat(t, p)), p)
}

func TestFormatRefuses(t *testing.T) {
	endpoint := func(e *sandboxv1.NetworkEndpoint) *sandboxv1.SandboxPolicy {
		return &sandboxv1.SandboxPolicy{NetworkPolicies: map[string]*sandboxv1.NetworkPolicyRule{"r": {Endpoints: []*sandboxv1.NetworkEndpoint{e}}}}
	}
	for want, p := range map[string]*sandboxv1.SandboxPolicy{
		"network_policies.r.endpoints[0].tls: the value 2 has no written form":                             endpoint(&sandboxv1.NetworkEndpoint{Tls: 2}),
		"network_policies.r.endpoints[0].enforcement: the value 9 has no written form":                     endpoint(&sandboxv1.NetworkEndpoint{Enforcement: 9}),
		"network_policies.r.endpoints[0].access: the value -1 has no written form":                         endpoint(&sandboxv1.NetworkEndpoint{Access: -1}),
		"network_policies.r.endpoints[0].mcp: is for protocol mcp only":                                    endpoint(&sandboxv1.NetworkEndpoint{Mcp: &sandboxv1.McpOptions{}}),
		"network_policies.r.endpoints[0].deny_rules[0].query.q: has both a pattern and a list of patterns": endpoint(&sandboxv1.NetworkEndpoint{DenyRules: []*sandboxv1.L7DenyRule{{Query: map[string]*sandboxv1.L7QueryMatcher{"q": {Glob: "a", Any: []string{"b"}}}}}}),
		"network_middlewares.m.config.n[0]: is no number that JSON knows": {NetworkMiddlewares: map[string]*sandboxv1.NetworkMiddlewareConfig{"m": {
			Config: &structpb.Struct{Fields: map[string]*structpb.Value{"n": structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{structpb.NewNumberValue(math.Inf(1))}})}},
		}}},
	} {
		text, err := policy.Format(p)
		wantProblems(t, err, false, []string{want})
		if text != "" {
			t.Errorf("%s: text in spite of the error:\n%s", want, text)
		}
	}
}

func TestFormatLeavesOutDerivedMarks(t *testing.T) {
	p := mustParse(t, endpointText("port: 443"))
	marked := proto.CloneOf(p)
	e := onlyEndpoint(marked)
	e.AdvisorProposed, e.ProviderCredentialed, e.TokenGrantOwner = true, true, "owner"
	wantEqual(t, mustParse(t, mustFormat(t, marked)), p)
}
