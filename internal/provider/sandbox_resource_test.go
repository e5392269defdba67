package provider_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/compare"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/openshell-iac/terraform-provider-openshell/internal/client"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

const web = "openshell_sandbox.web"

func emptyPlan() resource.ConfigPlanChecks {
	return resource.ConfigPlanChecks{PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}
}

func known(attribute string, value knownvalue.Check) statecheck.StateCheck {
	return statecheck.ExpectKnownValue(web, tfjsonpath.New(attribute), value)
}

func text(s string) knownvalue.Check { return knownvalue.StringExact(s) }

// everything sets all arguments that are fixed for a sandbox.
var everything = map[string]string{
	"workspace": `"default"`, "image": `"example.com/agent:1"`, "command": `["sleep", "infinity"]`, "tty": `true`,
	"environment": `{ TOKEN = "environment-canary", EMPTY = "" }`, "labels": `{ team = "a", empty = "" }`,
	"annotations": `{ "example.com/note" = "any text\nat all" }`, "log_level": `"debug"`, "restart_policy": `"on_failure"`,
	"driver_config": `jsonencode({ simulated = { ready_after = "10ms" } })`,
	"resources":     `{ cpu = "500m", memory = "512Mi" }`, "gpu": `{ count = 2 }`, "runtime_class_name": `"gvisor"`, "user_namespaces": `true`,
}

// arguments renders arguments, with changes; an empty value leaves one out.
func arguments(base map[string]string, changes map[string]string) []string {
	all := maps.Clone(base)
	maps.Copy(all, changes)
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if all[name] != "" {
			lines = append(lines, name+" = "+all[name])
		}
	}
	return lines
}

func TestSandboxMinimal(t *testing.T) {
	t.Parallel()
	g := gatewaytest.Start(t)
	unit(t, g, resource.TestStep{
		Config:           with(g, sandbox(named)),
		ConfigPlanChecks: emptyPlan(),
		ConfigStateChecks: []statecheck.StateCheck{
			known("id", knownvalue.StringFunc(isUUID)), known("workspace_id", knownvalue.StringFunc(isUUID)),
			known("name", text("web")), known("workspace", text("default")),
			known("image", text("nvcr.io/nvidia/base/ubuntu:24.04")), known("tty", knownvalue.Bool(true)), known("restart_policy", text("never")),
			known("command", knownvalue.Null()), known("environment", knownvalue.Null()), known("labels", knownvalue.Null()), known("annotations", knownvalue.Null()),
			known("log_level", knownvalue.Null()), known("driver_config", knownvalue.Null()), known("running", knownvalue.Null()),
			known("resources", knownvalue.Null()), known("gpu", knownvalue.Null()), known("runtime_class_name", knownvalue.Null()),
			known("user_namespaces", knownvalue.Null()), known("workload_template", knownvalue.Null()), known("name_prefix", knownvalue.Null()),
			known("wait_for", text("ready")), known("phase", text("ready")), known("exit_code", knownvalue.Null()),
			known("created_time", knownvalue.NotNull()),
		},
	})
}

func isUUID(s string) error {
	if !client.IsUUID(s) {
		return fmt.Errorf("%q is no UUID", s)
	}
	return nil
}

// The gateway gets what the configuration says, and the provider's marks, which the state does not show.
func TestSandboxEverything(t *testing.T) {
	t.Parallel()
	g := gatewaytest.Start(t)
	unit(t, g,
		resource.TestStep{
			Config:           with(g, sandbox(arguments(everything, map[string]string{"name": `"web"`})...)),
			ConfigPlanChecks: emptyPlan(),
			ConfigStateChecks: []statecheck.StateCheck{
				known("labels", knownvalue.MapExact(map[string]knownvalue.Check{"team": text("a"), "empty": text("")})),
				known("annotations", knownvalue.MapSizeExact(1)),
				statecheck.ExpectSensitiveValue(web, tfjsonpath.New("environment")),
			},
		},
		resource.TestStep{
			PreConfig: func() {
				sb, _ := g.Get(t, "web")
				spec, meta := sb.GetSpec(), sb.GetMetadata()
				limits, _ := spec.GetTemplate().GetResources().AsMap()["limits"].(map[string]any)
				if spec.GetTemplate().GetImage() != "example.com/agent:1" || !slices.Equal(spec.GetCommand(), []string{"sleep", "infinity"}) || !spec.GetTty() ||
					!maps.Equal(spec.GetEnvironment(), map[string]string{"TOKEN": "environment-canary", "EMPTY": ""}) || spec.GetLogLevel() != "debug" ||
					spec.GetTemplate().GetRuntimeClassName() != "gvisor" || !spec.GetTemplate().GetUserNamespaces() || spec.GetResourceRequirements().GetGpu().GetCount() != 2 ||
					!maps.Equal(limits, map[string]any{"cpu": "500m", "memory": "512Mi"}) || spec.GetRestartPolicy().String() != "SANDBOX_RESTART_POLICY_ON_FAILURE" ||
					spec.GetTemplate().GetDriverConfig().GetFields()["simulated"].GetStructValue().GetFields()["ready_after"].GetStringValue() != "10ms" {
					t.Errorf("spec %v", spec)
				}
				if !maps.Equal(meta.GetLabels(), map[string]string{"team": "a", "empty": "", client.LabelManagedBy: client.ManagedByTerraform}) ||
					meta.GetAnnotations()["example.com/note"] != "any text\nat all" || !client.IsUUID(meta.GetAnnotations()[client.AnnotationCreateID]) {
					t.Errorf("metadata %v", meta)
				}
			},
			Config:   with(g, sandbox(arguments(everything, map[string]string{"name": `"web"`})...)),
			PlanOnly: true,
		},
	)
}

// change is one resource before and after.
type change struct {
	before, after map[string]string
	action        plancheck.ResourceActionType
}

// apply creates the sandboxes of all changes and then changes them, each in a resource of its own.
func apply(t *testing.T, g *gatewaytest.Gateway, id compare.ValueComparer, changes map[string]change) {
	t.Helper()
	var before, after string
	first, second := resource.TestStep{}, resource.TestStep{PreConfig: g.ResetCalls}
	for i, name := range slices.Sorted(maps.Keys(changes)) {
		c, label := changes[name], fmt.Sprintf("web%d", i)
		if c.before["name"] == "" {
			c.before = map[string]string{"name": fmt.Sprintf("%q", label)}
			maps.Copy(c.before, changes[name].before)
		}
		before += "# " + name + "\n" + labelled(label, arguments(c.before, nil)...)
		after += "# " + name + "\n" + labelled(label, arguments(c.before, c.after)...)
		address, ids := "openshell_sandbox."+label, statecheck.CompareValue(id)
		first.ConfigStateChecks = append(first.ConfigStateChecks, ids.AddStateValue(address, tfjsonpath.New("id")))
		second.ConfigStateChecks = append(second.ConfigStateChecks, ids.AddStateValue(address, tfjsonpath.New("id")))
		second.ConfigPlanChecks.PreApply = append(second.ConfigPlanChecks.PreApply, plancheck.ExpectResourceAction(address, c.action))
	}
	first.Config, second.Config = with(g, before), with(g, after)
	first.ConfigPlanChecks.PostApplyPostRefresh = []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}
	second.ConfigPlanChecks.PostApplyPostRefresh = []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}
	unit(t, g, first, second, resource.TestStep{
		PreConfig: func() {
			if id == compare.ValuesSame() {
				expectReadsOnly(t, g)
			}
		},
		Config: second.Config, PlanOnly: true,
	})
}

// Everything that is fixed for a sandbox replaces it, one change at a time; the plan says so.
func TestSandboxReplaces(t *testing.T) {
	t.Parallel()
	changes := map[string]change{}
	for argument, value := range map[string]string{
		"name": `"renamed"`, "image": `"example.com/agent:2"`, "command": `["sleep", "1"]`, "tty": `false`,
		"environment": `{ TOKEN = "another", EMPTY = "" }`, "labels": `{ team = "b", empty = "" }`, "annotations": `{ "example.com/note" = "another" }`,
		"log_level": `"info"`, "restart_policy": `"always"`, "driver_config": `jsonencode({ simulated = { ready_after = "11ms" } })`,
		"resources": `{ cpu = "501m", memory = "512Mi" }`, "gpu": `{ count = 3 }`, "runtime_class_name": `"kata"`, "user_namespaces": `false`,
	} {
		changes[argument] = change{everything, map[string]string{argument: value}, plancheck.ResourceActionReplace}
	}
	for _, argument := range []string{"environment", "labels", "annotations", "command", "log_level", "driver_config", "resources", "gpu", "runtime_class_name", "user_namespaces"} {
		changes[argument+" removed"] = change{everything, map[string]string{argument: ""}, plancheck.ResourceActionReplace}
	}
	changes["resources.memory removed"] = change{everything, map[string]string{"resources": `{ cpu = "500m" }`}, plancheck.ResourceActionReplace}
	changes["gpu.count removed"] = change{everything, map[string]string{"gpu": `{}`}, plancheck.ResourceActionReplace}
	changes["gpu = {} added"] = change{map[string]string{"tty": `true`}, map[string]string{"gpu": `{}`}, plancheck.ResourceActionReplace}
	changes["resources added"] = change{map[string]string{"tty": `true`}, map[string]string{"resources": `{ memory = "1Gi" }`}, plancheck.ResourceActionReplace}
	apply(t, gatewaytest.Start(t), compare.ValuesDiffer(), changes)
}

// What only Terraform uses, and what means the same, is no reason to call the gateway.
func TestSandboxQuietChanges(t *testing.T) {
	t.Parallel()
	none := map[string]string{}
	config := map[string]string{"driver_config": `"{\"simulated\":{\"ready_after\":\"10ms\"}}"`}
	empty := map[string]string{"labels": `{}`, "annotations": `{}`, "environment": `{}`, "command": `[]`, "resources": `{}`}
	apply(t, gatewaytest.Start(t), compare.ValuesSame(), map[string]change{
		"wait_for":       {none, map[string]string{"wait_for": `"none"`}, plancheck.ResourceActionUpdate},
		"timeouts":       {none, map[string]string{"timeouts": `{ delete = "1m" }`}, plancheck.ResourceActionUpdate},
		"empty for null": {none, empty, plancheck.ResourceActionUpdate},
		"null for empty": {empty, map[string]string{"labels": "", "annotations": "", "environment": "", "command": "", "resources": ""}, plancheck.ResourceActionUpdate},
		"other text, same JSON": {config, map[string]string{
			"driver_config": "<<-EOT\n  { \"simulated\" : { \"ready_after\" : \"10ms\" } }\n  EOT",
		}, plancheck.ResourceActionNoop},
		"empty object for null":    {none, map[string]string{"driver_config": `"{}"`}, plancheck.ResourceActionUpdate},
		"other text, same amounts": {everything, map[string]string{"resources": `{ cpu = 0.5, memory = "0.5Gi" }`}, plancheck.ResourceActionNoop},
		"name_prefix added":        {none, map[string]string{"name": "", "name_prefix": `"other-"`}, plancheck.ResourceActionUpdate},
		"defaults spelled out": {none, map[string]string{
			"image": `"nvcr.io/nvidia/base/ubuntu:24.04"`, "restart_policy": `"never"`, "tty": `true`, "workspace": `"default"`,
		}, plancheck.ResourceActionNoop},
		"defaults not mentioned": {everything, map[string]string{"image": "", "restart_policy": "", "tty": "", "workspace": ""}, plancheck.ResourceActionNoop},
		"running as it is":       {none, map[string]string{"running": `true`}, plancheck.ResourceActionUpdate},
		"running not managed":    {map[string]string{"running": `true`}, map[string]string{"running": ""}, plancheck.ResourceActionUpdate},
	})
}

func expectReadsOnly(t *testing.T, g *gatewaytest.Gateway) {
	t.Helper()
	for _, call := range g.AllCalls() {
		switch call.Method {
		case "/openshell.v1.OpenShell/Health", "/openshell.v1.OpenShell/GetSandbox", "/openshell.v1.OpenShell/GetWorkspace":
		default:
			t.Errorf("call %s", call.Method)
		}
	}
}
