package provider

import (
	"context"
	"errors"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/client"
)

// change is one change in place. It keeps in the state what it has done, also when it fails.
type change struct {
	title string
	at    path.Path
	make  func(ctx context.Context, c *client.Client, state *sandboxModel) error
}

// changes are those that need calls, in their order: a process that is started gets the new policy and providers. What else is not a
// replacement is Terraform's own.
func (m sandboxModel) changes(state sandboxModel, resp *resource.UpdateResponse) []change {
	var all []change
	if !m.Policy.Equal(state.Policy) && !m.Policy.IsNull() {
		all = append(all, change{"The sandbox's policy was not changed as planned", path.Root("policy"), func(ctx context.Context, c *client.Client, state *sandboxModel) error {
			return m.setPolicy(ctx, c, state, resp.Private, &resp.Diagnostics)
		}})
	}
	if !m.Providers.Equal(state.Providers) && !m.Providers.IsNull() {
		all = append(all, change{"The sandbox's providers were not changed as planned", path.Root("providers"), m.setProviders})
	}
	if !m.Running.Equal(state.Running) && !m.Running.IsNull() {
		title := "The sandbox was not stopped"
		if m.Running.ValueBool() {
			title = "The sandbox was not started"
		}
		all = append(all, change{title, path.Root("running"), m.switchTo})
	}
	return all
}

// Update changes in place what can be, bound to the sandbox's id. After a failure the state says what was done before it.
func (r *sandboxResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan, state sandboxModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	limit, diags := plan.Timeouts.Update(ctx, defaultUpdateTimeout)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	if changes := plan.changes(state, resp); len(changes) > 0 {
		ctx, cancel := context.WithTimeout(plan.withSecrets(ctx), limit)
		defer cancel()
		r.apply(ctx, changes, &state, resp)
	}
	if plan.Policy.IsNull() && !state.Policy.IsNull() { // one that was imported need not be managed
		policyRecord{}.write(ctx, resp.Private, &resp.Diagnostics)
	}
	if !resp.Diagnostics.HasError() {
		plan.Phase, plan.ExitCode = state.Phase, state.ExitCode
		state = plan
		resp.Diagnostics.Append(resp.Private.SetKey(ctx, importedEnvironmentKey, nil)...)
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, state)...)
	resp.Diagnostics.Append(setIdentity(ctx, resp.Identity, state)...)
}

// apply makes the changes up to the first that fails.
func (r *sandboxResource) apply(ctx context.Context, changes []change, state *sandboxModel, resp *resource.UpdateResponse) {
	c := r.data.connection(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	kept := stateKept
	for _, change := range changes {
		before := *state
		err := errors.New("the state holds no valid id of the sandbox, so nothing was sent")
		if isSandboxID(state.ID.ValueString()) {
			err = change.make(ctx, c, state)
		}
		if !before.Policy.Equal(state.Policy) || !before.Providers.Equal(state.Providers) {
			kept = stateHalf
		}
		if err != nil {
			report := r.data.failure(change.title, state.ref(), kept, "update", err)
			if _, ok := errors.AsType[*client.UnansweredChangeError](err); ok {
				report.title = "Whether the sandbox was changed as planned is not known"
			}
			report.at = change.at
			if _, ok := errors.AsType[*client.NotSupportedError](err); ok && change.at.Equal(path.Root("policy")) {
				report.todo = "use a gateway that offers these calls, or set policy back to what it was; without it, or with other fixed parts, the plan replaces the sandbox."
			}
			report.asError(&resp.Diagnostics)
			return
		}
	}
}

// setProviders attaches and detaches providers. Where the state did not manage them, all others go.
func (m sandboxModel) setProviders(ctx context.Context, c *client.Client, state *sandboxModel) error {
	sb, err := c.SetProviders(ctx, m.ref(), sorted(state.Providers), sorted(m.Providers))
	if sb != nil {
		state.Providers = textSet(sb.GetSpec().GetProviders())
	}
	return err
}

// switchTo makes the sandbox run or not.
func (m sandboxModel) switchTo(ctx context.Context, c *client.Client, state *sandboxModel) error {
	var sb *openshellv1.Sandbox
	var err error
	if m.Running.ValueBool() {
		sb, err = start(ctx, c, m)
	} else {
		sb, err = c.Stop(ctx, m.ref())
	}
	if err != nil {
		return err
	}
	state.Running = m.Running
	state.observe(sb)
	return nil
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
