package client

import (
	"strings"
	"testing"
)

// A secret is kept out of a text as a whole, and what is left of it where a gateway or a proxy has shortened the text.
func TestScrub(t *testing.T) {
	const secret, quoted = "s3cr3t-value", `pa"ss\word`
	secrets := []string{secret, quoted, "s3cr", "value-of-another", "on"}
	for text, want := range map[string]string{
		"K=s3cr3t-value twice s3cr3t-value.":      "K=# twice #.",
		"one in another: s3cr3t-value-of-another": "one in another: #",
		"cut off in its middle: s3cr3t-va…":       "cut off in its middle: #…",
		"with dots: s3cr3t-va... and more":        "with dots: #... and more",
		"at the end: s3cr3t-val":                  "at the end: #",
		"the end is left: …t-value and more":      "the end is left: …# and more",
		"or so: ....t-value":                      "or so: ....#",
		"both: s3cr3t…-value":                     "both: #…#",
		"quoted: \"pa\\\"ss\\…":                   "quoted: \"#…",
		"whole before …: s3cr3t-value…":           "whole before …: #…",
		"too little: s3… or …e or s3":             "too little: s3… or …e or s3",
		"a beginning elsewhere, val, is a word":   "a beginning elsewhere, val, is a word",
		"":                                        "",
	} {
		if got := scrub(text, secrets); got != strings.ReplaceAll(want, "#", redacted) {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
