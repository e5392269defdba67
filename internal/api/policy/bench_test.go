package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/openshell-iac/terraform-provider-openshell/internal/api/policy"
)

// manyRules writes a policy of the shape that users have: a few endpoints and programs a rule, some inspected.
func manyRules(count int) string {
	var b strings.Builder
	b.WriteString("version: 1\nfilesystem_policy: {include_workdir: true, read_only: [/usr, /etc], read_write: [/tmp]}\nnetwork_policies:\n")
	for i := range count {
		fmt.Fprintf(&b, `  rule_%[1]d:
    endpoints:
      - host: api%[1]d.example.com
        port: 443
        protocol: rest
        enforcement: enforce
        rules:
          - allow: { method: GET, path: "/v1/**" }
      - { host: "*.svc%[1]d.example.com", ports: [443, 8443] }
    binaries:
      - path: /usr/bin/curl
`, i)
	}
	return b.String()
}

// Time per rule must not grow with the number of rules. 250 rules are about what the 256 KiB of a policy allow in
// practice; 2500 show the trend.
func BenchmarkPolicy(b *testing.B) {
	for _, count := range []int{25, 250, 2500} {
		text := manyRules(count)
		p := mustParse(b, text)
		other := mustParse(b, strings.Replace(text, "port: 443", "ports: [443]", 1))
		other.NetworkPolicies["rule_0"].Name = ""
		for name, run := range map[string]func(){
			"Parse":       func() { mustParse(b, text) },
			"Validate":    func() { _ = policy.Validate(p) },
			"Ambiguities": func() { _ = policy.Ambiguities(p) },
			"Equal": func() {
				if !policy.Equal(p, other) {
					b.Fatal("not equal")
				}
			},
			"Compare": func() { policy.Compare(p, other) },
			"Hash":    func() { policy.Hash(p) },
			"Format":  func() { mustFormat(b, p) },
		} {
			b.Run(fmt.Sprintf("%s/%d", name, count), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					run()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(count), "ns/rule")
			})
		}
	}
}
