package server

import (
	"context"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
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
	conditionalv1.UnimplementedConditionalSandboxesServer
	server *Server
}

// DeleteSandbox deletes the sandbox with the expected id.
func (c *conditionalServer) DeleteSandbox(ctx context.Context, req *conditionalv1.ConditionalDeleteSandboxRequest) (*openshellv1.DeleteSandboxResponse, error) {
	workspace, p, err := checkConditional(req.GetRequest(), req.GetPrecondition())
	if err != nil {
		return nil, err
	}
	if err := c.server.enter(ctx, workspace, auth.Sandbox); err != nil {
		return nil, err
	}
	return c.server.delete(ctx, workspace, req.GetRequest(), p)
}

// StopSandbox stops the sandbox with the expected id.
func (c *conditionalServer) StopSandbox(ctx context.Context, req *conditionalv1.ConditionalStopSandboxRequest) (*openshellv1.SandboxResponse, error) {
	workspace, p, err := checkConditional(req.GetRequest(), req.GetPrecondition())
	if err != nil {
		return nil, err
	}
	if err := auth.AuthorizeWorkspace(ctx, workspace, auth.Sandbox); err != nil {
		return nil, err
	}
	return c.server.stop(ctx, workspace, req.GetRequest(), p)
}

// StartSandbox starts the sandbox with the expected id.
func (c *conditionalServer) StartSandbox(ctx context.Context, req *conditionalv1.ConditionalStartSandboxRequest) (*openshellv1.SandboxResponse, error) {
	workspace, p, err := checkConditional(req.GetRequest(), req.GetPrecondition())
	if err != nil {
		return nil, err
	}
	if err := auth.AuthorizeWorkspace(ctx, workspace, auth.Sandbox); err != nil {
		return nil, err
	}
	return c.server.start(ctx, workspace, req.GetRequest(), p)
}

// checkConditional checks a conditional request in the order that all of them share: the name, the shape of the
// precondition, the shape of the workspace_scope.
func checkConditional(req interface {
	GetName() string
	GetWorkspaceScope() *datamodelv1.WorkspaceSelector
}, p *conditionalv1.SandboxPrecondition) (workspace string, condition *store.Precondition, err error) {
	if req.GetName() == "" {
		return "", nil, errSandboxRequired
	}
	if condition, err = precondition(p); err != nil {
		return "", nil, err
	}
	workspace, err = oneWorkspace(req.GetWorkspaceScope())
	return workspace, condition, err
}
