package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/rules"
	"github.com/openshell-iac/terraform-provider-openshell/internal/apierr"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

const (
	attach = openshellv1.ProviderMutationKind_PROVIDER_MUTATION_KIND_ATTACH
	detach = openshellv1.ProviderMutationKind_PROVIDER_MUTATION_KIND_DETACH
)

// AttachSandboxProvider attaches a provider to whatever sandbox holds the name.
func (s *Server) AttachSandboxProvider(ctx context.Context, req *openshellv1.AttachSandboxProviderRequest) (*openshellv1.AttachSandboxProviderResponse, error) {
	return attachReply(s.changePlainAttachment(ctx, attach, req))
}

// DetachSandboxProvider detaches a provider from whatever sandbox holds the name.
func (s *Server) DetachSandboxProvider(ctx context.Context, req *openshellv1.DetachSandboxProviderRequest) (*openshellv1.DetachSandboxProviderResponse, error) {
	return detachReply(s.changePlainAttachment(ctx, detach, req))
}

func attachReply(a *attachment, err error) (*openshellv1.AttachSandboxProviderResponse, error) {
	if err != nil {
		return nil, err
	}
	receipt, err := receiptProto(a.receipt)
	return &openshellv1.AttachSandboxProviderResponse{Sandbox: ToProto(a.sandbox), Attached: a.changed, Receipt: receipt}, err
}

func detachReply(a *attachment, err error) (*openshellv1.DetachSandboxProviderResponse, error) {
	if err != nil {
		return nil, err
	}
	receipt, err := receiptProto(a.receipt)
	return &openshellv1.DetachSandboxProviderResponse{Sandbox: ToProto(a.sandbox), Detached: a.changed, Receipt: receipt}, err
}

// attachmentRequest asks to attach or detach a provider.
type attachmentRequest interface {
	payload
	GetSandbox() string
	GetProvider() string
	GetExpectedResourceVersion() uint64
	GetWorkspaceScope() *datamodelv1.WorkspaceSelector
}

func (s *Server) changePlainAttachment(ctx context.Context, kind openshellv1.ProviderMutationKind, req attachmentRequest) (*attachment, error) {
	workspace, err := s.addressed(ctx, req.GetSandbox(), req.GetWorkspaceScope())
	if err != nil {
		return nil, err
	}
	if err := checkProviderName(req.GetProvider()); err != nil {
		return nil, err
	}
	return s.changeAttachment(ctx, kind, workspace, req, nil)
}

func checkProviderName(name string) error {
	if problem := rules.ProviderName(name); problem != "" {
		return &apierr.InvalidArgument{Field: "provider", Problem: problem}
	}
	return nil
}

// changeAttachment is what the plain and the conditional calls have in common once the caller is let in.
func (s *Server) changeAttachment(
	ctx context.Context, kind openshellv1.ProviderMutationKind, workspace string, req attachmentRequest, p *store.Precondition,
) (*attachment, error) {
	a := &attachment{
		target: store.Target{Workspace: workspace, Name: req.GetSandbox()}, precondition: p, version: req.GetExpectedResourceVersion(),
		provider: req.GetProvider(), kind: kind, epoch: uuid.NewString(),
	}
	if a.attaches() {
		if err := s.notTerminating(ctx, workspace); err != nil {
			return nil, err
		}
	}
	var err error
	if a.request, err = s.sandboxRequest(ctx, workspace, req, p); err != nil {
		return nil, err
	}
	return a, a.transact(ctx, s)
}

// attachment is the wish to attach or detach a provider and, after its transaction, what came of it.
type attachment struct {
	target       store.Target
	precondition *store.Precondition
	version      uint64 // that the request expects; 0 for any
	provider     string
	kind         openshellv1.ProviderMutationKind
	request      *store.Request // whose id is that of the mutation
	epoch        string         // of the attachments, should they change

	sandbox store.Sandbox
	changed bool
	receipt store.Object
}

func (a *attachment) attaches() bool { return a.kind == attach }

// transact makes the change, or finds what came of it when it was made before.
func (a *attachment) transact(ctx context.Context, s *Server) error {
	_, err := mutate(ctx, s, a.request, func(tx store.Tx) (store.Outcome, string, error) {
		outcome := store.OutcomeDone
		err := a.run(tx)
		if !a.changed {
			outcome = store.OutcomeUnchanged
		}
		return outcome, a.receipt.ID, err
	}, func() (struct{}, error) { return struct{}{}, nil }, func(ctx context.Context, before store.Admitted) (struct{}, error) {
		return struct{}{}, a.recall(ctx, s, before)
	})
	return concealed(a.target.Workspace, err)
}

// recall finds the sandbox, as it is now, and the receipt of a change that was made before.
func (a *attachment) recall(ctx context.Context, s *Server, before store.Admitted) (err error) {
	a.changed = before.Outcome == store.OutcomeDone
	if a.receipt, err = s.subject(ctx, before.SubjectID); err != nil {
		return err
	}
	a.sandbox, err = s.Store.SandboxByID(ctx, a.receipt.SandboxID)
	if errors.Is(err, store.ErrNotFound) {
		return &apierr.RequestReplayUnavailable{}
	}
	return err
}

// run makes the change. Under a precondition its version is compared before the rules of the call, else the expected one
// after them (upstream-contract, attach and detach). The row is written also when nothing changes in it.
func (a *attachment) run(tx store.Tx) error {
	if a.attaches() {
		if _, err := tx.Active(a.target.Workspace); err != nil {
			return err
		}
	}
	provider, err := a.find(tx)
	if err != nil {
		return err
	}
	current, err := tx.Sandbox(a.target, a.precondition)
	if err != nil {
		return err
	}
	if err := a.precondition.CheckVersion(current); err != nil {
		return err
	}
	next, err := a.next(tx, current, provider)
	if err != nil {
		return err
	}
	if err := checkExpected(a.version, current); err != nil {
		return err
	}
	if a.sandbox, err = tx.WriteSandbox(next); err != nil {
		return err
	}
	a.receipt, err = issue(tx, a.sandbox, a.provider, provider, a.kind, a.request.ID)
	return err
}

// find reads the provider, nil when there is none.
func (a *attachment) find(tx store.Tx) (*store.Object, error) {
	o, err := tx.Object(store.ProviderKey(a.target.Workspace, a.provider))
	if errors.Is(err, store.ErrObjectNotFound) {
		return nil, nil
	}
	return &o, err
}

// next is the row as it is to be, if the rules of the call allow it.
func (a *attachment) next(tx store.Tx, current store.Sandbox, provider *store.Object) (store.Sandbox, error) {
	if err := checkProviderName(a.provider); err != nil {
		return current, err
	}
	before := current.Spec.GetProviders()
	after := slices.DeleteFunc(slices.Clone(before), func(name string) bool { return name == a.provider })
	if a.attaches() {
		if provider == nil {
			return current, missingProvider(a.provider, a.target.Workspace)
		}
		if slices.Contains(before, a.provider) {
			after = before
		} else {
			after = append(after, a.provider)
		}
		if len(after) > rules.MaxProviders {
			return current, &apierr.InvalidArgument{Field: "provider", Problem: fmt.Sprintf("would be one more than the %d that a sandbox can have", rules.MaxProviders)}
		}
	}
	now, err := tx.Now()
	if err != nil {
		return current, err
	}
	read := newProviderReader(tx.Object, now)
	if a.attaches() {
		if err := read.compatible(current.Workspace, after); err != nil {
			return current, err
		}
	}
	a.changed = len(after) != len(before)
	if !a.changed {
		return current, nil
	}
	base, err := basePolicy(tx.ListObjects, current)
	if err != nil {
		return current, err
	}
	if err := read.admits(current.Workspace, after, base); err != nil {
		return current, err
	}
	return a.changedAt(now, current, after), nil
}

func (a *attachment) changedAt(now time.Time, s store.Sandbox, providers []string) store.Sandbox {
	s.Spec, s.Status = proto.CloneOf(s.Spec), proto.CloneOf(s.Status)
	s.Spec.Providers, s.Spec.ProviderAttachmentEpoch = providers, a.epoch
	if s.Status.GetProvisioning() == nil {
		s.Status.Provisioning = &openshellv1.SandboxProvisioning{}
	}
	s.Status.Provisioning.AttachmentChangeId, s.Status.Provisioning.AttachmentChangeTime = a.request.ID, timestamppb.New(now)
	return s
}
