package server

import (
	"maps"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/policy"
	"github.com/openshell-iac/terraform-provider-openshell/internal/apierr"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/lifecycle"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// newPolicyDraft checks a policy that a client gives, in a field, and brings it into the form that is stored.
func newPolicyDraft(field string, given *sandboxv1.SandboxPolicy) (policyDraft, error) {
	if err := policy.Validate(given); err != nil {
		return policyDraft{}, &apierr.InvalidArgument{Field: field, Problem: err.Error()}
	}
	canonical := policy.Canonical(given)
	return policyDraft{canonical, policy.Hash(canonical)}, checkEndpoints(canonical)
}

// checkEndpoints refuses a policy that does not say which of several rules counts.
func checkEndpoints(effective *sandboxv1.SandboxPolicy) error {
	if err := policy.Ambiguities(effective); err != nil {
		return status.Error(codes.FailedPrecondition, err.Error())
	}
	return nil
}

// replacePolicy sets the whole policy. Before the first activation it becomes the baseline that later ones are held
// against; after that, what is fixed at the start cannot change.
func (u *configUpdate) replacePolicy(tx store.Tx) error {
	baseline := u.sandbox.Spec.GetPolicy()
	repair := unstarted(u.sandbox.Status)
	switch {
	case u.content != nil:
		return u.content
	case baseline != nil && !repair:
		if err := policy.CheckLive(baseline, u.draft.policy); err != nil {
			return &apierr.InvalidArgument{Field: "policy", Problem: err.Error()}
		}
	case !proto.Equal(baseline, u.draft.policy):
		u.sandbox.Spec = proto.CloneOf(u.sandbox.Spec)
		u.sandbox.Spec.Policy = u.draft.policy
	}
	before, err := historyOf(u.sandbox).latest(tx.ListObjects)
	if err != nil {
		return err
	}
	return u.revise(tx, before, u.draft)
}

// unstarted says that no process has come under the policy yet, so that all of it can be repaired.
func unstarted(s *openshellv1.SandboxStatus) bool {
	switch s.GetConfigurationAdmission().GetState() {
	case openshellv1.ConfigurationAdmissionState_CONFIGURATION_ADMISSION_STATE_PENDING,
		openshellv1.ConfigurationAdmissionState_CONFIGURATION_ADMISSION_STATE_REJECTED:
		return s.ConfigurationActivated != nil && !s.GetConfigurationActivated()
	}
	return false
}

// mergePolicy makes merge operations on the newest revision, or on the policy of the creation.
func (u *configUpdate) mergePolicy(tx store.Tx) error {
	before, err := historyOf(u.sandbox).latest(tx.ListObjects)
	if err != nil {
		return err
	}
	base := before.GetPolicy()
	if before.GetVersion() == 0 {
		base = u.sandbox.Spec.GetPolicy()
	}
	merged, err := policy.Merge(base, u.req.GetMergeOperations())
	if err != nil {
		return mergeStatus(err)
	}
	draft := policyDraft{merged.Policy, policy.Hash(merged.Policy)}
	if before.GetVersion() == 0 && !merged.Changed {
		u.reply.PolicyHash = draft.hash
		return nil
	}
	return u.revise(tx, before, draft)
}

// revise adds a revision, unless the newest is the same and was written for the same reasons.
func (u *configUpdate) revise(tx store.Tx, before revision, draft policyDraft) error {
	u.reply.PolicyHash = draft.hash
	if before.GetVersion() > 0 && before.GetPolicyHash() == draft.hash && maps.Equal(before.GetProvenance(), u.req.GetAnnotations()) {
		u.reply.Version = before.GetVersion()
		return nil
	}
	now, err := tx.Now()
	if err != nil {
		return err
	}
	if err := newProviderReader(tx.Object, now).admits(u.sandbox.Workspace, u.sandbox.Spec.GetProviders(), draft.policy); err != nil {
		return err
	}
	u.reply.Version, err = historyOf(u.sandbox).add(tx, before.in(u.sandbox.Status), draft, openshellv1.PolicyStatus_POLICY_STATUS_UNSPECIFIED, u.req.GetAnnotations())
	if err != nil {
		return err
	}
	lifecycle.SetPolicy(&u.sandbox, u.reply.GetVersion(), draft.hash)
	if u.sandbox.Status.GetProvisioning() == nil {
		u.sandbox.Status.Provisioning = &openshellv1.SandboxProvisioning{}
	}
	u.sandbox.Status.Provisioning.ConfigurationChangeId = u.request.ID
	u.sandbox.Status.Provisioning.ConfigurationChangeTime = timestamppb.New(now)
	return nil
}
