package server

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// policyScope is whose policy a call is about.
type policyScope struct {
	history
	status *openshellv1.SandboxStatus // nil for the whole gateway
	none   string                     // what to say when there is no revision
}

// about is a request that names a sandbox, or else is about the whole gateway.
type about interface {
	GetGlobal() bool
	GetSandbox() string
	GetWorkspaceScope() *datamodelv1.WorkspaceSelector
}

// policyScope settles whose policy a call is about, and lets the caller in.
func (s *Server) policyScope(ctx context.Context, req about) (policyScope, error) {
	if req.GetGlobal() {
		return policyScope{gatewayPolicy, nil, "no global policy revision found"}, checkGlobal(ctx, req)
	}
	workspace, err := s.addressed(ctx, req.GetSandbox(), req.GetWorkspaceScope())
	if err != nil {
		return policyScope{}, err
	}
	sandbox, err := s.Store.Sandbox(ctx, workspace, req.GetSandbox())
	return policyScope{historyOf(sandbox), sandbox.Status, "no policy revision found for this sandbox"}, err
}

// GetSandboxPolicyStatus reads a revision of a policy as it was written.
func (s *Server) GetSandboxPolicyStatus(ctx context.Context, req *openshellv1.GetSandboxPolicyStatusRequest) (*openshellv1.GetSandboxPolicyStatusResponse, error) {
	scope, err := s.policyScope(ctx, req)
	if err != nil {
		return nil, err
	}
	var found revision
	if req.GetVersion() == 0 {
		found, err = scope.latest(s.objects(ctx))
	} else if o, e := s.Store.Object(ctx, scope.at(req.GetVersion())); !errors.Is(e, store.ErrObjectNotFound) {
		if err = e; err == nil {
			found, err = readRevision(o)
		}
	}
	switch {
	case err != nil:
		return nil, err
	case found.GetVersion() == 0:
		return nil, status.Error(codes.NotFound, scope.none)
	}
	return &openshellv1.GetSandboxPolicyStatusResponse{
		Revision: found.in(scope.status).SandboxPolicyRevision, ActiveVersion: scope.status.GetCurrentPolicyVersion(),
	}, nil
}

// ListSandboxPolicies reads a page of the revisions of a policy, newest first, without the policies themselves.
func (s *Server) ListSandboxPolicies(ctx context.Context, req *openshellv1.ListSandboxPoliciesRequest) (*openshellv1.ListSandboxPoliciesResponse, error) {
	size, err := pageSize(req.GetPageSize())
	if err != nil {
		return nil, err
	}
	scope, err := s.policyScope(ctx, req)
	if err != nil {
		return nil, err
	}
	p, err := readPage(ctx, size, req.GetPageToken(), openshellv1.OpenShell_ListSandboxPolicies_FullMethodName, scope.key.Workspace, scope.key.SandboxID)
	if err != nil {
		return nil, err
	}
	list, err := s.revisions(ctx, scope, p)
	if err != nil {
		return nil, err
	}
	reply := &openshellv1.ListSandboxPoliciesResponse{NextPageToken: next(p, list, func(r revision) store.Cursor { return position(r.object) })}
	for _, r := range list.Rows {
		reply.Revisions = append(reply.Revisions, r.in(scope.status).SandboxPolicyRevision)
	}
	return reply, nil
}

// revisions reads a page, without the policies: those may make up more than a page of the store.
func (s *Server) revisions(ctx context.Context, scope policyScope, p page) (all store.Page[revision], err error) {
	all.More = true
	for after := p.after; all.More && len(all.Rows) < p.size; {
		list, err := s.Store.ListObjects(ctx, scope.newestFirst(after, p.size-len(all.Rows)))
		if err != nil {
			return all, err
		}
		for _, row := range list.Rows {
			r, err := readRevision(row)
			if err != nil {
				return all, err
			}
			r.Policy, r.object.Payload = nil, nil
			all.Rows = append(all.Rows, r)
			last := position(row)
			after = &last
		}
		all.More = list.More
	}
	return all, nil
}
