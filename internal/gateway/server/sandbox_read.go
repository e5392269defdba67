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
	workspace, err := s.addressed(ctx, req.GetName(), req.GetWorkspaceScope())
	if err != nil {
		return nil, err
	}
	return response(s.Store.Sandbox(ctx, workspace, req.GetName()))
}

// ListSandboxes reads a page of sandboxes, oldest first.
func (s *Server) ListSandboxes(ctx context.Context, req *openshellv1.ListSandboxesRequest) (*openshellv1.ListSandboxesResponse, error) {
	size, err := pageSize(req.GetPageSize())
	if err != nil {
		return nil, err
	}
	labels, err := labelSelector(req.GetLabelSelector())
	if err != nil {
		return nil, err
	}
	workspace, err := s.listed(ctx, req.GetWorkspaceScope())
	if err != nil {
		return nil, err
	}
	p, err := readPage(ctx, size, req.GetPageToken(), openshellv1.OpenShell_ListSandboxes_FullMethodName, workspace, req.GetLabelSelector())
	if err != nil {
		return nil, err
	}
	list, err := s.Store.ListSandboxes(ctx, store.ListQuery{Workspace: workspace, Labels: labels, After: p.after, Limit: p.size})
	if err != nil {
		return nil, err
	}
	reply := &openshellv1.ListSandboxesResponse{NextPageToken: next(p, list, func(s store.Sandbox) store.Cursor {
		return store.Cursor{CreatedAt: s.CreatedAt, Name: s.Name, Workspace: s.Workspace, ID: s.ID}
	})}
	for _, sandbox := range list.Rows {
		reply.Sandboxes = append(reply.Sandboxes, ToProto(sandbox))
	}
	return reply, nil
}

// labelSelector reads a selector; upstream adds no details to what is wrong with one.
func labelSelector(selector string) (map[string]string, error) {
	labels, problem := rules.LabelSelector(selector)
	if problem != "" {
		return nil, status.Error(codes.InvalidArgument, "label_selector "+problem)
	}
	return labels, nil
}

// listed settles which workspace a list is about: "" means all, for platform administrators.
func (s *Server) listed(ctx context.Context, scope *datamodelv1.WorkspaceSelector) (string, error) {
	if scope.GetAllWorkspaces() != nil {
		return "", auth.RequirePlatformAdmin(ctx)
	}
	return within(ctx, scope, s.enter)
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
		Spec:                        sandbox.Spec,
		Status:                      sandbox.Status,
		CreatedFromWorkloadTemplate: sandbox.CreatedFrom,
	}
}
