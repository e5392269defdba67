package server

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/policy"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/rules"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// failureMode is what a sandbox does when it cannot load a policy: it lets nothing through.
const failureMode = "fail_closed"

// GetSandboxConfig reads the configuration that counts in a sandbox: the policy with what its providers add, or that of the
// whole gateway, and the settings.
func (s *Server) GetSandboxConfig(ctx context.Context, req *sandboxv1.GetSandboxConfigRequest) (*sandboxv1.GetSandboxConfigResponse, error) {
	workspace, err := s.addressed(ctx, req.GetName(), req.GetWorkspaceScope())
	if err != nil {
		return nil, err
	}
	return readAttached(ctx, s, workspace, req.GetName(), func(sandbox store.Sandbox) (*sandboxv1.GetSandboxConfigResponse, error) {
		return s.effectiveConfig(ctx, sandbox)
	})
}

func (s *Server) effectiveConfig(ctx context.Context, sandbox store.Sandbox) (_ *sandboxv1.GetSandboxConfigResponse, err error) {
	reply := &sandboxv1.GetSandboxConfigResponse{
		Workspace: sandbox.Workspace, PolicyValidationFailureMode: failureMode,
		ProviderAttachmentEpoch: sandbox.Spec.GetProviderAttachmentEpoch(), ConfigurationInstanceId: sandbox.Status.GetConfigurationAdmission().GetInstanceId(),
	}
	if err := s.addSettings(ctx, reply, sandbox); err != nil {
		return nil, err
	}
	if err := s.addEffectivePolicy(ctx, reply, sandbox); err != nil {
		return nil, err
	}
	reply.ConfigRevision, err = fingerprintOf(&sandboxv1.GetSandboxConfigResponse{
		Policy: reply.GetPolicy(), Settings: reply.GetSettings(), PolicySource: reply.GetPolicySource(), PolicyValidationFailureMode: failureMode,
	})
	return reply, err
}

func (s *Server) addSettings(ctx context.Context, reply *sandboxv1.GetSandboxConfigResponse, sandbox store.Sandbox) error {
	gateway, err := readSettings(gatewaySettings, s.object(ctx))
	if err != nil {
		return err
	}
	own, err := readSettings(sandboxSettings(sandbox), s.object(ctx))
	reply.Settings, reply.SettingsRevision = effectiveSettings(gateway, own), own.GetSettingsRevision()
	return err
}

// effectiveSettings are those that count in a sandbox: the gateway's win.
func effectiveSettings(gateway, sandbox settings) map[string]*sandboxv1.EffectiveSetting {
	all := map[string]*sandboxv1.EffectiveSetting{}
	for _, key := range rules.SettingKeys() {
		all[key] = &sandboxv1.EffectiveSetting{}
		if value, set := gateway.GetSettings()[key]; set {
			all[key] = &sandboxv1.EffectiveSetting{Value: value, Scope: sandboxv1.SettingScope_SETTING_SCOPE_GLOBAL}
		} else if value, set := sandbox.GetSettings()[key]; set {
			all[key] = &sandboxv1.EffectiveSetting{Value: value, Scope: sandboxv1.SettingScope_SETTING_SCOPE_SANDBOX}
		}
	}
	return all
}

// addEffectivePolicy composes the policy. What cannot be composed any more, since a profile has changed, is an error.
func (s *Server) addEffectivePolicy(ctx context.Context, reply *sandboxv1.GetSandboxConfigResponse, sandbox store.Sandbox) error {
	a, err := s.providers(ctx).attached(sandbox.Workspace, sandbox.Spec.GetProviders())
	if err != nil {
		return err
	}
	reply.ProviderEnvRevision = a.revision()
	own, err := historyOf(sandbox).latest(s.objects(ctx))
	if err != nil {
		return err
	}
	gateway, err := gatewayPolicy.latest(s.objects(ctx))
	if err != nil {
		return err
	}
	reply.Version, reply.PolicySource = own.GetVersion(), sandboxv1.PolicySource_POLICY_SOURCE_SANDBOX
	switch {
	case gateway.inForce():
		reply.Version, reply.PolicySource = max(own.GetVersion(), 1), sandboxv1.PolicySource_POLICY_SOURCE_GLOBAL
		reply.Policy, reply.GlobalPolicyVersion = policy.Mark(gateway.GetPolicy(), a.all), gateway.GetVersion()
	case own.GetVersion() == 0:
		return nil
	default:
		reply.Policy = policy.Compose(own.GetPolicy(), a.all)
	}
	reply.PolicyHash = policy.Hash(reply.GetPolicy())
	if err := checkEndpoints(reply.GetPolicy()); err != nil {
		return status.Errorf(codes.FailedPrecondition, "the policy of sandbox '%s' does not go together with its providers: %s", sandbox.Name, status.Convert(err).Message())
	}
	if err := policy.Uninspected(reply.GetPolicy()); err != nil {
		reply.ConfigurationError = err.Error()
	}
	reply.ConfigurationAdmitted = reply.GetConfigurationError() == ""
	return nil
}

// revision tells apart what providers bring into a sandbox.
func (a attached) revision() uint64 {
	hash := sha256.New()
	for _, row := range a.rows {
		fmt.Fprintf(hash, "%s %d ", row.ID, row.ResourceVersion)
	}
	return binary.LittleEndian.Uint64(hash.Sum(nil))
}

// fingerprintOf tells contents apart.
func fingerprintOf(m proto.Message) (uint64, error) {
	content, err := encode(m)
	sum := sha256.Sum256(content)
	return binary.LittleEndian.Uint64(sum[:]), err
}
