package acceptance_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/openshell-iac/terraform-provider-openshell/internal/acceptance/cli"
	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/policy"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// The policies of these tests: files with every part, and what may follow on them.
const (
	policyFile = "policy.yaml"
	fromFile   = `policy = file("policy.yaml")`

	fixedParts = `
version: 1
filesystem_policy: {include_workdir: true, read_only: [/usr, /etc], read_write: [/tmp]}
landlock: {compatibility: hard_requirement}
process: {run_as_user: "1500"}
`
	github      = "network_policies:\n  github: {endpoints: [{host: api.github.com, port: 443, protocol: rest, access: read-only}], binaries: [{path: /usr/bin/gh}]}\n"
	gitlab      = "network_policies:\n  gitlab: {endpoints: [{host: gitlab.com, port: 443}], binaries: [{path: /usr/bin/git}]}\n"
	wholePolicy = fixedParts + github
)

// policyStage has a sandbox with wholePolicy in a file.
func policyStage(t *testing.T, arguments ...string) (*stage, string) {
	t.Helper()
	s := set(t, cli.Require(t), gatewaytest.Start(t), append(arguments, fromFile)...)
	s.write(policyFile, wholePolicy)
	return s, s.up()
}

// holds checks that a sandbox's newest policy means what a text says, and returns its revision.
func (s *stage) holds(text string) *openshellv1.SandboxPolicyRevision {
	s.t.Helper()
	reply, err := s.g.OpenShell().GetSandboxPolicyStatus(s.t.Context(), &openshellv1.GetSandboxPolicyStatusRequest{Sandbox: "web", WorkspaceScope: gatewaytest.Default()})
	if err != nil {
		s.t.Fatal(err)
	}
	want, err := policy.Parse(text)
	if err != nil {
		s.t.Fatal(err)
	}
	if !policy.Equal(reply.GetRevision().GetPolicy(), want) {
		s.t.Errorf("the gateway has\n%v\nwant\n%v", reply.GetRevision().GetPolicy(), want)
	}
	return reply.GetRevision()
}

// outOfBand has another client set the policy.
func (s *stage) outOfBand(text string) {
	s.t.Helper()
	p, err := policy.Parse(text)
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.g.OpenShell().UpdateConfig(s.t.Context(), &openshellv1.UpdateConfigRequest{Sandbox: "web", Policy: p, WorkspaceScope: gatewaytest.Default()}); err != nil {
		s.t.Fatal(err)
	}
}

// updates checks how often a policy was sent: bound to an id each time, never by name alone.
func (s *stage) updates(want int, id string) {
	s.t.Helper()
	calls := s.g.Calls(conditionalv1.ConditionalSandboxes_UpdateSandboxConfig_FullMethodName)
	for _, call := range calls {
		if r, ok := call.Request.(*conditionalv1.ConditionalUpdateSandboxConfigRequest); !ok || r.GetPrecondition().GetId() != id {
			s.t.Errorf("%v", call)
		}
	}
	if plain := s.g.Calls(openshellv1.OpenShell_UpdateConfig_FullMethodName); len(calls) != want || len(plain) > 0 {
		s.t.Errorf("%d updates bound to the id, want %d; %d by name", len(calls), want, len(plain))
	}
}

// inPlace applies a plan that must be an update, and checks that it is the same sandbox.
func (s *stage) inPlace(id string) {
	s.t.Helper()
	s.must(s.Plan(s.t.Context(), savedPlan))
	if actions := s.actions(savedPlan); !actions.Update() {
		s.t.Errorf("planned %v", actions)
	}
	s.must(s.Apply(s.t.Context(), savedPlan))
	if s.id() != id {
		s.t.Errorf("the sandbox is %s, was %s", s.id(), id)
	}
	s.empty()
}

// Whatever a policy's text comes from, it is sent as it is meant, and the next plan is empty; so it is after other words for
// the same, and after an import.
func TestPolicyTexts(t *testing.T) {
	t.Parallel()
	const document = `data "openshell_policy_document" "this" {
  filesystem_policy = { include_workdir = true, read_only = ["/usr", "/etc"], read_write = ["/tmp"] }
  landlock          = { compatibility = "hard_requirement" }
  process           = { run_as_user = "1500" }
  network_policies = {
    github = {
      endpoints = [{ host = "api.github.com", port = 443, protocol = "rest", access = "read-only" }]
      binaries  = [{ path = "/usr/bin/gh" }]
    }
  }
}
`
	for name, tc := range map[string]struct{ first, second, more string }{
		"file":       {fromFile, `policy = jsonencode(yamldecode(file("policy.yaml")))`, ""},
		"yamlencode": {`policy = yamlencode(yamldecode(file("policy.yaml")))`, fromFile, ""},
		"document":   {`policy = data.openshell_policy_document.this.json`, `policy = yamlencode(jsondecode(data.openshell_policy_document.this.json))`, document},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := set(t, cli.Require(t), gatewaytest.Start(t), tc.first)
			s.write(policyFile, "# Who may talk to whom.\n"+wholePolicy)
			s.write("more.tf", tc.more)
			s.up()
			s.holds(wholePolicy)
			s.g.ResetCalls()
			s.empty()
			s.sandbox(`name = "web"`, tc.second)
			s.empty()
			s.must(s.Run(t.Context(), "state", "rm", web))
			s.must(s.Import(t.Context(), web, "web"))
			s.empty()
			readsOnly(t, s.g)
		})
	}
}

// Network rules and added paths change in place, bound to the id; what the text leaves out of the fixed parts stays.
func TestO29PolicyChangesInPlace(t *testing.T) {
	t.Parallel()
	s, ours := policyStage(t)
	s.write(policyFile, strings.Replace(fixedParts, "/etc]", "/etc, /opt]", 1)+gitlab)
	s.inPlace(ours)
	s.holds(strings.Replace(fixedParts, "/etc]", "/etc, /opt]", 1) + gitlab)
	s.updates(1, ours)

	s.write(policyFile, "version: 1\n"+gitlab)
	s.empty()
	s.write(policyFile, "version: 1\n"+github)
	s.inPlace(ours)
	s.holds(strings.Replace(fixedParts, "/etc]", "/etc, /opt]", 1) + github)
	s.updates(2, ours)
}

// A change of what is fixed at the start, or a policy that comes or goes, replaces the sandbox, and the plan says why.
func TestO29FixedPartsReplace(t *testing.T) {
	t.Parallel()
	s, ours := policyStage(t)
	change := func(old, changed string) string { return strings.Replace(wholePolicy, old, changed, 1) }
	for _, tc := range []struct{ text, says string }{
		{change("/etc]", "]"), `"/etc" is removed`},
		{change("true", "false"), "include_workdir"},
		{change("hard_requirement", "best_effort"), "landlock.compatibility"},
		{change("1500", "1600"), "process.run_as_user"},
	} {
		s.write(policyFile, tc.text)
		s.expect(s.Plan(t.Context(), savedPlan), 2, cli.Warning, ours, "replaces the sandbox", tc.says)
		if actions := s.actions(savedPlan); !actions.Replace() {
			t.Errorf("%s: planned %v", tc.says, actions)
		}
	}
	if r := s.Apply(t.Context(), savedPlan); r.Err() != nil {
		t.Error(r.Err())
	}
	second := s.id()
	s.holds(change("1500", "1600"))

	s.sandbox(`name = "web"`)
	s.expect(s.Plan(t.Context(), savedPlan), 2, cli.Warning, "the policy is removed")
	if actions := s.actions(savedPlan); !actions.Replace() {
		t.Errorf("policy removed: planned %v", actions)
	}
	if r := s.Apply(t.Context(), savedPlan); r.Err() != nil {
		t.Error(r.Err())
	}
	s.empty()
	s.sandbox(`name = "web"`, fromFile)
	s.expect(s.Plan(t.Context(), savedPlan), 2, cli.Warning, "is added where Terraform managed none")
	if third := s.id(); third == second || second == ours {
		t.Errorf("%s, %s, %s", ours, second, third)
	}
	s.updates(0, "")
}

// A policy that is not known when planning is fine for a new sandbox, and an error with a way out for one that is there.
func TestPolicyUnknown(t *testing.T) {
	t.Parallel()
	s := set(t, cli.Require(t), gatewaytest.Start(t), `policy = terraform_data.policy.output`)
	source := func() {
		s.write("more.tf", "resource \"terraform_data\" \"policy\" {\n  input = file(\"policy.yaml\")\n}\n")
	}
	s.write(policyFile, wholePolicy)
	source()
	ours := s.up()
	s.empty()
	s.write(policyFile, fixedParts+gitlab)
	s.expectAt(s.Plan(t.Context(), ""), web, "policy", ours, "not known", "-target")
	if r := s.Apply(t.Context(), "", "-target=terraform_data.policy"); r.Err() != nil {
		t.Fatal(r.Err())
	}
	s.inPlace(ours)
	s.holds(fixedParts + gitlab)
	s.updates(1, ours)
}

// Another's change shows as drift, once, and is repaired; what the gateway adds by itself is none.
func TestPolicyDrift(t *testing.T) {
	t.Parallel()
	s, ours := policyStage(t)
	s.outOfBand(fixedParts + gitlab)
	s.inPlace(ours)
	s.holds(fixedParts + github)
	s.updates(1, ours)

	enriched := strings.Replace(fixedParts, "/etc]", "/etc, /proc, /app]", 1)
	s.outOfBand(enriched + github)
	s.empty()
	s.must(s.Refresh(t.Context()))
	s.write(policyFile, fixedParts+gitlab)
	s.inPlace(ours)
	s.holds(enriched + gitlab)
	s.updates(2, ours)
}

// An imported policy need not be managed, and the paths that the gateway added to it need not be listed.
func TestT5ImportPolicy(t *testing.T) {
	t.Parallel()
	s, ours := policyStage(t)
	s.outOfBand(strings.Replace(wholePolicy, "/etc]", "/etc, /proc]", 1))
	again := func() {
		s.must(s.Run(t.Context(), "state", "rm", web))
		s.must(s.Import(t.Context(), web, "default/web@"+ours))
	}
	again()
	s.empty()
	s.write(policyFile, fixedParts+gitlab)
	s.inPlace(ours)
	s.holds(strings.Replace(fixedParts, "/etc]", "/etc, /proc]", 1) + gitlab)

	again()
	s.sandbox(`name = "web"`)
	s.callFree()
	s.empty()
	s.outOfBand(strings.Replace(wholePolicy, "/etc]", "/etc, /proc]", 1))
	s.empty()
	if s.id() != ours {
		t.Errorf("the sandbox is %s, was %s", s.id(), ours)
	}
}

// Another sandbox under the name never gets our policy, whenever it came.
func TestO1PolicyIsNotForAStranger(t *testing.T) {
	t.Parallel()
	for name, setUp := range map[string]func(s *stage, replace func()){
		"before the apply": func(_ *stage, replace func()) { replace() },
		"right before call": func(s *stage, replace func()) {
			s.g.Intercept(gatewaytest.Before("/UpdateSandboxConfig", func() error { replace(); return nil }))
		},
		"after the read": func(s *stage, replace func()) {
			s.g.Intercept(gatewaytest.Before("/GetSandboxPolicyStatus", func() error { replace(); return nil }))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, ours := policyStage(t)
			s.write(policyFile, fixedParts+gitlab)
			s.must(s.Plan(t.Context(), savedPlan))
			state := s.resource()
			var stranger *openshellv1.Sandbox
			setUp(s, func() {
				if stranger == nil {
					stranger = s.g.Replace(t, "web")
				}
			})
			r := s.Apply(t.Context(), savedPlan)
			s.expect(r, 1, cli.Error, ours, stranger.GetMetadata().GetId(), "was not changed", "kept as it was")
			unchanged(t, s.g, stranger)
			if after := s.resource(); !reflect.DeepEqual(after, state) {
				t.Errorf("the state was changed from\n%v\nto\n%v", state, after)
			}
		})
	}
}

// Where the gateway cannot bind the change to the id, nothing is sent by name, whatever the provider may do for deletes.
func TestPolicyOnAnUnawareGateway(t *testing.T) {
	t.Parallel()
	g := gatewaytest.Start(t, gatewaytest.WithoutConditional())
	s := set(t, cli.Require(t), g, fromFile)
	s.provider(g, "allow_unconditional_delete = true")
	s.write(policyFile, wholePolicy)
	s.up()
	s.write(policyFile, fixedParts+gitlab)
	s.expect(s.Apply(t.Context(), ""), 1, cli.Error, "openshell.conditional.v1", "kept as it was")
	s.holds(wholePolicy)
}

// An answer that is lost is looked up, a refusal stands on the attribute.
func TestPolicyAnswers(t *testing.T) {
	t.Parallel()
	s, ours := policyStage(t)
	s.g.Intercept(gatewaytest.Lose("/UpdateSandboxConfig", nil))
	s.write(policyFile, fixedParts+gitlab)
	s.inPlace(ours)
	s.updates(1, ours)

	s.write(policyFile, wholePolicy)
	for code, name := range map[codes.Code]string{codes.PermissionDenied: "PERMISSION_DENIED", codes.NotFound: "NOT_FOUND"} { // which conceals it
		s.g.Intercept(gatewaytest.Refuse(code, "/UpdateSandboxConfig"))
		s.expectAt(s.Apply(t.Context(), ""), web, "policy", ours, "UpdateSandboxConfig: "+name, "config:write", "kept as it was")
	}
	s.holds(fixedParts + gitlab)
}

// Each problem of a policy is found when planning, on the attribute, with its line.
func TestPolicyProblems(t *testing.T) {
	t.Parallel()
	s := set(t, cli.Require(t), gatewaytest.Start(t), fromFile)
	for text, says := range map[string]string{
		"":                         "is empty",
		"version: 1\nnetwork:\n":   "line 2, column 1: network: unknown key",
		wholePolicy + "process:\n": fmt.Sprintf("line %d", strings.Count(wholePolicy, "\n")+1),
		fixedParts + "network_policies: {x: {endpoints: [{host: example.com}]}}": "network_policies.x.endpoints[0].port: is missing",
	} {
		s.write(policyFile, text)
		s.expectAt(s.Plan(t.Context(), ""), web, "policy", says, "openshell_policy_document")
	}
	if calls := s.g.AllCalls(); len(calls) > 0 {
		t.Errorf("calls %v", calls)
	}
}
