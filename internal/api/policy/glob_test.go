package policy

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Over a small alphabet, two patterns overlap just when some text of bounded length matches both.
func TestOverlapAgainstEnumeration(t *testing.T) {
	var words []string
	for level := []string{""}; len(level[0]) <= 4; {
		words = append(words, level...)
		var next []string
		for _, word := range level {
			next = append(next, word+"a", word+"b", word+".")
		}
		level = next
	}
	quoted := strings.NewReplacer("**", ".*", "*", "[^.]*", ".", "[.]")
	expression := func(pattern string) *regexp.Regexp {
		return regexp.MustCompile("^" + quoted.Replace(pattern) + "$")
	}
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringMatching(`[ab.*]{0,4}`).Filter(func(s string) bool { return !strings.Contains(s, "***") })
		left, right := pattern.Draw(t, "left"), pattern.Draw(t, "right")
		a, b := expression(left), expression(right)
		want := false
		for _, word := range words {
			want = want || a.MatchString(word) && b.MatchString(word)
		}
		got := starGlob(left, '.').overlaps(starGlob(right, '.'))
		// Patterns of four characters that overlap need texts of up to eight; the words have four.
		if want && !got || got && !want && len(left)+len(right) <= 4 {
			t.Fatalf("%q and %q: overlaps is %t", left, right, got)
		}
		if starGlob(right, '.').overlaps(starGlob(left, '.')) != got {
			t.Fatalf("%q and %q: not symmetric", left, right)
		}
	})
}

func TestClasses(t *testing.T) {
	for _, test := range []struct {
		left, right string
		want        bool
	}{
		{"[ab]", "b", true},
		{"[ab]", "c", false},
		{"[a-c]", "[c-e]", true},
		{"[a-c]", "[d-e]", false},
		{"[!a-c]", "[a-d]", true},
		{"[!a-d]", "[a-d]", false},
		{"[!a]", "[!b]", true},
		{"[]a]", "]", true},
		{"[a-]", "-", true},
		{"?", "", false},
		{"?", "/", true},
		{"?*", "x", true},
		{"??", "x", false},
		{"a[0-9]*", "ab*", false},
		{"***", "", true},
	} {
		left, ok := parseGlob(test.left)
		right, rightOK := parseGlob(test.right)
		if !ok || !rightOK {
			t.Fatalf("%q and %q: not parsed", test.left, test.right)
		}
		if got := left.overlaps(right); got != test.want {
			t.Errorf("%q and %q: %t", test.left, test.right, got)
		}
	}
	for _, broken := range []string{"[", "[!", "[a", "[]", "x[!]"} {
		if _, ok := parseGlob(broken); ok {
			t.Errorf("%q is taken for a pattern", broken)
		}
	}
}

// The endings by which candidates are found must not hide an overlap.
func TestEndings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		label := rapid.SampledFrom([]string{"a", "b", "*", "**", "a*", "*b"})
		host := func(name string) string { return strings.Join(rapid.SliceOfN(label, 1, 4).Draw(t, name), ".") }
		left, right := host("left"), host("right")
		if !starGlob(left, '.').overlaps(starGlob(right, '.')) {
			return
		}
		a, b := literalEnding(left), literalEnding(right)
		within := func(long, short string) bool {
			return short == "" || long == short || strings.HasSuffix(long, "."+short)
		}
		if !within(a, b) && !within(b, a) {
			t.Fatalf("%q and %q overlap, but their endings are %q and %q", left, right, a, b)
		}
	})
}
