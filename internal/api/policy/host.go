package policy

import (
	"net/netip"
	"slices"
	"strings"
)

// hostProblem says what is wrong with the shape of an endpoint's host; empty if nothing is.
func hostProblem(host string) string {
	if !strings.Contains(host, "*") {
		return ""
	}
	labels := strings.Split(host, ".")
	switch {
	case len(labels) < 3:
		return "a wildcard needs at least three labels, such as *.example.com"
	case strings.Contains(labels[0], "**") && labels[0] != "**":
		return "** must be the whole first label"
	case slices.ContainsFunc(labels[1:], func(label string) bool { return strings.Contains(label, "*") && label != "*" }):
		return "behind the first label a wildcard must be a whole label *"
	}
	return ""
}

// nameProblem says why a host cannot be resolved by name; empty if it can. Wildcards stand for some label.
func nameProblem(host string) string {
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return "must be a host name"
	}
	const nameBytes, labelBytes = 253, 63
	if len(host) > nameBytes {
		return "must be a host name of at most 253 bytes"
	}
	for _, label := range strings.Split(host, ".") {
		label = strings.ReplaceAll(strings.ReplaceAll(label, "**", "x"), "*", "x")
		if label == "" || len(label) > labelBytes || strings.HasPrefix(label, "-") || strings.HasSuffix(label, "-") ||
			strings.ContainsFunc(label, notInName) {
			return "must be a host name without a trailing dot"
		}
	}
	return ""
}

func notInName(r rune) bool {
	return r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
}

// hostPattern selects hosts by label: * stays within one label, a label ** takes one or more.
type hostPattern struct {
	source string
	labels []label
}

// label is the pattern of one label; a recursive one stands for several.
type label struct {
	glob
	recursive bool
}

// selector selects the hosts that some include matches and no exclude.
type selector struct{ include, exclude []hostPattern }

// parseHostPattern reads the pattern of a middleware's selector; problem says what is wrong with it.
func parseHostPattern(text string) (pattern hostPattern, problem string) {
	switch {
	case text == "":
		return pattern, "a host pattern must not be empty"
	case strings.ContainsAny(text, " \t\r\n"):
		return pattern, "a host pattern must not contain blanks"
	case strings.ContainsAny(text, "{}"):
		return pattern, "a host pattern must not contain braces; list every pattern"
	}
	pattern.source = strings.ToLower(text)
	for _, text := range strings.Split(pattern.source, ".") {
		switch {
		case text == "":
			return pattern, "a host pattern must not contain empty labels"
		case text != "**" && strings.Contains(text, "**"):
			return pattern, "** must be a whole label"
		}
		parsed, ok := parseGlob(text)
		if !ok {
			return pattern, "a host pattern has a bracket that is not closed"
		}
		pattern.labels = append(pattern.labels, label{glob: parsed, recursive: text == "**"})
	}
	return pattern, ""
}

func (p hostPattern) overlaps(other hostPattern) bool {
	return labelsOverlap(p.labels, other.labels, map[[2]int]bool{})
}

// labelsOverlap walks both patterns label by label; failed remembers the pairs of lengths that led nowhere.
func labelsOverlap(a, b []label, failed map[[2]int]bool) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	at := [2]int{len(a), len(b)}
	if failed[at] {
		return false
	}
	matched := a[0].overlaps(b[0].glob) &&
		(labelsOverlap(a[1:], b[1:], failed) || a[0].recursive && labelsOverlap(a, b[1:], failed) ||
			b[0].recursive && labelsOverlap(a[1:], b, failed))
	if !matched {
		failed[at] = true
	}
	return matched
}

func (p hostPattern) literal() bool {
	return !slices.ContainsFunc(p.labels, func(l label) bool { return l.wild() })
}

func (p hostPattern) universal() bool { return p.source == "**" }

// mayMatch reports whether the selector can match a host that the candidate stands for. Like upstream it takes an
// exclude into account where it covers one known host, or one of the two patterns.
func (s selector) mayMatch(candidate hostPattern) bool {
	return slices.ContainsFunc(s.include, func(include hostPattern) bool {
		if !include.overlaps(candidate) {
			return false
		}
		host := candidate
		if !candidate.literal() {
			host = include
		}
		return !slices.ContainsFunc(s.exclude, func(exclude hostPattern) bool {
			if host.literal() {
				return exclude.overlaps(host)
			}
			return exclude.universal() || exclude.source == include.source || exclude.source == candidate.source
		})
	})
}
