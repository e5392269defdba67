package server

import (
	"maps"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/policy"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/rules"
	"github.com/openshell-iac/terraform-provider-openshell/internal/apierr"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/lifecycle"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// configUpdate is one update of a sandbox's configuration and, after its transaction, what came of it.
type configUpdate struct {
	req          *openshellv1.UpdateConfigRequest
	target       store.Target
	precondition *store.Precondition
	request      *store.Request
	shape        error       // what is wrong with the request, whatever there is in the gateway
	draft        policyDraft // of a policy that is given as a whole
	content      error       // what is wrong with that policy

	reply   *openshellv1.UpdateConfigResponse
	sandbox store.Sandbox
}

func newConfigUpdate(workspace string, req *openshellv1.UpdateConfigRequest, p *store.Precondition, request *store.Request) *configUpdate {
	u := &configUpdate{
		req: req, target: store.Target{Workspace: workspace, Name: req.GetSandbox()}, precondition: p, request: request, shape: checkUpdate(req),
	}
	if req.GetPolicy() != nil { // outside of the transaction, since it may take a while
		u.draft, u.content = newPolicyDraft("policy", req.GetPolicy())
	}
	return u
}

// checkUpdate checks that a request is for exactly one change. Upstream adds no details to these errors.
func checkUpdate(req *openshellv1.UpdateConfigRequest) error {
	changes := 0
	for _, given := range []bool{req.GetPolicy() != nil, strings.TrimSpace(req.GetSettingKey()) != "", len(req.GetMergeOperations()) > 0} {
		if given {
			changes++
		}
	}
	switch {
	case changes > 1:
		return status.Error(codes.InvalidArgument, "policy, setting_key and merge_operations exclude each other; make one change at a time")
	case changes == 0:
		return status.Error(codes.InvalidArgument, "one of policy, setting_key and merge_operations is required")
	case req.GetDeleteSetting() && strings.TrimSpace(req.GetSettingKey()) == "":
		return status.Error(codes.InvalidArgument, "delete_setting goes with setting_key only")
	case strings.TrimSpace(req.GetSettingKey()) != "":
		if err := checkSetting(req); err != nil {
			return err
		}
	}
	if v := rules.Annotations("annotations", req.GetAnnotations()); v != nil {
		return &apierr.InvalidArgument{Field: v.Field, Problem: v.Problem}
	}
	return nil
}

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

// run makes the change. Under a precondition its version is compared before the rules of the call, else the expected one
// after them, as for an attach.
func (u *configUpdate) run(tx store.Tx) error {
	u.reply = &openshellv1.UpdateConfigResponse{}
	managed, err := u.managed(tx)
	if err != nil {
		return err
	}
	current, err := tx.Sandbox(u.target, u.precondition)
	if err != nil {
		return err
	}
	if err := u.precondition.CheckVersion(current); err != nil {
		return err
	}
	if u.shape != nil {
		return u.shape
	}
	if managed != nil {
		return managed
	}
	u.sandbox = current
	if err := u.annotate(); err != nil {
		return err
	}
	switch {
	case u.req.GetPolicy() != nil:
		err = u.replacePolicy(tx)
	case len(u.req.GetMergeOperations()) > 0:
		err = u.mergePolicy(tx)
	default:
		err = u.set(tx)
	}
	if err != nil {
		return err
	}
	if expected := u.req.GetExpectedResourceVersion(); u.precondition == nil && expected != 0 && expected != current.ResourceVersion {
		return &store.VersionConflictError{Expected: expected, Current: current.ResourceVersion}
	}
	if sameRow(current, u.sandbox) {
		return nil
	}
	u.sandbox, err = tx.WriteSandbox(u.sandbox)
	return err
}

// managed refuses a change of what is set for the whole gateway. It is read first, for the order of locks.
func (u *configUpdate) managed(tx store.Tx) (refusal, err error) {
	key := strings.TrimSpace(u.req.GetSettingKey())
	if key == "" {
		policy, err := gatewayPolicy.latest(tx.ListObjects)
		if policy.inForce() {
			refusal = status.Error(codes.FailedPrecondition, "the policy is managed for the whole gateway; delete that policy before this sandbox can have another")
		}
		return refusal, err
	}
	settings, err := readSettings(gatewaySettings, tx.Object)
	if _, set := settings.GetSettings()[key]; set {
		refusal = status.Errorf(codes.FailedPrecondition, "setting '%s' is managed for the whole gateway; delete it there before this sandbox can have its own", key)
	}
	return refusal, err
}

// set sets or deletes a setting.
func (u *configUpdate) set(tx store.Tx) error {
	all, err := readSettings(sandboxSettings(u.sandbox), tx.LockObject)
	if err != nil {
		return err
	}
	if all.apply(u.req) {
		if err := all.write(tx); err != nil {
			return err
		}
		u.reply.Deleted = u.req.GetDeleteSetting()
	}
	u.reply.SettingsRevision = all.GetSettingsRevision()
	return nil
}

// annotate adds the annotations, and checks that they are not too many together with those that are there.
func (u *configUpdate) annotate() error {
	if len(u.req.GetAnnotations()) == 0 {
		return nil
	}
	all := map[string]string{}
	maps.Copy(all, u.sandbox.Annotations)
	maps.Copy(all, u.req.GetAnnotations())
	u.sandbox.Annotations = all
	if v := rules.Annotations("annotations", all); v != nil {
		return &apierr.InvalidArgument{Field: v.Field, Problem: "together with those that the sandbox has, " + v.Problem}
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

// sameRow says that there is nothing to write.
func sameRow(before, after store.Sandbox) bool {
	return maps.Equal(before.Annotations, after.Annotations) && proto.Equal(before.Spec, after.Spec) && proto.Equal(before.Status, after.Status)
}
