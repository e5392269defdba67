package cli

import (
	"errors"
	"os"
	"strings"
	"testing"

	tfjson "github.com/hashicorp/terraform-json"
)

const data = `resource "terraform_data" "web" { input = "one" }`

func TestSavedPlan(t *testing.T) {
	t.Parallel()
	ForEach(t, func(t *testing.T, c CLI) {
		t.Parallel()
		ctx, w := t.Context(), builtin(t, c, data)
		if _, err := w.RawState(); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("before the first apply the state is %v; want none", err)
		}

		if r := must(t, w.Plan(ctx, "create.tfplan")); !r.Changed() || r.ExitCode != 2 {
			t.Errorf("a plan with changes: exit code %d, changed %t", r.ExitCode, r.Changed())
		}
		plan, err := w.ShowPlan(ctx, "create.tfplan")
		if err != nil {
			t.Fatal(err)
		}
		if len(plan.ResourceChanges) != 1 || !plan.ResourceChanges[0].Change.Actions.Create() {
			t.Errorf("the saved plan holds %v; want one create", plan.ResourceChanges)
		}
		must(t, w.Apply(ctx, "create.tfplan"))
		if got := onlyResource(t, w); got.AttributeValues["input"] != "one" {
			t.Errorf("the state holds %v", got.AttributeValues)
		}
		if raw, err := w.RawState(); err != nil || !strings.Contains(string(raw), `"terraform_data"`) {
			t.Errorf("the bytes of the state: %v\n%s", err, raw)
		}
		if r := must(t, w.Plan(ctx, "")); r.Changed() {
			t.Errorf("the second plan holds changes:\n%s", r.Stdout)
		}

		r := w.Apply(ctx, "create.tfplan")
		if r.ExitCode != 1 || len(r.Errors()) != 1 || r.Errors()[0].Summary != "Saved plan is stale" {
			t.Errorf("applying the plan again: exit code %d, %v", r.ExitCode, r.Diagnostics)
		}
		if err := r.Err(); err == nil || !strings.Contains(err.Error(), "Saved plan is stale") {
			t.Errorf("its error does not tell why: %v", err)
		}

		must(t, w.Refresh(ctx))
		must(t, w.Destroy(ctx))
		if state, err := w.State(ctx); err != nil || state.Values != nil {
			t.Errorf("after destroy the state is %v, %v; want none", state.Values, err)
		}
	})
}

func TestImport(t *testing.T) {
	t.Parallel()
	ForEach(t, func(t *testing.T, c CLI) {
		t.Parallel()
		w := builtin(t, c, data)
		must(t, w.Import(t.Context(), "terraform_data.web", "given"))
		if got := onlyResource(t, w); got.AttributeValues["id"] != "given" {
			t.Errorf("the state holds %v", got.AttributeValues)
		}
		r := w.Import(t.Context(), "terraform_data.web", "again")
		if r.ExitCode != 1 || !strings.Contains(r.Text(), "Resource already managed by") {
			t.Errorf("importing twice: exit code %d\n%s", r.ExitCode, r.Text())
		}
	})
}

func TestDiagnostics(t *testing.T) {
	t.Parallel()
	ForEach(t, func(t *testing.T, c CLI) {
		t.Parallel()
		w := builtin(t, c, `locals {
  number = 1 + "one"
}`)
		r := w.Plan(t.Context(), "")
		if r.ExitCode != 1 || len(r.Errors()) == 0 || r.Errors()[0].Attribute != "number" {
			t.Errorf("a type error: exit code %d, %v; want an error at number", r.ExitCode, r.Diagnostics)
		}
		w = builtin(t, c, `variable "number" { default = 1 }
check "soft" {
  assert {
    condition     = var.number == 2
    error_message = "One is not two."
  }
}`)
		r = must(t, w.Plan(t.Context(), ""))
		if len(r.Warnings()) != 1 || r.Warnings()[0].Detail != "One is not two." {
			t.Errorf("a failed check: %v; want one warning", r.Diagnostics)
		}
	})
}

// TestDevelopmentOverrideWarning needs no provider: the command line warns about the override by itself.
func TestDevelopmentOverrideWarning(t *testing.T) {
	t.Parallel()
	ForEach(t, func(t *testing.T, c CLI) {
		t.Parallel()
		w, err := New(t.TempDir(), Options{CLI: c, Provider: script(t, "terraform-provider-openshell", "exit 1")})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write("main.tf", data); err != nil {
			t.Fatal(err)
		}
		r := must(t, w.Plan(t.Context(), ""))
		if !strings.Contains(r.Stdout, devOverrideSummary) {
			t.Fatalf("no override is in effect:\n%s", r.Stdout)
		}
		if len(r.Diagnostics) != 0 {
			t.Errorf("diagnostics %v; want none", r.Diagnostics)
		}
	})
}

// onlyResource is the resource of the state.
func onlyResource(t *testing.T, w *WorkingDir) *tfjson.StateResource {
	t.Helper()
	state, err := w.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if state.Values == nil || len(state.Values.RootModule.Resources) != 1 {
		t.Fatalf("the state holds %v; want one resource", state.Values)
	}
	return state.Values.RootModule.Resources[0]
}
