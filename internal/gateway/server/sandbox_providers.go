package server

import (
	"context"
	"errors"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// ListSandboxProviders reads a page of the providers of a sandbox, by name, credentials redacted.
func (s *Server) ListSandboxProviders(ctx context.Context, req *openshellv1.ListSandboxProvidersRequest) (*openshellv1.ListSandboxProvidersResponse, error) {
	size, err := pageSize(req.GetPageSize())
	if err != nil {
		return nil, err
	}
	workspace, err := s.addressed(ctx, req.GetSandbox(), req.GetWorkspaceScope())
	if err != nil {
		return nil, err
	}
	p, err := readPage(ctx, size, req.GetPageToken(), openshellv1.OpenShell_ListSandboxProviders_FullMethodName, workspace, req.GetSandbox())
	if err != nil {
		return nil, err
	}
	return readAttached(ctx, s, workspace, req.GetSandbox(), func(sandbox store.Sandbox) (*openshellv1.ListSandboxProvidersResponse, error) {
		return s.attachedProviders(ctx, sandbox, p)
	})
}

// readAttached reads what the providers of a sandbox are needed for, again when one of them cannot be had because it was
// detached since the sandbox was read.
func readAttached[R any](ctx context.Context, s *Server, workspace, name string, read func(store.Sandbox) (R, error)) (R, error) {
	var none R
	sandbox, err := s.Store.Sandbox(ctx, workspace, name)
	for err == nil {
		before := sandbox
		reply, refusal := read(before)
		if status.Code(refusal) != codes.FailedPrecondition {
			return reply, refusal
		}
		sandbox, err = s.Store.Sandbox(ctx, workspace, name)
		if err == nil && slices.Equal(before.Spec.GetProviders(), sandbox.Spec.GetProviders()) {
			return none, refusal
		}
	}
	return none, err
}

func (s *Server) attachedProviders(ctx context.Context, sandbox store.Sandbox, p page) (*openshellv1.ListSandboxProvidersResponse, error) {
	names := slices.Sorted(slices.Values(sandbox.Spec.GetProviders()))
	if p.after != nil {
		names = slices.DeleteFunc(names, func(name string) bool { return name <= p.after.Name })
	}
	reply := &openshellv1.ListSandboxProvidersResponse{}
	held := 0 // bytes
	for i, name := range names {
		if i == p.size || i > 0 && held > store.MaxPage {
			reply.NextPageToken = pageToken(store.Cursor{Name: names[i-1]}, p.binding)
			break
		}
		o, err := s.Store.Object(ctx, store.ProviderKey(sandbox.Workspace, name))
		if errors.Is(err, store.ErrObjectNotFound) {
			return nil, missingProvider(name, sandbox.Workspace)
		}
		if err != nil {
			return nil, err
		}
		provider, err := providerProto(o)
		if err != nil {
			return nil, err
		}
		held += proto.Size(provider)
		reply.Providers = append(reply.Providers, provider)
	}
	return reply, nil
}

// GetSandboxProviderStatus says how far a mutation has come, or how it stands with a provider. What the supervisor of a real
// sandbox reports is taken from the phase: a simulated one has done all that it was told once it is READY.
func (s *Server) GetSandboxProviderStatus(ctx context.Context, req *openshellv1.GetSandboxProviderStatusRequest) (*openshellv1.GetSandboxProviderStatusResponse, error) {
	workspace, err := s.addressed(ctx, req.GetSandbox(), req.GetWorkspaceScope())
	if err != nil {
		return nil, err
	}
	if err := checkProviderName(req.GetProvider()); err != nil {
		return nil, err
	}
	sandbox, err := s.Store.Sandbox(ctx, workspace, req.GetSandbox())
	if err != nil {
		return nil, err
	}
	r := readiness{sandbox: sandbox, attached: slices.Contains(sandbox.Spec.GetProviders(), req.GetProvider()), now: time.Now()}
	if r.provider, err = s.providerOrNone(ctx, store.ProviderKey(workspace, req.GetProvider())); err != nil {
		return nil, err
	}
	if r.receipt, err = s.receiptOf(ctx, sandbox, req, r.provider); err != nil {
		return nil, err
	}
	reply, err := r.status()
	return &openshellv1.GetSandboxProviderStatusResponse{Status: reply}, err
}

// providerOrNone reads a provider, nil when there is none.
func (s *Server) providerOrNone(ctx context.Context, key store.Key) (*store.Object, error) {
	o, err := s.Store.Object(ctx, key)
	if errors.Is(err, store.ErrObjectNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &o, nil
}

// receiptOf finds the receipt that was asked about, or else makes one of what is wanted now, which is not kept.
func (s *Server) receiptOf(ctx context.Context, sandbox store.Sandbox, req *openshellv1.GetSandboxProviderStatusRequest, provider *store.Object) (*openshellv1.ProviderMutationReceipt, error) {
	if req.GetReceiptId() == "" {
		if provider == nil {
			return nil, noProvider(sandbox.Workspace, req.GetProvider())
		}
		return &openshellv1.ProviderMutationReceipt{
			Provider: req.GetProvider(), Workspace: sandbox.Workspace,
			Kind: openshellv1.ProviderMutationKind_PROVIDER_MUTATION_KIND_OBSERVE, Desired: desired(sandbox, provider),
		}, nil
	}
	o, err := s.Store.ObjectByID(ctx, req.GetReceiptId())
	if err != nil && !errors.Is(err, store.ErrObjectNotFound) {
		return nil, err
	}
	if err == nil && o.Kind == store.KindProviderReceipt && o.SandboxID == sandbox.ID {
		receipt, err := receiptProto(o)
		if err != nil || receipt.GetProvider() == req.GetProvider() {
			return receipt, err
		}
	}
	return nil, status.Errorf(codes.NotFound,
		"receipt '%s' is not one for provider '%s' in sandbox '%s' (id %s), or has given way to newer ones; ask without a receipt id how things stand",
		req.GetReceiptId(), req.GetProvider(), sandbox.Name, sandbox.ID)
}

// readiness is how it stands with one provider in one sandbox.
type readiness struct {
	sandbox  store.Sandbox
	provider *store.Object // nil when there is none
	attached bool
	receipt  *openshellv1.ProviderMutationReceipt
	now      time.Time
}

func (r readiness) status() (*openshellv1.ProviderReadinessStatus, error) {
	reply := &openshellv1.ProviderReadinessStatus{Receipt: r.receipt, EvaluatedTime: timestamppb.New(r.now)}
	expired, err := r.expired()
	if err != nil {
		return nil, err
	}
	switch {
	case r.superseded():
		reply.State = openshellv1.ProviderReadinessState_PROVIDER_READINESS_STATE_SUPERSEDED
		reply.Reason = openshellv1.ProviderReadinessReason_PROVIDER_READINESS_REASON_DESIRED_STATE_CHANGED
	case !r.settled():
		reply.State = openshellv1.ProviderReadinessState_PROVIDER_READINESS_STATE_PENDING
		reply.Reason = openshellv1.ProviderReadinessReason_PROVIDER_READINESS_REASON_WAITING_FOR_SUPERVISOR
	case !r.attached:
		reply.State = openshellv1.ProviderReadinessState_PROVIDER_READINESS_STATE_REVOKED
	case expired:
		reply.State = openshellv1.ProviderReadinessState_PROVIDER_READINESS_STATE_WITHHELD
		reply.Reason = openshellv1.ProviderReadinessReason_PROVIDER_READINESS_REASON_CREDENTIAL_EXPIRED
	case r.sandbox.Phase() == openshellv1.SandboxPhase_SANDBOX_PHASE_READY:
		reply.State = openshellv1.ProviderReadinessState_PROVIDER_READINESS_STATE_READY
		reply.Observed = &openshellv1.ProviderReadinessObservation{
			AttachmentEpoch:      r.sandbox.Spec.GetProviderAttachmentEpoch(),
			CredentialsInstalled: true, PolicyActive: true, LaunchEnvironmentInstalled: true,
			ProcessInstanceId: r.sandbox.Status.GetMainProcessInstanceId(),
		}
		reply.ObservedTime = reply.GetEvaluatedTime()
	default: // nothing runs that could have it
		reply.State = openshellv1.ProviderReadinessState_PROVIDER_READINESS_STATE_PERSISTED
		reply.Reason = openshellv1.ProviderReadinessReason_PROVIDER_READINESS_REASON_SUPERVISOR_DISCONNECTED
	}
	return reply, nil
}

// settled says that nothing is about to start: what runs has been told, and what does not run will be.
func (r readiness) settled() bool {
	switch r.sandbox.Phase() {
	case openshellv1.SandboxPhase_SANDBOX_PHASE_PROVISIONING, openshellv1.SandboxPhase_SANDBOX_PHASE_STARTING:
		return false
	}
	return true
}

// superseded says that something else is wanted by now than what the receipt stands for.
func (r readiness) superseded() bool {
	switch wanted := r.receipt.GetDesired(); r.receipt.GetKind() {
	case openshellv1.ProviderMutationKind_PROVIDER_MUTATION_KIND_OBSERVE:
		return false
	case openshellv1.ProviderMutationKind_PROVIDER_MUTATION_KIND_DETACH:
		return r.attached
	default:
		return !r.attached || r.provider == nil ||
			r.provider.ID != wanted.GetProviderId() || r.provider.ResourceVersion != wanted.GetProviderResourceVersion()
	}
}

// expired says that a credential of the provider has expired, so that the provider's are withheld.
func (r readiness) expired() (bool, error) {
	if r.provider == nil {
		return false, nil
	}
	provider, err := decode[datamodelv1.Provider](*r.provider)
	if err != nil {
		return false, err
	}
	for name := range provider.GetCredentials() {
		if expired(provider, name, r.now) {
			return true, nil
		}
	}
	return false, nil
}
