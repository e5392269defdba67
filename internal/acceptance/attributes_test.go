package acceptance_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	tfjson "github.com/hashicorp/terraform-json"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/openshell-iac/terraform-provider-openshell/internal/acceptance/cli"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
	"github.com/openshell-iac/terraform-provider-openshell/internal/provider"
)

// attribute is one argument of a sandbox: what it is at first and then, and what the gateway has of it.
type attribute struct {
	// first and then are its expressions. Empty leaves it out.
	first, then string
	// with are further arguments, which do not change.
	with map[string]string
	// also are those that change with it.
	also map[string][2]string
	// replaces says that the change replaces the sandbox; else it is made in place.
	replaces bool
	// read is what the gateway has, and is what it must be, at first and then. nil is for what no gateway knows.
	read func(*testing.T, *gatewaytest.Gateway, *openshellv1.Sandbox) any
	is   [2]any
}

func spec[T any](read func(*openshellv1.SandboxSpec) T) func(*testing.T, *gatewaytest.Gateway, *openshellv1.Sandbox) any {
	return func(_ *testing.T, _ *gatewaytest.Gateway, sb *openshellv1.Sandbox) any { return read(sb.GetSpec()) }
}

func meta(read func(*openshellv1.Sandbox) any) func(*testing.T, *gatewaytest.Gateway, *openshellv1.Sandbox) any {
	return func(_ *testing.T, _ *gatewaytest.Gateway, sb *openshellv1.Sandbox) any { return read(sb) }
}

// hosts are those that the policy in force allows.
func hosts(t *testing.T, g *gatewaytest.Gateway, sb *openshellv1.Sandbox) any {
	t.Helper()
	reply, err := g.OpenShell().GetSandboxPolicyStatus(t.Context(), &openshellv1.GetSandboxPolicyStatusRequest{
		Sandbox: sb.GetMetadata().GetName(), WorkspaceScope: gatewaytest.Default(),
	})
	if err != nil {
		t.Error(err)
	}
	var all []string
	for _, rule := range reply.GetRevision().GetPolicy().GetNetworkPolicies() {
		for _, endpoint := range rule.GetEndpoints() {
			all = append(all, endpoint.GetHost())
		}
	}
	return all
}

func allowing(host string) string {
	return fmt.Sprintf(`yamlencode({ version = 1, network_policies = { web = { name = "web", endpoints = [{ host = %q, port = 443 }], binaries = [{ path = "/usr/bin/curl" }] } } })`, host)
}

// attributes are all that a user can set, by name.
var attributes = map[string]attribute{
	"name": {first: `"first"`, then: `"second"`, replaces: true,
		read: meta(func(sb *openshellv1.Sandbox) any { return sb.GetMetadata().GetName() }), is: [2]any{"first", "second"}},
	"name_prefix": {first: `"team-a-"`, then: `"team-b-"`, replaces: true,
		read: meta(func(sb *openshellv1.Sandbox) any { return sb.GetMetadata().GetName()[:7] }), is: [2]any{"team-a-", "team-b-"}},
	"workspace": {first: `"default"`, then: `"elsewhere"`, replaces: true,
		read: meta(func(sb *openshellv1.Sandbox) any { return sb.GetMetadata().GetWorkspace() }), is: [2]any{"default", "elsewhere"}},
	"image": {first: `"example.com/a:1"`, then: `"example.com/a:2"`, replaces: true,
		read: spec(func(s *openshellv1.SandboxSpec) string { return s.GetTemplate().GetImage() }), is: [2]any{"example.com/a:1", "example.com/a:2"}},
	"command": {first: `["sleep", "1h"]`, then: `["sleep", "2h"]`, replaces: true,
		read: spec((*openshellv1.SandboxSpec).GetCommand), is: [2]any{[]string{"sleep", "1h"}, []string{"sleep", "2h"}}},
	"tty": {first: `false`, then: `true`, with: map[string]string{"command": `["sh"]`}, replaces: true,
		read: spec((*openshellv1.SandboxSpec).GetTty), is: [2]any{false, true}},
	"environment": {first: `{ A = "b" }`, then: `{ A = "c" }`, replaces: true,
		read: spec((*openshellv1.SandboxSpec).GetEnvironment), is: [2]any{map[string]string{"A": "b"}, map[string]string{"A": "c"}}},
	"environment_wo": {first: `{ A = "b" }`, then: `{ A = "c" }`, also: map[string][2]string{"environment_wo_version": {"1", "2"}}, replaces: true,
		read: spec((*openshellv1.SandboxSpec).GetEnvironment), is: [2]any{map[string]string{"A": "b"}, map[string]string{"A": "c"}}},
	"environment_wo_version": {first: `1`, then: `2`, with: map[string]string{"environment_wo": `{ A = "b" }`}, replaces: true,
		read: spec((*openshellv1.SandboxSpec).GetEnvironment), is: [2]any{map[string]string{"A": "b"}, map[string]string{"A": "b"}}},
	"labels": {first: `{ team = "a" }`, then: `{ team = "b" }`, replaces: true,
		read: meta(func(sb *openshellv1.Sandbox) any { return sb.GetMetadata().GetLabels()["team"] }), is: [2]any{"a", "b"}},
	"annotations": {first: `{ note = "a" }`, then: `{ note = "b" }`, replaces: true,
		read: meta(func(sb *openshellv1.Sandbox) any { return sb.GetMetadata().GetAnnotations()["note"] }), is: [2]any{"a", "b"}},
	"log_level": {first: `"debug"`, then: `"info"`, replaces: true,
		read: spec((*openshellv1.SandboxSpec).GetLogLevel), is: [2]any{"debug", "info"}},
	"providers": {first: `["a", "b"]`, then: `["b", "c"]`,
		read: spec((*openshellv1.SandboxSpec).GetProviders), is: [2]any{[]string{"a", "b"}, []string{"b", "c"}}},
	"resources": {first: `{ cpu = "500m", memory = "512Mi" }`, then: `{ cpu = 2 }`, replaces: true,
		read: spec(func(s *openshellv1.SandboxSpec) any { return s.GetTemplate().GetResources().AsMap() }),
		is:   [2]any{map[string]any{"limits": map[string]any{"cpu": "500m", "memory": "512Mi"}}, map[string]any{"limits": map[string]any{"cpu": "2"}}}},
	"gpu": {first: `{}`, then: `{ count = 2 }`, replaces: true,
		read: spec(func(s *openshellv1.SandboxSpec) any { return s.GetResourceRequirements().GetGpu().GetCount() }), is: [2]any{uint32(0), uint32(2)}},
	"restart_policy": {first: `"never"`, then: `"on_failure"`, replaces: true,
		read: spec(func(s *openshellv1.SandboxSpec) any { return s.GetRestartPolicy().String() }), is: [2]any{"SANDBOX_RESTART_POLICY_NEVER", "SANDBOX_RESTART_POLICY_ON_FAILURE"}},
	"policy": {first: allowing("one.example.com"), then: allowing("two.example.com"),
		read: hosts, is: [2]any{[]string{"one.example.com"}, []string{"two.example.com"}}},
	"runtime_class_name": {first: `"gvisor"`, then: `"kata"`, replaces: true,
		read: spec(func(s *openshellv1.SandboxSpec) any { return s.GetTemplate().GetRuntimeClassName() }), is: [2]any{"gvisor", "kata"}},
	"user_namespaces": {first: `true`, then: `false`, replaces: true,
		read: spec(func(s *openshellv1.SandboxSpec) any { return s.GetTemplate().GetUserNamespaces() }), is: [2]any{true, false}},
	"driver_config": {first: `jsonencode({ simulated = { ready_after = "10ms" } })`, then: `jsonencode({ simulated = { ready_after = "20ms" } })`, replaces: true,
		read: spec(func(s *openshellv1.SandboxSpec) any { return s.GetTemplate().GetDriverConfig().AsMap() }),
		is:   [2]any{map[string]any{"simulated": map[string]any{"ready_after": "10ms"}}, map[string]any{"simulated": map[string]any{"ready_after": "20ms"}}}},
	"workload_template": {first: `"small"`, then: `"large"`, replaces: true,
		read: spec(func(s *openshellv1.SandboxSpec) any { return []any{s.GetTemplate().GetImage(), s.GetEnvironment()} }),
		is:   [2]any{[]any{"example.com/small", map[string]string{"TEMPLATE": "small"}}, []any{"example.com/large", map[string]string{"TEMPLATE": "large"}}}},
	"running": {first: `true`, then: `false`,
		read: meta(func(sb *openshellv1.Sandbox) any { return sb.GetStatus().GetPhase().String() }), is: [2]any{"SANDBOX_PHASE_READY", "SANDBOX_PHASE_STOPPED"}},
	"wait_for": {first: `"ready"`, then: `"none"`},
	"timeouts": {first: `{ create = "5m", read = "1m", update = "5m", delete = "5m" }`, then: `{ delete = "4m" }`},
}

// configuration has a resource for each attribute, named like it, at first (0) or then (1). as, if not nil, writes each
// expression in another way.
func configuration(at int, as func(name, expression string) string) string {
	var text strings.Builder
	for i, name := range slices.Sorted(maps.Keys(attributes)) {
		a := attributes[name]
		arguments := map[string]string{name: []string{a.first, a.then}[at]}
		maps.Copy(arguments, a.with)
		for other, values := range a.also {
			arguments[other] = values[at]
		}
		if as != nil {
			arguments[name] = as(name, arguments[name])
		}
		if name != "name" && name != "name_prefix" {
			arguments["name"] = fmt.Sprintf("\"web%d\"", i)
		}
		fmt.Fprintf(&text, "resource \"openshell_sandbox\" %q {\n", name)
		for _, argument := range slices.Sorted(maps.Keys(arguments)) {
			fmt.Fprintf(&text, "  %s = %s\n", argument, arguments[argument])
		}
		text.WriteString("}\n")
	}
	return text.String()
}

// everywhere is a gateway with what the attributes refer to.
func everywhere(t *testing.T) *gatewaytest.Gateway {
	t.Helper()
	g := gatewaytest.Start(t)
	for _, provider := range []string{"a", "b", "c"} {
		g.MustProvider(t, provider)
	}
	for _, template := range []string{"small", "large"} {
		g.MustTemplate(t, template, "example.com/"+template)
	}
	if _, err := g.OpenShell().CreateWorkspace(t.Context(), &openshellv1.CreateWorkspaceRequest{Name: "elsewhere"}); err != nil {
		t.Fatal(err)
	}
	return g
}

// Every attribute is created, read back at the gateway, imported and changed, as its description says; after each of these
// the plan is empty.
func TestT25EveryAttribute(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, c cli.CLI) {
		g := everywhere(t)
		maker := &stage{WorkingDir: cli.InTest(t, c), t: t, g: g, c: c}
		maker.provider(g)
		maker.write("web.tf", configuration(0, nil))
		maker.must(maker.Apply(t.Context(), ""))
		made := maker.attributeIDs(0)
		g.DeleteTemplate(t, "small") // what was made from it does not mind
		maker.empty()

		s := &stage{WorkingDir: cli.InTest(t, c), t: t, g: g, c: c}
		s.provider(g)
		s.write("web.tf", configuration(0, nil))
		var imports strings.Builder
		for name, values := range maker.states() {
			fmt.Fprintf(&imports, "import {\n  to = openshell_sandbox.%s\n  id = \"%v/%v@%v\"\n}\n", name, values["workspace"], values["name"], values["id"])
		}
		s.write("import.tf", imports.String())
		g.ResetCalls()
		s.planned(func(string, attribute) []tfjson.Actions {
			return []tfjson.Actions{{tfjson.ActionNoop}, {tfjson.ActionUpdate}}
		})
		readsOnly(t, g)
		s.write("import.tf", "")
		s.empty()
		if imported := s.attributeIDs(0); !maps.Equal(imported, made) {
			t.Errorf("imported %v, made %v", imported, made)
		}

		s.write("web.tf", configuration(1, nil))
		s.planned(func(_ string, a attribute) []tfjson.Actions {
			if a.replaces {
				return []tfjson.Actions{{tfjson.ActionDelete, tfjson.ActionCreate}}
			}
			return []tfjson.Actions{{tfjson.ActionUpdate}}
		})
		changed := s.attributeIDs(1)
		for name, a := range attributes {
			if (changed[name] != made[name]) != a.replaces {
				t.Errorf("%s: id %s after %s", name, changed[name], made[name])
			}
		}
		s.empty()
		s.must(s.Destroy(t.Context()))
		if n := len(sandboxes(t, g)); n != 0 {
			t.Errorf("%d sandboxes are left", n)
		}
	})
}

// A value that is not known when planning is as good as any other.
func TestT25EveryAttributeKnownAfterApply(t *testing.T) {
	t.Parallel()
	g := everywhere(t)
	s := &stage{WorkingDir: cli.InTest(t, cli.Require(t)), t: t, g: g}
	s.provider(g)
	var inputs strings.Builder
	s.write("web.tf", configuration(0, func(name, expression string) string {
		fmt.Fprintf(&inputs, "resource \"terraform_data\" %q {\n  input = %s\n}\n", name, expression)
		return fmt.Sprintf("terraform_data.%s.output", name)
	}))
	s.write("inputs.tf", inputs.String())
	s.must(s.Apply(t.Context(), ""))
	s.attributeIDs(0)
	s.empty()
	s.must(s.Destroy(t.Context()))
}

// planned applies a plan whose action for each attribute is one of those allowed.
func (s *stage) planned(allowed func(name string, a attribute) []tfjson.Actions) {
	s.t.Helper()
	if err := s.Plan(s.t.Context(), savedPlan).Err(); err != nil {
		s.t.Fatal(err)
	}
	plan, err := s.ShowPlan(s.t.Context(), savedPlan)
	if err != nil {
		s.t.Fatal(err)
	}
	if len(plan.ResourceChanges) != len(attributes) {
		s.t.Errorf("%d changes are planned", len(plan.ResourceChanges))
	}
	for _, change := range plan.ResourceChanges {
		name := change.Name
		if !slices.ContainsFunc(allowed(name, attributes[name]), func(want tfjson.Actions) bool { return slices.Equal(want, change.Change.Actions) }) {
			s.t.Errorf("%s: planned %v because of %v", name, change.Change.Actions, change.Change.ReplacePaths)
		}
	}
	if err := s.Apply(s.t.Context(), savedPlan).Err(); err != nil {
		s.t.Fatal(err)
	}
}

// states are the values in the state, by the resource's label.
func (s *stage) states() map[string]map[string]any {
	s.t.Helper()
	state, err := s.State(s.t.Context())
	if err != nil || state.Values == nil {
		s.t.Fatal("no state", err)
	}
	all := map[string]map[string]any{}
	for _, r := range state.Values.RootModule.Resources {
		if r.Type == "openshell_sandbox" {
			all[r.Name] = r.AttributeValues
		}
	}
	return all
}

// attributeIDs checks what the gateway has of each attribute, at first (0) or then (1), and returns the ids.
func (s *stage) attributeIDs(at int) map[string]string {
	s.t.Helper()
	ids, states := map[string]string{}, s.states()
	for name, a := range attributes {
		id := fmt.Sprint(states[name]["id"])
		ids[name] = id
		sb, ok := s.g.GetByID(s.t, id)
		if !ok {
			s.t.Errorf("%s: the gateway has no sandbox %s", name, id)
			continue
		}
		if a.read == nil {
			continue
		}
		if got, want := asJSON(s.t, a.read(s.t, s.g, sb)), asJSON(s.t, a.is[at]); got != want {
			s.t.Errorf("%s: the gateway has %s, want %s", name, got, want)
		}
	}
	return ids
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The table has every attribute that a user can set.
func TestEveryAttributeIsInTheTable(t *testing.T) {
	server, err := providerserver.NewProtocol6WithError(provider.New("test")())()
	if err != nil {
		t.Fatal(err)
	}
	reply, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range reply.ResourceSchemas["openshell_sandbox"].Block.Attributes {
		if _, listed := attributes[a.Name]; (a.Optional || a.Required) != listed {
			t.Errorf("%s: in the table %t, can be set %t", a.Name, listed, a.Optional || a.Required)
		}
	}
}
