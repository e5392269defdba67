package gatewaytest_test

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// client is the one under test.
func client(t *testing.T, g *gatewaytest.Gateway) openshellv1.OpenShellClient {
	t.Helper()
	conn, err := grpc.NewClient(g.Address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return openshellv1.NewOpenShellClient(conn)
}

func TestReplaceGivesTheNameToAnother(t *testing.T) {
	g := gatewaytest.Start(t)
	a := g.MustCreate(t, "web")
	b := g.Replace(t, "web")
	if a.GetMetadata().GetId() == b.GetMetadata().GetId() {
		t.Fatal("the id was used again")
	}
	if _, ok := g.GetByID(t, a.GetMetadata().GetId()); ok {
		t.Error("the first is still there")
	}
	if len(g.AllCalls()) != 0 {
		t.Errorf("the other client's calls were recorded: %v", g.AllCalls())
	}
}

func TestRestartKeepsPortAndSandboxes(t *testing.T) {
	g := gatewaytest.Start(t)
	endpoint := g.Endpoint()
	a := g.MustCreate(t, "web")
	g.Restart(t)
	if g.Endpoint() != endpoint {
		t.Errorf("endpoint %s, was %s", g.Endpoint(), endpoint)
	}
	if b, ok := g.Get(t, "web"); !ok || b.GetMetadata().GetId() != a.GetMetadata().GetId() {
		t.Errorf("after the restart: %v", b)
	}
}

func TestRecordAndIntercept(t *testing.T) {
	g := gatewaytest.Start(t)
	g.MustCreate(t, "web")
	g.Intercept(func(context.Context, any, *grpc.UnaryServerInfo, grpc.UnaryHandler) (any, error) {
		return nil, status.Error(codes.PermissionDenied, "no")
	})
	req := &openshellv1.GetSandboxRequest{Name: "web", WorkspaceScope: gatewaytest.Default()}
	if _, err := client(t, g).GetSandbox(t.Context(), req); status.Code(err) != codes.PermissionDenied {
		t.Errorf("intercepted call: %v", err)
	}
	if _, err := g.OpenShell().GetSandbox(t.Context(), req); err != nil {
		t.Errorf("the other client was intercepted: %v", err)
	}
	g.Intercept(nil)
	if _, err := client(t, g).GetSandbox(t.Context(), req); err != nil {
		t.Error(err)
	}
	calls := g.Calls(openshellv1.OpenShell_GetSandbox_FullMethodName)
	if len(calls) != 2 || calls[0].Code != codes.PermissionDenied || calls[1].Code != codes.OK ||
		calls[0].Name != "web" || calls[0].Workspace != "default" || !calls[0].Answered {
		t.Errorf("recorded %+v", calls)
	}
	g.ResetCalls()
	if len(g.AllCalls()) != 0 {
		t.Error("calls outlived the reset")
	}
}

func TestOutOfBandWrites(t *testing.T) {
	g := gatewaytest.Start(t)
	g.MustCreate(t, "web")
	if s := g.TouchVersion(t, "web", 40); s.GetMetadata().GetResourceVersion() != 40 {
		t.Error(s)
	}
	if s := g.Annotate(t, "web", "who", "me"); s.GetMetadata().GetAnnotations()["who"] != "me" {
		t.Error(s)
	}
	if s := g.SetPhase(t, "web", openshellv1.SandboxPhase_SANDBOX_PHASE_ERROR); s.GetStatus().GetPhase() != openshellv1.SandboxPhase_SANDBOX_PHASE_ERROR {
		t.Error(s)
	}
}
