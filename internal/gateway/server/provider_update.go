package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/rules"
	"github.com/openshell-iac/terraform-provider-openshell/internal/apierr"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// UpdateProvider merges credentials, configuration and expirations into a provider, and gives a receipt for every sandbox
// that has it attached.
func (s *Server) UpdateProvider(ctx context.Context, req *openshellv1.UpdateProviderRequest) (*openshellv1.ProviderResponse, error) {
	if req.GetProvider() == nil {
		return nil, errProviderRequired
	}
	name := req.GetProvider().GetMetadata().GetName()
	if name == "" { // upstream adds no details to this one
		return nil, status.Error(codes.InvalidArgument, "provider.metadata.name is required")
	}
	if v := rules.Provider("provider", req.GetProvider()); v != nil {
		return nil, &apierr.InvalidArgument{Field: v.Field, Problem: v.Problem}
	}
	workspace, err := within(ctx, req.GetWorkspaceScope(), s.enter)
	if err != nil {
		return nil, err
	}
	request, err := newRequest(ctx, workspace, withoutValues(req), nil)
	if err != nil {
		return nil, err
	}
	u := providerUpdate{req: req, key: store.ProviderKey(workspace, name), mutationID: request.ID}
	reply, err := mutate(ctx, s, request, func(tx store.Tx) (store.Outcome, string, error) {
		err := u.run(tx)
		return store.OutcomeDone, u.updated.ID + " " + u.mutationID, err
	}, func() (*openshellv1.ProviderResponse, error) {
		return updatedProvider(u.updated, u.mutationID, u.receipts)
	}, s.replayUpdate)
	if errors.Is(err, store.ErrObjectNotFound) {
		return nil, noProvider(workspace, name)
	}
	return reply, err
}

func updatedProvider(o store.Object, mutationID string, receipts []store.Object) (*openshellv1.ProviderResponse, error) {
	reply, err := providerResponse(o, nil)
	if err != nil {
		return nil, err
	}
	reply.MutationId = mutationID
	reply.TargetReceipts, err = decodeAll(receipts, receiptProto)
	return reply, err
}

// replayUpdate answers with the provider as it is now, and with those of the receipts that are kept.
func (s *Server) replayUpdate(ctx context.Context, before store.Admitted) (*openshellv1.ProviderResponse, error) {
	providerID, mutationID, _ := strings.Cut(before.SubjectID, " ")
	o, err := s.subject(ctx, providerID)
	if err != nil {
		return nil, err
	}
	var by []store.Referrer
	if err := s.Store.Transact(ctx, func(tx store.Tx) (err error) { by, err = tx.Referrers(o); return err }); err != nil {
		return nil, err
	}
	var receipts []store.Object
	for _, sandbox := range by {
		kept, err := s.Store.ListObjects(ctx, store.ObjectQuery{Kind: store.KindProviderReceipt, SandboxID: sandbox.ID, Limit: keptReceipts})
		if err != nil {
			return nil, err
		}
		for _, one := range kept.Rows {
			receipt, err := receiptProto(one)
			if err != nil {
				return nil, err
			}
			if receipt.GetMutationId() == mutationID {
				receipts = append(receipts, one)
			}
		}
	}
	return updatedProvider(o, mutationID, receipts)
}

// providerUpdate is one update and, after its transaction, what came of it.
type providerUpdate struct {
	req        *openshellv1.UpdateProviderRequest
	key        store.Key
	mutationID string

	updated  store.Object
	receipts []store.Object
}

func (u *providerUpdate) run(tx store.Tx) error {
	u.receipts = nil
	o, err := tx.LockObject(u.key)
	if err != nil {
		return err
	}
	provider, err := decode[datamodelv1.Provider](o)
	if err != nil {
		return err
	}
	if err := u.allowed(o, provider); err != nil {
		return err
	}
	if err := u.merge(tx, provider); err != nil {
		return err
	}
	if o.Payload, err = providerPayload(provider); err != nil {
		return err
	}
	if u.updated, err = tx.WriteObject(o); err != nil {
		return err
	}
	return u.reach(tx)
}

// allowed refuses to change what never changes, and what is not as the caller expects. Upstream adds no details to the
// version conflict of a provider.
func (u *providerUpdate) allowed(o store.Object, provider *datamodelv1.Provider) error {
	wanted := u.req.GetProvider()
	switch expected := wanted.GetMetadata().GetResourceVersion(); {
	case wanted.GetType() != "" && !strings.EqualFold(strings.TrimSpace(wanted.GetType()), provider.GetType()):
		return &apierr.InvalidArgument{Field: "provider.type", Problem: "is '" + provider.GetType() + "' and never changes; delete the provider and create it anew"}
	case wanted.GetProfileWorkspace() != "" && wanted.GetProfileWorkspace() != provider.GetProfileWorkspace():
		return &apierr.InvalidArgument{Field: "provider.profile_workspace", Problem: "never changes; delete the provider and create it anew"}
	case expected != 0 && expected != o.ResourceVersion:
		return status.Errorf(codes.Aborted, "provider '%s' is at resource version %d, not at the expected %d; read it again", o.Name, o.ResourceVersion, expected)
	}
	return nil
}

// merge sets what is listed, removes what is listed with an empty value, and leaves the rest.
func (u *providerUpdate) merge(tx store.Tx, provider *datamodelv1.Provider) error {
	for name := range provider.GetCredentials() {
		provider.Credentials[name] = redacted // there is one
	}
	wanted := u.req.GetProvider()
	provider.Credentials = merged(provider.GetCredentials(), wanted.GetCredentials())
	provider.Config = merged(provider.GetConfig(), wanted.GetConfig())
	if v := rules.Provider("provider", provider); v != nil {
		return &apierr.InvalidArgument{Field: v.Field, Problem: v.Problem}
	}
	if len(wanted.GetCredentials()) > 0 {
		profile, err := tx.Object(profileKey(provider.GetProfileWorkspace(), provider.GetType()))
		if err != nil {
			return err
		}
		if err := checkAgainstProfile(profile, u.key.Name, provider.GetCredentials()); err != nil {
			return err
		}
	}
	return u.mergeExpirations(provider)
}

func (u *providerUpdate) mergeExpirations(provider *datamodelv1.Provider) error {
	const field = "credential_expiration_times"
	set := map[string]*timestamppb.Timestamp{}
	maps.Copy(set, u.req.GetProvider().GetCredentialExpirationTimes())
	maps.Copy(set, u.req.GetCredentialExpirationTimes())
	if err := checkExpirations(field, set, provider.GetCredentials()); err != nil {
		return err
	}
	expirations := map[string]*timestamppb.Timestamp{}
	maps.Copy(expirations, provider.GetCredentialExpirationTimes())
	maps.Copy(expirations, set)
	for i, name := range u.req.GetClearCredentialExpirationKeys() {
		if _, both := set[name]; both {
			return &apierr.InvalidArgument{Field: "clear_credential_expiration_keys", Problem: fmt.Sprintf("item %d is set in %s, too; do one of them", i, field)}
		}
		delete(expirations, name)
	}
	for name := range expirations {
		if _, there := provider.GetCredentials()[name]; !there {
			delete(expirations, name)
		}
	}
	provider.CredentialExpirationTimes = expirations
	return nil
}

func merged(before, changes map[string]string) map[string]string {
	after := make(map[string]string, len(before)+len(changes))
	maps.Copy(after, before)
	maps.Copy(after, changes)
	maps.DeleteFunc(after, func(key, value string) bool { _, listed := changes[key]; return listed && value == "" })
	return after
}

// reach checks the update against the sandboxes that it reaches, and makes a receipt for each.
func (u *providerUpdate) reach(tx store.Tx) error {
	by, err := tx.Referrers(u.updated)
	if err != nil {
		return err
	}
	now, err := tx.Now()
	if err != nil {
		return err
	}
	read := newProviderReader(tx.Object, now)
	for _, referrer := range by {
		sandbox, err := tx.Sandbox(store.Target{ID: referrer.ID}, nil)
		if errors.Is(err, store.ErrNotFound) { // deleted since
			continue
		}
		if err != nil {
			return err
		}
		if err := read.compatible(sandbox.Workspace, sandbox.Spec.GetProviders()); status.Code(err) == codes.FailedPrecondition {
			return status.Errorf(codes.FailedPrecondition, "the update would break sandbox '%s': %s", sandbox.Name, status.Convert(err).Message())
		} else if err != nil {
			return err
		}
		receipt, err := issue(tx, sandbox, u.updated.Name, &u.updated, openshellv1.ProviderMutationKind_PROVIDER_MUTATION_KIND_UPDATE, u.mutationID)
		if err != nil {
			return err
		}
		u.receipts = append(u.receipts, receipt)
	}
	return nil
}
