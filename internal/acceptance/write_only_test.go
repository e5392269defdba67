package acceptance_test

import (
	"bytes"
	"testing"

	"github.com/openshell-iac/terraform-provider-openshell/internal/acceptance/cli"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// An ephemeral value reaches the sandbox through environment_wo, and neither the state nor a message has it: not when
// the sandbox fails, of which the state has the id all the same, and not when it is well.
func TestT33WriteOnlyEnvironment(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, c cli.CLI) {
		const canary = "write-only-canary"
		g := gatewaytest.Start(t)
		s := &stage{WorkingDir: cli.InTest(t, c, "TF_VAR_secret="+canary), t: t, g: g, c: c}
		s.provider(g)
		s.write("secret.tf", "variable \"secret\" {\n  type      = string\n  ephemeral = true\n}\n")
		clean := func(r cli.Result) {
			t.Helper()
			if bytes.Contains(s.raw(), []byte(canary)) || bytes.Contains([]byte(r.Stdout+r.Stderr), []byte(canary)) {
				t.Errorf("%v shows the secret, or the state\n%s\ndoes", r.Args, s.raw())
			}
		}
		arguments := []string{`name = "web"`, `environment_wo = { TOKEN = var.secret }`, `environment_wo_version = 1`}
		s.sandbox(append(arguments, `driver_config = jsonencode({ simulated = { never_ready = true } })`, `timeouts = { create = "5s" }`)...)
		r := s.Apply(t.Context(), "")
		clean(r)
		failed := s.id()
		s.expect(r, 1, cli.Error, failed, "tainted")
		if all := sandboxes(t, g); failed == "" || len(all) != 1 || all[0].GetMetadata().GetId() != failed {
			t.Fatalf("state %q, gateway %v", failed, all)
		}
		s.sandbox(arguments...)
		first := s.up()
		sb, _ := g.GetByID(t, first)
		if first == failed || len(sandboxes(t, g)) != 1 || sb.GetSpec().GetEnvironment()["TOKEN"] != canary {
			t.Errorf("state %q, gateway %v", first, sandboxes(t, g))
		}
		s.empty()
		s.sandbox(append(arguments[:2:2], `environment_wo_version = 2`)...)
		if second := s.up(); second == first || len(sandboxes(t, g)) != 1 {
			t.Errorf("%s after %s, gateway %v", second, first, sandboxes(t, g))
		}
		clean(s.Plan(t.Context(), ""))
		s.must(s.Destroy(t.Context()))
		if n := len(sandboxes(t, g)); n != 0 {
			t.Errorf("%d sandboxes are left", n)
		}
	})
}
