package policy_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/openshell-iac/terraform-provider-openshell/internal/api/policy"
)

// FuzzParse: whatever is read can be written and read again as the same; nothing makes the reader panic.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		github, formatted, "", "version: 1", "version: 1\nnetwork_policies: {a: &a {endpoints: [{host: h, port: 1}]}, b: *a}",
		endpointText("protocol: mcp", "mcp: {versions: [2025-03-26]}", "rules: [{allow: {tool: {any: [a]}, params: {a: {b: c}}}}]"),
		endpointText("ports: [1, 2]", "graphql_persisted_queries: {h: {operation_type: query, fields: [a]}}", "credential_binding: {provider: p}"),
		`{"version": 1, "network_middlewares": {"m": {"middleware": "x", "config": {"a": [1, 2.5, null, "\ud83d\ude00"]}}}}`,
		"version: 1\nprocess: {<<: {a: b}}", "? [a]\n: b", "a: &x {b: *x}", "- !!binary aGk=\n", "%YAML 1.1\n---\nversion: 1\n...\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := policy.Parse(text)
		if err != nil {
			if err.Error() == "" {
				t.Fatal("an error without words")
			}
			return
		}
		written, err := policy.Format(p)
		if err != nil {
			t.Fatalf("read, but not to be written: %v\n%q", err, text)
		}
		back, err := policy.Parse(written)
		if err != nil || !proto.Equal(back, p) {
			t.Fatalf("%v\n%q\n%s", err, text, written)
		}
		_, _ = policy.ParseAndValidate(text)
	})
}
