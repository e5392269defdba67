package lifecycle

import (
	"google.golang.org/protobuf/proto"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/policy"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// SetPolicy gives a sandbox another revision of its policy. A simulated one loads it at once while its main process runs,
// else when it is ready the next time. Until then the admission in the status says which one it is to load.
func SetPolicy(s *store.Sandbox, version uint32, hash string) {
	s.Status = proto.CloneOf(s.Status)
	admission := s.Status.GetConfigurationAdmission()
	if admission == nil {
		admission = &openshellv1.SandboxConfigurationAdmission{}
		s.Status.ConfigurationAdmission = admission
	}
	admission.State = openshellv1.ConfigurationAdmissionState_CONFIGURATION_ADMISSION_STATE_PENDING
	admission.PolicyVersion, admission.PolicyHash = version, hash
	if s.Phase() == ready {
		loadPolicy(s.Status)
	}
}

// loadPolicy is what the supervisor of a real sandbox reports.
func loadPolicy(s *openshellv1.SandboxStatus) {
	s.ConfigurationAdmission.State = openshellv1.ConfigurationAdmissionState_CONFIGURATION_ADMISSION_STATE_ACCEPTED
	s.CurrentPolicyVersion = s.GetConfigurationAdmission().GetPolicyVersion()
}

// firstAdmission is that of a new sandbox. The policy in its spec is revision 1.
func firstAdmission(spec *openshellv1.SandboxSpec) *openshellv1.SandboxConfigurationAdmission {
	admission := &openshellv1.SandboxConfigurationAdmission{
		State: openshellv1.ConfigurationAdmissionState_CONFIGURATION_ADMISSION_STATE_PENDING,
	}
	if spec.GetPolicy() != nil {
		admission.PolicyVersion, admission.PolicyHash = 1, policy.Hash(spec.GetPolicy())
	}
	return admission
}
