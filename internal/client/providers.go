package client

import (
	"context"
	"fmt"
	"slices"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

// SetProviders makes want the providers of the sandbox with ref's id, one attach or detach at a time, each bound to the id.
// Detaching comes first, since what is attached may exclude what is to be (upstream-contract 3.10).
//
// before is what the caller knows to be attached: a provider in neither list was attached by somebody else meanwhile and is
// left alone. nil means that the caller knows nothing, and that only want is to remain.
//
// The sandbox that is returned is as last seen, also with an error, which tells how far it came; nil if it was not seen.
func (c *Client) SetProviders(ctx context.Context, ref Ref, before, want []string) (*openshellv1.Sandbox, error) {
	sb, gone, err := c.Observe(ctx, ref)
	if gone != nil {
		return nil, &GoneError{Ref: ref, Gone: *gone}
	}
	if err != nil {
		return nil, err
	}
	attached := sb.GetSpec().GetProviders()
	if before == nil {
		before = attached
	}
	for _, name := range slices.Sorted(slices.Values(attached)) {
		if !slices.Contains(want, name) && slices.Contains(before, name) {
			if sb, err = c.detach(ctx, ref, name, sb); err != nil {
				return sb, fmt.Errorf("provider %q was not detached: %w", name, err)
			}
		}
	}
	for _, name := range slices.Sorted(slices.Values(want)) {
		if !slices.Contains(attached, name) {
			if sb, err = c.attach(ctx, ref, name, sb); err != nil {
				return sb, fmt.Errorf("provider %q was not attached: %w", name, err)
			}
		}
	}
	return sb, nil
}

func (c *Client) attach(ctx context.Context, ref Ref, provider string, seen *openshellv1.Sandbox) (*openshellv1.Sandbox, error) {
	return c.setProvider(ctx, ref, provider, true, seen, func(ctx context.Context) (*openshellv1.Sandbox, error) {
		reply, err := change(ctx, c, "ConditionalSandboxes/AttachSandboxProvider", c.requestTimeout, c.conditional.AttachSandboxProvider, &conditionalv1.ConditionalAttachSandboxProviderRequest{
			Precondition: precondition(ref),
			Request:      &openshellv1.AttachSandboxProviderRequest{Sandbox: ref.Name, Provider: provider, WorkspaceScope: scope(ref.Workspace)},
		})
		return reply.GetSandbox(), err
	})
}

func (c *Client) detach(ctx context.Context, ref Ref, provider string, seen *openshellv1.Sandbox) (*openshellv1.Sandbox, error) {
	return c.setProvider(ctx, ref, provider, false, seen, func(ctx context.Context) (*openshellv1.Sandbox, error) {
		reply, err := change(ctx, c, "ConditionalSandboxes/DetachSandboxProvider", c.requestTimeout, c.conditional.DetachSandboxProvider, &conditionalv1.ConditionalDetachSandboxProviderRequest{
			Precondition: precondition(ref),
			Request:      &openshellv1.DetachSandboxProviderRequest{Sandbox: ref.Name, Provider: provider, WorkspaceScope: scope(ref.Workspace)},
		})
		return reply.GetSandbox(), err
	})
}

// setProvider makes one call, unless somebody else has had the same effect by then.
func (c *Client) setProvider(ctx context.Context, ref Ref, provider string, attached bool, seen *openshellv1.Sandbox, call func(context.Context) (*openshellv1.Sandbox, error)) (*openshellv1.Sandbox, error) {
	b := &boundChange{wait: newWait(ref, goalChanged), c: c, seen: seen, call: call}
	b.decide = func(sb *openshellv1.Sandbox) move {
		switch {
		case sb.GetStatus().GetPhase() == openshellv1.SandboxPhase_SANDBOX_PHASE_DELETING:
			return impossible
		case slices.Contains(sb.GetSpec().GetProviders(), provider) == attached:
			return arrived
		default:
			return act
		}
	}
	_, err := b.run(ctx)
	return b.seen, err
}
