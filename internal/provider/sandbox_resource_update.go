package provider

import (
	"context"
	"errors"

	"github.com/hashicorp/terraform-plugin-framework/resource"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/client"
)

// Update stops or starts the sandbox, bound to its id. Everything else that does not replace it is Terraform's own, and
// needs no call.
func (r *sandboxResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var m, state sandboxModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if !m.Running.Equal(state.Running) {
		planned := m.Running
		m.Phase, m.ExitCode = state.Phase, state.ExitCode
		if !planned.IsNull() {
			sb := r.switchTo(ctx, m, resp)
			if sb == nil {
				return
			}
			m.observe(sb)
			m.Running = planned
		}
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
	resp.Diagnostics.Append(setIdentity(ctx, resp.Identity, m)...)
}

// switchTo makes the sandbox run or not, as the plan says. It returns nil if that failed.
func (r *sandboxResource) switchTo(ctx context.Context, m sandboxModel, resp *resource.UpdateResponse) *openshellv1.Sandbox {
	c := r.data.connection(&resp.Diagnostics)
	limit, diags := m.Timeouts.Update(ctx, defaultUpdateTimeout)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return nil
	}
	ctx, cancel := context.WithTimeout(m.withSecrets(ctx), limit)
	defer cancel()
	title := "The sandbox was not stopped"
	var sb *openshellv1.Sandbox
	var err error
	switch ref := m.ref(); {
	case !isSandboxID(ref.ID):
		err = errors.New("the state holds no valid id of the sandbox, so nothing was sent")
	case m.Running.ValueBool():
		title = "The sandbox was not started"
		sb, err = start(ctx, c, m)
	default:
		sb, err = c.Stop(ctx, ref)
	}
	if err != nil {
		failure(title, m.ref(), stateKept, "update", err).asError(&resp.Diagnostics)
		return nil
	}
	return sb
}

// start starts a stopped sandbox and waits for what wait_for says.
func start(ctx context.Context, c *client.Client, m sandboxModel) (*openshellv1.Sandbox, error) {
	sb, started, err := c.Start(ctx, m.ref())
	if err != nil || !started {
		return sb, err
	}
	if goal, wait := goalOf(m.WaitFor); wait {
		return c.WaitFor(ctx, m.ref(), goal)
	}
	return sb, nil
}
