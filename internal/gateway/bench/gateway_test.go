package bench

import (
	"context"
	"fmt"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/processtest"
)

// gateway is a gateway process and a connection to it for each client.
type gateway struct {
	*processtest.Gateway
	conns []*grpc.ClientConn
}

func connect(b *testing.B, process *processtest.Gateway) *gateway {
	b.Helper()
	g := &gateway{Gateway: process}
	for range clients[len(clients)-1] {
		conn, err := grpc.NewClient(process.Address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = conn.Close() })
		g.conns = append(g.conns, conn)
	}
	return g
}

func scope() *datamodelv1.WorkspaceSelector { return gatewaytest.Default() }

// create makes a sandbox whose row nothing but a delete touches, and whose delete completes at once.
func (g *gateway) create(ctx context.Context, client int, name string) (id string, err error) {
	reply, err := openshellv1.NewOpenShellClient(g.conns[client]).CreateSandbox(ctx, &openshellv1.CreateSandboxRequest{
		Name: name, WorkspaceScope: scope(),
		Spec: &openshellv1.SandboxSpec{Template: &openshellv1.SandboxTemplate{
			DriverConfig: gatewaytest.DriverConfig(map[string]any{"never_ready": true, "delete_after": "0s"}),
		}},
	})
	return reply.GetSandbox().GetMetadata().GetId(), err
}

// delete must remove the row, so that both forms and the bare statement do the same.
func (g *gateway) delete(ctx context.Context, client int, name, id string, guarded bool) error {
	request := &openshellv1.DeleteSandboxRequest{Name: name, WorkspaceScope: scope()}
	var reply *openshellv1.DeleteSandboxResponse
	var err error
	if guarded {
		reply, err = conditionalv1.NewConditionalSandboxesClient(g.conns[client]).DeleteSandbox(ctx, &conditionalv1.ConditionalDeleteSandboxRequest{
			Precondition: &conditionalv1.SandboxPrecondition{Id: &id}, Request: request,
		})
	} else {
		reply, err = openshellv1.NewOpenShellClient(g.conns[client]).DeleteSandbox(ctx, request)
	}
	if err != nil {
		return err
	}
	if reply.GetOutcome() != openshellv1.DeletionOutcome_DELETION_OUTCOME_COMPLETED || reply.GetSandboxId() != id {
		return fmt.Errorf("delete of %s: %v", id, reply)
	}
	return nil
}
