package server

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/rules"
	"github.com/openshell-iac/terraform-provider-openshell/internal/apierr"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// enterFunc lets a caller into a workspace, or does not.
type enterFunc func(ctx context.Context, workspace string) error

// within settles which workspace a call is about that is about no sandbox, and lets the caller in.
func within(ctx context.Context, scope *datamodelv1.WorkspaceSelector, enter enterFunc) (string, error) {
	workspace, err := oneWorkspace(scope)
	if err != nil {
		return "", err
	}
	return workspace, enter(ctx, workspace)
}

// enter settles whether the caller may act in a workspace, and then whether there is one.
func (s *Server) enter(ctx context.Context, workspace string) error {
	if err := auth.AuthorizeWorkspace(ctx, workspace, auth.Other); err != nil {
		return err
	}
	_, err := s.workspace(ctx, workspace)
	return err
}

// enterActive is enter for a call that puts something into the workspace. That it still takes new objects when the call
// does so is for the store to settle.
func (s *Server) enterActive(ctx context.Context, workspace string) error {
	if err := auth.AuthorizeWorkspace(ctx, workspace, auth.Other); err != nil {
		return err
	}
	w, err := s.workspace(ctx, workspace)
	if err == nil && w.Terminating() {
		return terminating(workspace)
	}
	return err
}

func terminating(workspace string) error {
	return status.Errorf(codes.FailedPrecondition, "workspace '%s' is being deleted and takes nothing new, for good; use another one", workspace)
}

func noWorkspace(workspace string) error {
	return status.Errorf(codes.NotFound, "workspace '%s' not found", workspace)
}

// inWorkspace names the workspace in what the store says about it.
func inWorkspace(workspace string, err error) error {
	switch {
	case errors.Is(err, store.ErrWorkspaceNotFound):
		return noWorkspace(workspace)
	case errors.Is(err, store.ErrWorkspaceTerminating):
		return terminating(workspace)
	}
	return err
}

// notTerminating refuses early what is added to a sandbox in a workspace that takes nothing new. A workspace that does not
// exist answers later, like a sandbox that does not.
func (s *Server) notTerminating(ctx context.Context, workspace string) error {
	w, err := s.Store.Workspace(ctx, workspace)
	switch {
	case err == nil && w.Terminating():
		return terminating(workspace)
	case errors.Is(err, store.ErrWorkspaceNotFound):
		return nil
	}
	return err
}

// concealed is inWorkspace for a call about a sandbox.
func concealed(workspace string, err error) error {
	if errors.Is(err, store.ErrWorkspaceNotFound) {
		return store.ErrNotFound
	}
	return inWorkspace(workspace, err)
}

// workspace reads a workspace, or answers as for one that does not exist.
func (s *Server) workspace(ctx context.Context, name string) (store.Workspace, error) {
	w, err := s.Store.Workspace(ctx, name)
	return w, inWorkspace(name, err)
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
