package server

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/rules"
	"github.com/openshell-iac/terraform-provider-openshell/internal/apierr"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// GetWorkspace reads one workspace.
func (s *Server) GetWorkspace(ctx context.Context, req *openshellv1.GetWorkspaceRequest) (*openshellv1.GetWorkspaceResponse, error) {
	if req.GetName() == "" {
		return nil, status.Error(codes.InvalidArgument, "name is required")
	}
	if err := auth.AuthorizeWorkspace(ctx, req.GetName(), auth.Other); err != nil {
		return nil, err
	}
	w, err := s.workspace(ctx, req.GetName())
	if err != nil {
		return nil, err
	}
	return &openshellv1.GetWorkspaceResponse{Workspace: &datamodelv1.Workspace{
		Metadata: &datamodelv1.ObjectMeta{
			Id: w.ID, Name: w.Name, Labels: w.Labels, ResourceVersion: w.ResourceVersion, CreatedTime: timestamppb.New(w.CreatedAt),
		},
		Status: &datamodelv1.WorkspaceStatus{Phase: datamodelv1.WorkspacePhase_WORKSPACE_PHASE_ACTIVE},
	}}, nil
}

// enter settles whether the caller may act in a workspace, and then whether there is one: what an outsider asks about is
// not told apart from what is not there, if it is about a sandbox.
func (s *Server) enter(ctx context.Context, workspace string, about auth.Addressee) error {
	if err := auth.AuthorizeWorkspace(ctx, workspace, about); err != nil {
		return err
	}
	_, err := s.workspace(ctx, workspace)
	return err
}

// workspace reads a workspace, or answers as for one that does not exist.
func (s *Server) workspace(ctx context.Context, name string) (store.Workspace, error) {
	w, err := s.Store.Workspace(ctx, name)
	if errors.Is(err, store.ErrWorkspaceNotFound) {
		return w, status.Errorf(codes.NotFound, "workspace '%s' not found", name)
	}
	return w, err
}

const workspaceScope = "workspace_scope"

// oneWorkspace checks the shape of a workspace_scope that must name one workspace.
func oneWorkspace(scope *datamodelv1.WorkspaceSelector) (string, error) {
	switch selection := scope.GetSelection().(type) {
	case *datamodelv1.WorkspaceSelector_Workspace:
		return selection.Workspace, workspaceName(selection.Workspace)
	case *datamodelv1.WorkspaceSelector_AllWorkspaces:
		return "", &apierr.InvalidArgument{Field: workspaceScope, Problem: "must name one workspace; all_workspaces is for lists only"}
	default:
		return "", &apierr.InvalidArgument{Field: workspaceScope, Problem: "workspace_scope is required"}
	}
}

// workspaceName refuses a name that no workspace can have by its length; upstream adds no details to this error.
func workspaceName(name string) error {
	switch {
	case name == "":
		return status.Error(codes.InvalidArgument, "workspace name must not be empty")
	case len(name) > rules.MaxName:
		return status.Errorf(codes.InvalidArgument, "workspace name must be at most %d characters long", rules.MaxName)
	}
	return nil
}
