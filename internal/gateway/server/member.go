package server

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/rules"
	"github.com/openshell-iac/terraform-provider-openshell/internal/apierr"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// maxMembers is how many members a workspace may have (upstream-contract, size limits).
const maxMembers = 1000

// Members reads who belongs to which workspace from a store.
func Members(s store.Store) auth.Members { return members{s} }

type members struct{ store store.Store }

// Role implements [auth.Members].
func (m members) Role(ctx context.Context, workspace, subject string) (openshellv1.WorkspaceRole, error) {
	o, err := m.store.Object(ctx, memberKey(workspace, subject))
	if errors.Is(err, store.ErrObjectNotFound) {
		return openshellv1.WorkspaceRole_WORKSPACE_ROLE_UNSPECIFIED, nil
	}
	if err != nil {
		return openshellv1.WorkspaceRole_WORKSPACE_ROLE_UNSPECIFIED, err
	}
	member, err := memberProto(o)
	return member.GetRole(), err
}

func memberKey(workspace, subject string) store.Key {
	return store.Key{Kind: store.KindMember, Workspace: workspace, Name: subject}
}

func memberProto(o store.Object) (*openshellv1.WorkspaceMember, error) {
	member, err := decode[openshellv1.WorkspaceMember](o)
	if err != nil {
		return nil, err
	}
	member.Metadata, member.PrincipalSubject = metadata(o), o.Name
	return member, nil
}

// AddWorkspaceMember lets a subject into a workspace. Only platform administrators make administrators.
func (s *Server) AddWorkspaceMember(ctx context.Context, req *openshellv1.AddWorkspaceMemberRequest) (*openshellv1.AddWorkspaceMemberResponse, error) {
	if problem := rules.Subject(req.GetPrincipalSubject()); problem != "" {
		return nil, &apierr.InvalidArgument{Field: "principal_subject", Problem: problem}
	}
	switch req.GetRole() {
	case openshellv1.WorkspaceRole_WORKSPACE_ROLE_USER, openshellv1.WorkspaceRole_WORKSPACE_ROLE_ADMIN:
	default:
		return nil, &apierr.InvalidArgument{Field: "role", Problem: "must be WORKSPACE_ROLE_USER or WORKSPACE_ROLE_ADMIN"}
	}
	workspace, err := within(ctx, req.GetWorkspaceScope(), s.enterActive)
	if err != nil {
		return nil, err
	}
	if req.GetRole() == openshellv1.WorkspaceRole_WORKSPACE_ROLE_ADMIN {
		if err := auth.RequirePlatformAdmin(ctx); err != nil {
			return nil, err
		}
	}
	request, err := newRequest(ctx, workspace, req, nil)
	if err != nil {
		return nil, err
	}
	payload, err := encode(&openshellv1.WorkspaceMember{Role: req.GetRole()})
	if err != nil {
		return nil, err
	}
	wanted := store.Object{ID: uuid.NewString(), Key: memberKey(workspace, req.GetPrincipalSubject()), Payload: payload}
	reply, err := create(ctx, s, request, func(tx store.Tx) (store.Object, error) { return insertUpTo(maxMembers, tx, wanted) }, memberResponse)
	if errors.Is(err, store.ErrAlreadyExists) {
		return nil, status.Errorf(codes.AlreadyExists,
			"'%s' already is a member of workspace '%s'; to change the role, remove the member and add it again", wanted.Name, workspace)
	}
	return reply, inWorkspace(workspace, err)
}

func memberResponse(o store.Object, err error) (*openshellv1.AddWorkspaceMemberResponse, error) {
	if err != nil {
		return nil, err
	}
	member, err := memberProto(o)
	return &openshellv1.AddWorkspaceMemberResponse{Member: member}, err
}

// RemoveWorkspaceMember takes a subject out of a workspace.
func (s *Server) RemoveWorkspaceMember(ctx context.Context, req *openshellv1.RemoveWorkspaceMemberRequest) (*openshellv1.RemoveWorkspaceMemberResponse, error) {
	if problem := rules.Subject(req.GetPrincipalSubject()); problem != "" {
		return nil, &apierr.InvalidArgument{Field: "principal_subject", Problem: problem}
	}
	workspace, err := within(ctx, req.GetWorkspaceScope(), s.enter)
	if err != nil {
		return nil, err
	}
	request, err := newRequest(ctx, workspace, req, nil)
	if err != nil {
		return nil, err
	}
	outcome, err := s.remove(ctx, request, memberKey(workspace, req.GetPrincipalSubject()), req.GetAllowMissing())
	if errors.Is(err, store.ErrObjectNotFound) {
		return nil, status.Errorf(codes.NotFound, "'%s' is no member of workspace '%s'", req.GetPrincipalSubject(), workspace)
	}
	return &openshellv1.RemoveWorkspaceMemberResponse{Outcome: outcome}, err
}

// ListWorkspaceMembers reads a page of members, oldest first.
func (s *Server) ListWorkspaceMembers(ctx context.Context, req *openshellv1.ListWorkspaceMembersRequest) (*openshellv1.ListWorkspaceMembersResponse, error) {
	size, err := pageSize(req.GetPageSize())
	if err != nil {
		return nil, err
	}
	workspace, err := within(ctx, req.GetWorkspaceScope(), s.enter)
	if err != nil {
		return nil, err
	}
	p, err := readPage(ctx, size, req.GetPageToken(), openshellv1.OpenShell_ListWorkspaceMembers_FullMethodName, workspace)
	if err != nil {
		return nil, err
	}
	list, err := s.Store.ListObjects(ctx, store.ObjectQuery{Kind: store.KindMember, Workspaces: []string{workspace}, After: p.after, Limit: p.size})
	if err != nil {
		return nil, err
	}
	reply := &openshellv1.ListWorkspaceMembersResponse{NextPageToken: next(p, list, position)}
	reply.Members, err = decodeAll(list.Rows, memberProto)
	return reply, err
}
