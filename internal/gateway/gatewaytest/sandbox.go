package gatewaytest

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/apierr"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/driver/simulated"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/server"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// The helpers below are about sandboxes of the workspace "default".

// Default selects the workspace "default".
func Default() *datamodelv1.WorkspaceSelector {
	return &datamodelv1.WorkspaceSelector{Selection: &datamodelv1.WorkspaceSelector_Workspace{Workspace: store.DefaultWorkspace}}
}

// CreateOption changes what [Gateway.MustCreate] asks for.
type CreateOption func(*creation)

type creation struct {
	request *openshellv1.CreateSandboxRequest
	noWait  bool
}

// NoWait returns right after the reply to the create, instead of in READY.
func NoWait() CreateOption { return func(c *creation) { c.noWait = true } }

// Request changes the request.
func Request(edit func(*openshellv1.CreateSandboxRequest)) CreateOption {
	return func(c *creation) { edit(c.request) }
}

// Simulated steers the sandbox by the keys of driver_config.simulated, such as {"ready_after": "1s"}.
func Simulated(keys map[string]any) CreateOption {
	return func(c *creation) {
		c.request.Spec.Template = &openshellv1.SandboxTemplate{DriverConfig: DriverConfig(keys)}
	}
}

// DriverConfig is a driver_config with a block for the simulated driver.
func DriverConfig(keys map[string]any) *structpb.Struct {
	config, err := structpb.NewStruct(map[string]any{simulated.Name: maps.Clone(keys)})
	if err != nil {
		panic(err)
	}
	return config
}

// MustCreate creates a sandbox and returns it in READY.
func (g *Gateway) MustCreate(t testing.TB, name string, opts ...CreateOption) *openshellv1.Sandbox {
	t.Helper()
	c := creation{request: &openshellv1.CreateSandboxRequest{
		Name: name, WorkspaceScope: Default(), Spec: &openshellv1.SandboxSpec{},
	}}
	for _, opt := range opts {
		opt(&c)
	}
	reply, err := g.OpenShell().CreateSandbox(timeout(t), c.request)
	if err != nil {
		t.Fatalf("create sandbox %s: %v", name, err)
	}
	if c.noWait {
		return reply.GetSandbox()
	}
	return g.WaitPhase(t, reply.GetSandbox().GetMetadata().GetId(), openshellv1.SandboxPhase_SANDBOX_PHASE_READY)
}

// MustDelete deletes the sandbox that holds a name and returns when it is gone.
func (g *Gateway) MustDelete(t testing.TB, name string) {
	t.Helper()
	current, ok := g.Get(t, name)
	if !ok {
		t.Fatalf("delete sandbox %s: there is none", name)
	}
	id := current.GetMetadata().GetId()
	g.waitFor(t, "deletable: "+name, id, func(s store.Sandbox, ok bool) bool { return !ok || !s.Operation.Pending })
	request := &openshellv1.DeleteSandboxRequest{Name: name, WorkspaceScope: Default()}
	var err error
	if g.opts.withoutConditional {
		_, err = g.OpenShell().DeleteSandbox(timeout(t), request)
	} else {
		_, err = g.Conditional().DeleteSandbox(timeout(t), &conditionalv1.ConditionalDeleteSandboxRequest{
			Precondition: &conditionalv1.SandboxPrecondition{Id: &id}, Request: request,
		})
	}
	if err != nil {
		t.Fatalf("delete sandbox %s (%s): %v", name, id, apierr.From(err))
	}
	g.WaitGone(t, id)
}

// Replace deletes the sandbox that holds a name and makes another one, which it returns in READY.
func (g *Gateway) Replace(t testing.TB, name string, opts ...CreateOption) *openshellv1.Sandbox {
	t.Helper()
	g.MustDelete(t, name)
	return g.MustCreate(t, name, opts...)
}

// Get reads the sandbox that holds a name; false when there is none.
func (g *Gateway) Get(t testing.TB, name string) (*openshellv1.Sandbox, bool) {
	t.Helper()
	return g.read(t, func(ctx context.Context) (store.Sandbox, error) {
		return g.store.Sandbox(ctx, store.DefaultWorkspace, name)
	})
}

// GetByID reads the sandbox with an id, straight from the store; false when it is gone.
func (g *Gateway) GetByID(t testing.TB, id string) (*openshellv1.Sandbox, bool) {
	t.Helper()
	return g.read(t, func(ctx context.Context) (store.Sandbox, error) { return g.store.SandboxByID(ctx, id) })
}

func (g *Gateway) read(t testing.TB, from func(context.Context) (store.Sandbox, error)) (*openshellv1.Sandbox, bool) {
	t.Helper()
	s, err := from(timeout(t))
	if errors.Is(err, store.ErrNotFound) {
		return nil, false
	}
	if err != nil {
		t.Fatal(err)
	}
	return server.ToProto(s), true
}

// WaitPhase waits until the sandbox with an id is in a phase, and returns it.
func (g *Gateway) WaitPhase(t testing.TB, id string, phase openshellv1.SandboxPhase) *openshellv1.Sandbox {
	t.Helper()
	s := g.waitFor(t, phase.String(), id, func(s store.Sandbox, ok bool) bool { return ok && s.Phase() == phase })
	return server.ToProto(s)
}

// WaitGone waits until the sandbox with an id is gone.
func (g *Gateway) WaitGone(t testing.TB, id string) {
	t.Helper()
	g.waitFor(t, "gone", id, func(_ store.Sandbox, ok bool) bool { return !ok })
}

func (g *Gateway) waitFor(t testing.TB, what, id string, reached func(s store.Sandbox, ok bool) bool) store.Sandbox {
	t.Helper()
	ctx := timeout(t)
	for {
		next := g.store.next()
		s, err := g.store.SandboxByID(ctx, id)
		switch {
		case err != nil && !errors.Is(err, store.ErrNotFound):
			t.Fatalf("wait for sandbox %s to be %s: %v; last seen in %v", id, what, err, s.Phase())
		case reached(s, err == nil):
			return s
		}
		select {
		case <-next:
		case <-ctx.Done():
			t.Fatalf("sandbox %s (%s) is not %s after %v, but %v", s.Name, id, what, Timeout, s.Phase())
		}
	}
}

// SetPhase writes a phase as if the gateway had found the sandbox in it. Whatever was under way is not any more.
func (g *Gateway) SetPhase(t testing.TB, name string, phase openshellv1.SandboxPhase) *openshellv1.Sandbox {
	t.Helper()
	return g.change(t, name, func(s *store.Sandbox) {
		s.Status = proto.CloneOf(s.Status)
		s.Status.Phase = phase
		s.Operation = store.Operation{}
	})
}

// Steer changes what the simulated driver does to a sandbox from its next step on, by the keys of driver_config.simulated.
func (g *Gateway) Steer(t testing.TB, name string, keys map[string]any) *openshellv1.Sandbox {
	t.Helper()
	return g.change(t, name, func(s *store.Sandbox) {
		s.Spec = proto.CloneOf(s.Spec)
		s.Spec.Template.DriverConfig = DriverConfig(keys)
	})
}

// Annotate sets an annotation as a foreign client would.
func (g *Gateway) Annotate(t testing.TB, name, key, value string) *openshellv1.Sandbox {
	t.Helper()
	return g.change(t, name, func(s *store.Sandbox) {
		s.Annotations = maps.Clone(s.Annotations)
		if s.Annotations == nil {
			s.Annotations = map[string]string{}
		}
		s.Annotations[key] = value
	})
}

// TouchVersion makes status writes that change nothing until the resource version is the given one.
func (g *Gateway) TouchVersion(t testing.TB, name string, version uint64) *openshellv1.Sandbox {
	t.Helper()
	s, ok := g.Get(t, name)
	if !ok {
		t.Fatalf("touch sandbox %s: there is none", name)
	}
	for s.GetMetadata().GetResourceVersion() < version {
		s = g.change(t, name, func(*store.Sandbox) {})
	}
	if at := s.GetMetadata().GetResourceVersion(); at != version {
		t.Fatalf("sandbox %s is at version %d, beyond %d", name, at, version)
	}
	return s
}

func (g *Gateway) change(t testing.TB, name string, edit func(*store.Sandbox)) *openshellv1.Sandbox {
	t.Helper()
	s, err := g.store.ChangeSandbox(timeout(t), store.Target{Workspace: store.DefaultWorkspace, Name: name}, nil,
		func(current store.Sandbox, _ time.Time) (store.Change, error) {
			edit(&current)
			return store.Change{Write: &current}, nil
		})
	if err != nil {
		t.Fatalf("write sandbox %s: %v", name, err)
	}
	return server.ToProto(s)
}

func timeout(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), Timeout) // not the test's, which is over in its clean-up
	t.Cleanup(cancel)
	return ctx
}

// WaitName waits until some sandbox holds a name, and returns it.
func (g *Gateway) WaitName(t testing.TB, name string) *openshellv1.Sandbox {
	t.Helper()
	ctx := timeout(t)
	for {
		next := g.store.next()
		if s, ok := g.Get(t, name); ok {
			return s
		}
		select {
		case <-next:
		case <-ctx.Done():
			t.Fatalf("no sandbox is named %s after %v", name, Timeout)
		}
	}
}
