package server

import (
	"fmt"

	"github.com/google/uuid"
	"google.golang.org/protobuf/types/known/timestamppb"

	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// history is where the revisions of a policy are kept, all of them.
type history struct{ key store.Key }

func historyOf(sandbox store.Sandbox) history {
	return history{store.Key{Kind: store.KindSandboxPolicy, Workspace: sandbox.Workspace, SandboxID: sandbox.ID}}
}

// at is the key of a revision. Names sort as versions do.
func (h history) at(version uint32) store.Key {
	key := h.key
	key.Name = fmt.Sprintf("%010d", version)
	return key
}

func (h history) newestFirst(after *store.Cursor, limit int) store.ObjectQuery {
	return store.ObjectQuery{
		Kind: h.key.Kind, Workspaces: []string{h.key.Workspace}, SandboxID: h.key.SandboxID,
		ByName: true, Reverse: true, After: after, Limit: limit,
	}
}

// revision is a row of a history. The newest has no status in it yet where that depends on what is loaded.
type revision struct {
	object store.Object
	*openshellv1.SandboxPolicyRevision
}

func readRevision(o store.Object) (revision, error) {
	r, err := decode[openshellv1.SandboxPolicyRevision](o)
	if err != nil {
		return revision{}, err
	}
	r.CreatedTime = timestamppb.New(o.CreatedAt)
	if r.GetStatus() == openshellv1.PolicyStatus_POLICY_STATUS_LOADED { // one of the whole gateway, in force since it was written
		r.LoadedTime = r.GetCreatedTime()
	}
	return revision{o, r}, nil
}

// latest reads the newest revision, by a list in or out of a transaction; its version is 0 when there is none.
func (h history) latest(list func(store.ObjectQuery) ([]store.Object, error)) (revision, error) {
	rows, err := list(h.newestFirst(nil, 1))
	if err != nil || len(rows) == 0 {
		return revision{}, err
	}
	return readRevision(rows[0])
}

// basePolicy is what a sandbox's policy is, apart from what providers add: the newest revision or that of its creation.
func basePolicy(list func(store.ObjectQuery) ([]store.Object, error), sandbox store.Sandbox) (*sandboxv1.SandboxPolicy, error) {
	newest, err := historyOf(sandbox).latest(list)
	if err != nil || newest.GetVersion() > 0 {
		return newest.GetPolicy(), err
	}
	return sandbox.Spec.GetPolicy(), nil
}

// firstRevision is the revision that a new sandbox has of the policy in its spec.
func firstRevision(draft policyDraft) (store.Object, error) {
	payload, err := draft.payload(1, openshellv1.PolicyStatus_POLICY_STATUS_UNSPECIFIED, nil)
	key := history{store.Key{Kind: store.KindSandboxPolicy}}.at(1)
	return store.Object{ID: uuid.NewString(), Key: key, Payload: payload}, err
}

// add makes a policy the newest revision, and says of the one before that it is superseded.
func (h history) add(tx store.Tx, before revision, draft policyDraft, status openshellv1.PolicyStatus, provenance map[string]string) (uint32, error) {
	if before.GetVersion() > 0 {
		if err := before.supersede(tx); err != nil {
			return 0, err
		}
	}
	version := before.GetVersion() + 1
	payload, err := draft.payload(version, status, provenance)
	if err != nil {
		return 0, err
	}
	_, err = tx.CreateObject(store.Object{ID: uuid.NewString(), Key: h.at(version), Payload: payload})
	return version, err
}

func (r revision) supersede(tx store.Tx) error {
	r.Status = openshellv1.PolicyStatus_POLICY_STATUS_SUPERSEDED
	r.CreatedTime = nil
	payload, err := encode(r.SandboxPolicyRevision)
	if err != nil {
		return err
	}
	r.object.Payload = payload
	_, err = tx.WriteObject(r.object)
	return err
}

// in completes a revision of a sandbox by what has become of it in its sandbox. It was loaded when it was written or when the process
// that runs now was started, whichever was later.
func (r revision) in(status *openshellv1.SandboxStatus) revision {
	if r.SandboxPolicyRevision == nil || r.GetStatus() != openshellv1.PolicyStatus_POLICY_STATUS_UNSPECIFIED {
		return r
	}
	r.Status = openshellv1.PolicyStatus_POLICY_STATUS_PENDING
	if r.GetVersion() == status.GetCurrentPolicyVersion() {
		r.Status, r.LoadedTime = openshellv1.PolicyStatus_POLICY_STATUS_LOADED, r.GetCreatedTime()
		if started := status.GetMainProcessStartedTime(); started.AsTime().After(r.GetCreatedTime().AsTime()) {
			r.LoadedTime = started
		}
	}
	return r
}

// policyDraft is a policy to be stored: canonical, and what identifies it.
type policyDraft struct {
	policy *sandboxv1.SandboxPolicy
	hash   string
}

func (d policyDraft) payload(version uint32, status openshellv1.PolicyStatus, provenance map[string]string) ([]byte, error) {
	return encode(&openshellv1.SandboxPolicyRevision{
		Version: version, PolicyHash: d.hash, Policy: d.policy, Status: status, Provenance: provenance,
	})
}
