package server_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth/authtest"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// watching is a watch under way.
type watching struct {
	*testing.T
	stream grpc.ServerStreamingClient[openshellv1.SandboxStreamEvent]
}

// watch begins a watch of the sandbox "web".
func watch(ctx context.Context, t *testing.T, g *gatewaytest.Gateway, edit func(*openshellv1.WatchSandboxRequest)) watching {
	t.Helper()
	req := &openshellv1.WatchSandboxRequest{Sandbox: "web", FollowStatus: true, FollowLogs: true, FollowEvents: true, WorkspaceScope: gatewaytest.Default()}
	if edit != nil {
		edit(req)
	}
	stream, err := g.OpenShell().WatchSandbox(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	return watching{t, stream}
}

// next is the sandbox in the next message.
func (w watching) next() *openshellv1.Sandbox {
	w.Helper()
	event, err := w.stream.Recv()
	if err != nil {
		w.Fatal(err)
	}
	if event.GetSandbox() == nil || event.GetCursor() != "" {
		w.Fatalf("message %v", event)
	}
	return event.GetSandbox()
}

// until skips messages until the sandbox is in a phase.
func (w watching) until(phase openshellv1.SandboxPhase) *openshellv1.Sandbox {
	w.Helper()
	for {
		if s := w.next(); s.GetStatus().GetPhase() == phase {
			return s
		}
	}
}

// end is how the watch ends, with no further message.
func (w watching) end() error {
	w.Helper()
	event, err := w.stream.Recv()
	if err == nil {
		w.Fatalf("one more message: %v", event)
	}
	return err
}

// wantOverFor is wantOver, after messages about a sandbox that goes.
func (w watching) wantOverFor(sandboxID string) {
	w.Helper()
	for {
		event, err := w.stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return
		case err != nil || id(event.GetSandbox()) != sandboxID || event.GetSandbox().GetStatus().GetPhase() != deleting:
			w.Fatalf("message %v, %v", event, err)
		}
	}
}

func (w watching) wantOver() {
	w.Helper()
	if err := w.end(); !errors.Is(err, io.EOF) {
		w.Errorf("the watch ends with %v", err)
	}
}

// A watch shows the sandbox as it is, then every change, and ends when it is gone; it is not about its successor.
func TestWatch(t *testing.T) {
	g := gatewaytest.Start(t)
	web := g.MustCreate(t, "web")
	w := watch(call(t), t, g, nil)
	if diff := cmp.Diff(web, w.next(), protocmp.Transform()); diff != "" {
		t.Errorf("at first (-is +shown)\n%s", diff)
	}
	changed := g.Annotate(t, "web", "a", "b")
	if diff := cmp.Diff(changed, w.next(), protocmp.Transform()); diff != "" {
		t.Errorf("changed (-is +shown)\n%s", diff)
	}
	g.Replace(t, "web")
	w.wantOverFor(id(web))

	b := g.Replace(t, "web", gatewaytest.Simulated(map[string]any{"delete_after": "1h"}))
	w = watch(call(t), t, g, nil)
	if _, err := deletes(nil, false)(call(t), g, ""); err != nil {
		t.Fatal(err)
	}
	if s := w.until(deleting); id(s) != id(b) {
		t.Errorf("shown %v", s)
	}
}

// Phases that pass between two looks at the database are shown too: clients wait for them.
func TestWatchShowsShortPhases(t *testing.T) {
	g := gatewaytest.Start(t)
	g.MustCreate(t, "web", gatewaytest.NoWait(), gatewaytest.Simulated(map[string]any{"ready_after": "100ms", "exit_after": "300ms"}))
	w := watch(call(t), t, g, nil)
	var shown []openshellv1.SandboxPhase
	for !slices.Contains(shown, openshellv1.SandboxPhase_SANDBOX_PHASE_COMPLETED) {
		shown = append(shown, w.next().GetStatus().GetPhase())
	}
	if !slices.Contains(shown, ready) {
		t.Errorf("shown are %v", shown)
	}
}

// Without follow_status there is one message.
func TestWatchWithoutChanges(t *testing.T) {
	g := gatewaytest.Start(t)
	web := g.MustCreate(t, "web")
	w := watch(call(t), t, g, func(r *openshellv1.WatchSandboxRequest) { r.FollowStatus = false })
	if s := w.next(); id(s) != id(web) {
		t.Errorf("shown %v", s)
	}
	// This watch is told of the changes together with another one, which shows them: it has had its time to show them too.
	follows := watch(call(t), t, g, nil)
	follows.next()
	for _, value := range []string{"b", "c"} {
		g.Annotate(t, "web", "a", value)
		follows.next()
	}
	g.MustDelete(t, "web")
	w.wantOver()
}

func TestWatchStopsOnTerminal(t *testing.T) {
	stop := func(r *openshellv1.WatchSandboxRequest) { r.StopOnTerminal = true }
	for _, phase := range []openshellv1.SandboxPhase{ready, failed, stopped, openshellv1.SandboxPhase_SANDBOX_PHASE_COMPLETED} {
		t.Run(phase.String(), func(t *testing.T) {
			t.Parallel()
			g := gatewaytest.Start(t)
			g.MustCreate(t, "web", gatewaytest.NoWait(), gatewaytest.Simulated(map[string]any{"never_ready": true}))
			w := watch(call(t), t, g, stop)
			w.next()
			g.SetPhase(t, "web", phase)
			w.until(phase)
			w.wantOver()

			w = watch(call(t), t, g, stop) // the first message counts
			w.until(phase)
			w.wantOver()
		})
	}
	g := gatewaytest.Start(t)
	g.MustCreate(t, "web")
	for _, phase := range []openshellv1.SandboxPhase{provisioning, starting, deleting, openshellv1.SandboxPhase_SANDBOX_PHASE_STOPPING, openshellv1.SandboxPhase_SANDBOX_PHASE_UNKNOWN} {
		g.SetPhase(t, "web", phase)
		w := watch(call(t), t, g, stop)
		w.until(phase)
		g.Annotate(t, "web", "in", phase.String())
		w.until(phase)
	}
}

func TestWatchRefusals(t *testing.T) {
	g := gatewaytest.Start(t)
	g.MustCreate(t, "web")
	refused := func(edit func(*openshellv1.WatchSandboxRequest)) error { return watch(call(t), t, g, edit).end() }
	wantPlain(t, refused(func(r *openshellv1.WatchSandboxRequest) { r.Sandbox = "" }), codes.InvalidArgument, "sandbox is required")
	wantPlain(t, refused(func(r *openshellv1.WatchSandboxRequest) { r.Sandbox = "none" }), codes.NotFound, "sandbox not found")
	wantPlain(t, refused(func(r *openshellv1.WatchSandboxRequest) { r.WorkspaceScope = workspace("nowhere") }), codes.NotFound, "sandbox not found")
	wantField(t, refused(func(r *openshellv1.WatchSandboxRequest) { r.WorkspaceScope = nil }), "workspace_scope")
	wantField(t, refused(func(r *openshellv1.WatchSandboxRequest) { r.SinceTime = &timestamppb.Timestamp{Nanos: -1} }), "since_time")
	wantField(t, refused(func(r *openshellv1.WatchSandboxRequest) { r.ResumeAfterCursor = "v1" }), "resume_after_cursor")
	wantPlain(t, refused(func(r *openshellv1.WatchSandboxRequest) {
		r.ResumeAfterCursor = "v1:" + anID + ":00000000000000000001"
	}), codes.OutOfRange, "resume_after_cursor")
}

// Who loses access while watching is shown nothing more, not even that the sandbox is gone.
func TestWatchOfWhatMayNotBeSeen(t *testing.T) {
	for name, happens := range map[string]func(*testing.T, *gatewaytest.Gateway, callers){
		"it changes": func(t *testing.T, g *gatewaytest.Gateway, _ callers) { g.Annotate(t, "web", "a", "b") },
		"it is gone": func(t *testing.T, g *gatewaytest.Gateway, c callers) {
			reply, err := g.OpenShell().DeleteSandbox(c.as("root"), &openshellv1.DeleteSandboxRequest{Name: "web", WorkspaceScope: gatewaytest.Default()})
			if err != nil || reply.GetOutcome() != finished {
				t.Fatal(reply, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, callers := startWithOIDC(t)
			if err := addMember(callers.as("root"), g, "default", "ann", roleUser); err != nil {
				t.Fatal(err)
			}
			created, err := g.OpenShell().CreateSandbox(callers.as("ann"), createRequest(func(r *openshellv1.CreateSandboxRequest) {
				r.Name, r.Spec.Template.DriverConfig = "web", gatewaytest.DriverConfig(map[string]any{"delete_after": "0s"})
			}))
			if err != nil {
				t.Fatal(err)
			}
			g.WaitPhase(t, id(created.GetSandbox()), ready)
			w := watch(callers.as("ann"), t, g, nil)
			w.next()
			if _, err := g.OpenShell().RemoveWorkspaceMember(callers.as("root"), &openshellv1.RemoveWorkspaceMemberRequest{
				WorkspaceScope: gatewaytest.Default(), PrincipalSubject: "ann",
			}); err != nil {
				t.Fatal(err)
			}
			happens(t, g, callers)
			wantPlain(t, w.end(), codes.NotFound, "sandbox not found")
		})
	}
}

// A watch does not outlive the token that it was begun with.
func TestWatchWithATokenThatExpires(t *testing.T) {
	issuer := authtest.NewIssuer(t)
	var later atomic.Int64
	g := gatewaytest.Start(t, gatewaytest.WithAccess(auth.Config{
		Now:  func() time.Time { return time.Now().Add(time.Duration(later.Load())) },
		OIDC: issuer.Config(),
	}))
	root := metadata.AppendToOutgoingContext(call(t), "authorization", "Bearer "+issuer.Token("root", map[string]any{"realm_access": map[string]any{"roles": []string{auth.DefaultAdminRole}}}))
	created, err := g.OpenShell().CreateSandbox(root, createRequest(func(r *openshellv1.CreateSandboxRequest) { r.Name = "web" }))
	if err != nil {
		t.Fatal(err)
	}
	g.WaitPhase(t, id(created.GetSandbox()), ready)
	w := watch(root, t, g, nil)
	w.next()
	g.Annotate(t, "web", "a", "b")
	w.next()
	later.Store(int64(24 * time.Hour))
	g.Annotate(t, "web", "a", "c")
	wantStatus(t, w.end(), codes.Unauthenticated, "expired")
}
