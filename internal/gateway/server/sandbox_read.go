package server

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/rules"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// errSandboxRequired is for an empty name; upstream adds no details to it.
var errSandboxRequired = status.Error(codes.InvalidArgument, "sandbox is required")

// GetSandbox reads the sandbox that holds a name. An unknown workspace answers like an unknown sandbox.
func (s *Server) GetSandbox(ctx context.Context, req *openshellv1.GetSandboxRequest) (*openshellv1.SandboxResponse, error) {
	workspace, err := oneWorkspace(req.GetWorkspaceScope())
	if err != nil {
		return nil, err
	}
	if req.GetName() == "" {
		return nil, errSandboxRequired
	}
	if err := auth.AuthorizeWorkspace(ctx, workspace, auth.Sandbox); err != nil {
		return nil, err
	}
	return response(s.Store.Sandbox(ctx, workspace, req.GetName()))
}

// Page sizes (upstream-contract, lists and pagination).
const (
	defaultPageSize = 100
	maxPageSize     = 1000
)

// ListSandboxes reads a page of sandboxes, oldest first.
func (s *Server) ListSandboxes(ctx context.Context, req *openshellv1.ListSandboxesRequest) (*openshellv1.ListSandboxesResponse, error) {
	query := store.ListQuery{Limit: int(req.GetPageSize())}
	switch {
	case query.Limit < 0:
		return nil, status.Error(codes.InvalidArgument, "page_size must not be negative")
	case query.Limit == 0:
		query.Limit = defaultPageSize
	case query.Limit > maxPageSize:
		query.Limit = maxPageSize
	}
	var problem string
	if query.Labels, problem = rules.LabelSelector(req.GetLabelSelector()); problem != "" {
		return nil, status.Error(codes.InvalidArgument, "label_selector "+problem)
	}
	var err error
	if query.Workspace, err = s.listed(ctx, req.GetWorkspaceScope()); err != nil {
		return nil, err
	}
	binding := bind(openshellv1.OpenShell_ListSandboxes_FullMethodName, query.Workspace, req.GetLabelSelector())
	if query.After, err = readPageToken(req.GetPageToken(), binding); err != nil {
		return nil, err
	}

	query.Limit++ // one more than is shown tells whether there is a next page
	page, err := s.Store.ListSandboxes(ctx, query)
	if err != nil {
		return nil, err
	}
	reply := &openshellv1.ListSandboxesResponse{}
	if len(page) == query.Limit {
		page = page[:query.Limit-1]
		reply.NextPageToken = pageToken(page[len(page)-1], binding)
	}
	for _, sandbox := range page {
		reply.Sandboxes = append(reply.Sandboxes, ToProto(sandbox))
	}
	return reply, nil
}

// listed settles which workspace a list is about: "" means all, for platform administrators.
func (s *Server) listed(ctx context.Context, scope *datamodelv1.WorkspaceSelector) (string, error) {
	if scope.GetAllWorkspaces() != nil {
		return "", auth.RequirePlatformAdmin(ctx)
	}
	workspace, err := oneWorkspace(scope)
	if err != nil {
		return "", err
	}
	return workspace, s.enter(ctx, workspace, auth.Other)
}

// response is the reply with a sandbox in it.
func response(sandbox store.Sandbox, err error) (*openshellv1.SandboxResponse, error) {
	if err != nil {
		return nil, err
	}
	return &openshellv1.SandboxResponse{Sandbox: ToProto(sandbox)}, nil
}

// ToProto is a sandbox as clients see it.
func ToProto(sandbox store.Sandbox) *openshellv1.Sandbox {
	return &openshellv1.Sandbox{
		Metadata: &datamodelv1.ObjectMeta{
			Id: sandbox.ID, Name: sandbox.Name, Workspace: sandbox.Workspace,
			Labels: sandbox.Labels, Annotations: sandbox.Annotations,
			ResourceVersion: sandbox.ResourceVersion, CreatedTime: timestamppb.New(sandbox.CreatedAt),
		},
		Spec:   sandbox.Spec,
		Status: sandbox.Status,
	}
}
