package telemetry

import (
	"testing"

	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

func TestIDInReply(t *testing.T) {
	meta := &datamodelv1.ObjectMeta{Id: "the-id"}
	for want, replies := range map[string][]any{
		"the-id": {
			&openshellv1.SandboxResponse{Sandbox: &openshellv1.Sandbox{Metadata: meta}},
			&openshellv1.AttachSandboxProviderResponse{Sandbox: &openshellv1.Sandbox{Metadata: meta}, Attached: true},
			&openshellv1.ProviderResponse{Provider: &datamodelv1.Provider{Metadata: meta}, MutationId: "no id of an object"},
			&openshellv1.GetWorkspaceResponse{Workspace: &datamodelv1.Workspace{Metadata: meta}},
			&openshellv1.DeleteSandboxResponse{SandboxId: "the-id"},
			&openshellv1.CreateSshSessionResponse{SandboxId: "the-id", Token: "secret"},
			&openshellv1.SandboxStreamEvent{Payload: &openshellv1.SandboxStreamEvent_Sandbox{Sandbox: &openshellv1.Sandbox{Metadata: meta}}},
		},
		"": {
			&openshellv1.HealthResponse{Version: "1"},
			&openshellv1.ListSandboxesResponse{Sandboxes: []*openshellv1.Sandbox{{Metadata: meta}}},
			&openshellv1.SandboxResponse{},
			&openshellv1.DeleteWorkspaceResponse{},
			"no message", nil,
		},
	} {
		for _, reply := range replies {
			if got := idIn(reply); got != want {
				t.Errorf("%T: %q, want %q", reply, got, want)
			}
		}
	}
}
