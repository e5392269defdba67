package policy

import "slices"

// glob is a pattern of characters. It is only ever compared with others: can both match the same text?
type glob []token

// token matches one character, or any number of them.
type token struct {
	kind    tokenKind
	ranges  []characters // literal: one character; class: all of them
	negated bool
	without rune // what star stops at; 0 for nothing
}

type tokenKind int

const (
	literal tokenKind = iota
	class             // [a-z] and [!a-z]; ? is a negated class of nothing
	star              // any number of characters
)

// characters is a range, both ends included.
type characters struct{ low, high rune }

// starGlob reads a pattern of * and ** only: a single star stops at the separator.
func starGlob(text string, separator rune) glob {
	var tokens glob
	for _, c := range text {
		last := len(tokens) - 1
		switch {
		case c != '*':
			tokens = append(tokens, token{kind: literal, ranges: []characters{{c, c}}})
		case last >= 0 && tokens[last].kind == star:
			tokens[last].without = 0
		default:
			tokens = append(tokens, token{kind: star, without: separator})
		}
	}
	return tokens
}

// parseGlob also reads ? and classes, and lets every star cross separators. It fails on a class that is not closed.
func parseGlob(text string) (glob, bool) {
	var tokens glob
	source := []rune(text)
	for i := 0; i < len(source); i++ {
		switch source[i] {
		case '?':
			tokens = append(tokens, token{kind: class, negated: true})
		case '[':
			parsed, length := parseClass(source[i:])
			if length == 0 {
				return nil, false
			}
			tokens = append(tokens, parsed)
			i += length - 1
		default:
			end := i + 1
			for end < len(source) && source[i] == '*' && source[end] == '*' {
				end++
			}
			tokens = append(tokens, starGlob(string(source[i:end]), 0)...)
			i = end - 1
		}
	}
	return tokens, true
}

// parseClass returns a class and the number of characters it takes; 0 if it is not closed.
func parseClass(source []rune) (token, int) {
	parsed := token{kind: class}
	i := 1
	if i < len(source) && source[i] == '!' {
		parsed.negated = true
		i++
	}
	for start := i; i < len(source); i++ {
		switch {
		case source[i] == ']' && i > start:
			return parsed, i + 1
		case i+2 < len(source) && source[i+1] == '-' && source[i+2] != ']':
			parsed.ranges = append(parsed.ranges, characters{source[i], source[i+2]})
			i += 2
		default:
			parsed.ranges = append(parsed.ranges, characters{source[i], source[i]})
		}
	}
	return token{}, 0
}

func (g glob) wild() bool {
	return slices.ContainsFunc(g, func(t token) bool { return t.kind != literal })
}

// overlaps reports whether some text matches both, in time of the product of their lengths.
func (g glob) overlaps(other glob) bool {
	if g.endsApart(other) {
		return false
	}
	// row[j] tells whether g[i:] and other[j:] have a text in common. Rows are filled from the end.
	row := make([]bool, len(other)+1)
	for i := len(g); i >= 0; i-- {
		diagonal, right := false, false // the cells of i+1 and j+1, and of i and j+1
		for j := len(other); j >= 0; j-- {
			below := row[j] // the cell of i+1 and j
			row[j] = meet(g.at(i), other.at(j), diagonal, below, right)
			diagonal, right = below, row[j]
		}
	}
	return row[0]
}

// meet decides a cell from its neighbours; nil is the end of a pattern.
func meet(a, b *token, diagonal, below, right bool) bool {
	switch {
	case a == nil && b == nil:
		return true
	case a.repeats() && below || b.repeats() && right: // the star ends here
		return true
	case a == nil || b == nil || !a.shares(b):
		return false
	case a.repeats() || b.repeats(): // the star takes what the other side has next
		return below || right
	default:
		return diagonal
	}
}

func (g glob) at(i int) *token {
	if i == len(g) {
		return nil
	}
	return &g[i]
}

func (t *token) repeats() bool { return t != nil && t.kind == star }

// endsApart is a shortcut: two patterns that begin or end with different characters have nothing in common.
func (g glob) endsApart(other glob) bool {
	apart := func(a, b token) bool { return a.kind == literal && b.kind == literal && a.ranges[0] != b.ranges[0] }
	return len(g) > 0 && len(other) > 0 && (apart(g[0], other[0]) || apart(g[len(g)-1], other[len(other)-1]))
}

// shares reports whether some character matches both. Where the common ones begin, a range of either side begins or ends.
func (t *token) shares(other *token) bool {
	return slices.ContainsFunc(append(t.samples(), other.samples()...), func(c rune) bool { return t.matches(c) && other.matches(c) })
}

func (t *token) samples() []rune {
	samples := []rune{'a', 'b'} // at most one of them is a separator
	for _, r := range t.ranges {
		samples = append(samples, r.low, r.high+1)
	}
	return samples
}

func (t *token) matches(c rune) bool {
	if t.kind == star {
		return t.without == 0 || c != t.without
	}
	return slices.ContainsFunc(t.ranges, func(r characters) bool { return r.low <= c && c <= r.high }) != t.negated
}
