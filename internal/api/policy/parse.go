package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	// yaml/v4 is the YAML organisation's own and takes time linear in the text; its errors carry line and column as
	// fields, and its nodes keep positions, duplicates and aliases, so that all problems can be found in one pass.
	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"

	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
)

// Limits of a policy's text; upstream's reader has the same.
const (
	MaxTextBytes = 4 << 20
	maxDepth     = 64
	maxNodes     = 100_000
	maxAliases   = 100
)

// Parse reads a policy from YAML or JSON in upstream's spelling. What is left out stays absent or takes the default that
// upstream's own reader fills in: names, both port fields, MCP versions, landlock compatibility.
// An error is an [*Error] with every problem of form and its position; [Validate] judges the content.
func Parse(text string) (*sandboxv1.SandboxPolicy, error) {
	policy, _, err := read(text)
	return policy, err
}

// ParseAndValidate reads a policy and applies [Validate] and [Ambiguities], with positions in all problems.
// Content is judged once the form is right.
func ParseAndValidate(text string) (*sandboxv1.SandboxPolicy, error) {
	policy, root, err := read(text)
	if err != nil {
		return nil, err
	}
	var found problems
	validate(policy, &found)
	ambiguities(policy, &found)
	for i := range found.kept {
		p := &found.kept[i]
		p.Line, p.Column = locate(root, p.at)
	}
	if err := found.err(); err != nil {
		return nil, err
	}
	return policy, nil
}

func read(text string) (*sandboxv1.SandboxPolicy, *yaml.Node, error) {
	root, err := load(text)
	if err != nil {
		return nil, nil, err
	}
	d := &decoder{}
	policy := d.policy(root)
	if d.fatal != nil {
		return nil, nil, &Error{Problems: []Problem{*d.fatal}}
	}
	if err := d.err(); err != nil {
		return nil, nil, err
	}
	return policy, root, nil
}

// load returns the root of the text's only document.
func load(text string) (*yaml.Node, error) {
	if len(text) > MaxTextBytes {
		return nil, textError(0, 0, "the text has %d bytes; a policy has at most %d", len(text), MaxTextBytes)
	}
	if !utf8.ValidString(text) {
		return nil, textError(0, 0, "the text is not valid UTF-8")
	}
	loader, err := yaml.NewLoader(strings.NewReader(joinSurrogates(text)), yaml.WithPlugin(loaderlimits.New(loaderlimits.DepthValue(maxDepth))))
	if err != nil {
		return nil, fmt.Errorf("set up the YAML reader: %w", err)
	}
	var document, next yaml.Node
	switch err := loader.Load(&document); {
	case errors.Is(err, io.EOF):
		return nil, textError(0, 0, "the text is empty; a policy needs at least: version: 1")
	case err != nil:
		return nil, syntaxError(text, err)
	}
	switch err := loader.Load(&next); {
	case err == nil:
		return nil, textError(next.Line, next.Column, "a second document starts here; a policy is one document")
	case !errors.Is(err, io.EOF):
		return nil, syntaxError(text, err)
	}
	return document.Content[0], nil
}

func textError(line, column int, format string, args ...any) error {
	return &Error{Problems: []Problem{{Line: line, Column: column, Message: fmt.Sprintf(format, args...)}}}
}

func syntaxError(text string, err error) error {
	var syntax *yaml.LoadError
	if !errors.As(err, &syntax) {
		return textError(0, 0, "not valid YAML: %v", err)
	}
	message := "not valid YAML: " + syntax.Message
	if syntax.ContextMsg != "" {
		message += " (" + syntax.ContextMsg + ")"
	}
	if line := syntax.Mark.Line; line > 0 && tabIndented(text, line) {
		message += "; the line is indented with a tab, use spaces"
	}
	return textError(syntax.Mark.Line, syntax.Mark.Column, "%s", message)
}

func tabIndented(text string, line int) bool {
	for range line - 1 {
		_, text, _ = strings.Cut(text, "\n")
	}
	return strings.HasPrefix(strings.TrimLeft(text, " "), "\t")
}

var surrogatePair = regexp.MustCompile(`\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}`)

// joinSurrogates rewrites the escaped surrogate pairs of a JSON text, which YAML does not know. Columns behind one
// shift by two.
func joinSurrogates(text string) string {
	if !strings.HasPrefix(strings.TrimSpace(text), "{") || !surrogatePair.MatchString(text) || !json.Valid([]byte(text)) {
		return text
	}
	return surrogatePair.ReplaceAllStringFunc(text, func(pair string) string {
		high, _ := strconv.ParseUint(pair[2:6], 16, 32)
		low, _ := strconv.ParseUint(pair[8:12], 16, 32)
		return fmt.Sprintf(`\U%08X`, utf16.DecodeRune(rune(high), rune(low)))
	})
}

// locate finds a path's line and column, or those of what comes nearest above it.
func locate(root *yaml.Node, at *path) (line, column int) {
	line, column = root.Line, root.Column
	node := root
	for _, step := range at.steps() {
		position, value := child(node, step)
		if value == nil {
			break
		}
		line, column = position.Line, position.Column
		node = value
	}
	return line, column
}

// child returns the node a step leads to and the node that names it: the key in a mapping, the item itself in a list.
func child(node *yaml.Node, step *path) (position, value *yaml.Node) {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	switch {
	case node.Kind == yaml.SequenceNode && !step.keyed && step.index < len(node.Content):
		return node.Content[step.index], node.Content[step.index]
	case node.Kind == yaml.MappingNode && step.keyed:
		for i := 0; i < len(node.Content); i += 2 {
			if node.Content[i].Value == step.name {
				return node.Content[i], node.Content[i+1]
			}
		}
	}
	return nil, nil
}
