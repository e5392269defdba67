package server

import (
	"context"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/apierr"
)

// UpdateSandboxConfig changes the policy or a setting of the sandbox with the expected id.
func (c *conditionalServer) UpdateSandboxConfig(ctx context.Context, req *conditionalv1.ConditionalUpdateSandboxConfigRequest) (*openshellv1.UpdateConfigResponse, error) {
	workspace, p, err := guarded(ctx, req.GetRequest().GetSandbox(), req.GetRequest().GetWorkspaceScope(),
		req.GetPrecondition(), req.GetRequest().GetExpectedResourceVersion())
	if err != nil {
		return nil, err
	}
	if req.GetRequest().GetGlobal() {
		return nil, &apierr.InvalidArgument{
			Field: "global", Problem: "must not be set: a precondition is about one sandbox; change the whole gateway by openshell.v1.OpenShell/UpdateConfig",
		}
	}
	return c.server.updateConfig(ctx, workspace, req.GetRequest(), p)
}
