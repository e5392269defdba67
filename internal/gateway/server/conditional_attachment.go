package server

import (
	"context"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

// AttachSandboxProvider attaches a provider to the sandbox with the expected id.
func (c *conditionalServer) AttachSandboxProvider(ctx context.Context, req *conditionalv1.ConditionalAttachSandboxProviderRequest) (*openshellv1.AttachSandboxProviderResponse, error) {
	workspace, p, err := guarded(ctx, req.GetRequest().GetSandbox(), req.GetRequest().GetWorkspaceScope(),
		req.GetPrecondition(), req.GetRequest().GetExpectedResourceVersion())
	if err != nil {
		return nil, err
	}
	return c.server.attach(ctx, workspace, req.GetRequest(), p)
}

// DetachSandboxProvider detaches a provider from the sandbox with the expected id.
func (c *conditionalServer) DetachSandboxProvider(ctx context.Context, req *conditionalv1.ConditionalDetachSandboxProviderRequest) (*openshellv1.DetachSandboxProviderResponse, error) {
	workspace, p, err := guarded(ctx, req.GetRequest().GetSandbox(), req.GetRequest().GetWorkspaceScope(),
		req.GetPrecondition(), req.GetRequest().GetExpectedResourceVersion())
	if err != nil {
		return nil, err
	}
	return c.server.detach(ctx, workspace, req.GetRequest(), p)
}
