package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

// watchFor is how long a caller watches.
const watchFor = time.Second

func (c *caller) template() string { return fmt.Sprint("template-", c.rng.IntN(4)) }

// policyUpdate gives a sandbox a policy, one of a few.
func (c *caller) policyUpdate(sandbox string) *openshellv1.UpdateConfigRequest {
	rule := &sandboxv1.NetworkPolicyRule{
		Endpoints: []*sandboxv1.NetworkEndpoint{{Host: fmt.Sprintf("host-%d.example.com", c.rng.IntN(4)), Ports: []uint32{443}}},
		Binaries:  []*sandboxv1.NetworkBinary{{Path: "/usr/bin/curl"}},
	}
	return &openshellv1.UpdateConfigRequest{
		Sandbox: sandbox, WorkspaceScope: home,
		Policy: &sandboxv1.SandboxPolicy{Version: 1, NetworkPolicies: map[string]*sandboxv1.NetworkPolicyRule{"web": rule}},
	}
}

// configCalls are about what a sandbox is made from and what it is given later.
var configCalls = []action{
	{"create a template", []string{ok, alreadyExists}, func(ctx context.Context, c *caller) error {
		_, err := c.CreateSandboxTemplate(ctx, &openshellv1.CreateSandboxTemplateRequest{WorkspaceScope: home, Template: &openshellv1.SandboxWorkloadTemplate{
			Metadata: &datamodelv1.ObjectMeta{Name: c.template()},
			Spec:     &openshellv1.SandboxWorkloadTemplateSpec{Workload: &openshellv1.SandboxWorkloadConfig{Image: "busybox"}},
		}})
		return err
	}},
	{"get a template", []string{ok, notFound}, func(ctx context.Context, c *caller) error {
		_, err := c.GetSandboxTemplate(ctx, &openshellv1.GetSandboxTemplateRequest{Name: c.template(), WorkspaceScope: home})
		return err
	}},
	{"list templates", []string{ok}, func(ctx context.Context, c *caller) error {
		_, err := c.ListSandboxTemplates(ctx, &openshellv1.ListSandboxTemplatesRequest{WorkspaceScope: home})
		return err
	}},
	{"delete a template", []string{ok, notFound}, func(ctx context.Context, c *caller) error {
		_, err := c.DeleteSandboxTemplate(ctx, &openshellv1.DeleteSandboxTemplateRequest{Name: c.template(), WorkspaceScope: home})
		return err
	}},
	{"create from a template", []string{ok, notFound, alreadyExists}, func(ctx context.Context, c *caller) error {
		reply, err := c.CreateSandbox(ctx, &openshellv1.CreateSandboxRequest{Name: c.sandbox(), WorkloadTemplate: c.template(), WorkspaceScope: home})
		c.see(reply.GetSandbox())
		return err
	}},
	{"expose a service", []string{ok, notFound}, func(ctx context.Context, c *caller) error {
		_, err := c.ExposeService(ctx, &openshellv1.ExposeServiceRequest{Sandbox: c.sandbox(), Name: "http", TargetPort: 8080, WorkspaceScope: home})
		return err
	}},
	{"get a service", []string{ok, notFound}, func(ctx context.Context, c *caller) error {
		_, err := c.GetService(ctx, &openshellv1.GetServiceRequest{Sandbox: c.sandbox(), Name: "http", WorkspaceScope: home})
		return err
	}},
	{"list services", []string{ok}, func(ctx context.Context, c *caller) error {
		_, err := c.ListServices(ctx, &openshellv1.ListServicesRequest{WorkspaceScope: home})
		return err
	}},
	{"delete a service", []string{ok, notFound}, func(ctx context.Context, c *caller) error {
		_, err := c.DeleteService(ctx, &openshellv1.DeleteServiceRequest{Sandbox: c.sandbox(), Name: "http", WorkspaceScope: home})
		return err
	}},
	{"set a policy", []string{ok, notFound}, func(ctx context.Context, c *caller) error {
		_, err := c.UpdateConfig(ctx, c.policyUpdate(c.sandbox()))
		return err
	}},
	{"set a policy at a version", []string{ok, notFound, conflict}, func(ctx context.Context, c *caller) error {
		req := c.policyUpdate(c.sandbox())
		req.ExpectedResourceVersion = c.seen(req.GetSandbox()).version
		_, err := c.UpdateConfig(ctx, req)
		return err
	}},
	{"conditional policy", []string{ok, notFound, mismatch}, func(ctx context.Context, c *caller) error {
		req := c.policyUpdate(c.sandbox())
		_, err := c.conditional.UpdateSandboxConfig(ctx, &conditionalv1.ConditionalUpdateSandboxConfigRequest{Precondition: c.expect(req.GetSandbox()), Request: req})
		return err
	}},
	{"set a setting", []string{ok, notFound}, func(ctx context.Context, c *caller) error {
		_, err := c.UpdateConfig(ctx, &openshellv1.UpdateConfigRequest{
			Sandbox: c.sandbox(), WorkspaceScope: home, SettingKey: "ocsf_json_enabled",
			SettingValue: &sandboxv1.SettingValue{Value: &sandboxv1.SettingValue_BoolValue{BoolValue: true}},
		})
		return err
	}},
	{"set a setting of the gateway", []string{ok}, func(ctx context.Context, c *caller) error {
		_, err := c.UpdateConfig(ctx, &openshellv1.UpdateConfigRequest{
			Global: true, SettingKey: "agent_policy_proposals_enabled",
			SettingValue: &sandboxv1.SettingValue{Value: &sandboxv1.SettingValue_BoolValue{BoolValue: c.rng.IntN(2) == 0}},
		})
		return err
	}},
	{"configuration", []string{ok, notFound}, func(ctx context.Context, c *caller) error {
		_, err := c.GetSandboxConfig(ctx, &sandboxv1.GetSandboxConfigRequest{Name: c.sandbox(), WorkspaceScope: home})
		return err
	}},
	{"configuration of the gateway", []string{ok}, func(ctx context.Context, c *caller) error {
		_, err := c.GetGatewayConfig(ctx, &sandboxv1.GetGatewayConfigRequest{})
		return err
	}},
	{"status of a policy", []string{ok, notFound}, func(ctx context.Context, c *caller) error {
		_, err := c.GetSandboxPolicyStatus(ctx, &openshellv1.GetSandboxPolicyStatusRequest{Sandbox: c.sandbox(), WorkspaceScope: home})
		return err
	}},
	{"revisions of a policy", []string{ok, notFound}, func(ctx context.Context, c *caller) error {
		_, err := c.ListSandboxPolicies(ctx, &openshellv1.ListSandboxPoliciesRequest{Sandbox: c.sandbox(), PageSize: 3, WorkspaceScope: home})
		return err
	}},
	{"SSH session, revoked", []string{ok, notFound, precondition}, func(ctx context.Context, c *caller) error {
		session, err := c.CreateSshSession(ctx, &openshellv1.CreateSshSessionRequest{Sandbox: c.sandbox(), WorkspaceScope: home})
		if err != nil {
			return err
		}
		_, err = c.RevokeSshSession(ctx, &openshellv1.RevokeSshSessionRequest{Token: session.GetToken(), AllowMissing: true})
		return err
	}},
	{"watch", []string{ok, notFound, "DeadlineExceeded"}, func(ctx context.Context, c *caller) error {
		ctx, cancel := context.WithTimeout(ctx, watchFor)
		defer cancel()
		stream, err := c.WatchSandbox(ctx, &openshellv1.WatchSandboxRequest{Sandbox: c.sandbox(), FollowStatus: true, WorkspaceScope: home})
		for err == nil {
			var event *openshellv1.SandboxStreamEvent
			event, err = stream.Recv()
			c.see(event.GetSandbox())
		}
		if errors.Is(err, io.EOF) { // it is gone
			return nil
		}
		return err
	}},
}
