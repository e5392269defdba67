package server

import (
	"github.com/google/uuid"
	"google.golang.org/protobuf/types/known/timestamppb"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// keptReceipts is how many receipts a sandbox keeps, the newest. Those beyond are answered as if they never were.
const keptReceipts = 100

// receiptProto is a receipt as clients see it.
func receiptProto(o store.Object) (*openshellv1.ProviderMutationReceipt, error) {
	receipt, err := decode[openshellv1.ProviderMutationReceipt](o)
	if err != nil {
		return nil, err
	}
	receipt.ReceiptId, receipt.PersistedTime = o.ID, timestamppb.New(o.CreatedAt)
	return receipt, nil
}

// issue stores the receipt for a mutation, in the transaction that makes it. The provider is nil when there is none of
// that name.
func issue(tx store.Tx, sandbox store.Sandbox, name string, provider *store.Object, kind openshellv1.ProviderMutationKind, mutationID string) (store.Object, error) {
	payload, err := encode(&openshellv1.ProviderMutationReceipt{
		MutationId: mutationID, Provider: name, Workspace: sandbox.Workspace, Kind: kind,
		Desired: desired(sandbox, provider),
	})
	if err != nil {
		return store.Object{}, err
	}
	id := uuid.NewString()
	receipt, err := tx.CreateObject(store.Object{
		ID:  id,
		Key: store.Key{Kind: store.KindProviderReceipt, Workspace: sandbox.Workspace, SandboxID: sandbox.ID, Name: id}, Payload: payload,
	})
	if err != nil {
		return store.Object{}, err
	}
	return receipt, tx.Trim(store.KindProviderReceipt, sandbox.ID, keptReceipts)
}

// desired is the state that a receipt stands for.
func desired(sandbox store.Sandbox, provider *store.Object) *openshellv1.ProviderDesiredIdentity {
	identity := &openshellv1.ProviderDesiredIdentity{
		SandboxId: sandbox.ID, Sandbox: sandbox.Name, AttachmentEpoch: sandbox.Spec.GetProviderAttachmentEpoch(),
	}
	if provider != nil {
		identity.ProviderId, identity.ProviderResourceVersion = provider.ID, provider.ResourceVersion
	}
	return identity
}
