package acceptance_test

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/openshell-iac/terraform-provider-openshell/internal/acceptance/cli"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

// loaded changes what becomes of the policy's second revision.
func loaded(status openshellv1.PolicyStatus, problem string) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		reply, err := handle(ctx, req)
		if r, ok := reply.(*openshellv1.GetSandboxPolicyStatusResponse); ok && err == nil && r.GetRevision().GetVersion() > 1 {
			r = proto.CloneOf(r)
			r.Revision.Status, r.Revision.LoadError = status, problem
			return r, nil
		}
		return reply, err
	}
}

// A policy that the sandbox cannot load is an error that says why, and a warning until it is corrected.
func TestPolicyCannotBeLoaded(t *testing.T) {
	t.Parallel()
	s, ours := policyStage(t)
	s.write(policyFile, fixedParts+gitlab)
	s.g.Intercept(loaded(openshellv1.PolicyStatus_POLICY_STATUS_FAILED, "provider rules conflict"))
	s.expectAt(s.Apply(t.Context(), ""), web, "policy", ours, "revision 2", "provider rules conflict", "holds what the gateway has changed")
	s.expect(s.Plan(t.Context(), ""), 0, cli.Warning, ours, "provider rules conflict")
	s.g.Intercept(nil)
	s.empty()
	s.updates(1, ours)
}

// The wait for a policy to be loaded ends with the time limit for updates, or when another policy follows. What was written
// stays written then, so that is no failure.
func TestPolicyWaits(t *testing.T) {
	t.Parallel()
	s, ours := policyStage(t, `timeouts = { update = "5s" }`)
	s.write(policyFile, fixedParts+gitlab)
	s.g.Intercept(loaded(openshellv1.PolicyStatus_POLICY_STATUS_PENDING, ""))
	s.expectAt(s.Apply(t.Context(), ""), web, "policy", ours, "revision 2", "timeouts = { update")
	s.empty()
	s.g.Intercept(loaded(openshellv1.PolicyStatus_POLICY_STATUS_SUPERSEDED, ""))
	s.write(policyFile, fixedParts+github)
	s.expect(s.Apply(t.Context(), ""), 0, cli.Warning, ours, "superseded by a newer one; whether it was loaded before is not known")
	s.empty()
}

// A stopped sandbox loads its policy when it is started: that is not waited for. Policy and start change in one apply.
func TestPolicyOfAStoppedSandbox(t *testing.T) {
	t.Parallel()
	s, ours := policyStage(t, `running = false`)
	s.write(policyFile, fixedParts+gitlab)
	s.inPlace(ours)
	if status := s.holds(fixedParts + gitlab).GetStatus(); status != openshellv1.PolicyStatus_POLICY_STATUS_PENDING {
		t.Errorf("the revision is %v", status)
	}
	s.sandbox(`name = "web"`, `running = true`, fromFile)
	s.write(policyFile, strings.Replace(wholePolicy, "/etc]", "/etc, /opt]", 1))
	s.inPlace(ours)
	if status := s.holds(strings.Replace(wholePolicy, "/etc]", "/etc, /opt]", 1)).GetStatus(); status != openshellv1.PolicyStatus_POLICY_STATUS_LOADED {
		t.Errorf("the revision is %v", status)
	}
	s.updates(2, ours)
}
