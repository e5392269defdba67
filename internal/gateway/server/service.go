package server

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/rules"
	"github.com/openshell-iac/terraform-provider-openshell/internal/apierr"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// serviceKey is the key of a service: a child of its sandbox.
func serviceKey(sandbox store.Sandbox, name string) store.Key {
	return store.Key{Kind: store.KindService, Workspace: sandbox.Workspace, SandboxID: sandbox.ID, Name: name}
}

// serviceResponse is a service as clients see it.
func (s *Server) serviceResponse(o store.Object) (*openshellv1.ServiceEndpointResponse, error) {
	endpoint, err := decode[openshellv1.ServiceEndpoint](o)
	if err != nil {
		return nil, err
	}
	endpoint.Metadata = metadata(o)
	endpoint.Metadata.Name = endpointName(endpoint.GetSandbox(), o.Name)
	endpoint.Metadata.Labels = map[string]string{"sandbox": endpoint.GetSandbox()}
	endpoint.SandboxId, endpoint.Name, endpoint.Domain = o.SandboxID, o.Name, true
	return &openshellv1.ServiceEndpointResponse{Endpoint: endpoint, Url: s.serviceURL(o.Workspace, endpoint.GetSandbox(), o.Name)}, nil
}

// newService is a service for a sandbox, whose child it is yet to become.
func newService(sandbox, name string, e interface {
	GetTargetPort() uint32
	GetAuthorizationMode() openshellv1.ServiceAuthorizationMode
}) (store.Object, error) {
	mode := e.GetAuthorizationMode()
	if mode == openshellv1.ServiceAuthorizationMode_SERVICE_AUTHORIZATION_MODE_UNSPECIFIED {
		mode = openshellv1.ServiceAuthorizationMode_SERVICE_AUTHORIZATION_MODE_STRIP
	}
	payload, err := encode(&openshellv1.ServiceEndpoint{Sandbox: sandbox, TargetPort: e.GetTargetPort(), AuthorizationMode: mode})
	return store.Object{ID: uuid.NewString(), Key: store.Key{Kind: store.KindService, Name: name}, Payload: payload}, err
}

// putService stores a service of a sandbox that is locked, in the place of the one that has its name.
func putService(tx store.Tx, sandbox store.Sandbox, wanted store.Object) (store.Object, error) {
	wanted.Key = serviceKey(sandbox, wanted.Name)
	current, err := tx.LockObject(wanted.Key)
	switch {
	case errors.Is(err, store.ErrObjectNotFound):
		return tx.CreateObject(wanted)
	case err != nil:
		return store.Object{}, err
	}
	current.Payload = wanted.Payload
	return tx.WriteObject(current)
}

// ExposeService exposes a port of a sandbox, in whatever phase, or changes how a service is exposed that there is.
func (s *Server) ExposeService(ctx context.Context, req *openshellv1.ExposeServiceRequest) (*openshellv1.ServiceEndpointResponse, error) {
	workspace, err := s.addressed(ctx, req.GetSandbox(), req.GetWorkspaceScope())
	if err != nil {
		return nil, err
	}
	if v := rules.Exposure(req.GetName(), req.GetTargetPort(), req.GetAuthorizationMode()); v != nil {
		return nil, &apierr.InvalidArgument{Field: v.Field, Problem: v.Problem}
	}
	if err := s.notTerminating(ctx, workspace); err != nil {
		return nil, err
	}
	request, err := s.sandboxRequest(ctx, workspace, req, nil)
	if err != nil {
		return nil, err
	}
	wanted, err := newService(req.GetSandbox(), req.GetName(), req)
	if err != nil {
		return nil, err
	}
	var service store.Object
	reply, err := mutate(ctx, s, request, func(tx store.Tx) (store.Outcome, string, error) {
		if _, err := tx.Active(workspace); err != nil {
			return store.OutcomePending, "", err
		}
		sandbox, err := tx.Sandbox(store.Target{Workspace: workspace, Name: req.GetSandbox()}, nil)
		if err != nil {
			return store.OutcomePending, "", err
		}
		service, err = putService(tx, sandbox, wanted)
		return store.OutcomeDone, service.ID, err
	}, func() (*openshellv1.ServiceEndpointResponse, error) {
		return s.serviceResponse(service)
	}, func(ctx context.Context, before store.Admitted) (*openshellv1.ServiceEndpointResponse, error) {
		o, err := s.subject(ctx, before.SubjectID)
		if err != nil {
			return nil, err
		}
		return s.serviceResponse(o)
	})
	return reply, concealed(workspace, err)
}

// GetService reads a service.
func (s *Server) GetService(ctx context.Context, req *openshellv1.GetServiceRequest) (*openshellv1.ServiceEndpointResponse, error) {
	workspace, err := s.addressedService(ctx, req)
	if err != nil {
		return nil, err
	}
	sandbox, err := s.Store.Sandbox(ctx, workspace, req.GetSandbox())
	if err != nil {
		return nil, err
	}
	o, err := s.Store.Object(ctx, serviceKey(sandbox, req.GetName()))
	if errors.Is(err, store.ErrObjectNotFound) {
		return nil, noService(sandbox, req.GetName())
	}
	if err != nil {
		return nil, err
	}
	return s.serviceResponse(o)
}

// addressedService is addressed for a call about a service that should be there.
func (s *Server) addressedService(ctx context.Context, req interface {
	GetSandbox() string
	GetName() string
	GetWorkspaceScope() *datamodelv1.WorkspaceSelector
}) (workspace string, err error) {
	if workspace, err = s.addressed(ctx, req.GetSandbox(), req.GetWorkspaceScope()); err != nil {
		return "", err
	}
	if problem := rules.ServiceName(req.GetName()); problem != "" {
		return "", &apierr.InvalidArgument{Field: "name", Problem: problem}
	}
	return workspace, nil
}

func noService(sandbox store.Sandbox, name string) error {
	which := "the unnamed service"
	if name != "" {
		which = "service '" + name + "'"
	}
	return status.Errorf(codes.NotFound, "%s of sandbox '%s' in workspace '%s' (id %s) not found", which, sandbox.Name, sandbox.Workspace, sandbox.ID)
}

// ListServices reads a page of services, oldest first: of a sandbox, of a workspace, or of all.
func (s *Server) ListServices(ctx context.Context, req *openshellv1.ListServicesRequest) (*openshellv1.ListServicesResponse, error) {
	size, err := pageSize(req.GetPageSize())
	if err != nil {
		return nil, err
	}
	query, err := s.serviceQuery(ctx, req)
	if err != nil {
		return nil, err
	}
	binding := append([]string{openshellv1.OpenShell_ListServices_FullMethodName, query.SandboxID}, query.Workspaces...)
	p, err := readPage(ctx, size, req.GetPageToken(), binding...)
	if err != nil {
		return nil, err
	}
	query.After, query.Limit = p.after, p.size
	list, err := s.Store.ListObjects(ctx, query)
	if err != nil {
		return nil, err
	}
	reply := &openshellv1.ListServicesResponse{NextPageToken: next(p, list, position)}
	reply.Services, err = decodeAll(list.Rows, s.serviceResponse)
	return reply, err
}

// serviceQuery settles which services a list is about, and lets the caller in.
func (s *Server) serviceQuery(ctx context.Context, req *openshellv1.ListServicesRequest) (store.ObjectQuery, error) {
	query := store.ObjectQuery{Kind: store.KindService}
	if req.GetSandbox() == "" {
		workspace, err := s.listed(ctx, req.GetWorkspaceScope())
		if workspace != "" {
			query.Workspaces = []string{workspace}
		}
		return query, err
	}
	if req.GetWorkspaceScope().GetAllWorkspaces() != nil {
		return query, &apierr.InvalidArgument{Field: workspaceScope, Problem: "must name the workspace of the sandbox; all_workspaces does not go together with sandbox"}
	}
	workspace, err := s.addressed(ctx, req.GetSandbox(), req.GetWorkspaceScope())
	if err != nil {
		return query, err
	}
	sandbox, err := s.Store.Sandbox(ctx, workspace, req.GetSandbox())
	query.SandboxID = sandbox.ID
	return query, err
}

// DeleteService takes a service down. That there is no such sandbox is an error also where the service may be missing.
func (s *Server) DeleteService(ctx context.Context, req *openshellv1.DeleteServiceRequest) (*openshellv1.DeleteServiceResponse, error) {
	workspace, err := s.addressedService(ctx, req)
	if err != nil {
		return nil, err
	}
	request, err := s.sandboxRequest(ctx, workspace, req, nil)
	if err != nil {
		return nil, err
	}
	outcome, err := mutateDeletion(ctx, s, request, func(tx store.Tx) (store.Outcome, error) {
		sandbox, err := tx.Sandbox(store.Target{Workspace: workspace, Name: req.GetSandbox()}, nil)
		if err != nil {
			return store.OutcomePending, err
		}
		outcome, err := removeObject(tx, serviceKey(sandbox, req.GetName()), req.GetAllowMissing())
		if errors.Is(err, store.ErrObjectNotFound) {
			err = noService(sandbox, req.GetName())
		}
		return outcome, err
	})
	return &openshellv1.DeleteServiceResponse{Outcome: outcome}, err
}
