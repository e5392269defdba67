package server

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/apierr"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/lifecycle"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// DeleteSandbox deletes whatever sandbox holds the name.
func (s *Server) DeleteSandbox(ctx context.Context, req *openshellv1.DeleteSandboxRequest) (*openshellv1.DeleteSandboxResponse, error) {
	if req.GetName() == "" {
		return nil, errSandboxRequired
	}
	workspace, err := oneWorkspace(req.GetWorkspaceScope())
	if err != nil {
		return nil, err
	}
	if err := auth.AuthorizeWorkspace(ctx, workspace, auth.Sandbox); err != nil {
		return nil, err
	}
	if err := s.plainAllowed(conditionalDelete); err != nil {
		return nil, err
	}
	return s.delete(ctx, workspace, req, nil)
}

// StopSandbox stops whatever sandbox holds the name.
func (s *Server) StopSandbox(ctx context.Context, req *openshellv1.StopSandboxRequest) (*openshellv1.SandboxResponse, error) {
	workspace, err := s.addressed(ctx, req.GetName(), req.GetWorkspaceScope())
	if err != nil {
		return nil, err
	}
	if err := s.plainAllowed(conditionalStop); err != nil {
		return nil, err
	}
	return s.stop(ctx, workspace, req, nil)
}

// StartSandbox starts whatever sandbox holds the name.
func (s *Server) StartSandbox(ctx context.Context, req *openshellv1.StartSandboxRequest) (*openshellv1.SandboxResponse, error) {
	workspace, err := s.addressed(ctx, req.GetName(), req.GetWorkspaceScope())
	if err != nil {
		return nil, err
	}
	if err := s.plainAllowed(conditionalStart); err != nil {
		return nil, err
	}
	return s.start(ctx, workspace, req, nil)
}

// addressed checks which sandbox a call is about, in upstream's order, and returns the workspace. Whether that exists is not
// told apart from whether the sandbox does.
func (s *Server) addressed(ctx context.Context, name string, scope *datamodelv1.WorkspaceSelector) (string, error) {
	workspace, err := oneWorkspace(scope)
	if err != nil {
		return "", err
	}
	if name == "" {
		return "", errSandboxRequired
	}
	return workspace, auth.AuthorizeWorkspace(ctx, workspace, auth.Sandbox)
}

// plainAllowed refuses a call without a precondition on a gateway that takes only those with one.
func (s *Server) plainAllowed(conditionalMethod string) error {
	if s.RequirePrecondition {
		return &apierr.PreconditionRequired{Method: conditionalMethod}
	}
	return nil
}

// delete is what the plain and the conditional call have in common once the caller is let in. Unlike most calls about a
// sandbox, an unknown workspace is not taken for an unknown sandbox (contract, DeleteSandbox).
func (s *Server) delete(ctx context.Context, workspace string, req *openshellv1.DeleteSandboxRequest, p *store.Precondition) (*openshellv1.DeleteSandboxResponse, error) {
	if _, err := s.workspace(ctx, workspace); err != nil {
		return nil, err
	}
	request, err := newRequest(ctx, workspace, req, p)
	if err != nil {
		return nil, err
	}
	return once(ctx, s, request, func() (*openshellv1.DeleteSandboxResponse, error) {
		return s.deleteFor(ctx, store.Target{Workspace: workspace, Name: req.GetName(), Request: request}, req.GetAllowMissing(), p)
	}, replayDeletion)
}

func (s *Server) deleteFor(ctx context.Context, target store.Target, allowMissing bool, p *store.Precondition) (*openshellv1.DeleteSandboxResponse, error) {
	deleted, err := s.Lifecycle.Delete(ctx, target, p)
	var pending *lifecycle.OperationPendingError
	switch {
	case errors.Is(err, store.ErrNotFound) && allowMissing:
		if err := s.settleAbsent(ctx, target.Request); err != nil {
			return nil, err
		}
		return &openshellv1.DeleteSandboxResponse{Outcome: openshellv1.DeletionOutcome_DELETION_OUTCOME_ALREADY_ABSENT}, nil
	case errors.As(err, &pending) && p == nil: // upstream adds no details
		return nil, status.Error(codes.FailedPrecondition, pending.Error())
	case err != nil:
		return nil, err
	}
	reply := &openshellv1.DeleteSandboxResponse{Outcome: openshellv1.DeletionOutcome_DELETION_OUTCOME_ACCEPTED, SandboxId: deleted.ID}
	if deleted.Gone {
		reply.Outcome = openshellv1.DeletionOutcome_DELETION_OUTCOME_COMPLETED
	}
	return reply, nil
}

func (s *Server) stop(ctx context.Context, workspace string, req *openshellv1.StopSandboxRequest, p *store.Precondition) (*openshellv1.SandboxResponse, error) {
	request, err := s.sandboxRequest(ctx, workspace, req, p)
	if err != nil {
		return nil, err
	}
	return once(ctx, s, request, func() (*openshellv1.SandboxResponse, error) {
		return response(s.Lifecycle.Stop(ctx, store.Target{Workspace: workspace, Name: req.GetName(), Request: request}, p))
	}, s.replaySandbox)
}

func (s *Server) start(ctx context.Context, workspace string, req *openshellv1.StartSandboxRequest, p *store.Precondition) (*openshellv1.SandboxResponse, error) {
	request, err := s.sandboxRequest(ctx, workspace, req, p)
	if err != nil {
		return nil, err
	}
	return once(ctx, s, request, func() (*openshellv1.SandboxResponse, error) {
		return response(s.Lifecycle.Start(ctx, store.Target{Workspace: workspace, Name: req.GetName(), Request: request}, p))
	}, s.replaySandbox)
}
