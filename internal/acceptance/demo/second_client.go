package main

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

const pollInterval = 100 * time.Millisecond

// secondClient is somebody else at the gateway, who knows nothing of Terraform and uses the plain calls.
type secondClient struct {
	api openshellv1.OpenShellClient
}

func workspace() *datamodelv1.WorkspaceSelector {
	return &datamodelv1.WorkspaceSelector{Selection: &datamodelv1.WorkspaceSelector_Workspace{Workspace: "default"}}
}

// get returns the sandbox of that name, nil when there is none.
func (c secondClient) get(ctx context.Context, name string) (*openshellv1.Sandbox, error) {
	reply, err := c.api.GetSandbox(ctx, &openshellv1.GetSandboxRequest{Name: name, WorkspaceScope: workspace()})
	if status.Code(err) == codes.NotFound {
		return nil, nil
	}
	return reply.GetSandbox(), err
}

// remove deletes the sandbox of that name and returns once the name is free.
func (c secondClient) remove(ctx context.Context, name string) error {
	request := &openshellv1.DeleteSandboxRequest{Name: name, WorkspaceScope: workspace(), AllowMissing: true}
	if _, err := c.api.DeleteSandbox(ctx, request); err != nil {
		return err
	}
	_, err := c.await(ctx, name, func(s *openshellv1.Sandbox) bool { return s == nil })
	return err
}

// create makes a sandbox and returns it once it is ready and so no longer changes by itself.
func (c secondClient) create(ctx context.Context, name string) (*openshellv1.Sandbox, error) {
	request := &openshellv1.CreateSandboxRequest{Name: name, WorkspaceScope: workspace(), Spec: &openshellv1.SandboxSpec{}}
	if _, err := c.api.CreateSandbox(ctx, request); err != nil {
		return nil, err
	}
	return c.await(ctx, name, func(s *openshellv1.Sandbox) bool {
		return s.GetStatus().GetPhase() == openshellv1.SandboxPhase_SANDBOX_PHASE_READY
	})
}

func (c secondClient) await(ctx context.Context, name string, done func(*openshellv1.Sandbox) bool) (*openshellv1.Sandbox, error) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		sandbox, err := c.get(ctx, name)
		if err != nil || done(sandbox) {
			return sandbox, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for sandbox %s, phase %s: %w", name, sandbox.GetStatus().GetPhase(), context.Cause(ctx))
		}
	}
}
