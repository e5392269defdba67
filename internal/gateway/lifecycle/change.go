package lifecycle

import (
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// Phases, for short.
const (
	provisioning = openshellv1.SandboxPhase_SANDBOX_PHASE_PROVISIONING
	ready        = openshellv1.SandboxPhase_SANDBOX_PHASE_READY
	failed       = openshellv1.SandboxPhase_SANDBOX_PHASE_ERROR
	deleting     = openshellv1.SandboxPhase_SANDBOX_PHASE_DELETING
	stopping     = openshellv1.SandboxPhase_SANDBOX_PHASE_STOPPING
	stopped      = openshellv1.SandboxPhase_SANDBOX_PHASE_STOPPED
	starting     = openshellv1.SandboxPhase_SANDBOX_PHASE_STARTING
	completed    = openshellv1.SandboxPhase_SANDBOX_PHASE_COMPLETED
)

// Reasons of the condition Ready that decide about something; the first three are upstream's (contract, phases).
const (
	reasonMainProcessFailed    = "MainProcessFailed"
	reasonMainProcessCompleted = "MainProcessCompleted"
	reasonProvisioningTimedOut = "ProvisioningTimedOut"
	reasonProvisioning         = "Provisioning"
	reasonReady                = "Ready"
	reasonStarting             = "Starting"
	reasonRestarting           = "Restarting"
	reasonStopping             = "Stopping"
	reasonStopped              = "Stopped"
)

// nothing leaves the row as it is.
var nothing = store.Change{}

// rewrite makes a change of a copy of the row.
func rewrite(current store.Sandbox, edit func(next *store.Sandbox)) (store.Change, error) {
	next := current
	next.Status = proto.CloneOf(current.Status)
	edit(&next)
	return store.Change{Write: &next}, nil
}

// during lets decide see the row only while it carries an operation: whoever is late changes nothing.
func during(operationID string, decide store.Decide) store.Decide {
	return func(current store.Sandbox, now time.Time) (store.Change, error) {
		if current.Operation.ID != operationID {
			return nothing, nil
		}
		return decide(current, now)
	}
}

// refused goes back to the state before the operation, its timers included. What other calls have written since stays: the
// policy, and which changes of providers and of the configuration were the last.
func refused(current store.Sandbox, now time.Time) (store.Change, error) {
	before := current.Operation.Before
	return settle(store.OutcomeRefused)(rewrite(current, func(next *store.Sandbox) {
		admission, since := next.Status.GetConfigurationAdmission(), next.Status.GetProvisioning()
		next.Status, next.Operation = proto.CloneOf(before.Status), before.Operation
		p := provisioningOf(next.Status)
		p.ConfigurationChangeId, p.ConfigurationChangeTime = since.GetConfigurationChangeId(), since.GetConfigurationChangeTime()
		p.AttachmentChangeId, p.AttachmentChangeTime = since.GetAttachmentChangeId(), since.GetAttachmentChangeTime()
		if admission.GetPolicyVersion() != next.Status.GetConfigurationAdmission().GetPolicyVersion() {
			SetPolicy(next, admission.GetPolicyVersion(), admission.GetPolicyHash())
		}
		switch {
		case next.Operation.Kind == store.OperationRetire:
			next.Operation.DueAt = now.Add(retireAgain)
			next.Operation.Since = next.Operation.DueAt.Add(-retireAfter) // so that it waits as long when the gateway starts anew
		case !next.Operation.DueAt.IsZero():
			next.Operation.DueAt = now // whoever was at it may have come to an end meanwhile, without effect
		}
	}))
}

func snapshot(s store.Sandbox) *store.Snapshot {
	return &store.Snapshot{Status: s.Status, Operation: s.Operation}
}

// setPhase sets the phase and with it the condition Ready.
func setPhase(s *openshellv1.SandboxStatus, phase openshellv1.SandboxPhase, reason, message string, now time.Time) {
	s.Phase = phase
	condition := &openshellv1.SandboxCondition{
		Type: "Ready", Status: "False", Reason: reason, Message: message, TransitionTime: timestamppb.New(now),
	}
	if phase == ready {
		condition.Status = "True"
	}
	for i, c := range s.GetConditions() {
		if c.GetType() == condition.GetType() {
			s.Conditions[i] = condition
			return
		}
	}
	s.Conditions = append(s.Conditions, condition)
}

// setPending says whether a create or start call of the driver is unanswered; such a sandbox cannot be deleted.
func setPending(s *store.Sandbox, pending bool) {
	s.Operation.Pending = pending
	p := provisioningOf(s.Status)
	p.DriverOperationPending, p.DriverOperationId = pending, s.Operation.ID
}

// provisioningOf is a part of a status, to be written to.
func provisioningOf(s *openshellv1.SandboxStatus) *openshellv1.SandboxProvisioning {
	if s.GetProvisioning() == nil {
		s.Provisioning = &openshellv1.SandboxProvisioning{}
	}
	return s.GetProvisioning()
}

// reason is that of the condition Ready.
func reason(s store.Sandbox) string { return readyCondition(s.Status).GetReason() }

func readyCondition(s *openshellv1.SandboxStatus) *openshellv1.SandboxCondition {
	for _, c := range s.GetConditions() {
		if c.GetType() == "Ready" {
			return c
		}
	}
	return nil
}
