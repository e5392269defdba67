package durability

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/processtest"
)

const callTimeout = 30 * time.Second

// gateway is a gateway process on a SQLite file, and a client of it.
type gateway struct {
	*processtest.Gateway
	plain       openshellv1.OpenShellClient
	conditional conditionalv1.ConditionalSandboxesClient
}

func start(t *testing.T, binary string) *gateway {
	t.Helper()
	g := processtest.Start(t, binary, "sqlite:"+filepath.Join(t.TempDir(), "gateway.db"))
	conn, err := grpc.NewClient(g.Address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.5, MaxDelay: 200 * time.Millisecond}, MinConnectTimeout: time.Second,
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &gateway{g, openshellv1.NewOpenShellClient(conn), conditionalv1.NewConditionalSandboxesClient(conn)}
}

func (g *gateway) create(ctx context.Context, name string, steer map[string]any) (*openshellv1.Sandbox, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	reply, err := g.plain.CreateSandbox(ctx, &openshellv1.CreateSandboxRequest{
		Name: name, WorkspaceScope: gatewaytest.Default(),
		Spec: &openshellv1.SandboxSpec{Template: &openshellv1.SandboxTemplate{DriverConfig: gatewaytest.DriverConfig(steer)}},
	})
	return reply.GetSandbox(), err
}

func (g *gateway) get(ctx context.Context, name string) (*openshellv1.Sandbox, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	reply, err := g.plain.GetSandbox(ctx, &openshellv1.GetSandboxRequest{Name: name, WorkspaceScope: gatewaytest.Default()})
	return reply.GetSandbox(), err
}

func (g *gateway) deleteIf(ctx context.Context, name, id string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := g.conditional.DeleteSandbox(ctx, &conditionalv1.ConditionalDeleteSandboxRequest{
		Precondition: &conditionalv1.SandboxPrecondition{Id: &id},
		Request:      &openshellv1.DeleteSandboxRequest{Name: name, WorkspaceScope: gatewaytest.Default()},
	})
	return err
}

func (g *gateway) list(ctx context.Context) ([]*openshellv1.Sandbox, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	reply, err := g.plain.ListSandboxes(ctx, &openshellv1.ListSandboxesRequest{PageSize: 1000, WorkspaceScope: gatewaytest.Default()})
	return reply.GetSandboxes(), err
}
