package server

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/rules"
	"github.com/openshell-iac/terraform-provider-openshell/internal/apierr"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// redacted stands for every credential in a reply (upstream-contract, providers and profiles).
const redacted = "REDACTED"

// errProviderRequired is for a request without a provider; upstream adds no details to it.
var errProviderRequired = status.Error(codes.InvalidArgument, "provider is required")

// providerProto is a provider as clients see it. Of credentials there is nothing but their names, here or in the store.
func providerProto(o store.Object) (*datamodelv1.Provider, error) {
	provider, err := decode[datamodelv1.Provider](o)
	if err != nil {
		return nil, err
	}
	annotations := provider.GetMetadata().GetAnnotations()
	provider.Metadata = metadata(o)
	provider.Metadata.Annotations = annotations
	for name := range provider.GetCredentials() {
		provider.Credentials[name] = redacted
	}
	return provider, nil
}

// providerPayload is what is kept of a provider: of its credentials the names, since nothing here reads their values.
func providerPayload(provider *datamodelv1.Provider) ([]byte, error) {
	kept := &datamodelv1.Provider{
		Metadata: &datamodelv1.ObjectMeta{Annotations: provider.GetMetadata().GetAnnotations()},
		Type:     provider.GetType(), Config: provider.GetConfig(), ProfileWorkspace: provider.GetProfileWorkspace(),
		CredentialExpirationTimes: provider.GetCredentialExpirationTimes(),
		Credentials:               make(map[string]string, len(provider.GetCredentials())),
	}
	for name := range provider.GetCredentials() {
		kept.Credentials[name] = ""
	}
	return encode(kept)
}

// withoutValues is a request for what is kept of it: of credentials whether there is a value.
func withoutValues[M interface {
	payload
	GetProvider() *datamodelv1.Provider
}](req M) M {
	bare, _ := proto.Clone(req).(M)
	for name, value := range bare.GetProvider().GetCredentials() {
		if value != "" {
			bare.GetProvider().GetCredentials()[name] = redacted
		}
	}
	return bare
}

func providerResponse(o store.Object, err error) (*openshellv1.ProviderResponse, error) {
	if err != nil {
		return nil, err
	}
	provider, err := providerProto(o)
	return &openshellv1.ProviderResponse{Provider: provider}, err
}

// CreateProvider stores a provider of a type that a profile describes.
func (s *Server) CreateProvider(ctx context.Context, req *openshellv1.CreateProviderRequest) (*openshellv1.ProviderResponse, error) {
	if req.GetProvider() == nil {
		return nil, errProviderRequired
	}
	provider := proto.CloneOf(req.GetProvider())
	provider.Type = strings.ToLower(strings.TrimSpace(provider.GetType()))
	if err := checkNewProvider(provider); err != nil {
		return nil, err
	}
	workspace, err := within(ctx, req.GetWorkspaceScope(), s.enterActive)
	if err != nil {
		return nil, err
	}
	request, err := newRequest(ctx, workspace, withoutValues(req), nil)
	if err != nil {
		return nil, err
	}
	if of := provider.GetProfileWorkspace(); of != "" && of != workspace {
		return nil, &apierr.InvalidArgument{Field: "provider.profile_workspace", Problem: fmt.Sprintf("must be empty, for a platform-wide profile, or '%s'", workspace)}
	}
	return s.createProvider(ctx, request, workspace, provider)
}

// checkNewProvider checks what a request says of a new provider, whatever there is in the gateway.
func checkNewProvider(provider *datamodelv1.Provider) error {
	meta := provider.GetMetadata()
	if meta.GetName() != "" {
		if problem := rules.ProviderName(meta.GetName()); problem != "" {
			return &apierr.InvalidArgument{Field: "provider.metadata.name", Problem: problem}
		}
	}
	if problem := rules.ProfileID(provider.GetType()); problem != "" {
		return &apierr.InvalidArgument{Field: "provider.type", Problem: problem}
	}
	if problem := rules.Labels(meta.GetLabels()); problem != "" { // upstream adds no details to these
		return status.Error(codes.InvalidArgument, problem)
	}
	for _, v := range []*rules.Violation{rules.Annotations("provider.metadata.annotations", meta.GetAnnotations()), rules.Provider("provider", provider)} {
		if v != nil {
			return &apierr.InvalidArgument{Field: v.Field, Problem: v.Problem}
		}
	}
	return checkExpirations("provider.credential_expiration_times", provider.GetCredentialExpirationTimes(), provider.GetCredentials())
}

func (s *Server) createProvider(ctx context.Context, request *store.Request, workspace string, provider *datamodelv1.Provider) (*openshellv1.ProviderResponse, error) {
	payload, err := providerPayload(provider)
	if err != nil {
		return nil, err
	}
	name := provider.GetMetadata().GetName()
	if name == "" {
		name = letters()
	}
	wanted := store.Object{ID: uuid.NewString(), Key: store.ProviderKey(workspace, name), Labels: provider.GetMetadata().GetLabels(), Payload: payload}
	reply, err := create(ctx, s, request, func(tx store.Tx) (store.Object, error) { return insertProvider(tx, wanted, provider) }, providerResponse)
	if errors.Is(err, store.ErrAlreadyExists) {
		return nil, status.Errorf(codes.AlreadyExists, "provider '%s' already exists in workspace '%s'", name, workspace)
	}
	return reply, inWorkspace(workspace, err)
}

// insertProvider stores a provider that fits its profile, which cannot be deleted from then on.
func insertProvider(tx store.Tx, wanted store.Object, provider *datamodelv1.Provider) (store.Object, error) {
	if _, err := tx.Active(wanted.Workspace); err != nil {
		return store.Object{}, err
	}
	profile, err := tx.Object(profileKey(provider.GetProfileWorkspace(), provider.GetType()))
	if errors.Is(err, store.ErrObjectNotFound) {
		return store.Object{}, unknownType(provider)
	}
	if err != nil {
		return store.Object{}, err
	}
	if err := checkAgainstProfile(profile, wanted.Name, provider.GetCredentials()); err != nil {
		return store.Object{}, err
	}
	return tx.CreateObject(wanted, profile)
}

func unknownType(provider *datamodelv1.Provider) error {
	where := "among the platform-wide ones"
	if of := provider.GetProfileWorkspace(); of != "" {
		where = fmt.Sprintf("in workspace '%s'", of)
	}
	return &apierr.InvalidArgument{Field: "provider.type", Problem: fmt.Sprintf("'%s' names no provider profile %s; import one first", provider.GetType(), where)}
}

// GetProvider reads a provider, credentials redacted.
func (s *Server) GetProvider(ctx context.Context, req *openshellv1.GetProviderRequest) (*openshellv1.ProviderResponse, error) {
	if req.GetName() == "" {
		return nil, errNameRequired
	}
	workspace, err := within(ctx, req.GetWorkspaceScope(), s.enter)
	if err != nil {
		return nil, err
	}
	o, err := s.Store.Object(ctx, store.ProviderKey(workspace, req.GetName()))
	if errors.Is(err, store.ErrObjectNotFound) {
		return nil, noProvider(workspace, req.GetName())
	}
	return providerResponse(o, err)
}

func noProvider(workspace, name string) error {
	return status.Errorf(codes.NotFound, "provider '%s' not found in workspace '%s'", name, workspace)
}

// ListProviders reads a page of providers, oldest first, credentials redacted.
func (s *Server) ListProviders(ctx context.Context, req *openshellv1.ListProvidersRequest) (*openshellv1.ListProvidersResponse, error) {
	rows, next, err := s.listLabelled(ctx, store.KindProvider, openshellv1.OpenShell_ListProviders_FullMethodName, req)
	if err != nil {
		return nil, err
	}
	reply := &openshellv1.ListProvidersResponse{NextPageToken: next}
	reply.Providers, err = decodeAll(rows, providerProto)
	return reply, err
}

// DeleteProvider deletes a provider that no sandbox has attached, in whatever phase.
func (s *Server) DeleteProvider(ctx context.Context, req *openshellv1.DeleteProviderRequest) (*openshellv1.DeleteProviderResponse, error) {
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
	outcome, err := s.remove(ctx, request, store.ProviderKey(workspace, req.GetName()), req.GetAllowMissing())
	var inUse *store.InUseError
	switch {
	case errors.Is(err, store.ErrObjectNotFound):
		return nil, noProvider(workspace, req.GetName())
	case errors.As(err, &inUse):
		return nil, status.Errorf(codes.FailedPrecondition,
			"provider '%s' in workspace '%s' is attached to %s and was not deleted; detach it or delete these sandboxes first",
			req.GetName(), workspace, referrerNames(inUse.By))
	}
	return &openshellv1.DeleteProviderResponse{Outcome: outcome}, err
}

// shownReferrers bounds how many names are in an error.
const shownReferrers = 10

// referrerNames lists what needs an object, such as: sandboxes 'a', 'b'.
func referrerNames(by []store.Referrer) string {
	names := make([]string, 0, shownReferrers)
	for _, r := range by[:min(len(by), shownReferrers)] {
		names = append(names, fmt.Sprintf("%s '%s'", r.Kind, r.Name))
	}
	text := strings.Join(names, ", ")
	if more := len(by) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
