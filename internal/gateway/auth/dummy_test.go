package auth_test

import (
	"bytes"
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth"
)

// members is who belongs to which workspace, by workspace and subject.
type members map[[2]string]openshellv1.WorkspaceRole

func (m members) Role(_ context.Context, workspace, subject string) (openshellv1.WorkspaceRole, error) {
	if workspace == "broken" {
		return 0, status.Error(codes.Unavailable, "the database is away")
	}
	return m[[2]string{workspace, subject}], nil
}

// dummy authorizes as handlers do, and does nothing else.
type dummy struct {
	openshellv1.UnimplementedOpenShellServer
}

func (dummy) Health(context.Context, *openshellv1.HealthRequest) (*openshellv1.HealthResponse, error) {
	return &openshellv1.HealthResponse{}, nil
}

func (dummy) GetCurrentUser(ctx context.Context, _ *openshellv1.GetCurrentUserRequest) (*openshellv1.GetCurrentUserResponse, error) {
	caller, ok := auth.FromContext(ctx)
	if !ok {
		return nil, status.Error(codes.Internal, "no caller")
	}
	return &openshellv1.GetCurrentUserResponse{
		Subject: caller.Subject, DisplayName: caller.DisplayName, Roles: caller.Roles, Scopes: caller.Scopes,
		IdentityProvider: string(caller.Provider),
	}, nil
}

func (dummy) GetSandbox(ctx context.Context, req *openshellv1.GetSandboxRequest) (*openshellv1.SandboxResponse, error) {
	return &openshellv1.SandboxResponse{}, auth.AuthorizeWorkspace(ctx, req.GetWorkspaceScope().GetWorkspace(), auth.Sandbox)
}

func (dummy) ListSandboxes(ctx context.Context, req *openshellv1.ListSandboxesRequest) (*openshellv1.ListSandboxesResponse, error) {
	if req.GetWorkspaceScope().GetAllWorkspaces() != nil {
		return &openshellv1.ListSandboxesResponse{}, auth.RequirePlatformAdmin(ctx)
	}
	return &openshellv1.ListSandboxesResponse{}, auth.AuthorizeWorkspace(ctx, req.GetWorkspaceScope().GetWorkspace(), auth.Other)
}

// StopSandbox forgets to authorize.
func (dummy) StopSandbox(context.Context, *openshellv1.StopSandboxRequest) (*openshellv1.SandboxResponse, error) {
	return &openshellv1.SandboxResponse{}, nil
}

func (dummy) CreateProvider(ctx context.Context, req *openshellv1.CreateProviderRequest) (*openshellv1.ProviderResponse, error) {
	return &openshellv1.ProviderResponse{}, auth.AuthorizeWorkspace(ctx, req.GetWorkspaceScope().GetWorkspace(), auth.Other)
}

func (dummy) UpdateConfig(ctx context.Context, req *openshellv1.UpdateConfigRequest) (*openshellv1.UpdateConfigResponse, error) {
	return &openshellv1.UpdateConfigResponse{}, auth.AuthorizeWorkspace(ctx, req.GetWorkspaceScope().GetWorkspace(), auth.Sandbox)
}

func (dummy) ListWorkspaces(ctx context.Context, _ *openshellv1.ListWorkspacesRequest) (*openshellv1.ListWorkspacesResponse, error) {
	subject, all := auth.Memberships(ctx)
	if all {
		subject = "*"
	}
	return &openshellv1.ListWorkspacesResponse{NextPageToken: subject}, nil
}

func (dummy) RevokeSshSession(ctx context.Context, _ *openshellv1.RevokeSshSessionRequest) (*openshellv1.RevokeSshSessionResponse, error) { //nolint:revive,staticcheck // upstream's name
	auth.NoWorkspace(ctx)
	return &openshellv1.RevokeSshSessionResponse{}, nil
}

// WatchSandbox forgets to authorize when no workspace is given.
func (dummy) WatchSandbox(req *openshellv1.WatchSandboxRequest, stream grpc.ServerStreamingServer[openshellv1.SandboxStreamEvent]) error {
	if workspace := req.GetWorkspaceScope().GetWorkspace(); workspace != "" {
		if err := auth.AuthorizeWorkspace(stream.Context(), workspace, auth.Sandbox); err != nil {
			return err
		}
	}
	return stream.Send(&openshellv1.SandboxStreamEvent{})
}

func in(workspace string) *datamodelv1.WorkspaceSelector {
	return &datamodelv1.WorkspaceSelector{Selection: &datamodelv1.WorkspaceSelector_Workspace{Workspace: workspace}}
}

// clock is set by hand, from the time the test began.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Now()} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Set(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
}

func (c *clock) Advance(d time.Duration) { c.Set(c.Now().Add(d)) }

// buffer is a log that a test may read while it is written.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
