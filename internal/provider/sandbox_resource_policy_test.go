package provider

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/policy"
)

func parsed(t *testing.T, text string) *sandboxv1.SandboxPolicy {
	t.Helper()
	p, err := parsePolicy(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return p
}

// What is written over a revision changes as little of the fixed parts as can be.
func TestMergedPolicy(t *testing.T) {
	const over = "version: 1\nfilesystem_policy: {include_workdir: true, read_only: [/usr, /proc], read_write: [/tmp]}\nlandlock: {compatibility: hard_requirement}\nnetwork_policies: {old: {}}\n"
	for name, tc := range map[string]struct{ next, want string }{
		"nothing given":       {"version: 1\nnetwork_policies: {new: {}}\n", strings.Replace(over, "old", "new", 1)},
		"fewer paths":         {"version: 1\nfilesystem_policy: {include_workdir: true, read_only: [/usr]}\n", strings.Replace(over, "network_policies: {old: {}}\n", "", 1)},
		"another path":        {"version: 1\nfilesystem_policy: {include_workdir: true, read_write: [/data]}\n", strings.NewReplacer("network_policies: {old: {}}\n", "", "[/tmp]", "[/tmp, /data]").Replace(over)},
		"a path with a slash": {"version: 1\nfilesystem_policy: {include_workdir: true, read_only: [/usr/, /proc]}\n", strings.Replace(over, "network_policies: {old: {}}\n", "", 1)},
		"another landlock":    {"version: 1\nlandlock: {compatibility: best_effort}\n", strings.NewReplacer("network_policies: {old: {}}\n", "", "hard_requirement", "best_effort").Replace(over)},
	} {
		t.Run(name, func(t *testing.T) {
			next := parsed(t, tc.next)
			before := proto.Clone(next)
			if got, want := merged(next, parsed(t, over)), parsed(t, tc.want); policy.Hash(got) != policy.Hash(want) {
				t.Errorf("got\n%v\nwant\n%v", got, want)
			}
			if !proto.Equal(next, before) {
				t.Error("the policy that others share was changed")
			}
		})
	}
}

// Drift is what writing our text again would change; a policy as drifted must plan to ours in the way that repairs it.
func TestDriftedPolicy(t *testing.T) {
	const ours = "version: 1\nfilesystem_policy: {read_only: [/usr, /opt]}\nnetwork_policies: {a: {}}\n"
	for name, tc := range map[string]struct {
		newest string
		repair policy.ChangeKind
	}{
		"same":                      {ours, policy.Unchanged},
		"parts filled in":           {ours + "landlock: {compatibility: best_effort}\nprocess: {run_as_user: sandbox}\n", policy.Unchanged},
		"paths added":               {strings.Replace(ours, "/opt]", "/opt, /proc], read_write: [/tmp]", 1), policy.Unchanged},
		"rule changed":              {strings.Replace(ours, "a: {}", "b: {}", 1), policy.Live},
		"rule changed, path added":  {strings.NewReplacer("a: {}", "b: {}", "/opt]", "/opt, /proc]").Replace(ours), policy.Live},
		"path removed":              {strings.Replace(ours, ", /opt", "", 1), policy.Live},
		"path removed, other added": {strings.Replace(ours, "/opt", "/proc", 1), policy.Live},
		"middleware added":          {ours + "network_middlewares: {m: {middleware: x, endpoints: {include: [a.b]}}}\n", policy.Live},
		"workdir opened":            {strings.Replace(ours, "{read", "{include_workdir: true, read", 1), policy.Replace},
	} {
		t.Run(name, func(t *testing.T) {
			mine := parsed(t, ours)
			changed := drifted(mine, parsed(t, tc.newest))
			if (changed == nil) != (tc.repair == policy.Unchanged) {
				t.Fatalf("drifted to %v", changed)
			}
			if changed == nil {
				return
			}
			text, err := policy.Format(changed)
			if err != nil {
				t.Fatal(err)
			}
			if change := policy.Compare(parsed(t, text), mine); change.Kind != tc.repair {
				t.Errorf("%v to repair\n%s", change, text)
			}
		})
	}
}

// A text is read once; other words for the same are equal, and other policies are not.
func TestPolicyValue(t *testing.T) {
	const text = "version: 1\nnetwork_policies: {a: {endpoints: [{host: A.example.com, port: 443}]}}\n"
	if parsed(t, text) != parsed(t, strings.Clone(text)) {
		t.Error("read twice")
	}
	for other, want := range map[string]bool{
		text: true,
		`{"network_policies": {"a": {"name": "a", "endpoints": [{"ports": [443], "host": "a.example.com"}]}}, "version": 1}`: true,
		"version: 1\n": false,
		"nonsense":     false,
	} {
		equal, diags := newPolicy(text).StringSemanticEquals(t.Context(), newPolicy(other))
		if equal != want || diags.HasError() {
			t.Errorf("%q: %t, want %t; %v", other, equal, want, diags)
		}
	}
}
