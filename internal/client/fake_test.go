package client

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/apierr"
)

const (
	workspaceID = "10000000-0000-4000-8000-000000000001"
	otherWSID   = "10000000-0000-4000-8000-000000000002"
	idA         = "a0000000-0000-4000-8000-00000000000a"
	idB         = "b0000000-0000-4000-8000-00000000000b"
)

// web is what a state would know.
var web = Ref{Workspace: "default", WorkspaceID: workspaceID, Name: "web", ID: idA}

// fake is a gateway that does what it is told: a minimal right behaviour, and a hook in front of every call.
type fake struct {
	openshellv1.UnimplementedOpenShellServer
	healthv1.UnimplementedHealthServer

	mu        sync.Mutex
	calls     []string
	tokens    []string
	headers   metadata.MD // of the last call
	sandboxes map[string]*openshellv1.Sandbox
	revisions []*openshellv1.SandboxPolicyRevision // of every sandbox's policy
	workspace string
	version   string
	serving   bool
	slow      bool // deletes stop at DELETING
	hooks     map[string]hook
}

// hook runs before a call, which it replaces by returning an error; nth counts from 1. It must not lock the fake.
type hook func(f *fake, nth int, req any) error

// cast gives a hook the request as what it must be.
func cast[T any](req any) T {
	typed, ok := req.(T)
	if !ok {
		panic(fmt.Sprintf("a hook for another method got %T", req))
	}
	return typed
}

func newFake() *fake {
	return &fake{sandboxes: map[string]*openshellv1.Sandbox{}, workspace: workspaceID, version: "0.1.5", serving: true, hooks: map[string]hook{}}
}

// put makes a sandbox hold a name.
func (f *fake) put(name, id string, phase openshellv1.SandboxPhase) *openshellv1.Sandbox {
	sb := &openshellv1.Sandbox{
		Metadata: &datamodelv1.ObjectMeta{Id: id, Name: name, Workspace: "default"},
		Spec:     &openshellv1.SandboxSpec{},
		Status:   &openshellv1.SandboxStatus{Phase: phase},
	}
	f.sandboxes[name] = sb
	return sb
}

func (f *fake) count(suffix string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, call := range f.calls {
		if strings.HasSuffix(call, suffix) {
			n++
		}
	}
	return n
}

// intercept runs the hooks before a call. One under a key that begins with "lose " lets the call happen and loses the reply.
func (f *fake) intercept(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if md, ok := metadata.FromIncomingContext(ctx); ok {
		f.tokens, f.headers = append(f.tokens, md.Get("authorization")...), md
	}
	method := strings.TrimPrefix(info.FullMethod, "/")
	f.calls = append(f.calls, method)
	for key, h := range f.hooks {
		if strings.HasSuffix(method, strings.TrimPrefix(key, "lose ")) {
			nth := 0
			for _, call := range f.calls {
				if call == method {
					nth++
				}
			}
			if !strings.HasPrefix(key, "lose ") {
				if err := h(f, nth, req); err != nil {
					return nil, err
				}
			} else if err := h(f, nth, req); err != nil {
				_, _ = handle(ctx, req)
				return nil, err
			}
		}
	}
	reply, err := handle(ctx, req)
	if m, ok := reply.(proto.Message); ok && err == nil {
		return proto.Clone(m), nil
	}
	return reply, err
}

func (f *fake) Health(context.Context, *openshellv1.HealthRequest) (*openshellv1.HealthResponse, error) {
	return &openshellv1.HealthResponse{Status: openshellv1.ServiceStatus_SERVICE_STATUS_HEALTHY, Version: f.version}, nil
}

func (f *fake) Check(_ context.Context, req *healthv1.HealthCheckRequest) (*healthv1.HealthCheckResponse, error) {
	if !f.serving || req.GetService() != "openshell.conditional.v1.ConditionalSandboxes" {
		return nil, status.Error(codes.Unimplemented, "unknown service")
	}
	return &healthv1.HealthCheckResponse{Status: healthv1.HealthCheckResponse_SERVING}, nil
}

func (f *fake) GetWorkspace(_ context.Context, req *openshellv1.GetWorkspaceRequest) (*openshellv1.GetWorkspaceResponse, error) {
	if req.GetName() != "default" {
		return nil, status.Error(codes.NotFound, "workspace not found")
	}
	return &openshellv1.GetWorkspaceResponse{Workspace: &datamodelv1.Workspace{Metadata: &datamodelv1.ObjectMeta{Id: f.workspace, Name: "default"}}}, nil
}

func (f *fake) ListSandboxes(context.Context, *openshellv1.ListSandboxesRequest) (*openshellv1.ListSandboxesResponse, error) {
	return &openshellv1.ListSandboxesResponse{Sandboxes: slices.Collect(maps.Values(f.sandboxes))}, nil
}

func (f *fake) GetSandbox(_ context.Context, req *openshellv1.GetSandboxRequest) (*openshellv1.SandboxResponse, error) {
	sb, ok := f.sandboxes[req.GetName()]
	if !ok {
		return nil, status.Error(codes.NotFound, "sandbox not found")
	}
	return &openshellv1.SandboxResponse{Sandbox: sb}, nil
}

func (f *fake) CreateSandbox(_ context.Context, req *openshellv1.CreateSandboxRequest) (*openshellv1.SandboxResponse, error) {
	if _, ok := f.sandboxes[req.GetName()]; ok {
		return nil, status.Errorf(codes.AlreadyExists, "sandbox '%s' already exists", req.GetName())
	}
	sb := f.put(req.GetName(), uuid.NewString(), openshellv1.SandboxPhase_SANDBOX_PHASE_READY)
	sb.Metadata.Labels, sb.Metadata.Annotations = req.GetLabels(), req.GetAnnotations()
	return &openshellv1.SandboxResponse{Sandbox: sb}, nil
}

func (f *fake) DeleteSandbox(_ context.Context, req *openshellv1.DeleteSandboxRequest) (*openshellv1.DeleteSandboxResponse, error) {
	sb, ok := f.sandboxes[req.GetName()]
	if !ok {
		return &openshellv1.DeleteSandboxResponse{Outcome: openshellv1.DeletionOutcome_DELETION_OUTCOME_ALREADY_ABSENT}, nil
	}
	reply := &openshellv1.DeleteSandboxResponse{Outcome: openshellv1.DeletionOutcome_DELETION_OUTCOME_ACCEPTED, SandboxId: IDOf(sb)}
	if f.slow {
		sb.Status.Phase = openshellv1.SandboxPhase_SANDBOX_PHASE_DELETING
	} else {
		delete(f.sandboxes, req.GetName())
	}
	return reply, nil
}

func (f *fake) GetSandboxPolicyStatus(_ context.Context, req *openshellv1.GetSandboxPolicyStatusRequest) (*openshellv1.GetSandboxPolicyStatusResponse, error) {
	version := int(req.GetVersion())
	if version == 0 {
		version = len(f.revisions)
	}
	if _, ok := f.sandboxes[req.GetSandbox()]; !ok || version == 0 || version > len(f.revisions) {
		return nil, status.Error(codes.NotFound, "no such revision")
	}
	return &openshellv1.GetSandboxPolicyStatusResponse{Revision: f.revisions[version-1]}, nil
}

// guarded is the conditional service over the same sandboxes. It is a type of its own because the methods have the
// plain ones' names.
type guarded struct {
	conditionalv1.UnimplementedConditionalSandboxesServer
	f *fake
}

func (g guarded) check(p *conditionalv1.SandboxPrecondition, name string) error {
	sb, ok := g.f.sandboxes[name]
	switch {
	case !ok:
		return status.Error(codes.NotFound, "sandbox not found")
	case IDOf(sb) != p.GetId():
		return (&apierr.IdentityMismatch{Workspace: "default", Name: name, ExpectedID: p.GetId(), CurrentID: IDOf(sb)}).GRPCStatus().Err()
	default:
		return nil
	}
}

func (g guarded) DeleteSandbox(ctx context.Context, req *conditionalv1.ConditionalDeleteSandboxRequest) (*openshellv1.DeleteSandboxResponse, error) {
	if err := g.check(req.GetPrecondition(), req.GetRequest().GetName()); err != nil && status.Code(err) != codes.NotFound {
		return nil, err
	}
	return g.f.DeleteSandbox(ctx, req.GetRequest())
}

func (g guarded) StopSandbox(_ context.Context, req *conditionalv1.ConditionalStopSandboxRequest) (*openshellv1.SandboxResponse, error) {
	return g.move(req.GetPrecondition(), req.GetRequest().GetName(), openshellv1.SandboxPhase_SANDBOX_PHASE_STOPPED)
}

func (g guarded) StartSandbox(_ context.Context, req *conditionalv1.ConditionalStartSandboxRequest) (*openshellv1.SandboxResponse, error) {
	return g.move(req.GetPrecondition(), req.GetRequest().GetName(), openshellv1.SandboxPhase_SANDBOX_PHASE_STARTING)
}

func (g guarded) move(p *conditionalv1.SandboxPrecondition, name string, to openshellv1.SandboxPhase) (*openshellv1.SandboxResponse, error) {
	if err := g.check(p, name); err != nil {
		return nil, err
	}
	g.f.sandboxes[name].Status.Phase = to
	return &openshellv1.SandboxResponse{Sandbox: g.f.sandboxes[name]}, nil
}

func (g guarded) AttachSandboxProvider(_ context.Context, req *conditionalv1.ConditionalAttachSandboxProviderRequest) (*openshellv1.AttachSandboxProviderResponse, error) {
	sb, err := g.providers(req.GetPrecondition(), req.GetRequest().GetSandbox(), func(names []string) []string {
		return append(names, req.GetRequest().GetProvider())
	})
	return &openshellv1.AttachSandboxProviderResponse{Sandbox: sb, Attached: true}, err
}

func (g guarded) DetachSandboxProvider(_ context.Context, req *conditionalv1.ConditionalDetachSandboxProviderRequest) (*openshellv1.DetachSandboxProviderResponse, error) {
	sb, err := g.providers(req.GetPrecondition(), req.GetRequest().GetSandbox(), func(names []string) []string {
		return slices.DeleteFunc(names, func(name string) bool { return name == req.GetRequest().GetProvider() })
	})
	return &openshellv1.DetachSandboxProviderResponse{Sandbox: sb, Detached: true}, err
}

func (g guarded) UpdateSandboxConfig(_ context.Context, req *conditionalv1.ConditionalUpdateSandboxConfigRequest) (*openshellv1.UpdateConfigResponse, error) {
	if err := g.check(req.GetPrecondition(), req.GetRequest().GetSandbox()); err != nil {
		return nil, err
	}
	version := uint32(len(g.f.revisions)) + 1
	g.f.revisions = append(g.f.revisions, &openshellv1.SandboxPolicyRevision{
		Version: version, Policy: req.GetRequest().GetPolicy(), Status: openshellv1.PolicyStatus_POLICY_STATUS_LOADED,
	})
	return &openshellv1.UpdateConfigResponse{Version: version}, nil
}

func (g guarded) providers(p *conditionalv1.SandboxPrecondition, name string, edit func([]string) []string) (*openshellv1.Sandbox, error) {
	if err := g.check(p, name); err != nil {
		return nil, err
	}
	sb := g.f.sandboxes[name]
	sb.Spec.Providers = edit(sb.GetSpec().GetProviders())
	return sb, nil
}

// serve runs a test in a bubble where time is fake: pauses and time limits take no time at all.
func serve(t *testing.T, f *fake, test func(ctx context.Context, c *Client)) {
	t.Helper()
	serveConfig(t, f, Config{Endpoint: "http://127.0.0.1:1"}, test)
}

func serveConfig(t *testing.T, f *fake, cfg Config, test func(ctx context.Context, c *Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		listener := bufconn.Listen(1 << 20)
		server := grpc.NewServer(grpc.UnaryInterceptor(f.intercept))
		openshellv1.RegisterOpenShellServer(server, f)
		healthv1.RegisterHealthServer(server, f)
		if f.serving {
			conditionalv1.RegisterConditionalSandboxesServer(server, guarded{f: f})
		}
		var serving sync.WaitGroup
		serving.Go(func() { _ = server.Serve(listener) })
		defer serving.Wait()
		defer server.GracefulStop()
		cfg.DialOptions = append(cfg.DialOptions, grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return listener.DialContext(ctx)
		}))
		c, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		test(ctx, c)
	})
}

func unavailable() error { return status.Error(codes.Unavailable, "connection lost") }
