package client

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/apierr"
)

// policyOf is a policy of one rule.
func policyOf(rule string) *sandboxv1.SandboxPolicy {
	return &sandboxv1.SandboxPolicy{Version: 1, NetworkPolicies: map[string]*sandboxv1.NetworkPolicyRule{rule: {Name: rule}}}
}

// withPolicy is a gateway whose sandbox has a policy.
func withPolicy() *fake {
	f := newFake()
	f.put("web", idA, ready)
	f.revisions = []*openshellv1.SandboxPolicyRevision{{Version: 1, Policy: policyOf("old"), Status: openshellv1.PolicyStatus_POLICY_STATUS_LOADED}}
	return f
}

func TestSetPolicy(t *testing.T) {
	replace := func(f *fake, _ int, _ any) error { f.put("web", idB, ready); return nil }
	fail := func(code codes.Code) hook {
		return func(*fake, int, any) error { return status.Error(code, "in a test") }
	}
	for name, tc := range map[string]struct {
		key   string // of the hook
		hook  hook
		calls int
		set   bool
		fails func(*testing.T, error)
	}{
		"set":         {"", nil, 1, true, nil},
		"answer lost": {"lose " + updateCall, fail(codes.Unavailable), 1, true, nil},
		"call lost":   {updateCall, fail(codes.Unavailable), 1, false, func(t *testing.T, err error) { t.Helper(); want[*UnansweredChangeError](t, err) }},
		"refused":     {updateCall, fail(codes.InvalidArgument), 1, false, func(t *testing.T, err error) { t.Helper(); want[*CallError](t, err) }},
		"not found, though it is there": {updateCall, fail(codes.NotFound), 1 + staleReads, false, func(t *testing.T, err error) {
			t.Helper()
			if e := as[*CallError](t, err); e.Call != updateCall || e.Code() != codes.NotFound {
				t.Error(e)
			}
		}},
		"another one, though it is there": {updateCall, func(*fake, int, any) error {
			return (&apierr.IdentityMismatch{Workspace: "default", Name: "web", ExpectedID: idA, CurrentID: idB}).GRPCStatus().Err()
		}, 1 + staleReads, false, func(t *testing.T, err error) { t.Helper(); want[*CallError](t, err) }},
		"replaced in between": {updateCall, replace, 1, false, func(t *testing.T, err error) { t.Helper(); want[*GoneError](t, err) }},
		"replaced before":     {"OpenShell/GetSandbox", replace, 0, false, func(t *testing.T, err error) { t.Helper(); want[*GoneError](t, err) }},
		"being deleted":       {"OpenShell/GetSandbox", turn(1, func(f *fake) { f.put("web", idA, deleting) }), 0, false, func(t *testing.T, err error) { t.Helper(); want[*FailedError](t, err) }},
		"one of a mixed fleet": {updateCall, func(_ *fake, nth int, _ any) error {
			if nth == 1 {
				return status.Error(codes.Unimplemented, "unknown service")
			}
			return nil
		}, 2, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := withPolicy()
			if tc.hook != nil {
				f.hooks[tc.key] = tc.hook
			}
			serve(t, f, func(ctx context.Context, c *Client) {
				revision, err := c.SetPolicy(ctx, web, policyOf("new"))
				if tc.fails != nil {
					tc.fails(t, err)
				} else if err != nil || revision.GetVersion() != 2 {
					t.Errorf("%v, %v", revision, err)
				}
			})
			newest := f.revisions[len(f.revisions)-1].GetPolicy()
			if set := proto.Equal(newest, policyOf("new")); set != tc.set || f.count(updateCall) != tc.calls {
				t.Errorf("%d calls, the policy is %v", f.count(updateCall), newest)
			}
		})
	}
}

// The call names the id, and nothing but the policy.
func TestSetPolicyRequest(t *testing.T) {
	f := withPolicy()
	f.hooks[updateCall] = func(_ *fake, _ int, req any) error {
		r := cast[*conditionalv1.ConditionalUpdateSandboxConfigRequest](req)
		want := &openshellv1.UpdateConfigRequest{Sandbox: "web", Policy: policyOf("new"), WorkspaceScope: scope("default")}
		if r.GetPrecondition().GetId() != idA || !proto.Equal(r.GetRequest(), want) {
			t.Errorf("%v", r)
		}
		return nil
	}
	serve(t, f, func(ctx context.Context, c *Client) {
		if _, err := c.SetPolicy(ctx, web, policyOf("new")); err != nil {
			t.Error(err)
		}
	})
}

func TestWaitForPolicy(t *testing.T) {
	becomes := func(nth int, to openshellv1.PolicyStatus) hook {
		return turn(nth, func(f *fake) { f.revisions[0].Status = to })
	}
	failsAs := func(superseded bool) func(*testing.T, error) {
		return func(t *testing.T, err error) {
			t.Helper()
			if e := as[*PolicyError](t, err); e.Superseded != superseded || e.Version != 1 {
				t.Errorf("%+v", e)
			}
		}
	}
	const read = "OpenShell/GetSandboxPolicyStatus"
	for name, tc := range map[string]struct {
		phase openshellv1.SandboxPhase
		hook  hook
		fails func(*testing.T, error)
	}{
		"loaded":     {ready, becomes(5, openshellv1.PolicyStatus_POLICY_STATUS_LOADED), nil},
		"failed":     {ready, becomes(2, openshellv1.PolicyStatus_POLICY_STATUS_FAILED), failsAs(false)},
		"superseded": {ready, becomes(2, openshellv1.PolicyStatus_POLICY_STATUS_SUPERSEDED), failsAs(true)},
		"never":      {ready, nil, func(t *testing.T, err error) { t.Helper(); want[*WaitError](t, err) }},
		"stopped":    {stopped, nil, nil},
		"completed":  {completed, nil, nil},
		"starting":   {starting, becomes(3, openshellv1.PolicyStatus_POLICY_STATUS_LOADED), nil},
		"not seen yet": {ready, func(f *fake, nth int, _ any) error {
			if nth < 3 {
				return status.Error(codes.NotFound, "no such revision")
			}
			f.revisions[0].Status = openshellv1.PolicyStatus_POLICY_STATUS_LOADED
			return nil
		}, nil},
		"replaced": {ready, turn(2, func(f *fake) { f.put("web", idB, ready) }), func(t *testing.T, err error) { t.Helper(); want[*GoneError](t, err) }},
	} {
		t.Run(name, func(t *testing.T) {
			f := withPolicy()
			f.put("web", idA, tc.phase)
			f.revisions[0].Status = openshellv1.PolicyStatus_POLICY_STATUS_PENDING
			if tc.hook != nil {
				f.hooks[read] = tc.hook
			}
			serve(t, f, func(ctx context.Context, c *Client) {
				switch err := c.WaitForPolicy(ctx, web, 1); {
				case tc.fails != nil:
					tc.fails(t, err)
				case err != nil:
					t.Error(err)
				}
			})
		})
	}
}

// Why a policy could not be loaded may be told with the sandbox's environment, which a state need not know.
func TestPolicyLoadErrorIsScrubbed(t *testing.T) {
	f := withPolicy()
	f.sandboxes["web"].Spec.Environment = map[string]string{"TOKEN": "token-123456"}
	f.revisions[0].Status, f.revisions[0].LoadError = openshellv1.PolicyStatus_POLICY_STATUS_FAILED, "no host token-123456.example.com"
	serve(t, f, func(ctx context.Context, c *Client) {
		err := c.WaitForPolicy(ctx, web, 1)
		if e := as[*PolicyError](t, err); e.LoadError != "no host (sensitive value).example.com" {
			t.Error(e)
		}
	})
}
