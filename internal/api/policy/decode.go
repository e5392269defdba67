package policy

import (
	"maps"
	"slices"

	"go.yaml.in/yaml/v4"
)

// decoder turns nodes into messages and collects what does not fit.
type decoder struct {
	problems
	// fatal ends the reading; other problems may then be mere consequences.
	fatal          *Problem
	nodes, aliases int
}

// field decodes the value of one key.
type field func(node *yaml.Node, at *path)

// fields are the keys an object knows.
type fields map[string]field

// hints tell the way out for keys that are known to be tried.
var hints = map[string]string{
	"filesystem":              "write filesystem_policy",
	"graphql":                 "write graphql_max_body_bytes, persisted_queries or graphql_persisted_queries",
	"json_rpc_max_body_bytes": "write json_rpc.max_body_bytes, or mcp.max_body_bytes with protocol mcp",
	"harness":                 "OpenShell 0.1 has dropped it, remove it",
	"advisor_proposed":        "the gateway sets it, remove it",
	"provider_credentialed":   "the gateway sets it, remove it",
	"token_grant_owner":       "the gateway sets it, remove it",
	"on_uninspectable":        "OpenShell 0.1 does not have it yet, remove it",
}

// resolve follows an alias and counts; nil means that the value has been dealt with.
func (d *decoder) resolve(node *yaml.Node, at *path) *yaml.Node {
	if d.fatal != nil {
		return nil
	}
	d.nodes++
	if d.nodes > maxNodes {
		d.stop(node, at, "the policy has more than %d values", maxNodes)
		return nil
	}
	if (node.Kind == yaml.MappingNode || node.Kind == yaml.SequenceNode) && at.level() >= maxDepth {
		d.stop(node, at, "the policy is nested deeper than %d levels", maxDepth)
		return nil
	}
	if node.Kind == yaml.AliasNode {
		d.aliases++
		if d.aliases > maxAliases {
			d.stop(node, at, "aliases are used more than %d times", maxAliases)
			return nil
		}
		return d.resolve(node.Alias, at)
	}
	return node
}

func (d *decoder) stop(node *yaml.Node, at *path, format string, args ...any) {
	var last problems
	last.addAt(at, node.Line, node.Column, format, args...)
	d.fatal = &last.kept[0]
}

func (d *decoder) fail(node *yaml.Node, at *path, format string, args ...any) {
	d.addAt(at, node.Line, node.Column, format, args...)
}

// object decodes a mapping with known keys. It reports unknown, repeated and missing ones, and whether node is a mapping.
func (d *decoder) object(node *yaml.Node, at *path, known fields, required ...string) bool {
	seen := map[string]bool{}
	ok := d.entries(node, at, func(name string, key, value *yaml.Node) {
		decode, isKnown := known[name]
		switch {
		case isKnown:
			seen[name] = true
			decode(value, at.key(name))
		case hints[name] != "":
			d.fail(key, at.key(name), "unknown key; %s", hints[name])
		default:
			d.fail(key, at.key(name), "unknown key; expected %s", oneOf(slices.Sorted(maps.Keys(known))))
		}
	})
	for _, name := range required {
		if ok && !seen[name] {
			d.fail(node, at, "%s is missing", name)
		}
	}
	return ok
}

// entries visits a mapping with distinct text keys, in the order of the text.
func (d *decoder) entries(node *yaml.Node, at *path, visit func(name string, key, value *yaml.Node)) bool {
	node = d.resolve(node, at)
	if node == nil || !d.kind(node, at, yaml.MappingNode, "keys with values") {
		return false
	}
	seen := make(map[string]int, len(node.Content)/2)
	for i := 0; i < len(node.Content) && d.fatal == nil; i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		name, ok := d.keyName(key, at)
		if !ok {
			continue
		}
		if line, again := seen[name]; again {
			d.fail(key, at.key(name), "the key is already on line %d", line)
			continue
		}
		seen[name] = key.Line
		visit(name, key, value)
	}
	return true
}

func (d *decoder) keyName(key *yaml.Node, at *path) (string, bool) {
	position := key
	key = d.resolve(key, at)
	switch {
	case key == nil:
		return "", false
	case key.Tag == "!!merge":
		d.fail(position, at, "merge keys (<<) are not allowed; repeat the keys")
	case key.Kind != yaml.ScalarNode:
		d.fail(position, at, "a key must be text")
	case !isText(key):
		d.fail(position, at, "the key %s must be text; put quotes around it", show(key.Value))
	default:
		return key.Value, true
	}
	return "", false
}

// kind reports whether a node is of the kind wanted, which is described in words for the message.
func (d *decoder) kind(node *yaml.Node, at *path, want yaml.Kind, words string) bool {
	if node.Kind == want {
		return true
	}
	switch {
	case node.Kind == yaml.MappingNode:
		d.fail(node, at, "must be %s, not keys with values", words)
	case node.Kind == yaml.SequenceNode:
		d.fail(node, at, "must be %s, not a list", words)
	case node.Tag == "!!null":
		d.fail(node, at, "must be %s, not null; remove the key to leave it out", words)
	default:
		d.fail(node, at, "must be %s, not %s", words, show(node.Value))
	}
	return false
}
