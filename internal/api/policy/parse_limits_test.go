package policy_test

import (
	"strings"
	"testing"

	"github.com/openshell-iac/terraform-provider-openshell/internal/api/policy"
)

// Numbers at the edges of their fields, and one beyond.
func TestParseNumberEdges(t *testing.T) {
	middleware := func(order string) string {
		return "version: 1\nnetwork_middlewares: {m: {middleware: x, order: " + order + "}}\n"
	}
	for text, ok := range map[string]bool{
		endpointText("port: 0"):                            true, // not set; Validate asks for one
		endpointText("port: 65535"):                        true,
		endpointText("port: 65536"):                        false,
		endpointText("port: -1"):                           false,
		endpointText("ports: [0, 65535]"):                  true,
		endpointText("ports: [65536]"):                     false,
		endpointText("graphql_max_body_bytes: 4294967295"): true,
		endpointText("graphql_max_body_bytes: 4294967296"): false,
		middleware("2147483647"):                           true,
		middleware("2147483648"):                           false,
		middleware("-2147483648"):                          true,
		middleware("-2147483649"):                          false,
		middleware("99999999999999999999"):                 false,
		middleware("1e1"):                                  false,
	} {
		if _, err := policy.Parse(text); (err == nil) != ok {
			t.Errorf("%s\nerror %v, want ok %t", text, err, ok)
		}
	}
}

// Limits of the text at their edge.
func TestParseLimits(t *testing.T) {
	aliases := func(count int) string {
		return "version: 1\nfilesystem_policy: {read_only: [&p /usr" + strings.Repeat(", *p", count) + "]}\n"
	}
	nested := func(depth int) string { // the root, the middlewares, m and config make four
		return "version: 1\nnetwork_middlewares: {m: {middleware: x, config: {k: " + strings.Repeat("[", depth-4) + strings.Repeat("]", depth-4) + "}}}\n"
	}
	values := func(count int) string {
		// The root, four keys and their values but the list's, and the list.
		return "version: 1\nfilesystem_policy:\n  read_only:\n" + strings.Repeat("    - /a\n", count-7)
	}
	for name, test := range map[string]struct {
		at, beyond string
		message    string
	}{
		"bytes":   {"version: 1\n#" + strings.Repeat("x", policy.MaxTextBytes-12), "version: 1\n#" + strings.Repeat("x", policy.MaxTextBytes-11), "a policy has at most 4194304"},
		"aliases": {aliases(100), aliases(101), "aliases are used more than 100 times"},
		"depth":   {nested(64), nested(65), "nested deeper than 64 levels"},
		"values":  {values(100_000), values(100_001), "more than 100000 values"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := policy.Parse(test.at); err != nil {
				t.Errorf("at the limit: %v", err)
			}
			_, err := policy.Parse(test.beyond)
			if err == nil || !strings.Contains(err.Error(), test.message) {
				t.Errorf("beyond the limit: %v, want %q", err, test.message)
			}
		})
	}
}

func TestParseEndlessAlias(t *testing.T) {
	_, err := policy.Parse("version: 1\nnetwork_middlewares: {m: {middleware: x, config: &c {again: *c}}}\n")
	wantProblems(t, err, false, []string{"network_middlewares.m.config" + strings.Repeat(".again", 61) + ": the policy is nested deeper than 64 levels"})
}
