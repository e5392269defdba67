// Package rules holds what OpenShell takes for a valid value (upstream-contract, server semantics). The gateway refuses by
// these rules, and the provider finds the same problems when it plans.
//
// A function for a single value returns what is wrong with it, as a text to follow the field's name, or "" when it is
// fine. The text never repeats a value that may be secret.
package rules

import (
	"fmt"
	"strings"
)

// MaxName is how long a name may be, in bytes: workspace, sandbox and service have to fit into one DNS label together.
const MaxName = 19

// Name checks the name of a sandbox, workspace or workload template.
func Name(name string) string {
	switch {
	case name == "":
		return "must not be empty"
	case len(name) > MaxName:
		return fmt.Sprintf("must be at most %d characters long, not %d", MaxName, len(name))
	case !consistsOf(name, lower+digits+"-"):
		return "must consist of lower-case letters a-z, digits and hyphens"
	case strings.HasPrefix(name, "-") || strings.HasSuffix(name, "-"):
		return "must not begin or end with a hyphen"
	case strings.Contains(name, "--"):
		return "must not contain two hyphens in a row"
	}
	return ""
}

const (
	lower  = "abcdefghijklmnopqrstuvwxyz"
	upper  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits = "0123456789"
)

// consistsOf tells whether s has only characters of an ASCII set.
func consistsOf(s, set string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return !strings.ContainsRune(set, r) }) < 0
}
