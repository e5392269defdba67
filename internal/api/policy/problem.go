package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Problems beyond these are counted, not kept or not shown: a policy of a thousand rules can repeat one mistake.
const (
	maxKeptProblems  = 1000
	maxShownProblems = 25
	maxShownPath     = 1024 // bytes
	maxShownValue    = 80   // bytes
)

// Problem is one thing that is wrong with a policy.
type Problem struct {
	// Path of the field in its written form, such as network_policies.github.endpoints[0].port; empty for the whole.
	Path string
	// Line and Column in the text, both from 1; 0 when the policy was not read from text.
	Line, Column int
	// Message says what is wrong with the value and what to write instead.
	Message string

	at *path
}

func (p Problem) String() string {
	var b strings.Builder
	if p.Line > 0 {
		fmt.Fprintf(&b, "line %d, column %d: ", p.Line, p.Column)
	}
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	return b.String() + p.Message
}

// Steps is the path step by step: a string for a key, an int for an index in a list.
func (p Problem) Steps() []any {
	steps := p.at.steps()
	out := make([]any, len(steps))
	for i, step := range steps {
		if out[i] = step.index; step.keyed {
			out[i] = step.name
		}
	}
	return out
}

// Error lists everything that is wrong with a policy, in the order of the text, else in that of the paths' first
// appearance.
type Error struct {
	Problems []Problem
	// Omitted counts problems that were found but not kept.
	Omitted int
}

func (e *Error) Error() string {
	if len(e.Problems) == 1 && e.Omitted == 0 {
		return e.Problems[0].String()
	}
	shown := e.Problems[:min(len(e.Problems), maxShownProblems)]
	lines := make([]string, 0, len(shown)+2)
	lines = append(lines, fmt.Sprintf("%d problems:", len(e.Problems)+e.Omitted))
	for _, p := range shown {
		lines = append(lines, "  "+p.String())
	}
	if rest := len(e.Problems) + e.Omitted - len(shown); rest > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more", rest))
	}
	return strings.Join(lines, "\n")
}

// problems collects.
type problems struct {
	kept    []Problem
	omitted int
}

func (p *problems) add(at *path, format string, args ...any) {
	p.addAt(at, 0, 0, format, args...)
}

func (p *problems) addAt(at *path, line, column int, format string, args ...any) {
	if len(p.kept) == maxKeptProblems {
		p.omitted++
		return
	}
	p.kept = append(p.kept, Problem{Path: at.String(), Line: line, Column: column, Message: fmt.Sprintf(format, args...), at: at})
}

// err is nil when nothing was collected.
func (p *problems) err() error {
	if len(p.kept) == 0 {
		return nil
	}
	slices.SortStableFunc(p.kept, func(a, b Problem) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return &Error{Problems: p.kept, Omitted: p.omitted}
}

// path is a place in a policy, kept as a list up to the root so that building one costs nothing until it is shown.
type path struct {
	parent *path
	keyed  bool // by name in a map, else by index in a list
	name   string
	index  int
	depth  int // steps from the root
}

func (p *path) key(name string) *path {
	return &path{parent: p, name: name, keyed: true, depth: p.level() + 1}
}
func (p *path) item(index int) *path { return &path{parent: p, index: index, depth: p.level() + 1} }

func (p *path) level() int {
	if p == nil {
		return 0
	}
	return p.depth
}

// steps lists the path from the root.
func (p *path) steps() []*path {
	var steps []*path
	for ; p != nil; p = p.parent {
		steps = append(steps, p)
	}
	slices.Reverse(steps)
	return steps
}

func (p *path) String() string {
	var b strings.Builder
	for _, step := range p.steps() {
		switch {
		case !step.keyed:
			b.WriteString("[" + strconv.Itoa(step.index) + "]")
		case !plainKey(step.name):
			b.WriteString("[" + strconv.Quote(step.name) + "]")
		default:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(step.name)
		}
	}
	return shorten(b.String(), maxShownPath)
}

// plainKey reports whether a key can stand in a path without quotes.
func plainKey(key string) bool {
	return key != "" && !strings.ContainsFunc(key, func(r rune) bool {
		return r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}

// show quotes a value for a message.
func show(value string) string { return strconv.Quote(shorten(value, maxShownValue)) }

// shorten cuts at a rune's border.
func shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit-3], "") + "..."
}
