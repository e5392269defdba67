package soak

import (
	"context"

	"github.com/google/uuid"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// home is where most of it happens.
var home = gatewaytest.Default()

func in(workspace string) *datamodelv1.WorkspaceSelector {
	return &datamodelv1.WorkspaceSelector{Selection: &datamodelv1.WorkspaceSelector_Workspace{Workspace: workspace}}
}

// creation is a create of the sandbox with a name.
func creation(name string) *openshellv1.CreateSandboxRequest {
	return &openshellv1.CreateSandboxRequest{
		Name: name, WorkspaceScope: home, Labels: map[string]string{"app": "web"},
		Spec: &openshellv1.SandboxSpec{Environment: map[string]string{"A": "b"}, Command: []string{"sleep", "infinity"}},
	}
}

// plainCalls are those of the API about sandboxes.
var plainCalls = []action{
	{"create", []string{ok, alreadyExists}, func(ctx context.Context, c *caller) error {
		reply, err := c.CreateSandbox(ctx, creation(c.sandbox()))
		c.see(reply.GetSandbox())
		return err
	}},
	{"create with a provider", []string{ok, alreadyExists, precondition}, func(ctx context.Context, c *caller) error {
		req := creation(c.sandbox())
		req.Spec.Providers = []string{c.provider()}
		reply, err := c.CreateSandbox(ctx, req)
		c.see(reply.GetSandbox())
		return err
	}},
	{"create twice, once", []string{ok, alreadyExists, exhausted, uncertain, replayUnavailable}, func(ctx context.Context, c *caller) error {
		req := creation(c.sandbox())
		req.RequestId = uuid.NewString()
		reply, err := c.CreateSandbox(ctx, req)
		if err == nil {
			c.see(reply.GetSandbox())
			_, err = c.CreateSandbox(ctx, req)
		}
		return err
	}},
	{"get", []string{ok, notFound}, func(ctx context.Context, c *caller) error {
		reply, err := c.GetSandbox(ctx, &openshellv1.GetSandboxRequest{Name: c.sandbox(), WorkspaceScope: home})
		c.see(reply.GetSandbox())
		return err
	}},
	{"list, page by page", []string{ok}, func(ctx context.Context, c *caller) error {
		req := &openshellv1.ListSandboxesRequest{PageSize: 10, WorkspaceScope: home, LabelSelector: "app=web"}
		for {
			reply, err := c.ListSandboxes(ctx, req)
			if err != nil || reply.GetNextPageToken() == "" {
				return err
			}
			req.PageToken = reply.GetNextPageToken()
		}
	}},
	{"delete", []string{ok, notFound, precondition}, func(ctx context.Context, c *caller) error {
		_, err := c.DeleteSandbox(ctx, &openshellv1.DeleteSandboxRequest{Name: c.sandbox(), WorkspaceScope: home})
		return err
	}},
	{"delete, missing or not", []string{ok, precondition}, func(ctx context.Context, c *caller) error {
		_, err := c.DeleteSandbox(ctx, &openshellv1.DeleteSandboxRequest{Name: c.sandbox(), WorkspaceScope: home, AllowMissing: true})
		return err
	}},
	{"stop", []string{ok, notFound, precondition}, func(ctx context.Context, c *caller) error {
		_, err := c.StopSandbox(ctx, &openshellv1.StopSandboxRequest{Name: c.sandbox(), WorkspaceScope: home})
		return err
	}},
	{"start", []string{ok, notFound, precondition}, func(ctx context.Context, c *caller) error {
		_, err := c.StartSandbox(ctx, &openshellv1.StartSandboxRequest{Name: c.sandbox(), WorkspaceScope: home})
		return err
	}},
	{"attach", []string{ok, notFound, precondition}, func(ctx context.Context, c *caller) error {
		_, err := c.AttachSandboxProvider(ctx, &openshellv1.AttachSandboxProviderRequest{Sandbox: c.sandbox(), Provider: c.provider(), WorkspaceScope: home})
		return err
	}},
	{"detach at a version", []string{ok, notFound, conflict}, func(ctx context.Context, c *caller) error {
		name := c.sandbox()
		_, err := c.DetachSandboxProvider(ctx, &openshellv1.DetachSandboxProviderRequest{
			Sandbox: name, Provider: c.provider(), ExpectedResourceVersion: c.seen(name).version, WorkspaceScope: home,
		})
		return err
	}},
	{"providers of a sandbox", []string{ok, notFound}, func(ctx context.Context, c *caller) error {
		_, err := c.ListSandboxProviders(ctx, &openshellv1.ListSandboxProvidersRequest{Sandbox: c.sandbox(), WorkspaceScope: home})
		return err
	}},
	{"status of a provider", []string{ok, notFound}, func(ctx context.Context, c *caller) error {
		_, err := c.GetSandboxProviderStatus(ctx, &openshellv1.GetSandboxProviderStatusRequest{Sandbox: c.sandbox(), Provider: c.provider(), WorkspaceScope: home})
		return err
	}},
}

// conditionalCalls are those of the conditional service, with an id that may be out of date.
var conditionalCalls = []action{
	{"conditional delete", []string{ok, notFound, mismatch, pending}, func(ctx context.Context, c *caller) error {
		name := c.sandbox()
		_, err := c.conditional.DeleteSandbox(ctx, &conditionalv1.ConditionalDeleteSandboxRequest{
			Precondition: c.expect(name), Request: &openshellv1.DeleteSandboxRequest{Name: name, WorkspaceScope: home},
		})
		return err
	}},
	{"conditional delete at a version", []string{ok, mismatch, pending, conflict}, func(ctx context.Context, c *caller) error {
		name := c.sandbox()
		p := c.expect(name)
		p.ResourceVersion = new(c.seen(name).version)
		_, err := c.conditional.DeleteSandbox(ctx, &conditionalv1.ConditionalDeleteSandboxRequest{
			Precondition: p, Request: &openshellv1.DeleteSandboxRequest{Name: name, WorkspaceScope: home, AllowMissing: true},
		})
		return err
	}},
	{"conditional stop", []string{ok, notFound, mismatch, precondition}, func(ctx context.Context, c *caller) error {
		name := c.sandbox()
		_, err := c.conditional.StopSandbox(ctx, &conditionalv1.ConditionalStopSandboxRequest{
			Precondition: c.expect(name), Request: &openshellv1.StopSandboxRequest{Name: name, WorkspaceScope: home},
		})
		return err
	}},
	{"conditional start", []string{ok, notFound, mismatch, precondition}, func(ctx context.Context, c *caller) error {
		name := c.sandbox()
		_, err := c.conditional.StartSandbox(ctx, &conditionalv1.ConditionalStartSandboxRequest{
			Precondition: c.expect(name), Request: &openshellv1.StartSandboxRequest{Name: name, WorkspaceScope: home},
		})
		return err
	}},
	{"conditional attach", []string{ok, notFound, mismatch, precondition}, func(ctx context.Context, c *caller) error {
		name := c.sandbox()
		_, err := c.conditional.AttachSandboxProvider(ctx, &conditionalv1.ConditionalAttachSandboxProviderRequest{
			Precondition: c.expect(name), Request: &openshellv1.AttachSandboxProviderRequest{Sandbox: name, Provider: c.provider(), WorkspaceScope: home},
		})
		return err
	}},
	{"conditional detach", []string{ok, notFound, mismatch}, func(ctx context.Context, c *caller) error {
		name := c.sandbox()
		_, err := c.conditional.DetachSandboxProvider(ctx, &conditionalv1.ConditionalDetachSandboxProviderRequest{
			Precondition: c.expect(name), Request: &openshellv1.DetachSandboxProviderRequest{Sandbox: name, Provider: c.provider(), WorkspaceScope: home},
		})
		return err
	}},
}

// expect is a precondition on the id that a name was last seen with.
func (c *caller) expect(name string) *conditionalv1.SandboxPrecondition {
	return &conditionalv1.SandboxPrecondition{Id: new(c.seen(name).id)}
}
