package server

import (
	"context"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

// AttachSandboxProvider attaches a provider to the sandbox with the expected id.
func (c *conditionalServer) AttachSandboxProvider(ctx context.Context, req *conditionalv1.ConditionalAttachSandboxProviderRequest) (*openshellv1.AttachSandboxProviderResponse, error) {
	return attachReply(c.changeAttachment(ctx, attach, req.GetPrecondition(), req.GetRequest()))
}

// DetachSandboxProvider detaches a provider from the sandbox with the expected id.
func (c *conditionalServer) DetachSandboxProvider(ctx context.Context, req *conditionalv1.ConditionalDetachSandboxProviderRequest) (*openshellv1.DetachSandboxProviderResponse, error) {
	return detachReply(c.changeAttachment(ctx, detach, req.GetPrecondition(), req.GetRequest()))
}

func (c *conditionalServer) changeAttachment(
	ctx context.Context, kind openshellv1.ProviderMutationKind, p *conditionalv1.SandboxPrecondition, req attachmentRequest,
) (*attachment, error) {
	workspace, condition, err := guarded(ctx, req.GetSandbox(), req.GetWorkspaceScope(), p, req.GetExpectedResourceVersion())
	if err != nil {
		return nil, err
	}
	return c.server.changeAttachment(ctx, kind, workspace, req, condition)
}
