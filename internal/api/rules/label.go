package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Limits of labels and selectors.
const (
	MaxLabelKey      = 253 // with its prefix
	MaxLabelName     = 63  // without
	MaxLabelValue    = 63
	MaxSelectorPairs = 64
)

// LabelKey checks the key of a label: a name, after an optional prefix such as example.com/.
func LabelKey(key string) string {
	prefix, name, prefixed := strings.Cut(key, "/")
	if !prefixed {
		prefix, name = "", key
	}
	switch {
	case len(key) > MaxLabelKey:
		return fmt.Sprintf("must be at most %d characters long", MaxLabelKey)
	case prefixed && !isPrefix(prefix):
		return "has a prefix that is not made of lower-case letters, digits, - and single dots, with a letter or digit at both ends"
	case name == "" || len(name) > MaxLabelName:
		return fmt.Sprintf("must have 1 to %d characters (after its prefix)", MaxLabelName)
	case !isLabelText(name):
		return "must consist of letters, digits, -, _ and ., with a letter or digit at both ends"
	}
	return ""
}

// LabelValue checks the value of a label.
func LabelValue(value string) string {
	switch {
	case len(value) > MaxLabelValue:
		return fmt.Sprintf("must be at most %d characters long", MaxLabelValue)
	case value != "" && !isLabelText(value):
		return "must be empty or consist of letters, digits, -, _ and ., with a letter or digit at both ends"
	}
	return ""
}

// Labels checks all labels of an object.
func Labels(labels map[string]string) string {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if problem := LabelKey(key); problem != "" {
			return fmt.Sprintf("label key %q %s", key, problem)
		}
		if problem := LabelValue(labels[key]); problem != "" {
			return fmt.Sprintf("label value of %q %s", key, problem)
		}
	}
	return ""
}

// LabelSelector reads a selector: pairs key=value with commas between, all of which must hold. Empty elements do not
// count.
func LabelSelector(selector string) (map[string]string, string) {
	pairs := map[string]string{}
	n := 0
	for element := range strings.SplitSeq(selector, ",") {
		element = strings.TrimSpace(element)
		if element == "" {
			continue
		}
		if n++; n > MaxSelectorPairs {
			return nil, fmt.Sprintf("has more than %d pairs", MaxSelectorPairs)
		}
		key, value, ok := strings.Cut(element, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if !ok {
			return nil, fmt.Sprintf("has %q where key=value is needed", element)
		}
		if problem := LabelKey(key); problem != "" {
			return nil, fmt.Sprintf("has the key %q, which %s", key, problem)
		}
		if problem := LabelValue(value); problem != "" {
			return nil, fmt.Sprintf("has a value for %q that %s", key, problem)
		}
		if other, twice := pairs[key]; twice && other != value {
			return nil, fmt.Sprintf("asks for two values of %q", key)
		}
		pairs[key] = value
	}
	return pairs, ""
}

func isLabelText(s string) bool {
	const ends = lower + upper + digits
	return consistsOf(s, ends+"-_.") && strings.Contains(ends, s[:1]) && strings.Contains(ends, s[len(s)-1:])
}

func isPrefix(s string) bool {
	const ends = lower + digits
	return s != "" && consistsOf(s, ends+"-.") && !strings.Contains(s, "..") &&
		strings.Contains(ends, s[:1]) && strings.Contains(ends, s[len(s)-1:])
}
