package acceptance_test

import (
	"strings"
	"testing"

	"github.com/openshell-iac/terraform-provider-openshell/internal/acceptance/cli"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// What the gateway would refuse is refused by the plan, at the argument. The longest that is allowed works.
func TestO14Limits(t *testing.T) {
	t.Parallel()
	g := gatewaytest.Start(t)
	s := set(t, cli.Require(t), g)
	bad := map[string]struct{ attribute, argument string }{
		"long":       {"name", `name = "` + strings.Repeat("a", 20) + `"`},
		"upper":      {"name", `name = "Web"`},
		"hyphens":    {"name", `name = "a--b"`},
		"end":        {"name", `name = "web-"`},
		"prefix":     {"name_prefix", `name_prefix = "` + strings.Repeat("a", 14) + `"`},
		"workspace":  {"workspace", `workspace = "` + strings.Repeat("a", 20) + `"`},
		"label":      {"labels", `labels = { team = "` + strings.Repeat("a", 64) + `" }`},
		"label-name": {"labels", `labels = { "` + strings.Repeat("a", 64) + `" = "a" }`},
		"annotation": {"annotations", `annotations = { note = "` + strings.Repeat("a", 8193) + `" }`},
		"log-level":  {"log_level", `log_level = "` + strings.Repeat("a", 33) + `"`},
		"variable":   {"environment", `environment = { OPENSHELL_TOKEN = "a" }`},
	}
	var text strings.Builder
	for label, b := range bad {
		text.WriteString("resource \"openshell_sandbox\" \"" + label + "\" {\n  " + b.argument + "\n}\n")
	}
	s.write("bad.tf", text.String())
	r := s.Plan(t.Context(), "")
	for label, b := range bad {
		s.expectAt(r, "openshell_sandbox."+label, b.attribute)
	}
	if n := len(r.Errors()); n != len(bad) {
		t.Errorf("%d errors", n)
	}
	s.write("bad.tf", "")
	longest := strings.Repeat("a", 19)
	s.sandbox(`name = "`+longest+`"`, `labels = { team = "`+strings.Repeat("a", 63)+`" }`)
	s.up()
	if _, ok := g.Get(t, longest); !ok {
		t.Error("there is no sandbox " + longest)
	}
	s.empty()
}
