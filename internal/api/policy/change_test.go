package policy_test

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/policy"
)

const fixedParts = `version: 1
filesystem_policy: {include_workdir: true, read_only: [/usr], read_write: [/tmp]}
landlock: {compatibility: hard_requirement}
process: {run_as_user: "1500"}
network_policies:
  a: {endpoints: [{host: a.example.com, port: 443}]}
`

func TestCompare(t *testing.T) {
	with := func(old, changed string) *sandboxv1.SandboxPolicy {
		if !strings.Contains(fixedParts, old) {
			t.Fatalf("no %q to replace", old)
		}
		return mustParse(t, strings.Replace(fixedParts, old, changed, 1))
	}
	base := mustParse(t, fixedParts)
	bare := mustParse(t, "version: 1\n")
	for name, test := range map[string]struct {
		current, next *sandboxv1.SandboxPolicy
		want          policy.ChangeKind
		reasons       []string
	}{
		"none":                  {nil, nil, policy.Unchanged, nil},
		"a policy is added":     {nil, base, policy.Replace, []string{": a policy is added"}},
		"the policy is removed": {base, nil, policy.Replace, []string{": the policy is removed"}},
		"same":                  {base, mustParse(t, fixedParts), policy.Unchanged, nil},
		"same meaning":          {base, with("{host: a.example.com, port: 443}", "{host: A.example.com, ports: [443], enforcement: audit}"), policy.Unchanged, nil},

		"process left out":    {base, with("process: {run_as_user: \"1500\"}\n", ""), policy.Unchanged, nil},
		"landlock left out":   {base, with("landlock: {compatibility: hard_requirement}\n", ""), policy.Unchanged, nil},
		"filesystem left out": {base, with("filesystem_policy: {include_workdir: true, read_only: [/usr], read_write: [/tmp]}\n", ""), policy.Unchanged, nil},
		"all left out, a rule changed": {
			base, mustParse(t, "version: 1\nnetwork_policies: {a: {endpoints: [{host: b.example.com, port: 443}]}}"), policy.Live,
			[]string{"network_policies.a: changes"},
		},
		"rules come, go and change": {
			mustParse(t, "version: 1\nnetwork_policies: {a: {}, b: {}, c.d: {name: x}}\nnetwork_middlewares: {m: {middleware: x}}"),
			mustParse(t, "version: 1\nnetwork_policies: {b: {}, c.d: {}, e: {}}\nnetwork_middlewares: {m: {middleware: y}}"), policy.Live,
			[]string{"network_policies.a: is removed", `network_policies["c.d"]: changes`, "network_policies.e: is added", "network_middlewares.m: changes"},
		},
		"a path is added": {
			base, with("[/usr]", "[/usr/, /etc]"), policy.Live,
			[]string{`filesystem_policy.read_only: "/etc" is added`},
		},
		"a path is removed": {
			base, with("[/tmp]", "[]"), policy.Replace,
			[]string{`filesystem_policy.read_write: "/tmp" is removed`},
		},
		"a path moves": {
			base, with("read_only: [/usr], read_write: [/tmp]", "read_only: [], read_write: [/tmp, /usr]"), policy.Replace,
			[]string{`filesystem_policy.read_only: "/usr" is removed`},
		},
		"the working directory": {
			base, with("include_workdir: true, ", ""), policy.Replace,
			[]string{"filesystem_policy.include_workdir: changes from true to false"},
		},
		"a filesystem section that says the default": {bare, mustParse(t, "version: 1\nfilesystem_policy: {include_workdir: true}"), policy.Unchanged, nil},
		"a filesystem section that says otherwise": {
			bare, mustParse(t, "version: 1\nfilesystem_policy: {}"), policy.Replace,
			[]string{"filesystem_policy.include_workdir: changes from true to false"},
		},
		"landlock": {
			base, with("hard_requirement", "best_effort"), policy.Replace,
			[]string{`landlock.compatibility: changes from "hard_requirement" to "best_effort"`},
		},
		"landlock's default is added": {bare, mustParse(t, "version: 1\nlandlock: {}"), policy.Unchanged, nil},
		"process": {
			base, with(`run_as_user: "1500"`, `run_as_user: sandbox, run_as_group: sandbox`), policy.Replace,
			[]string{`process.run_as_user: changes from "1500" to "sandbox"`, `process.run_as_group: changes from "" to "sandbox"`},
		},
		"fixed and live": {
			base, mustParse(t, "version: 1\nprocess: {}"), policy.Replace,
			[]string{`process.run_as_user: changes from "1500" to ""`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := proto.CloneOf(test.current), proto.CloneOf(test.next)
			got := policy.Compare(test.current, test.next)
			if got.Kind != test.want {
				t.Errorf("%v, want %v", got.Kind, test.want)
			}
			var err error
			if len(got.Reasons) > 0 {
				err = &policy.Error{Problems: got.Reasons}
			}
			wantProblems(t, err, false, test.reasons)
			wantEqual(t, test.current, before)
			wantEqual(t, test.next, after)
		})
	}
}

// What is filled in passes the gateway's comparison by wording.
func TestFillStatic(t *testing.T) {
	current := mustParse(t, fixedParts)
	for name, test := range map[string]struct {
		next           string
		only, readOnly []string // fixed sections taken from current; the paths then
	}{
		"left out":      {"version: 1", []string{"filesystem", "landlock", "process"}, []string{"/usr"}},
		"same":          {fixedParts, []string{"filesystem", "landlock", "process"}, []string{"/usr"}},
		"other wording": {"version: 1\nfilesystem_policy: {include_workdir: true, read_only: [/usr/, //usr], read_write: [/tmp/.]}", []string{"filesystem", "landlock", "process"}, []string{"/usr"}},
		"added paths":   {"version: 1\nfilesystem_policy: {include_workdir: true, read_only: [/etc, /usr/, /etc/], read_write: [/tmp]}", []string{"landlock", "process"}, []string{"/usr", "/etc"}},
		"removed paths": {"version: 1\nfilesystem_policy: {include_workdir: true, read_only: [/etc]}", []string{"landlock", "process"}, []string{"/etc"}},
		"other process": {"version: 1\nprocess: {run_as_user: sandbox}", []string{"filesystem", "landlock"}, []string{"/usr"}},
	} {
		t.Run(name, func(t *testing.T) {
			next := mustParse(t, test.next)
			before := proto.CloneOf(next)
			filled := policy.FillStatic(next, current)
			wantEqual(t, next, before)
			for section, same := range map[string]bool{
				"filesystem": proto.Equal(filled.GetFilesystem(), current.GetFilesystem()),
				"landlock":   proto.Equal(filled.GetLandlock(), current.GetLandlock()),
				"process":    proto.Equal(filled.GetProcess(), current.GetProcess()),
			} {
				if same != slices.Contains(test.only, section) {
					t.Errorf("%s is current's: %t", section, same)
				}
			}
			if got := filled.GetFilesystem().GetReadOnly(); !slices.Equal(got, test.readOnly) {
				t.Errorf("read_only is %q, want %q", got, test.readOnly)
			}
			live := policy.Compare(current, next).Kind != policy.Replace
			if err := policy.CheckLive(current, filled); (err == nil) != live {
				t.Errorf("Compare says live: %t, CheckLive: %v", live, err)
			}
		})
	}
	wantEqual(t, policy.FillStatic(current, nil), current)
	// Current has none of the sections: the default that next writes out is left out again.
	filled := policy.FillStatic(mustParse(t, "version: 1\nlandlock: {}\nprocess: {}\nfilesystem_policy: {include_workdir: true, read_only: [/a]}"), mustParse(t, "version: 1"))
	wantEqual(t, filled, mustParse(t, "version: 1\nfilesystem_policy: {include_workdir: true, read_only: [/a]}"))
}

// The rule of upstream's gateway, by wording.
func TestCheckLive(t *testing.T) {
	base := mustParse(t, fixedParts)
	for name, test := range map[string]struct {
		baseline *sandboxv1.SandboxPolicy
		change   func(*sandboxv1.SandboxPolicy)
		want     []string
	}{
		"nothing":            {base, func(*sandboxv1.SandboxPolicy) {}, nil},
		"network":            {base, func(p *sandboxv1.SandboxPolicy) { p.NetworkPolicies = nil }, nil},
		"more paths":         {base, func(p *sandboxv1.SandboxPolicy) { p.Filesystem.ReadOnly = []string{"/etc", "/usr"} }, nil},
		"fewer paths":        {base, func(p *sandboxv1.SandboxPolicy) { p.Filesystem.ReadOnly = nil }, []string{`filesystem_policy.read_only: "/usr" cannot be removed`}},
		"fewer writable":     {base, func(p *sandboxv1.SandboxPolicy) { p.Filesystem.ReadWrite = nil }, []string{`filesystem_policy.read_write: "/tmp" cannot be removed`}},
		"a path's wording":   {base, func(p *sandboxv1.SandboxPolicy) { p.Filesystem.ReadOnly = []string{"/usr/"} }, []string{`filesystem_policy.read_only: "/usr" cannot be removed`}},
		"no filesystem":      {base, func(p *sandboxv1.SandboxPolicy) { p.Filesystem = nil }, []string{"filesystem_policy: cannot be removed"}},
		"working directory":  {base, func(p *sandboxv1.SandboxPolicy) { p.Filesystem.IncludeWorkdir = false }, []string{"filesystem_policy.include_workdir: cannot be changed"}},
		"no landlock":        {base, func(p *sandboxv1.SandboxPolicy) { p.Landlock = nil }, []string{"landlock: cannot be changed"}},
		"no process":         {base, func(p *sandboxv1.SandboxPolicy) { p.Process = nil }, []string{"process: cannot be changed"}},
		"an empty process":   {mustParse(t, "version: 1"), func(p *sandboxv1.SandboxPolicy) { p.Process = &sandboxv1.ProcessPolicy{} }, []string{"process: cannot be changed"}},
		"a first filesystem": {mustParse(t, "version: 1"), func(p *sandboxv1.SandboxPolicy) { p.Filesystem = &sandboxv1.FilesystemPolicy{} }, nil},
		"several at a time":  {base, func(p *sandboxv1.SandboxPolicy) { proto.Reset(p) }, []string{"filesystem_policy: cannot", "landlock: cannot", "process: cannot"}},
	} {
		t.Run(name, func(t *testing.T) {
			next := proto.CloneOf(test.baseline)
			test.change(next)
			wantProblems(t, policy.CheckLive(test.baseline, next), false, test.want)
		})
	}
}
