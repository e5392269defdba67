package policy

import (
	"math"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/types/known/structpb"

	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
)

func (d *decoder) policy(root *yaml.Node) *sandboxv1.SandboxPolicy {
	p := &sandboxv1.SandboxPolicy{}
	d.object(root, nil, fields{
		"version":             d.version(&p.Version),
		"filesystem_policy":   d.filesystem(&p.Filesystem),
		"landlock":            d.landlock(&p.Landlock),
		"process":             d.process(&p.Process),
		"network_policies":    named(d, &p.NetworkPolicies, d.rule),
		"network_middlewares": named(d, &p.NetworkMiddlewares, d.middleware),
	}, "version")
	return p
}

func (d *decoder) version(to *uint32) field {
	return func(node *yaml.Node, at *path) {
		before := len(d.kept)
		*to = uint32(d.integer(node, at, 0, math.MaxUint32))
		if len(d.kept) == before && *to != 1 {
			d.fail(node, at, "must be 1, not %d", *to)
		}
	}
}

func (d *decoder) filesystem(to **sandboxv1.FilesystemPolicy) field {
	return func(node *yaml.Node, at *path) {
		f := &sandboxv1.FilesystemPolicy{}
		d.object(node, at, fields{
			"include_workdir": d.bool(&f.IncludeWorkdir),
			"read_only":       d.strings(&f.ReadOnly),
			"read_write":      d.strings(&f.ReadWrite),
		})
		*to = f
	}
}

func (d *decoder) landlock(to **sandboxv1.LandlockPolicy) field {
	return func(node *yaml.Node, at *path) {
		l := &sandboxv1.LandlockPolicy{Compatibility: compatibilities[0]}
		d.object(node, at, fields{"compatibility": d.choice(&l.Compatibility, compatibilities)})
		*to = l
	}
}

func (d *decoder) process(to **sandboxv1.ProcessPolicy) field {
	return func(node *yaml.Node, at *path) {
		p := &sandboxv1.ProcessPolicy{}
		d.object(node, at, fields{
			"run_as_user":  d.string(&p.RunAsUser),
			"run_as_group": d.string(&p.RunAsGroup),
		})
		*to = p
	}
}

func (d *decoder) middleware(name string, node *yaml.Node, at *path) *sandboxv1.NetworkMiddlewareConfig {
	// Upstream always sends a config, if an empty one.
	m := &sandboxv1.NetworkMiddlewareConfig{Config: &structpb.Struct{}}
	d.object(node, at, fields{
		"name":       d.string(&m.Name),
		"middleware": d.string(&m.Middleware),
		"order":      number(d, &m.Order, math.MinInt32, math.MaxInt32),
		"on_error":   d.choice(&m.OnError, failureModes),
		"config": func(node *yaml.Node, at *path) {
			if config := d.jsonObject(node, at); config != nil {
				m.Config = config
			}
		},
		"endpoints": func(node *yaml.Node, at *path) {
			m.Endpoints = &sandboxv1.MiddlewareEndpointSelector{}
			d.object(node, at, fields{
				"include": d.strings(&m.Endpoints.Include),
				"exclude": d.strings(&m.Endpoints.Exclude),
			})
		},
	}, "middleware")
	if m.GetName() == "" {
		m.Name = name
	}
	return m
}

// jsonObject decodes the free part of a policy. Its values may be secret, so messages do not repeat them.
func (d *decoder) jsonObject(node *yaml.Node, at *path) *structpb.Struct {
	values := map[string]*structpb.Value{}
	if !d.entries(node, at, func(name string, _, value *yaml.Node) { values[name] = d.jsonValue(value, at.key(name)) }) {
		return nil
	}
	return &structpb.Struct{Fields: values}
}

var jsonNumber = regexp.MustCompile(`^[-+]?(0|[1-9][0-9]*)?(\.[0-9]*)?([eE][-+]?[0-9]+)?$`)

func (d *decoder) jsonValue(node *yaml.Node, at *path) *structpb.Value {
	node = d.resolve(node, at)
	switch {
	case node == nil:
		return nil
	case node.Kind == yaml.MappingNode:
		return structpb.NewStructValue(d.jsonObject(node, at))
	case node.Kind == yaml.SequenceNode:
		items := &structpb.ListValue{}
		for i, content := range node.Content {
			items.Values = append(items.Values, d.jsonValue(content, at.item(i)))
		}
		return structpb.NewListValue(items)
	case isText(node):
		return structpb.NewStringValue(node.Value)
	case node.Tag == "!!null":
		return structpb.NewNullValue()
	case (node.Tag == "!!int" || node.Tag == "!!float") && jsonNumber.MatchString(node.Value):
		return d.jsonNumber(node, at)
	}
	if value, ok := boolOf(node); ok {
		return structpb.NewBoolValue(value)
	}
	d.fail(node, at, "must be text, a number in plain decimal, true, false, null, a list or keys with values")
	return nil
}

// jsonNumber refuses whole numbers that a double would change, as upstream does.
func (d *decoder) jsonNumber(node *yaml.Node, at *path) *structpb.Value {
	value, err := strconv.ParseFloat(node.Value, 64)
	whole, wholeErr := strconv.ParseInt(node.Value, 10, 64)
	if err != nil || node.Tag == "!!int" && (wholeErr != nil || value >= math.MaxInt64 || int64(value) != whole) {
		d.fail(node, at, "the number cannot be kept exactly; put quotes around it to keep it as text")
		return nil
	}
	return structpb.NewNumberValue(value)
}
