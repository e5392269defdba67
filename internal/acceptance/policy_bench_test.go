package acceptance_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/openshell-iac/terraform-provider-openshell/internal/acceptance/cli"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

const (
	benchSandboxes = 20
	benchRounds    = 2
	// benchLimit is what policies of 250 rules may add to the plan of 20 sandboxes.
	benchLimit = 2 * time.Second
)

// policySource is a way for every sandbox to get a policy of so many rules.
type policySource struct {
	name     string
	limited  bool   // whether benchLimit is held
	argument string // of the sandboxes
	// more is the rest of the configuration. RULES stands for the rules, in which SANDBOX tells one sandbox from another.
	more, sandbox string
}

var policySources = []policySource{
	{"a file each", true, "file(\"${count.index}.json\")", "", ""},
	{"a document for all", true, "data.openshell_policy_document.this.json", "data \"openshell_policy_document\" \"this\" {\n  network_policies = RULES\n}\n", "0"},
	// So many values with types keep Terraform itself busy.
	{"a document each", false, "data.openshell_policy_document.this[count.index].json", "data \"openshell_policy_document\" \"this\" {\n  count            = 20\n  network_policies = RULES\n}\n", "count.index"},
}

// benchRules are of the shape that users have.
const benchRules = `{ for r in range(COUNT) : "rule-${r}" => {
    binaries = [{ path = "/usr/bin/curl" }]
    endpoints = [{
      host = "api-${r}.s${SANDBOX}.example.com", port = 443, protocol = "rest", enforcement = "enforce"
      rules = [{ allow = { method = "GET", path = "/v1/**" } }, { allow = { method = "POST", path = "/v1/items" } }]
    }]
  } }`

// benchPolicy is a policy of these rules.
func benchPolicy(sandbox, rules int) string {
	var all []string
	for r := range rules {
		all = append(all, fmt.Sprintf(`"rule-%d": {"binaries": [{"path": "/usr/bin/curl"}], "endpoints": [{"host": "api-%[1]d.s%d.example.com", "port": 443, "protocol": "rest", "enforcement": "enforce", "rules": [{"allow": {"method": "GET", "path": "/v1/**"}}, {"allow": {"method": "POST", "path": "/v1/items"}}]}]}`, r, sandbox))
	}
	return `{"version": 1, "network_policies": {` + strings.Join(all, ", ") + `}}`
}

// planOf applies the configuration of sandboxes and returns how to plan it again, with nothing to change.
func (s policySource) planOf(b *testing.B, rules int) func() float64 {
	b.Helper()
	argument, more := s.argument, strings.Replace(s.more, "RULES", strings.NewReplacer("COUNT", fmt.Sprint(rules), "SANDBOX", s.sandbox).Replace(benchRules), 1)
	if rules == 0 {
		argument, more = "null", ""
	}
	g := gatewaytest.Start(b)
	w := cli.InTest(b, cli.Require(b))
	config := fmt.Sprintf("%s\nprovider \"openshell\" {\n  endpoint = %q\n}\n\nresource \"openshell_sandbox\" \"this\" {\n  count  = %d\n  name   = \"s-${count.index}\"\n  policy = %s\n}\n\n%s",
		cli.RequiredProviders, g.Endpoint(), benchSandboxes, argument, more)
	if err := w.Write("main.tf", config); err != nil {
		b.Fatal(err)
	}
	for sandbox := range benchSandboxes {
		if err := w.Write(fmt.Sprintf("%d.json", sandbox), benchPolicy(sandbox, rules)); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Apply(b.Context(), "").Err(); err != nil {
		b.Fatal(err)
	}
	return func() float64 {
		start := time.Now()
		r := w.Plan(b.Context(), "")
		if r.Err() != nil || r.Changed() {
			b.Fatalf("%v\n%s", r.Err(), r.Stdout)
		}
		return min(time.Since(start), r.CPU).Seconds()
	}
}

// The time of a plan grows with the number of rules no faster than the number itself, and policies of 250 rules add little.
// A plan counts with its time on the clock, or the processor time of the command and the provider where that is less: then
// the machine had something else to do. The best of some rounds is taken, in which all sizes take their turn.
func BenchmarkPlanWithPolicies(b *testing.B) {
	for _, source := range policySources {
		b.Run(strings.ReplaceAll(source.name, " ", "-"), func(b *testing.B) {
			sizes := []int{0, 125, 250, 500}
			if !source.limited {
				sizes = sizes[:3]
			}
			plans, best := map[int]func() float64{}, map[int]float64{}
			for _, size := range sizes {
				plans[size] = source.planOf(b, size)
			}
			for range benchRounds {
				for _, size := range sizes {
					if took := plans[size](); best[size] == 0 || took < best[size] {
						best[size] = took
					}
				}
			}
			b.ReportMetric(0, "ns/op") // says nothing here
			for _, size := range sizes {
				b.ReportMetric(best[size], fmt.Sprintf("s/%d-rules", size))
			}
			if !source.limited {
				return
			}
			added, double := best[250]-best[0], best[500]-best[0]
			b.ReportMetric(double/added, "x/double")
			if added > benchLimit.Seconds() || double > 3*added {
				b.Errorf("the policies of %d sandboxes add %.2f s with 250 rules each, and %.2f s with 500", benchSandboxes, added, double)
			}
		})
	}
}
