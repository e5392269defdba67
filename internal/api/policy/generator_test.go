package policy_test

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"
	"pgregory.net/rapid"

	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
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
