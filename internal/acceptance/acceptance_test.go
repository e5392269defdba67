// Package acceptance_test runs the real command line with the real provider and gateway, for what shows only there: saved
// plans, exit codes, warnings, signals and the bytes of the state.
package acceptance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	tfjson "github.com/hashicorp/terraform-json"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
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
	s.write("provider.tf", fmt.Sprintf("terraform {\n  required_providers {\n    openshell = {\n      source = %q\n    }\n  }\n}\n\nprovider \"openshell\" {\n  %s\n}\n",
		cli.Address, strings.Join(arguments, "\n  ")))
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

// resource is the sandbox in the state; nil when there is none.
func (s *stage) resource() *tfjson.StateResource {
	s.t.Helper()
	return s.at(web)
}

// at is the resource with an address in the state; nil when there is none.
func (s *stage) at(address string) *tfjson.StateResource {
	s.t.Helper()
	state, err := s.State(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	if state.Values == nil {
		return nil
	}
	i := slices.IndexFunc(state.Values.RootModule.Resources, func(r *tfjson.StateResource) bool { return r.Address == address })
	if i < 0 {
		return nil
	}
	return state.Values.RootModule.Resources[i]
}

// id is the sandbox's id in the state; empty when there is none.
func (s *stage) id() string {
	s.t.Helper()
	r := s.resource()
	if r == nil {
		return ""
	}
	id, _ := r.AttributeValues["id"].(string)
	return id
}

// attribute is what the state has of a resource; nil when it has none.
func (s *stage) attribute(address, name string) any {
	s.t.Helper()
	if r := s.at(address); r != nil {
		return r.AttributeValues[name]
	}
	return nil
}

// raw is the state file.
func (s *stage) raw() []byte {
	s.t.Helper()
	raw, err := s.RawState()
	if err != nil {
		s.t.Fatal(err)
	}
	return raw
}

// stateIs checks that a command left the state as it was. Terraform may still write the file again, with the paths of
// sensitive attributes in another order, and counts that.
func (s *stage) stateIs(before []byte) {
	s.t.Helper()
	after := s.raw()
	if bytes.Equal(before, after) {
		return
	}
	if diff := cmp.Diff(s.decoded(before), s.decoded(after)); diff != "" {
		s.t.Errorf("the state was changed:\n%s", diff)
	}
}

// decoded is a state without what Terraform changes by itself.
func (s *stage) decoded(raw []byte) map[string]any {
	s.t.Helper()
	var state map[string]any
	if err := json.Unmarshal(raw, &state); err != nil {
		s.t.Fatal(err)
	}
	delete(state, "serial")
	for instance := range instances(state) {
		paths, _ := instance["sensitive_attributes"].([]any)
		slices.SortFunc(paths, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	}
	return state
}

// instances are those of all resources in a decoded state.
func instances(state map[string]any) iter.Seq[map[string]any] {
	return func(yield func(map[string]any) bool) {
		resources, _ := state["resources"].([]any)
		for _, r := range resources {
			resource, _ := r.(map[string]any)
			all, _ := resource["instances"].([]any)
			for _, i := range all {
				if instance, _ := i.(map[string]any); !yield(instance) {
					return
				}
			}
		}
	}
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

// before makes something happen in front of every call of a method, by the end of its name. An error replaces the call.
func before(method string, happens func() error) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		if strings.HasSuffix(info.FullMethod, method) {
			if err := happens(); err != nil {
				return nil, err
			}
		}
		return handle(ctx, req)
	}
}

// refuse makes methods fail, by the end of their names.
func refuse(code codes.Code, methods ...string) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		if slices.ContainsFunc(methods, func(m string) bool { return strings.HasSuffix(info.FullMethod, m) }) {
			return nil, status.Error(code, "refused in a test")
		}
		return handle(ctx, req)
	}
}

// shown changes what GetSandbox answers.
func shown(edit func(*openshellv1.Sandbox)) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		reply, err := handle(ctx, req)
		if r, ok := reply.(*openshellv1.SandboxResponse); ok && err == nil && strings.HasSuffix(info.FullMethod, "/GetSandbox") {
			r = proto.CloneOf(r)
			edit(r.GetSandbox())
			return r, nil
		}
		return reply, err
	}
}
