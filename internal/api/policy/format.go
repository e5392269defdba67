package policy

import (
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/types/known/structpb"

	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
)

// Format writes a policy as YAML that [Parse] reads back as a policy equal in meaning, and as the very same one if it
// came from Parse. It writes the canonical form: keys of a kind in a fixed order, named entries by name, MCP versions in
// full. What the gateway marks by itself is not written. An error is an [*Error] about values that the written form has no word for.
func Format(policy *sandboxv1.SandboxPolicy) (string, error) {
	f := &formatter{}
	root := f.policy(Canonical(policy))
	if err := f.err(); err != nil {
		return "", err
	}
	text, err := yaml.Dump(root, yaml.WithIndent(2), yaml.WithLineWidth(-1))
	if err != nil {
		return "", &Error{Problems: []Problem{{Message: "cannot be written as YAML: " + err.Error()}}}
	}
	return string(text), nil
}

// formatter builds nodes and collects what cannot be written.
type formatter struct{ problems }

// object is a mapping under construction; empty values are left out.
type object struct{ *yaml.Node }

func newObject() object { return object{&yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}} }

func (o object) set(key string, value *yaml.Node) {
	o.Content = append(o.Content, textNode(key), value)
}

func (o object) text(key, value string) {
	if value != "" {
		o.set(key, textNode(value))
	}
}

func (o object) bool(key string, value bool) {
	if value {
		o.set(key, boolNode(value))
	}
}

func (o object) number(key string, value int64) {
	if value != 0 {
		o.set(key, numberNode(strconv.FormatInt(value, 10), "!!int"))
	}
}

func (o object) texts(key string, values []string) {
	if len(values) > 0 {
		o.set(key, listNode(values, func(_ int, v string) *yaml.Node { return textNode(v) }))
	}
}

// plainText needs no quotes in any reader: it cannot be taken for a number, a date, or a word such as yes.
var (
	plainText = regexp.MustCompile(`^[A-Za-z/][A-Za-z0-9/._-]*$`)
	wordLike  = regexp.MustCompile(`(?i)^(true|false|yes|no|on|off|y|n|null|nan|inf)$`)
)

func textNode(value string) *yaml.Node {
	node := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}
	if !plainText.MatchString(value) || wordLike.MatchString(value) {
		node.Style = yaml.DoubleQuotedStyle
	}
	return node
}

func boolNode(value bool) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(value)}
}

func numberNode(value, tag string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value}
}

func listNode[T any](items []T, node func(i int, item T) *yaml.Node) *yaml.Node {
	list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	for i, item := range items {
		list.Content = append(list.Content, node(i, item))
	}
	return list
}

// namedNode writes a map by the order of its keys.
func namedNode[T any](entries map[string]T, node func(key string, value T) *yaml.Node) *yaml.Node {
	o := newObject()
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		o.set(key, node(key, entries[key]))
	}
	return o.Node
}

func (f *formatter) policy(p *sandboxv1.SandboxPolicy) *yaml.Node {
	o := newObject()
	o.number("version", int64(max(p.GetVersion(), 1)))
	if filesystem := p.GetFilesystem(); filesystem != nil {
		section := newObject()
		section.set("include_workdir", boolNode(filesystem.GetIncludeWorkdir()))
		section.texts("read_only", filesystem.GetReadOnly())
		section.texts("read_write", filesystem.GetReadWrite())
		o.set("filesystem_policy", section.Node)
	}
	if landlock := p.GetLandlock(); landlock != nil {
		section := newObject()
		section.text("compatibility", orDefault(landlock.GetCompatibility(), compatibilities))
		o.set("landlock", section.Node)
	}
	if process := p.GetProcess(); process != nil {
		section := newObject()
		section.text("run_as_user", process.GetRunAsUser())
		section.text("run_as_group", process.GetRunAsGroup())
		o.set("process", section.Node)
	}
	if len(p.GetNetworkPolicies()) > 0 {
		at := (*path)(nil).key("network_policies")
		o.set("network_policies", namedNode(p.GetNetworkPolicies(), func(key string, rule *sandboxv1.NetworkPolicyRule) *yaml.Node {
			return f.rule(key, rule, at.key(key))
		}))
	}
	if len(p.GetNetworkMiddlewares()) > 0 {
		at := (*path)(nil).key("network_middlewares")
		o.set("network_middlewares", namedNode(p.GetNetworkMiddlewares(), func(key string, m *sandboxv1.NetworkMiddlewareConfig) *yaml.Node {
			return f.middleware(key, m, at.key(key))
		}))
	}
	return o.Node
}

func (f *formatter) middleware(key string, m *sandboxv1.NetworkMiddlewareConfig, at *path) *yaml.Node {
	o := newObject()
	if m.GetName() != key {
		o.text("name", m.GetName())
	}
	o.set("middleware", textNode(m.GetMiddleware()))
	o.number("order", int64(m.GetOrder()))
	if len(m.GetConfig().GetFields()) > 0 {
		o.set("config", f.jsonObject(m.GetConfig(), at.key("config")))
	}
	o.text("on_error", m.GetOnError())
	if endpoints := m.GetEndpoints(); endpoints != nil {
		selector := newObject()
		selector.texts("include", endpoints.GetInclude())
		selector.texts("exclude", endpoints.GetExclude())
		o.set("endpoints", selector.Node)
	}
	return o.Node
}

func (f *formatter) jsonObject(s *structpb.Struct, at *path) *yaml.Node {
	return namedNode(s.GetFields(), func(key string, value *structpb.Value) *yaml.Node { return f.jsonValue(value, at.key(key)) })
}

func (f *formatter) jsonValue(value *structpb.Value, at *path) *yaml.Node {
	switch kind := value.GetKind().(type) {
	case *structpb.Value_StructValue:
		return f.jsonObject(kind.StructValue, at)
	case *structpb.Value_ListValue:
		return listNode(kind.ListValue.GetValues(), func(i int, v *structpb.Value) *yaml.Node { return f.jsonValue(v, at.item(i)) })
	case *structpb.Value_StringValue:
		return textNode(kind.StringValue)
	case *structpb.Value_BoolValue:
		return boolNode(kind.BoolValue)
	case *structpb.Value_NumberValue:
		return f.jsonNumber(kind.NumberValue, at)
	default:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
	}
}

// jsonNumber writes whole numbers as such while they are exact.
func (f *formatter) jsonNumber(number float64, at *path) *yaml.Node {
	const exact = 1 << 53
	switch {
	case math.IsNaN(number) || math.IsInf(number, 0):
		f.add(at, "is no number that JSON knows")
		return textNode("")
	case number == math.Trunc(number) && math.Abs(number) <= exact && !(number == 0 && math.Signbit(number)):
		return numberNode(strconv.FormatInt(int64(number), 10), "!!int")
	default:
		return numberNode(strconv.FormatFloat(number, 'e', -1, 64), "!!float")
	}
}
