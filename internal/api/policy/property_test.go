package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"
	"pgregory.net/rapid"

	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/policy"
)

// anyPolicy draws policies that have a written form, valid or not: every field, unset, short or strange.
func anyPolicy() *rapid.Generator[*sandboxv1.SandboxPolicy] {
	return rapid.Custom(func(t *rapid.T) *sandboxv1.SandboxPolicy {
		p := &sandboxv1.SandboxPolicy{}
		draw(t, p.ProtoReflect())
		p.Version = rapid.Uint32Range(0, 1).Draw(t, "version")
		return p
	})
}

// words are the strings that some fields are limited to.
var words = map[protoreflect.Name][]string{
	"compatibility":      {"", "best_effort", "hard_requirement"},
	"on_error":           {"", "fail_closed", "fail_open"},
	"persisted_queries":  {"", "deny", "allow_registered"},
	"credential_signing": {"", "sigv4", "sigv4:body", "sigv4:no_body"},
	"protocol":           {"", "tcp", "rest", "websocket", "graphql", "sql", "json-rpc", "mcp", "MCP"},
	"versions":           {"2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28", "latest"},
	"run_as_user":        {"", "sandbox", "1500"},
	"run_as_group":       {"", "sandbox", "1500"},
	"read_only":          {"/a", "/a/", "/b", "//a", "/c/../d"},
	"read_write":         {"/a", "/b/c", "/b/./c"},
}

func draw(t *rapid.T, m protoreflect.Message) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if !derived[f.FullName()] && rapid.Bool().Draw(t, "has "+string(f.Name())) {
			drawField(t, m, f)
		}
	}
	// What has no written form.
	switch message := m.Interface().(type) {
	case *sandboxv1.NetworkEndpoint:
		if !strings.EqualFold(message.GetProtocol(), "mcp") {
			message.Mcp = nil
		}
	case *sandboxv1.L7QueryMatcher:
		if len(message.GetAny()) > 0 {
			message.Glob = ""
		}
	case *sandboxv1.L7Rule:
		if message.GetAllow() == nil {
			message.Allow = &sandboxv1.L7Allow{}
		}
	}
}

func drawField(t *rapid.T, m protoreflect.Message, f protoreflect.FieldDescriptor) {
	name := string(f.Name())
	several := func(one func()) {
		for range rapid.IntRange(0, 3).Draw(t, name) {
			one()
		}
	}
	switch {
	case f.Message() != nil && f.Message().FullName() == "google.protobuf.Struct":
		m.Set(f, protoreflect.ValueOfMessage(drawJSON(t).ProtoReflect()))
	case f.IsMap():
		several(func() {
			value := m.Mutable(f).Map().NewValue()
			draw(t, value.Message())
			m.Mutable(f).Map().Set(protoreflect.ValueOfString(drawText(t, name)).MapKey(), value)
		})
	case f.IsList() && f.Message() != nil:
		several(func() { draw(t, m.Mutable(f).List().AppendMutable().Message()) })
	case f.IsList():
		several(func() { m.Mutable(f).List().Append(drawScalar(t, f)) })
	case f.Message() != nil:
		draw(t, m.Mutable(f).Message())
	default:
		m.Set(f, drawScalar(t, f))
	}
}

func drawScalar(t *rapid.T, f protoreflect.FieldDescriptor) protoreflect.Value {
	name := string(f.Name())
	switch f.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(rapid.Bool().Draw(t, name))
	case protoreflect.Uint32Kind:
		high := uint32(1<<32 - 1)
		if strings.HasPrefix(name, "port") {
			high = 65535
		}
		return protoreflect.ValueOfUint32(rapid.Uint32Range(0, high).Draw(t, name))
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(rapid.Int32().Draw(t, name))
	case protoreflect.EnumKind:
		highest := map[protoreflect.Name]int32{"tls": 1, "enforcement": 2, "access": 3}[f.Name()]
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(rapid.Int32Range(0, highest).Draw(t, name)))
	default:
		if choices := words[f.Name()]; choices != nil {
			return protoreflect.ValueOfString(rapid.SampledFrom(choices).Draw(t, name))
		}
		return protoreflect.ValueOfString(drawText(t, name))
	}
}

func drawText(t *rapid.T, name string) string {
	return rapid.OneOf(rapid.SampledFrom([]string{"", "a", "b", "name", "a.b", "*", "yes", "1", "2025-11-25", "any"}), rapid.String()).Draw(t, name)
}

// drawJSON draws what a middleware's configuration can hold.
func drawJSON(t *rapid.T) *structpb.Struct {
	var value func(depth int) *structpb.Value
	object := func(depth int) *structpb.Struct {
		s := &structpb.Struct{}
		for range rapid.IntRange(0, 2).Draw(t, "keys") {
			if s.Fields == nil {
				s.Fields = map[string]*structpb.Value{}
			}
			s.Fields[drawText(t, "key")] = value(depth + 1)
		}
		return s
	}
	value = func(depth int) *structpb.Value {
		switch kind := rapid.IntRange(0, 5).Draw(t, "kind"); {
		case kind == 0:
			return structpb.NewNullValue()
		case kind == 1:
			return structpb.NewBoolValue(rapid.Bool().Draw(t, "bool"))
		case kind == 2:
			return structpb.NewNumberValue(rapid.Float64().Draw(t, "number"))
		case kind == 3 && depth < 3:
			items := &structpb.ListValue{}
			for range rapid.IntRange(0, 2).Draw(t, "items") {
				items.Values = append(items.Values, value(depth+1))
			}
			return structpb.NewListValue(items)
		case kind == 4 && depth < 3:
			return structpb.NewStructValue(object(depth))
		default:
			return structpb.NewStringValue(drawText(t, "text"))
		}
	}
	return object(0)
}

// authored fills in what a reader fills in, so that the message is one that Parse can return.
func authored(p *sandboxv1.SandboxPolicy) *sandboxv1.SandboxPolicy {
	p = policy.Canonical(p)
	p.Version = 1
	if p.GetLandlock() != nil && p.GetLandlock().GetCompatibility() == "" {
		p.Landlock.Compatibility = "best_effort"
	}
	for key, rule := range p.GetNetworkPolicies() {
		if rule.GetName() == "" {
			rule.Name = key
		}
		for _, e := range rule.GetEndpoints() {
			if len(e.GetPorts()) == 0 && e.GetPort() != 0 {
				e.Ports = []uint32{e.GetPort()}
			}
			e.Port = 0
			if len(e.GetPorts()) > 0 {
				e.Port = e.GetPorts()[0]
			}
		}
	}
	for key, m := range p.GetNetworkMiddlewares() {
		if m.GetName() == "" {
			m.Name = key
		}
		if m.GetConfig() == nil {
			m.Config = &structpb.Struct{}
		}
	}
	return p
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyPolicy().Draw(t, "policy")
		text, err := policy.Format(p)
		if err != nil {
			t.Fatal(err)
		}
		back, err := policy.Parse(text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if !policy.Equal(back, p) {
			t.Fatalf("the meaning has changed:\n%v\n%v\n%s", p, back, text)
		}
		if want := authored(p); !proto.Equal(back, want) {
			t.Fatalf("the message has changed:\n%v\n%v\n%s", want, back, text)
		}
		again, err := policy.Format(back)
		if err != nil || again != text {
			t.Fatalf("the text has changed (%v):\n%s\n%s", err, text, again)
		}
	})
}

func TestCanonicalIsIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyPolicy().Draw(t, "policy")
		before := proto.CloneOf(p)
		once := policy.Canonical(p)
		if twice := policy.Canonical(once); !proto.Equal(once, twice) {
			t.Fatalf("%v\n%v", once, twice)
		}
		if policy.Hash(p) != policy.Hash(once) || !policy.Equal(p, once) || !proto.Equal(p, before) {
			t.Fatal("the canonical form is another policy, or the argument was changed")
		}
	})
}

// shuffle reorders and repeats the items of every list that stands for a set.
func shuffle(t *rapid.T, m protoreflect.Message) {
	m.Range(func(f protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case f.Message() != nil && f.Message().FullName() == "google.protobuf.Struct":
		case f.IsMap():
			for _, key := range sortedKeys(value.Map()) {
				shuffle(t, m.Mutable(f).Map().Mutable(key).Message())
			}
		case f.IsList():
			items := make([]protoreflect.Value, value.List().Len())
			for i := range items {
				items[i] = value.List().Get(i)
				if f.Message() != nil {
					shuffle(t, items[i].Message())
				}
			}
			items = rapid.Permutation(items).Draw(t, string(f.Name()))
			if len(items) > 0 && rapid.Bool().Draw(t, "repeat") {
				again := items[0]
				if f.Message() != nil {
					again = protoreflect.ValueOfMessage(proto.Clone(again.Message().Interface()).ProtoReflect())
				}
				items = append(items, again)
			}
			m.Clear(f)
			for _, item := range items {
				m.Mutable(f).List().Append(item)
			}
		case f.Message() != nil:
			shuffle(t, m.Mutable(f).Message())
		}
		return true
	})
}

func TestEqualUnderReordering(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyPolicy().Draw(t, "policy")
		shuffled := proto.CloneOf(p)
		shuffle(t, shuffled.ProtoReflect())
		if !policy.Equal(p, p) || !policy.Equal(p, shuffled) || !policy.Equal(shuffled, p) {
			t.Fatalf("not equal:\n%v\n%v", p, shuffled)
		}
		if change := policy.Compare(p, shuffled); change.Kind != policy.Unchanged {
			t.Fatalf("%v: %v", change.Kind, change.Reasons)
		}
	})
}

// What Compare, FillStatic, CheckLive and Equal say fits together.
func TestChangesAreConsistent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		current := anyPolicy().Draw(t, "current")
		next := anyPolicy().Draw(t, "next")
		switch rapid.IntRange(0, 3).Draw(t, "how near") {
		case 0: // the same fixed parts
			next.Filesystem, next.Landlock, next.Process = proto.CloneOf(current.GetFilesystem()), proto.CloneOf(current.GetLandlock()), proto.CloneOf(current.GetProcess())
		case 1: // some left out
			next.Landlock, next.Process = nil, nil
			next.Filesystem = proto.CloneOf(current.GetFilesystem())
			if next.GetFilesystem() != nil {
				next.Filesystem.ReadOnly = append(next.Filesystem.ReadOnly, "/added")
			}
		case 2: // the same network parts
			next.NetworkPolicies, next.NetworkMiddlewares = current.GetNetworkPolicies(), current.GetNetworkMiddlewares()
		}
		change := policy.Compare(current, next)
		filled := policy.FillStatic(next, current)
		if live := policy.CheckLive(current, filled); (change.Kind != policy.Replace) && live != nil {
			t.Fatalf("%v, but a gateway refuses: %v", change.Kind, live)
		}
		if unchanged := change.Kind == policy.Unchanged; unchanged != policy.Equal(current, filled) {
			t.Fatalf("%v, but Equal is %t", change.Kind, !unchanged)
		}
		if (len(change.Reasons) == 0) != (change.Kind == policy.Unchanged) {
			t.Fatalf("%v for %v", change.Kind, change.Reasons)
		}
		if again := policy.FillStatic(filled, current); !proto.Equal(again, filled) {
			t.Fatalf("filling twice differs:\n%v\n%v", filled, again)
		}
		if second := policy.Compare(current, filled); second.Kind != change.Kind {
			t.Fatalf("%v, after filling %v", change.Kind, second.Kind)
		}
		if back := policy.Compare(filled, filled); back.Kind != policy.Unchanged {
			t.Fatalf("with itself: %v", back.Reasons)
		}
	})
}

// Validate and Ambiguities take anything, and report in the same order each time.
func TestJudgingIsStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyPolicy().Draw(t, "policy")
		for _, judge := range []func(*sandboxv1.SandboxPolicy) error{policy.Validate, policy.Ambiguities} {
			if first, second := fmt.Sprint(judge(p)), fmt.Sprint(judge(p)); first != second {
				t.Fatalf("%s\n%s", first, second)
			}
		}
	})
}

// The same endpoints are ambiguous in whatever order their rules stand.
func TestAmbiguityIsSymmetric(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		endpoint := rapid.Custom(func(t *rapid.T) *sandboxv1.NetworkEndpoint {
			return &sandboxv1.NetworkEndpoint{
				Host:        rapid.SampledFrom([]string{"", "a.b.c", "*.b.c", "a.*.c", "**.c.d", "x.b.c"}).Draw(t, "host"),
				Ports:       rapid.SliceOfN(rapid.Uint32Range(1, 3), 1, 2).Draw(t, "ports"),
				Path:        rapid.SampledFrom([]string{"", "/**", "/a", "/b", "/?", "/[ab]"}).Draw(t, "path"),
				Protocol:    rapid.SampledFrom([]string{"", "tcp", "rest", "graphql"}).Draw(t, "protocol"),
				Tls:         sandboxv1.NetworkTlsMode(rapid.Int32Range(0, 1).Draw(t, "tls")),
				Enforcement: sandboxv1.NetworkEnforcementMode(rapid.Int32Range(0, 2).Draw(t, "enforcement")),
			}
		})
		endpoints := rapid.SliceOfN(endpoint, 2, 5).Draw(t, "endpoints")
		judge := func() bool {
			p := &sandboxv1.SandboxPolicy{NetworkPolicies: map[string]*sandboxv1.NetworkPolicyRule{"r": {Endpoints: endpoints}}}
			return policy.Ambiguities(p) != nil
		}
		first := judge()
		slices.Reverse(endpoints)
		if judge() != first {
			t.Fatalf("ambiguous is %t, the other way round %t: %v", first, !first, endpoints)
		}
	})
}
