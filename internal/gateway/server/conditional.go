package server

import (
	"context"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/apierr"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// Names of the conditional methods.
const (
	conditionalDelete = conditionalv1.ConditionalSandboxes_DeleteSandbox_FullMethodName
	conditionalStop   = conditionalv1.ConditionalSandboxes_StopSandbox_FullMethodName
	conditionalStart  = conditionalv1.ConditionalSandboxes_StartSandbox_FullMethodName
)

// conditionalServer implements the conditional service by what the plain calls do, under a precondition.
type conditionalServer struct {
	// Not the unimplemented one: without one of the six methods this does not compile, so that the health service is right
	// to say that all of them are there.
	conditionalv1.UnsafeConditionalSandboxesServer
	server *Server
}

// DeleteSandbox deletes the sandbox with the expected id.
func (c *conditionalServer) DeleteSandbox(ctx context.Context, req *conditionalv1.ConditionalDeleteSandboxRequest) (*openshellv1.DeleteSandboxResponse, error) {
	workspace, p, err := guarded(ctx, req.GetRequest().GetName(), req.GetRequest().GetWorkspaceScope(), req.GetPrecondition(), 0)
	if err != nil {
		return nil, err
	}
	return c.server.delete(ctx, workspace, req.GetRequest(), p)
}

// StopSandbox stops the sandbox with the expected id.
func (c *conditionalServer) StopSandbox(ctx context.Context, req *conditionalv1.ConditionalStopSandboxRequest) (*openshellv1.SandboxResponse, error) {
	workspace, p, err := guarded(ctx, req.GetRequest().GetName(), req.GetRequest().GetWorkspaceScope(), req.GetPrecondition(), 0)
	if err != nil {
		return nil, err
	}
	return c.server.stop(ctx, workspace, req.GetRequest(), p)
}

// StartSandbox starts the sandbox with the expected id.
func (c *conditionalServer) StartSandbox(ctx context.Context, req *conditionalv1.ConditionalStartSandboxRequest) (*openshellv1.SandboxResponse, error) {
	workspace, p, err := guarded(ctx, req.GetRequest().GetName(), req.GetRequest().GetWorkspaceScope(), req.GetPrecondition(), 0)
	if err != nil {
		return nil, err
	}
	return c.server.start(ctx, workspace, req.GetRequest(), p)
}

// guarded checks a conditional request in the order that all of them share: the name, the shape of the precondition, the
// shape of the workspace_scope, and whether the caller may act there. The version that some plain requests can expect (0 in
// others) becomes a part of the precondition.
func guarded(ctx context.Context, name string, scope *datamodelv1.WorkspaceSelector, p *conditionalv1.SandboxPrecondition, expected uint64) (workspace string, condition *store.Precondition, err error) {
	if name == "" {
		return "", nil, errSandboxRequired
	}
	if condition, err = precondition(p); err != nil {
		return "", nil, err
	}
	if condition.ResourceVersion != 0 && expected != 0 {
		return "", nil, &apierr.InvalidArgument{
			Field: "expected_resource_version", Problem: "must not be given beside precondition.resource_version; give one of them",
		}
	}
	condition.ResourceVersion = max(condition.ResourceVersion, expected)
	if workspace, err = oneWorkspace(scope); err != nil {
		return "", nil, err
	}
	return workspace, condition, auth.AuthorizeWorkspace(ctx, workspace, auth.Sandbox)
}
