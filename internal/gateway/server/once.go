package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"google.golang.org/grpc"
	grpcmetadata "google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/apierr"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/telemetry"
)

// payload is a request of upstream's API that can be made once.
type payload interface {
	proto.Message
	GetRequestId() string
}

// newRequest describes the call that ctx belongs to: who makes it and, with a request_id, what it may be taken for when it
// comes again. A request_id holds for one caller, one method (the plain and the conditional form are two) and one
// workspace; all else that is asked, the precondition included, is in the fingerprint.
func newRequest(ctx context.Context, workspace string, req payload, p *store.Precondition) (*store.Request, error) {
	caller, _ := auth.FromContext(ctx)
	method, _ := grpc.Method(ctx)
	r := &store.Request{
		ID: uuid.NewString(), Method: method,
		Caller: store.Caller{
			Key: caller.Key(), IdentityProvider: string(caller.Provider), Issuer: storable(caller.Issuer), Subject: storable(caller.Subject),
		},
	}
	requestID := req.GetRequestId()
	if requestID == "" {
		return r, nil
	}
	if err := checkRequestID(requestID); err != nil {
		return nil, err
	}
	stamp, err := fingerprint(req, p)
	if err != nil {
		return nil, err
	}
	r.Admission = &store.Admission{
		Scope: hex.EncodeToString(bind(r.Caller.Key, method, workspace)), RequestID: strings.ToLower(requestID), Fingerprint: stamp,
	}
	return r, nil
}

// sandboxRequest is newRequest for a call about a sandbox. Where there is no such workspace there is no such sandbox, and that
// is said before anything about the request_id.
func (s *Server) sandboxRequest(ctx context.Context, workspace string, req payload, p *store.Precondition) (*store.Request, error) {
	r, problem := newRequest(ctx, workspace, req, p)
	if problem == nil {
		return r, nil
	}
	if _, err := s.Store.Workspace(ctx, workspace); errors.Is(err, store.ErrWorkspaceNotFound) {
		return nil, store.ErrNotFound
	}
	return nil, problem
}

// storable leaves out what no database keeps in a text.
func storable(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

// fingerprint stands for what a request says, but for its request_id. It tells nothing of the secrets in it that the rows of
// sandboxes do not.
func fingerprint(req payload, p *store.Precondition) (string, error) {
	bare := proto.Clone(req)
	m := bare.ProtoReflect()
	m.Clear(m.Descriptor().Fields().ByName("request_id"))
	content, err := proto.MarshalOptions{Deterministic: true}.Marshal(bare)
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	if p != nil {
		fmt.Fprintf(hash, "%s %d ", p.ID, p.ResourceVersion)
	}
	hash.Write(content)
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// once makes a call, unless it carries a request_id under which it was made before: then it is answered from what is known
// of that. The store has the last word on which of several that come at once is the first.
func once[R any](ctx context.Context, s *Server, r *store.Request, do func() (R, error), replay func(context.Context, store.Admitted) (R, error)) (R, error) {
	if !r.Admitted() {
		return do()
	}
	if reply, found, err := again(ctx, s, r, replay); found || err != nil {
		return reply, err
	}
	reply, err := do()
	if errors.Is(err, store.ErrAdmitted) { // since
		var found bool
		if reply, found, err = again(ctx, s, r, replay); err == nil && !found { // and withdrawn or expired since
			err = &apierr.RequestOutcomeUncertain{}
		}
	}
	return reply, err
}

// again answers a call that was made before; false when it was not.
func again[R any](ctx context.Context, s *Server, r *store.Request, replay func(context.Context, store.Admitted) (R, error)) (reply R, found bool, err error) {
	before, found, err := s.Store.Admitted(ctx, r.Admission.Scope, r.Admission.RequestID)
	switch {
	case err != nil || !found:
		return reply, false, err
	case before.Fingerprint != r.Admission.Fingerprint:
		return reply, true, &apierr.RequestPayloadMismatch{}
	case before.Outcome == store.OutcomePending:
		return reply, true, &apierr.RequestOutcomeUncertain{}
	}
	if reply, err = replay(ctx, before); err == nil {
		telemetry.Replayed(ctx)
		err = grpc.SetHeader(ctx, grpcmetadata.Pairs(apierr.ReplayedHeader, "true"))
	}
	return reply, true, err
}

// replaySandbox answers with the sandbox as it is now.
func (s *Server) replaySandbox(ctx context.Context, before store.Admitted) (*openshellv1.SandboxResponse, error) {
	sandbox, err := s.Store.SandboxByID(ctx, before.SubjectID)
	if errors.Is(err, store.ErrNotFound) {
		return nil, &apierr.RequestReplayUnavailable{}
	}
	return response(sandbox, err)
}

// replayDeletion answers as it was answered, whoever has the name now.
func replayDeletion(_ context.Context, before store.Admitted) (*openshellv1.DeleteSandboxResponse, error) {
	outcome, err := deletionOutcome(before.Outcome)
	return &openshellv1.DeleteSandboxResponse{SandboxId: before.SubjectID, Outcome: outcome}, err
}

// deletionOutcome is what a client is told of a delete.
func deletionOutcome(outcome store.Outcome) (openshellv1.DeletionOutcome, error) {
	switch outcome {
	case store.OutcomeAccepted:
		return openshellv1.DeletionOutcome_DELETION_OUTCOME_ACCEPTED, nil
	case store.OutcomeCompleted:
		return openshellv1.DeletionOutcome_DELETION_OUTCOME_COMPLETED, nil
	case store.OutcomeAbsent:
		return openshellv1.DeletionOutcome_DELETION_OUTCOME_ALREADY_ABSENT, nil
	default:
		return openshellv1.DeletionOutcome_DELETION_OUTCOME_UNSPECIFIED, fmt.Errorf("a delete cannot have come to %q", outcome)
	}
}

// settleAbsent remembers that there was nothing to delete, so that the call does nothing when it comes again.
func (s *Server) settleAbsent(ctx context.Context, r *store.Request) error {
	if !r.Admitted() {
		return nil
	}
	return s.Store.Transact(ctx, func(tx store.Tx) error {
		if err := tx.Admit(r); err != nil {
			return err
		}
		return tx.Settle(r.ID, store.OutcomeAbsent, "")
	})
}
