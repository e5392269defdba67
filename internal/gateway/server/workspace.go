package server

import (
	"context"
	"errors"
	"strings"

	"github.com/google/uuid"
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

// errNameRequired is for an empty name; upstream adds no details to it.
var errNameRequired = status.Error(codes.InvalidArgument, "name is required")

// CreateWorkspace makes a workspace.
func (s *Server) CreateWorkspace(ctx context.Context, req *openshellv1.CreateWorkspaceRequest) (*openshellv1.CreateWorkspaceResponse, error) {
	if err := workspaceName(req.GetName()); err != nil {
		return nil, err
	}
	if problem := rules.Name(req.GetName()); problem != "" {
		return nil, &apierr.InvalidArgument{Field: "name", Problem: problem}
	}
	if problem := rules.Labels(req.GetLabels()); problem != "" { // upstream adds no details to these
		return nil, status.Error(codes.InvalidArgument, problem)
	}
	request, err := newRequest(ctx, req.GetName(), req, nil)
	if err != nil {
		return nil, err
	}
	wanted := store.Workspace{ID: uuid.NewString(), Name: req.GetName(), Labels: req.GetLabels()}
	var created store.Workspace
	reply, err := mutate(ctx, s, request, func(tx store.Tx) (_ store.Outcome, _ string, err error) {
		created, err = tx.CreateWorkspace(wanted)
		return store.OutcomeDone, created.ID, err
	}, func() (*openshellv1.CreateWorkspaceResponse, error) {
		return &openshellv1.CreateWorkspaceResponse{Workspace: workspaceProto(created)}, nil
	}, func(ctx context.Context, before store.Admitted) (*openshellv1.CreateWorkspaceResponse, error) {
		w, err := s.Store.Workspace(ctx, req.GetName())
		if errors.Is(err, store.ErrWorkspaceNotFound) || err == nil && w.ID != before.SubjectID {
			err = &apierr.RequestReplayUnavailable{}
		}
		return &openshellv1.CreateWorkspaceResponse{Workspace: workspaceProto(w)}, err
	})
	if errors.Is(err, store.ErrAlreadyExists) {
		return nil, status.Errorf(codes.AlreadyExists, "workspace '%s' already exists", req.GetName())
	}
	return reply, err
}

// GetWorkspace reads one workspace.
func (s *Server) GetWorkspace(ctx context.Context, req *openshellv1.GetWorkspaceRequest) (*openshellv1.GetWorkspaceResponse, error) {
	if req.GetName() == "" {
		return nil, errNameRequired
	}
	if err := auth.AuthorizeWorkspace(ctx, req.GetName(), auth.Other); err != nil {
		return nil, err
	}
	w, err := s.workspace(ctx, req.GetName())
	if err != nil {
		return nil, err
	}
	return &openshellv1.GetWorkspaceResponse{Workspace: workspaceProto(w)}, nil
}

// ListWorkspaces reads a page of workspaces, oldest first: all of them for platform administrators, else the caller's own.
func (s *Server) ListWorkspaces(ctx context.Context, req *openshellv1.ListWorkspacesRequest) (*openshellv1.ListWorkspacesResponse, error) {
	size, err := pageSize(req.GetPageSize())
	if err != nil {
		return nil, err
	}
	labels, err := labelSelector(req.GetLabelSelector())
	if err != nil {
		return nil, err
	}
	subject, all := auth.Memberships(ctx)
	if all {
		subject = ""
	}
	p, err := readPage(ctx, size, req.GetPageToken(), openshellv1.OpenShell_ListWorkspaces_FullMethodName, subject, req.GetLabelSelector())
	if err != nil {
		return nil, err
	}
	list, err := s.Store.ListWorkspaces(ctx, store.WorkspaceQuery{Member: subject, Labels: labels, After: p.after, Limit: p.size})
	if err != nil {
		return nil, err
	}
	reply := &openshellv1.ListWorkspacesResponse{NextPageToken: next(p, list, func(w store.Workspace) store.Cursor {
		return store.Cursor{CreatedAt: w.CreatedAt, Name: w.Name, ID: w.ID}
	})}
	for _, w := range list.Rows {
		reply.Workspaces = append(reply.Workspaces, workspaceProto(w))
	}
	return reply, nil
}

// DeleteWorkspace deletes a workspace in which there are only members. Any other is refused, and takes nothing new from
// then on.
func (s *Server) DeleteWorkspace(ctx context.Context, req *openshellv1.DeleteWorkspaceRequest) (*openshellv1.DeleteWorkspaceResponse, error) {
	name := req.GetName()
	switch name {
	case "":
		return nil, errNameRequired
	case store.DefaultWorkspace:
		return nil, status.Errorf(codes.FailedPrecondition, "workspace '%s' cannot be deleted", name)
	}
	request, err := newRequest(ctx, name, req, nil)
	if err != nil {
		return nil, err
	}
	var holds []store.Kind
	outcome, err := mutateDeletion(ctx, s, request, func(tx store.Tx) (_ store.Outcome, err error) {
		if holds, err = tx.DeleteWorkspace(name); errors.Is(err, store.ErrWorkspaceNotFound) && req.GetAllowMissing() {
			return store.OutcomeAbsent, nil
		}
		if len(holds) > 0 {
			return store.OutcomeRefused, err // and yet the mark stays
		}
		return store.OutcomeCompleted, err
	})
	switch {
	case err != nil:
		return nil, inWorkspace(name, err)
	case len(holds) > 0:
		return nil, status.Errorf(codes.FailedPrecondition,
			"workspace '%s' is not empty and was not deleted; it takes nothing new from now on. It still holds: %s. Delete these, then the workspace again",
			name, kindNames(holds))
	}
	return &openshellv1.DeleteWorkspaceResponse{Outcome: outcome}, nil
}

// kindNames lists kinds, without those that a client never sees by themselves.
func kindNames(kinds []store.Kind) string {
	var names []string
	for _, kind := range kinds {
		if kind != store.KindProviderReceipt {
			names = append(names, string(kind))
		}
	}
	return strings.Join(names, ", ")
}

func workspaceProto(w store.Workspace) *datamodelv1.Workspace {
	reply := &datamodelv1.Workspace{
		Metadata: &datamodelv1.ObjectMeta{
			Id: w.ID, Name: w.Name, Labels: w.Labels, ResourceVersion: w.ResourceVersion, CreatedTime: timestamppb.New(w.CreatedAt),
		},
		Status: &datamodelv1.WorkspaceStatus{Phase: datamodelv1.WorkspacePhase_WORKSPACE_PHASE_ACTIVE},
	}
	if w.Terminating() {
		reply.Metadata.DeletionTime = timestamppb.New(w.TerminatingSince)
		reply.Status.Phase = datamodelv1.WorkspacePhase_WORKSPACE_PHASE_TERMINATING
	}
	return reply
}
