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
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth/authtest"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/processtest"
)

// gateway is a gateway process and, for each client, a connection to it with the token of a workspace's user: the gateway
// checks the token and looks the member up at every call.
type gateway struct {
	*processtest.Gateway
	conns []*grpc.ClientConn
}

const caller = "ann"

func start(b *testing.B, binary, url string) *gateway {
	b.Helper()
	issuer := authtest.NewIssuer(b)
	g := &gateway{Gateway: processtest.Start(b, binary, url, "--oidc-issuer", issuer.URL())}
	for range clients[len(clients)-1] {
		g.conns = append(g.conns, g.connect(b, issuer.Token(caller, nil)))
	}
	admin := g.connect(b, issuer.Token("root", map[string]any{
		"realm_access": map[string]any{"roles": []string{auth.DefaultAdminRole, auth.DefaultUserRole}},
	}))
	if _, err := openshellv1.NewOpenShellClient(admin).AddWorkspaceMember(b.Context(), &openshellv1.AddWorkspaceMemberRequest{
		WorkspaceScope: scope(), PrincipalSubject: caller, Role: openshellv1.WorkspaceRole_WORKSPACE_ROLE_USER,
	}); err != nil {
		b.Fatal(err)
	}
	return g
}

func (g *gateway) connect(b *testing.B, token string) *grpc.ClientConn {
	b.Helper()
	conn, err := grpc.NewClient(g.Address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithPerRPCCredentials(bearer(token)))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	return conn
}

// bearer is a token that plaintext may carry: it goes no further than this machine.
type bearer string

// GetRequestMetadata implements [credentials.PerRPCCredentials].
func (t bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(t)}, nil
}

// RequireTransportSecurity implements [credentials.PerRPCCredentials].
func (bearer) RequireTransportSecurity() bool { return false }

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
