package chaos_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/policy"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// secondClient acts at random, by name and through the plain calls. It knows what it did.
type secondClient struct {
	t *testing.T
	r *rand.Rand
	g *gatewaytest.Gateway
	// made are the ids of all it ever made, and alive those of them that it has not deleted.
	made, alive map[string]bool
	// deleted are the ids of all it deleted, whoever made them.
	deleted map[string]bool
}

const (
	// longestPause is between two actions.
	longestPause = 300 * time.Millisecond
	attachable   = "attachable"
)

func newSecondClient(t *testing.T, r *rand.Rand, g *gatewaytest.Gateway) *secondClient {
	t.Helper()
	g.MustProvider(t, attachable)
	return &secondClient{t: t, r: r, g: g, made: map[string]bool{}, alive: map[string]bool{}, deleted: map[string]bool{}}
}

// actUntil acts until ctx ends, and finishes what it does then.
func (c *secondClient) actUntil(ctx context.Context) {
	for {
		pause := time.NewTimer(time.Duration(c.r.Int64N(int64(longestPause))))
		select {
		case <-pause.C:
			c.act()
		case <-ctx.Done():
			pause.Stop()
			return
		}
	}
}

// act does one thing to one sandbox.
func (c *secondClient) act() {
	ctx := context.Background() // so that it always knows what it did
	name, scope := c.name(), gatewaytest.Default()
	actions := []struct {
		name string
		do   func() error
	}{
		{"delete", func() error { return c.remove(name) }},
		{"replace", func() error { return c.replace(name) }},
		{"replace", func() error { return c.replace(name) }},
		{"create", func() error { return c.create(name) }},
		{"stop", func() error {
			_, err := c.g.OpenShell().StopSandbox(ctx, &openshellv1.StopSandboxRequest{Name: name, WorkspaceScope: scope})
			return err
		}},
		{"start", func() error {
			_, err := c.g.OpenShell().StartSandbox(ctx, &openshellv1.StartSandboxRequest{Name: name, WorkspaceScope: scope})
			return err
		}},
		{"attach", func() error {
			_, err := c.g.OpenShell().AttachSandboxProvider(ctx, &openshellv1.AttachSandboxProviderRequest{Sandbox: name, Provider: attachable, WorkspaceScope: scope})
			return err
		}},
		{"detach", func() error {
			_, err := c.g.OpenShell().DetachSandboxProvider(ctx, &openshellv1.DetachSandboxProviderRequest{Sandbox: name, Provider: attachable, WorkspaceScope: scope})
			return err
		}},
		{"set the policy of", func() error {
			p, err := policy.Parse(policyText("example.com"))
			if err == nil {
				_, err = c.g.OpenShell().UpdateConfig(ctx, &openshellv1.UpdateConfigRequest{Sandbox: name, Policy: p, WorkspaceScope: scope})
			}
			return err
		}},
	}
	action := actions[c.r.IntN(len(actions))]
	err := action.do()
	code := status.Code(err)
	c.t.Logf("second client: %s %s: %s", action.name, name, code)
	switch code {
	case codes.OK, codes.NotFound, codes.AlreadyExists, codes.FailedPrecondition, codes.Aborted: // the loop was faster
	default:
		c.t.Errorf("the second client: %v", err)
	}
}

// name picks a name of the configuration, or one that the gateway has.
func (c *secondClient) name() string {
	names := slices.Clone(resourceNames)
	for _, sb := range c.list("") {
		names = append(names, sb.GetMetadata().GetName())
	}
	slices.Sort(names)
	return names[c.r.IntN(len(names))]
}

// list are the sandboxes with a label, or all.
func (c *secondClient) list(label string) []*openshellv1.Sandbox {
	reply, err := c.g.OpenShell().ListSandboxes(context.Background(), &openshellv1.ListSandboxesRequest{WorkspaceScope: gatewaytest.Default(), LabelSelector: label})
	if err != nil {
		c.t.Errorf("list: %v", err)
	}
	return reply.GetSandboxes()
}

// remove deletes whatever has the name, and returns when that is gone.
func (c *secondClient) remove(name string) error {
	reply, err := c.g.OpenShell().DeleteSandbox(context.Background(), &openshellv1.DeleteSandboxRequest{Name: name, WorkspaceScope: gatewaytest.Default()})
	if err != nil {
		return err
	}
	id := reply.GetSandboxId()
	c.deleted[id] = true
	delete(c.alive, id)
	c.g.WaitGone(c.t, id)
	return nil
}

func (c *secondClient) replace(name string) error {
	if err := c.remove(name); err != nil {
		return err
	}
	return c.create(name)
}

func (c *secondClient) create(name string) error {
	reply, err := c.g.OpenShell().CreateSandbox(context.Background(), &openshellv1.CreateSandboxRequest{
		Name: name, WorkspaceScope: gatewaytest.Default(), Spec: &openshellv1.SandboxSpec{},
	})
	if err != nil {
		return err
	}
	id := reply.GetSandbox().GetMetadata().GetId()
	c.made[id], c.alive[id] = true, true
	return nil
}

// leave deletes what it made.
func (c *secondClient) leave() {
	for id := range c.alive {
		sb, ok := c.g.GetByID(c.t, id)
		if !ok {
			c.t.Errorf("sandbox %s of the second client is gone", id)
			continue
		}
		c.g.MustDelete(c.t, sb.GetMetadata().GetName())
		c.deleted[id] = true
	}
	clear(c.alive)
}
