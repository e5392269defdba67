package policy

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// scalar returns a single value.
func (d *decoder) scalar(node *yaml.Node, at *path, words string) *yaml.Node {
	node = d.resolve(node, at)
	if node == nil || !d.kind(node, at, yaml.ScalarNode, words) {
		return nil
	}
	if node.Tag == "!!null" {
		d.fail(node, at, "must be %s, not null; remove the key to leave it out", words)
		return nil
	}
	return node
}

// isText: YAML 1.2 has no dates, so what looks like one is text, as upstream reads mcp.versions.
func isText(node *yaml.Node) bool { return node.Tag == "!!str" || node.Tag == "!!timestamp" }

func (d *decoder) text(node *yaml.Node, at *path) (string, bool) {
	node = d.scalar(node, at, "text")
	if node == nil {
		return "", false
	}
	if !isText(node) {
		d.fail(node, at, "must be text; put quotes around %s", show(node.Value))
		return "", false
	}
	return node.Value, true
}

func (d *decoder) string(to *string) field {
	return func(node *yaml.Node, at *path) {
		if text, ok := d.text(node, at); ok {
			*to = text
		}
	}
}

// choice decodes a string that is one of a few, or empty.
func (d *decoder) choice(to *string, choices []string) field {
	return func(node *yaml.Node, at *path) {
		text, ok := d.text(node, at)
		switch {
		case !ok:
		case text != "" && !slices.Contains(choices, text):
			d.fail(node, at, "must be %s, not %s", oneOf(choices), show(text))
		default:
			*to = text
		}
	}
}

func (d *decoder) bool(to *bool) field {
	return func(node *yaml.Node, at *path) {
		node = d.scalar(node, at, "true or false")
		if node == nil {
			return
		}
		value, ok := boolOf(node)
		if !ok {
			d.fail(node, at, "must be true or false, not %s", show(node.Value))
		}
		*to = value
	}
}

// boolOf knows true and false only: yes and no are text in YAML 1.2, even where a tag says otherwise.
func boolOf(node *yaml.Node) (value, ok bool) {
	isTrue, isFalse := strings.EqualFold(node.Value, "true"), strings.EqualFold(node.Value, "false")
	return isTrue, node.Tag == "!!bool" && (isTrue || isFalse)
}

func (d *decoder) optionalBool(to **bool) field {
	return func(node *yaml.Node, at *path) {
		*to = new(bool)
		d.bool(*to)(node, at)
	}
}

var decimal = regexp.MustCompile(`^[-+]?(0|[1-9][0-9]*)$`)

// integer decodes a whole number within limits, both included.
func (d *decoder) integer(node *yaml.Node, at *path, low, high int64) int64 {
	node = d.scalar(node, at, "a whole number")
	if node == nil {
		return 0
	}
	if node.Tag != "!!int" || !decimal.MatchString(node.Value) {
		d.fail(node, at, "must be a whole number in plain decimal, not %s", show(node.Value))
		return 0
	}
	number, err := strconv.ParseInt(node.Value, 10, 64)
	if err != nil || number < low || number > high {
		d.fail(node, at, "must be from %d to %d, not %s", low, high, show(node.Value))
		return 0
	}
	return number
}

// number decodes an integer field of any type that the limits fit in.
func number[T ~int32 | ~uint32](d *decoder, to *T, low, high int64) field {
	return func(node *yaml.Node, at *path) { *to = T(d.integer(node, at, low, high)) }
}

// enum decodes the written form of an enum's value.
func enum[E ~int32](d *decoder, to *E, words []word[E], hint string) field {
	return func(node *yaml.Node, at *path) {
		text, ok := d.text(node, at)
		if !ok || text == "" {
			return
		}
		i := slices.IndexFunc(words, func(w word[E]) bool { return w.text == text })
		if i < 0 {
			d.fail(node, at, "must be %s, not %s%s", oneOf(texts(words)), show(text), hint)
			return
		}
		*to = words[i].value
	}
}

// list decodes a list item by item.
func list[T any](d *decoder, to *[]T, item func(node *yaml.Node, at *path) T) field {
	return func(node *yaml.Node, at *path) {
		node = d.resolve(node, at)
		if node == nil || !d.kind(node, at, yaml.SequenceNode, "a list") {
			return
		}
		for i, content := range node.Content {
			if d.fatal != nil {
				return
			}
			*to = append(*to, item(content, at.item(i)))
		}
	}
}

func (d *decoder) strings(to *[]string) field {
	return list(d, to, func(node *yaml.Node, at *path) string {
		text, _ := d.text(node, at)
		return text
	})
}

// named decodes a mapping whose keys the author chooses.
func named[T any](d *decoder, to *map[string]T, value func(name string, node *yaml.Node, at *path) T) field {
	return func(node *yaml.Node, at *path) {
		d.entries(node, at, func(name string, _, content *yaml.Node) {
			if *to == nil {
				*to = map[string]T{}
			}
			(*to)[name] = value(name, content, at.key(name))
		})
	}
}
