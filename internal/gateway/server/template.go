package server

import (
	"context"
	"errors"
	"strings"

	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/rules"
	"github.com/openshell-iac/terraform-provider-openshell/internal/apierr"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/driver"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// maxTemplates is how many workload templates a workspace may have (upstream-contract, size limits).
const maxTemplates = 1000

func templateKey(workspace, name string) store.Key {
	return store.Key{Kind: store.KindTemplate, Workspace: workspace, Name: name}
}

func templateProto(o store.Object) (*openshellv1.SandboxWorkloadTemplate, error) {
	template, err := decode[openshellv1.SandboxWorkloadTemplate](o)
	if err != nil {
		return nil, err
	}
	annotations := template.GetMetadata().GetAnnotations()
	template.Metadata = metadata(o)
	template.Metadata.Annotations = annotations
	return template, nil
}

func templateResponse(o store.Object, err error) (*openshellv1.SandboxTemplateResponse, error) {
	if err != nil {
		return nil, err
	}
	template, err := templateProto(o)
	return &openshellv1.SandboxTemplateResponse{Template: template}, err
}

// CreateSandboxTemplate stores a recipe for sandboxes. It never changes.
func (s *Server) CreateSandboxTemplate(ctx context.Context, req *openshellv1.CreateSandboxTemplateRequest) (*openshellv1.SandboxTemplateResponse, error) {
	template := req.GetTemplate()
	if err := s.checkTemplate(template); err != nil {
		return nil, err
	}
	workspace, err := within(ctx, req.GetWorkspaceScope(), s.enterActive)
	if err != nil {
		return nil, err
	}
	if of := template.GetMetadata().GetWorkspace(); of != "" && of != workspace {
		return nil, &apierr.InvalidArgument{Field: "template.metadata.workspace", Problem: "must be empty or the workspace of the request, '" + workspace + "'"}
	}
	request, err := newRequest(ctx, workspace, req, nil)
	if err != nil {
		return nil, err
	}
	payload, err := encode(&openshellv1.SandboxWorkloadTemplate{
		Metadata: &datamodelv1.ObjectMeta{Annotations: template.GetMetadata().GetAnnotations()}, Spec: template.GetSpec(),
	})
	if err != nil {
		return nil, err
	}
	wanted := store.Object{
		ID: uuid.NewString(), Key: templateKey(workspace, template.GetMetadata().GetName()), Labels: template.GetMetadata().GetLabels(), Payload: payload,
	}
	reply, err := create(ctx, s, request, func(tx store.Tx) (store.Object, error) { return insertUpTo(maxTemplates, tx, wanted) }, templateResponse)
	if errors.Is(err, store.ErrAlreadyExists) {
		return nil, status.Errorf(codes.AlreadyExists,
			"sandbox template '%s' already exists in workspace '%s'; a template cannot be changed, only deleted and made anew", wanted.Name, workspace)
	}
	return reply, inWorkspace(workspace, err)
}

// checkTemplate checks what a request says of a new template, whatever there is in the gateway. A sandbox made from it
// alone must be one that the driver can run.
func (s *Server) checkTemplate(template *openshellv1.SandboxWorkloadTemplate) error {
	if template == nil {
		return status.Error(codes.InvalidArgument, "template is required")
	}
	if problem := rules.Labels(template.GetMetadata().GetLabels()); problem != "" { // upstream adds no details to these
		return status.Error(codes.InvalidArgument, problem)
	}
	if v := rules.WorkloadTemplate("template", template); v != nil {
		return &apierr.InvalidArgument{Field: v.Field, Problem: v.Problem}
	}
	err := s.Driver.Validate(rules.SpecOf(template))
	var invalid *driver.InvalidError
	if errors.As(err, &invalid) {
		return &apierr.InvalidArgument{Field: "template.spec." + strings.TrimPrefix(invalid.Field, "template."), Problem: invalid.Problem}
	}
	return err
}

// GetSandboxTemplate reads a workload template.
func (s *Server) GetSandboxTemplate(ctx context.Context, req *openshellv1.GetSandboxTemplateRequest) (*openshellv1.SandboxTemplateResponse, error) {
	if req.GetName() == "" {
		return nil, errNameRequired
	}
	workspace, err := within(ctx, req.GetWorkspaceScope(), s.enter)
	if err != nil {
		return nil, err
	}
	o, err := s.Store.Object(ctx, templateKey(workspace, req.GetName()))
	if errors.Is(err, store.ErrObjectNotFound) {
		return nil, noTemplate(workspace, req.GetName())
	}
	return templateResponse(o, err)
}

func noTemplate(workspace, name string) error {
	return status.Errorf(codes.NotFound, "sandbox template '%s' not found in workspace '%s'", name, workspace)
}

// templateFor reads the template that a new sandbox is to be made from, nil when it names none.
func (s *Server) templateFor(ctx context.Context, workspace, name string) (*openshellv1.SandboxWorkloadTemplate, error) {
	if name == "" {
		return nil, nil
	}
	o, err := s.Store.Object(ctx, templateKey(workspace, name))
	if errors.Is(err, store.ErrObjectNotFound) {
		return nil, noTemplate(workspace, name)
	}
	if err != nil {
		return nil, err
	}
	return templateProto(o)
}

// ListSandboxTemplates reads a page of workload templates, oldest first.
func (s *Server) ListSandboxTemplates(ctx context.Context, req *openshellv1.ListSandboxTemplatesRequest) (*openshellv1.ListSandboxTemplatesResponse, error) {
	rows, next, err := s.listLabelled(ctx, store.KindTemplate, openshellv1.OpenShell_ListSandboxTemplates_FullMethodName, req)
	if err != nil {
		return nil, err
	}
	reply := &openshellv1.ListSandboxTemplatesResponse{NextPageToken: next}
	reply.Templates, err = decodeAll(rows, templateProto)
	return reply, err
}

// DeleteSandboxTemplate deletes a workload template. Sandboxes that were made from it have copied what it says.
func (s *Server) DeleteSandboxTemplate(ctx context.Context, req *openshellv1.DeleteSandboxTemplateRequest) (*openshellv1.DeleteSandboxTemplateResponse, error) {
	if req.GetName() == "" {
		return nil, errNameRequired
	}
	workspace, err := within(ctx, req.GetWorkspaceScope(), s.enter)
	if err != nil {
		return nil, err
	}
	request, err := newRequest(ctx, workspace, req, nil)
	if err != nil {
		return nil, err
	}
	outcome, err := s.remove(ctx, request, templateKey(workspace, req.GetName()), req.GetAllowMissing())
	if errors.Is(err, store.ErrObjectNotFound) {
		return nil, noTemplate(workspace, req.GetName())
	}
	return &openshellv1.DeleteSandboxTemplateResponse{Outcome: outcome}, err
}
