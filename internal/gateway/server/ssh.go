package server

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

const (
	// sessionTTL is how long the token of a session is good; it is upstream's default.
	sessionTTL = 24 * time.Hour
	// keptSessions is how many sessions a sandbox has, the newest.
	keptSessions = 100
)

// CreateSshSession makes a token to connect to a sandbox with. The token itself is told once and kept nowhere: what is
// stored is a digest of it.
//
//nolint:revive,staticcheck // the name is upstream's
func (s *Server) CreateSshSession(ctx context.Context, req *openshellv1.CreateSshSessionRequest) (*openshellv1.CreateSshSessionResponse, error) {
	workspace, err := s.addressed(ctx, req.GetSandbox(), req.GetWorkspaceScope())
	if err != nil {
		return nil, err
	}
	token := rand.Text()
	var session store.Object
	err = s.Store.Transact(ctx, func(tx store.Tx) error {
		sandbox, err := tx.Sandbox(store.Target{Workspace: workspace, Name: req.GetSandbox()}, nil)
		if err != nil {
			return err
		}
		if phase := sandbox.Phase(); phase != openshellv1.SandboxPhase_SANDBOX_PHASE_READY {
			return status.Errorf(codes.FailedPrecondition, "sandbox is not ready: '%s' in workspace '%s' (id %s) is in phase %s",
				sandbox.Name, sandbox.Workspace, sandbox.ID, strings.TrimPrefix(phase.String(), "SANDBOX_PHASE_"))
		}
		id := digest(token)
		session, err = tx.CreateObject(store.Object{
			ID: id, Key: store.Key{Kind: store.KindSSHSession, Workspace: workspace, SandboxID: sandbox.ID, Name: id},
		})
		if err != nil {
			return err
		}
		return tx.Trim(store.KindSSHSession, sandbox.ID, keptSessions)
	})
	if err != nil {
		return nil, err
	}
	return &openshellv1.CreateSshSessionResponse{
		SandboxId: session.SandboxID, Token: token, ExpirationTime: timestamppb.New(session.CreatedAt.Add(sessionTTL)),
		GatewayHost: s.host(), GatewayPort: uint32(s.address.Port()), GatewayScheme: scheme(s.TLS),
	}, nil
}

// digest stands for a token. It is the id of the session, so that the session is found by its token alone.
func digest(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// RevokeSshSession makes a token useless. One that has expired is as good as none.
//
//nolint:revive,staticcheck // the name is upstream's
func (s *Server) RevokeSshSession(ctx context.Context, req *openshellv1.RevokeSshSessionRequest) (*openshellv1.RevokeSshSessionResponse, error) {
	if req.GetToken() == "" {
		return nil, status.Error(codes.InvalidArgument, "token is required")
	}
	session, err := s.Store.ObjectByID(ctx, digest(req.GetToken()))
	switch {
	case errors.Is(err, store.ErrObjectNotFound):
		auth.NoWorkspace(ctx)
		return revoked(store.OutcomeAbsent, req.GetAllowMissing())
	case err != nil:
		return nil, err
	}
	if err := auth.AuthorizeWorkspace(ctx, session.Workspace, auth.Sandbox); err != nil {
		return nil, err
	}
	var outcome store.Outcome
	err = s.Store.Transact(ctx, func(tx store.Tx) error {
		now, err := tx.Now()
		if err != nil {
			return err
		}
		outcome, err = removeObject(tx, session.Key, true)
		if now.Sub(session.CreatedAt) >= sessionTTL {
			outcome = store.OutcomeAbsent
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return revoked(outcome, req.GetAllowMissing())
}

func revoked(outcome store.Outcome, allowMissing bool) (*openshellv1.RevokeSshSessionResponse, error) {
	if outcome == store.OutcomeAbsent && !allowMissing {
		return nil, status.Error(codes.NotFound, "SSH session not found: it was revoked, has expired, or has gone with its sandbox or when that was stopped")
	}
	told, err := deletionOutcome(outcome)
	return &openshellv1.RevokeSshSessionResponse{Outcome: told}, err
}
