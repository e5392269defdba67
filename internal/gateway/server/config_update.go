package server

import (
	"maps"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/rules"
	"github.com/openshell-iac/terraform-provider-openshell/internal/apierr"
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
	if err := checkExpected(u.req.GetExpectedResourceVersion(), current); err != nil {
		return err
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

// sameRow says that there is nothing to write.
func sameRow(before, after store.Sandbox) bool {
	return maps.Equal(before.Annotations, after.Annotations) && proto.Equal(before.Spec, after.Spec) && proto.Equal(before.Status, after.Status)
}
