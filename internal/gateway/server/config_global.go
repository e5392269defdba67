package server

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/rules"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// gatewayPolicy is where the policies of the whole gateway are. The newest is in force while it is loaded.
var gatewayPolicy = history{store.Key{Kind: store.KindGatewayPolicy}}

func (r revision) inForce() bool {
	return r.GetStatus() == openshellv1.PolicyStatus_POLICY_STATUS_LOADED
}

// GetGatewayConfig reads the settings of the whole gateway: every one that there is.
func (s *Server) GetGatewayConfig(ctx context.Context, _ *sandboxv1.GetGatewayConfigRequest) (*sandboxv1.GetGatewayConfigResponse, error) {
	all, err := readSettings(gatewaySettings, s.object(ctx))
	if err != nil {
		return nil, err
	}
	return &sandboxv1.GetGatewayConfigResponse{Settings: all.registered(), SettingsRevision: all.GetSettingsRevision()}, nil
}

// object reads objects outside of a transaction.
func (s *Server) object(ctx context.Context) func(store.Key) (store.Object, error) {
	return func(key store.Key) (store.Object, error) { return s.Store.Object(ctx, key) }
}

// objects lists objects outside of a transaction.
func (s *Server) objects(ctx context.Context) func(store.ObjectQuery) ([]store.Object, error) {
	return func(q store.ObjectQuery) ([]store.Object, error) {
		list, err := s.Store.ListObjects(ctx, q)
		return list.Rows, err
	}
}

// checkGlobal checks that a call about the whole gateway names no sandbox, and lets the caller in. Upstream adds no details.
func checkGlobal(ctx context.Context, req about) error {
	if req.GetSandbox() != "" || req.GetWorkspaceScope() != nil {
		return status.Error(codes.InvalidArgument, "sandbox and workspace_scope must be omitted when global is true")
	}
	return auth.RequirePlatformAdmin(ctx)
}

// updateGateway changes the policy or a setting of the whole gateway.
func (s *Server) updateGateway(ctx context.Context, req *openshellv1.UpdateConfigRequest) (*openshellv1.UpdateConfigResponse, error) {
	if err := checkGlobal(ctx, req); err != nil {
		return nil, err
	}
	request, err := newRequest(ctx, "", req, nil)
	if err != nil {
		return nil, err
	}
	draft, err := checkGatewayUpdate(req)
	if err != nil {
		return nil, err
	}
	for first := true; ; first = false {
		var reply *openshellv1.UpdateConfigResponse
		reply, err = mutate(ctx, s, request, func(tx store.Tx) (_ store.Outcome, _ string, err error) {
			reply, err = changeGateway(tx, req, draft)
			return store.OutcomeDone, configSubject("", reply), err
		}, func() (*openshellv1.UpdateConfigResponse, error) { return reply, nil }, s.replayConfig)
		if !first || !errors.Is(err, store.ErrAlreadyExists) { // another call has made the first settings meanwhile
			return reply, err
		}
	}
}

// checkGatewayUpdate checks a request about the whole gateway; the draft is that of its policy, if it has one.
func checkGatewayUpdate(req *openshellv1.UpdateConfigRequest) (draft policyDraft, err error) {
	if len(req.GetAnnotations()) > 0 {
		return draft, status.Error(codes.InvalidArgument, "annotations are for updates of one sandbox, not of the whole gateway")
	}
	if err := checkUpdate(req); err != nil {
		return draft, err
	}
	switch {
	case len(req.GetMergeOperations()) > 0:
		return draft, status.Error(codes.InvalidArgument, "merge_operations are for the policy of one sandbox; replace the policy of the gateway as a whole")
	case req.GetPolicy() == nil:
		return draft, nil
	}
	if draft, err = newPolicyDraft("policy", req.GetPolicy()); err != nil {
		return draft, err
	}
	if provider := boundProvider(draft.policy); provider != "" {
		return draft, status.Errorf(codes.FailedPrecondition,
			"credential_binding names provider '%s', and providers are attached to sandboxes; the policy of the whole gateway cannot have one", provider)
	}
	return draft, nil
}

// boundProvider is one that a policy binds an endpoint to; empty when there is none.
func boundProvider(policy *sandboxv1.SandboxPolicy) string {
	for _, rule := range policy.GetNetworkPolicies() {
		for _, endpoint := range rule.GetEndpoints() {
			if binding := endpoint.GetCredentialBinding(); binding != nil {
				return binding.GetProvider()
			}
		}
	}
	return ""
}

// changeGateway makes the change. All of them lock the settings, which are one row, and so come one after another.
func changeGateway(tx store.Tx, req *openshellv1.UpdateConfigRequest, draft policyDraft) (*openshellv1.UpdateConfigResponse, error) {
	reply := &openshellv1.UpdateConfigResponse{}
	all, err := readSettings(gatewaySettings, tx.LockObject)
	if err != nil {
		return reply, err
	}
	var changed bool
	switch {
	case req.GetPolicy() != nil:
		changed, err = setGatewayPolicy(tx, draft, reply)
	case strings.TrimSpace(req.GetSettingKey()) == rules.PolicySetting:
		changed, err = deleteGatewayPolicy(tx)
	default:
		changed = all.apply(req)
	}
	if err == nil && changed {
		err = all.write(tx)
	}
	reply.SettingsRevision, reply.Deleted = all.GetSettingsRevision(), changed && req.GetDeleteSetting()
	return reply, err
}

func setGatewayPolicy(tx store.Tx, draft policyDraft, reply *openshellv1.UpdateConfigResponse) (changed bool, err error) {
	before, err := gatewayPolicy.latest(tx.ListObjects)
	if err != nil {
		return false, err
	}
	reply.Version, reply.PolicyHash = before.GetVersion(), draft.hash
	if before.inForce() && before.GetPolicyHash() == draft.hash {
		return false, nil
	}
	reply.Version, err = gatewayPolicy.add(tx, before, draft, openshellv1.PolicyStatus_POLICY_STATUS_LOADED, nil)
	return true, err
}

func deleteGatewayPolicy(tx store.Tx) (changed bool, err error) {
	before, err := gatewayPolicy.latest(tx.ListObjects)
	if err != nil || !before.inForce() {
		return false, err
	}
	return true, before.supersede(tx)
}
