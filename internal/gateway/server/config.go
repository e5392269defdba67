package server

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"strings"

	"google.golang.org/protobuf/proto"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/apierr"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// UpdateConfig changes the policy or a setting of whatever sandbox holds the name, or of the whole gateway.
func (s *Server) UpdateConfig(ctx context.Context, req *openshellv1.UpdateConfigRequest) (*openshellv1.UpdateConfigResponse, error) {
	if req.GetGlobal() {
		return s.updateGateway(ctx, req)
	}
	workspace, err := s.addressed(ctx, req.GetSandbox(), req.GetWorkspaceScope())
	if err != nil {
		return nil, err
	}
	return s.updateConfig(ctx, workspace, req, nil)
}

// updateConfig is what the plain and the conditional call have in common once the caller is let in.
func (s *Server) updateConfig(ctx context.Context, workspace string, req *openshellv1.UpdateConfigRequest, p *store.Precondition) (*openshellv1.UpdateConfigResponse, error) {
	request, err := s.sandboxRequest(ctx, workspace, req, p)
	if err != nil {
		return nil, err
	}
	u := newConfigUpdate(workspace, req, p, request)
	reply, err := mutate(ctx, s, request, func(tx store.Tx) (store.Outcome, string, error) {
		err := u.run(tx)
		return store.OutcomeDone, configSubject(u.sandbox.ID, u.reply), err
	}, func() (*openshellv1.UpdateConfigResponse, error) {
		return configReply(u.reply, u.sandbox), nil
	}, s.replayConfig)
	return reply, inWorkspace(workspace, err)
}

// configReply completes a reply with all annotations that the sandbox has.
func configReply(reply *openshellv1.UpdateConfigResponse, sandbox store.Sandbox) *openshellv1.UpdateConfigResponse {
	complete := proto.CloneOf(reply)
	complete.Annotations = maps.Clone(sandbox.Annotations)
	return complete
}

// configSubject is what is kept of an update: the sandbox, none for the whole gateway, and the reply.
func configSubject(sandboxID string, reply *openshellv1.UpdateConfigResponse) string {
	payload, err := encode(reply)
	if err != nil { // numbers and a hash only
		panic(err)
	}
	return sandboxID + " " + base64.StdEncoding.EncodeToString(payload)
}

// replayConfig answers as it was answered, with the annotations that the sandbox has now.
func (s *Server) replayConfig(ctx context.Context, before store.Admitted) (*openshellv1.UpdateConfigResponse, error) {
	sandboxID, text, _ := strings.Cut(before.SubjectID, " ")
	payload, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("what is kept of an update of a configuration: %w", err)
	}
	reply := &openshellv1.UpdateConfigResponse{}
	if err := proto.Unmarshal(payload, reply); err != nil {
		return nil, fmt.Errorf("what is kept of an update of a configuration: %w", err)
	}
	if sandboxID == "" {
		return reply, nil
	}
	sandbox, err := s.Store.SandboxByID(ctx, sandboxID)
	if errors.Is(err, store.ErrNotFound) {
		return nil, &apierr.RequestReplayUnavailable{}
	}
	return configReply(reply, sandbox), err
}
