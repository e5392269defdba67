package server

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	petname "github.com/dustinkirkland/golang-petname"
	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/rules"
	"github.com/openshell-iac/terraform-provider-openshell/internal/apierr"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/driver"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/lifecycle"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// DefaultImage is used where a request names none (upstream-contract, CreateSandbox).
const DefaultImage = "nvcr.io/nvidia/base/ubuntu:24.04"

// CreateSandbox makes a sandbox under a name that must be free, and answers when the compute driver has taken it on.
func (s *Server) CreateSandbox(ctx context.Context, req *openshellv1.CreateSandboxRequest) (*openshellv1.SandboxResponse, error) {
	if err := checkCreate(req); err != nil {
		return nil, err
	}
	workspace, err := within(ctx, req.GetWorkspaceScope(), s.enterActive)
	if err != nil {
		return nil, err
	}
	request, err := newRequest(ctx, workspace, req, nil)
	if err != nil {
		return nil, err
	}
	return once(ctx, s, request,
		func() (*openshellv1.SandboxResponse, error) { return s.create(ctx, workspace, req, request) }, s.replaySandbox)
}

// create makes the sandbox once the caller is let in.
func (s *Server) create(ctx context.Context, workspace string, req *openshellv1.CreateSandboxRequest, request *store.Request) (*openshellv1.SandboxResponse, error) {
	template, err := s.templateFor(ctx, workspace, req.GetWorkloadTemplate())
	if err != nil {
		return nil, err
	}
	draft := fillIn(req, template)
	draft.Request = request
	if err := addServices(&draft, req.GetServiceExposures()); err != nil {
		return nil, err
	}
	if err := s.checkProviders(ctx, workspace, &draft); err != nil {
		return nil, err
	}
	if err := addPolicy(&draft); err != nil {
		return nil, err
	}
	if err := s.providers(ctx).admits(workspace, draft.Spec.GetProviders(), draft.Spec.GetPolicy()); err != nil {
		return nil, err
	}
	if err := s.Driver.Validate(draft.Spec); err != nil {
		var invalid *driver.InvalidError
		if errors.As(err, &invalid) {
			return nil, &apierr.InvalidArgument{Field: "spec." + invalid.Field, Problem: invalid.Problem}
		}
		return nil, err
	}
	created, err := s.Lifecycle.Create(ctx, workspace, draft)
	if errors.Is(err, store.ErrAlreadyExists) {
		return nil, status.Errorf(codes.AlreadyExists, "sandbox '%s' already exists", draft.Name)
	}
	reply, err := response(created, inWorkspace(workspace, err))
	if err != nil {
		return nil, err
	}
	reply.ServiceUrls = map[string]string{}
	for _, e := range req.GetServiceExposures() {
		reply.ServiceUrls[e.GetService()] = s.serviceURL(workspace, created.Name, e.GetService())
	}
	return reply, nil
}

// addServices has services made with a draft.
func addServices(draft *lifecycle.Draft, exposures []*openshellv1.SandboxServiceExposure) error {
	for _, e := range exposures {
		service, err := newService(draft.Name, e.GetService(), e)
		if err != nil {
			return err
		}
		draft.Children = append(draft.Children, service)
	}
	return nil
}

// checkCreate checks what a request says, whatever there is in the gateway.
func checkCreate(req *openshellv1.CreateSandboxRequest) error {
	if req.GetSpec() == nil && req.GetWorkloadTemplate() == "" {
		return status.Error(codes.InvalidArgument, "spec is required")
	}
	if req.GetName() != "" {
		if problem := rules.Name(req.GetName()); problem != "" {
			return &apierr.InvalidArgument{Field: "name", Problem: problem}
		}
	}
	if req.GetWorkloadTemplate() != "" {
		if v := rules.BesideTemplate("spec", req.GetSpec()); v != nil {
			return &apierr.InvalidArgument{Field: v.Field, Problem: v.Problem}
		}
	}
	if problem := rules.Labels(req.GetLabels()); problem != "" { // upstream adds no details to these
		return status.Error(codes.InvalidArgument, problem)
	}
	for _, v := range []*rules.Violation{
		rules.Annotations("annotations", req.GetAnnotations()),
		rules.Spec("spec", req.GetSpec()),
		rules.Exposures("service_exposures", req.GetServiceExposures()),
	} {
		if v != nil {
			return &apierr.InvalidArgument{Field: v.Field, Problem: v.Problem}
		}
	}
	for i, name := range req.GetSpec().GetProviders() {
		if problem := rules.ProviderName(name); problem != "" {
			return &apierr.InvalidArgument{Field: fmt.Sprintf("spec.providers[%d]", i), Problem: problem}
		}
	}
	return nil
}

// checkProviders checks the providers of a draft now, for an early answer, and has it done again in the transaction that
// inserts the row, so that none of them is deleted or changed in between.
func (s *Server) checkProviders(ctx context.Context, workspace string, draft *lifecycle.Draft) error {
	names := draft.Spec.GetProviders()
	if len(names) == 0 {
		return nil
	}
	draft.Admit = func(tx store.Tx) error {
		if _, err := tx.Active(workspace); err != nil {
			return err
		}
		now, err := tx.Now()
		if err != nil {
			return err
		}
		read := newProviderReader(tx.Object, now)
		if err := read.compatible(workspace, names); err != nil {
			return err
		}
		return read.admits(workspace, names, draft.Spec.GetPolicy())
	}
	return s.providers(ctx).compatible(workspace, names)
}

// addPolicy checks the policy of a draft, if it has one, and makes it revision 1.
func addPolicy(draft *lifecycle.Draft) error {
	if draft.Spec.GetPolicy() == nil {
		return nil
	}
	first, err := newPolicyDraft("spec.policy", draft.Spec.GetPolicy())
	if err != nil {
		return err
	}
	draft.Spec.Policy = first.policy
	revision, err := firstRevision(first)
	draft.Children = append(draft.Children, revision)
	return err
}

// fillIn sets what a request leaves to a workload template, if it names one, and to the gateway (upstream-contract,
// CreateSandbox).
func fillIn(req *openshellv1.CreateSandboxRequest, template *openshellv1.SandboxWorkloadTemplate) lifecycle.Draft {
	draft := lifecycle.Draft{Name: req.GetName(), Labels: req.GetLabels(), Annotations: req.GetAnnotations(), Spec: proto.CloneOf(req.GetSpec())}
	if draft.Name == "" {
		draft.Name = inventName()
	}
	if template != nil {
		decided := rules.SpecOf(template)
		proto.Merge(decided, req.GetSpec()) // which has nothing that the template decides
		draft.Spec = decided
		draft.CreatedFrom = &openshellv1.SandboxWorkloadTemplateProvenance{
			Name: template.GetMetadata().GetName(), ResourceVersion: strconv.FormatUint(template.GetMetadata().GetResourceVersion(), 10),
		}
	}
	spec := draft.Spec
	if spec.GetTemplate() == nil {
		spec.Template = &openshellv1.SandboxTemplate{}
	}
	if spec.GetTemplate().GetImage() == "" {
		spec.Template.Image = DefaultImage
	}
	if spec.GetRestartPolicy() == openshellv1.SandboxRestartPolicy_SANDBOX_RESTART_POLICY_UNSPECIFIED {
		spec.RestartPolicy = openshellv1.SandboxRestartPolicy_SANDBOX_RESTART_POLICY_NEVER
	}
	if len(spec.GetCommand()) == 0 {
		spec.Tty = true
	}
	spec.Providers = distinct(spec.GetProviders())
	spec.ProviderAttachmentEpoch = uuid.NewString()
	return draft
}

// distinct keeps the first of each.
func distinct(names []string) []string {
	var all []string
	for _, name := range names {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// inventName makes a name of two words, or of letters should that not be one.
func inventName() string {
	name := petname.Generate(2, "-")
	name = strings.TrimRight(name[:min(len(name), rules.MaxName)], "-")
	if rules.Name(name) == "" {
		return name
	}
	return letters()
}

// letters are six at random.
func letters() string {
	var b strings.Builder
	for range 6 {
		fmt.Fprintf(&b, "%c", 'a'+rand.N(26))
	}
	return b.String()
}
