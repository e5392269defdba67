// Package acceptance_test runs the real command line with the real provider and gateway, for what shows only there: saved
// plans, exit codes, warnings, signals and the bytes of the state.
package acceptance_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	tfjson "github.com/hashicorp/terraform-json"
	"google.golang.org/protobuf/proto"

	"github.com/openshell-iac/terraform-provider-openshell/internal/acceptance/cli"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

func TestMain(m *testing.M) { os.Exit(cli.Main(m)) }

const (
	web         = "openshell_sandbox.web"
	savedPlan   = "saved.tfplan"
	conditional = "/openshell.conditional.v1.ConditionalSandboxes/DeleteSandbox"
)

// onEach runs a test with each command line, beside each other.
func onEach(t *testing.T, test func(*testing.T, cli.CLI)) {
	t.Helper()
	cli.ForEach(t, func(t *testing.T, c cli.CLI) {
		t.Parallel()
		test(t, c)
	})
}

// stage is a working directory in front of a gateway.
type stage struct {
	*cli.WorkingDir
	t *testing.T
	g *gatewaytest.Gateway
	c cli.CLI
}

// set prepares a working directory with one sandbox, named web, that has the given arguments besides.
func set(t *testing.T, c cli.CLI, g *gatewaytest.Gateway, arguments ...string) *stage {
	t.Helper()
	s := &stage{WorkingDir: cli.InTest(t, c), t: t, g: g, c: c}
	s.provider(g)
	s.sandbox(append([]string{`name = "web"`}, arguments...)...)
	return s
}

// provider points the provider to a gateway.
func (s *stage) provider(g *gatewaytest.Gateway, arguments ...string) {
	s.t.Helper()
	s.providerAt(g.Endpoint(), arguments...)
}

// providerAt points the provider to a URL.
func (s *stage) providerAt(endpoint string, arguments ...string) {
	s.t.Helper()
	s.providerWith(append([]string{fmt.Sprintf("endpoint = %q", endpoint)}, arguments...)...)
}

// providerWith gives the provider arguments and no others.
func (s *stage) providerWith(arguments ...string) {
	s.t.Helper()
	s.write("provider.tf", fmt.Sprintf("%s\nprovider \"openshell\" {\n  %s\n}\n",
		cli.RequiredProviders, strings.Join(arguments, "\n  ")))
}

// sandbox replaces the configuration of the sandbox.
func (s *stage) sandbox(arguments ...string) {
	s.t.Helper()
	s.write("web.tf", "resource \"openshell_sandbox\" \"web\" {\n  "+strings.Join(arguments, "\n  ")+"\n}\n")
}

func (s *stage) write(name, content string) {
	s.t.Helper()
	if err := s.Write(name, content); err != nil {
		s.t.Fatal(err)
	}
}

// resources are sandboxes by label, each named like it and with further arguments.
func resources(arguments map[string]string) string {
	var text strings.Builder
	for _, label := range slices.Sorted(maps.Keys(arguments)) {
		fmt.Fprintf(&text, "resource \"openshell_sandbox\" %q {\n  name = %[1]q\n  %s\n}\n", label, arguments[label])
	}
	return text.String()
}

// must ends the test unless the command succeeded without a warning.
func (s *stage) must(r cli.Result) {
	s.t.Helper()
	if err := r.Err(); err != nil || len(r.Diagnostics) > 0 {
		s.t.Fatalf("%v\n%v", err, r.Diagnostics)
	}
}

// up applies, and returns the id that is in the state then.
func (s *stage) up() string {
	s.t.Helper()
	s.must(s.Apply(s.t.Context(), ""))
	id := s.id()
	if id == "" {
		s.t.Fatal("no sandbox in the state")
	}
	return id
}

// empty checks that a plan has nothing to do and nothing to say.
func (s *stage) empty() {
	s.t.Helper()
	r := s.Plan(s.t.Context(), "")
	s.must(r)
	if r.Changed() {
		s.t.Errorf("the plan is not empty:\n%s", r.Stdout)
	}
}

// actions are those that a saved plan has for the sandbox.
func (s *stage) actions(plan string) tfjson.Actions {
	s.t.Helper()
	return s.actionsAt(plan, web)
}

// actionsAt are those that a saved plan has for an address.
func (s *stage) actionsAt(plan, address string) tfjson.Actions {
	s.t.Helper()
	saved, err := s.ShowPlan(s.t.Context(), plan)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, change := range saved.ResourceChanges {
		if change.Address == address {
			return change.Change.Actions
		}
	}
	return nil
}

// expect checks a command's exit code and that one diagnostic of a severity says everything.
func (s *stage) expect(r cli.Result, exitCode int, severity string, says ...string) {
	s.t.Helper()
	if r.ExitCode != exitCode {
		s.t.Errorf("%v: exit code %d, want %d\n%s%s", r.Args, r.ExitCode, exitCode, r.Stdout, r.Stderr)
	}
	for _, d := range r.Diagnostics {
		missing := d.Severity != severity
		for _, text := range says {
			missing = missing || !strings.Contains(d.Summary+"\n"+d.Detail, text)
		}
		if !missing {
			return
		}
	}
	s.t.Errorf("%v: no %s says all of %q in\n%v", r.Args, severity, says, r.Diagnostics)
}

// expectAt checks that an error at a resource, and at one of its attributes unless that is empty, says everything.
func (s *stage) expectAt(r cli.Result, address, attribute string, says ...string) {
	s.t.Helper()
	for _, d := range r.Errors() {
		missing := d.Address != address || attribute != "" && d.Attribute != attribute
		for _, text := range says {
			missing = missing || !strings.Contains(d.Summary+"\n"+d.Detail, text)
		}
		if !missing {
			return
		}
	}
	s.t.Errorf("%v: no error at %s %s says all of %q in\n%v", r.Args, address, attribute, says, r.Diagnostics)
}

// unchanged checks by id that a sandbox is just as it was.
func unchanged(t *testing.T, g *gatewaytest.Gateway, before *openshellv1.Sandbox) {
	t.Helper()
	after, ok := g.GetByID(t, before.GetMetadata().GetId())
	if !ok || !proto.Equal(before, after) {
		t.Errorf("sandbox %s was\n%v\nand is\n%v", before.GetMetadata().GetId(), before, after)
	}
}

// neverByName checks that no unconditional delete was asked for.
func neverByName(t *testing.T, g *gatewaytest.Gateway) {
	t.Helper()
	if calls := g.Calls(openshellv1.OpenShell_DeleteSandbox_FullMethodName); len(calls) > 0 {
		t.Errorf("deletes by name: %+v", calls)
	}
}

// readsOnly checks that nothing that changes anything was asked for.
func readsOnly(t *testing.T, g *gatewaytest.Gateway) {
	t.Helper()
	for _, call := range g.AllCalls() {
		name := call.Method[strings.LastIndex(call.Method, "/")+1:]
		if !slices.Contains([]string{"Health", "Check", "GetSandbox", "GetWorkspace", "GetSandboxPolicyStatus", "GetCurrentUser", "ListSandboxes"}, name) {
			t.Errorf("call %+v", call)
		}
	}
}

// sandboxes are all that the gateway has.
func sandboxes(t *testing.T, g *gatewaytest.Gateway) []*openshellv1.Sandbox {
	t.Helper()
	reply, err := g.OpenShell().ListSandboxes(t.Context(), &openshellv1.ListSandboxesRequest{WorkspaceScope: gatewaytest.Default()})
	if err != nil {
		t.Fatal(err)
	}
	return reply.GetSandboxes()
}
