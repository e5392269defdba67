package replicas

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/pgtest"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/processtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const (
	size = 3
	// timeout bounds what a test waits for. Work is taken over once its lease has run out.
	timeout = 90 * time.Second
	poll    = 20 * time.Millisecond
)

// replica is one gateway of several, and a client of it.
type replica struct {
	*processtest.Gateway
	plain       openshellv1.OpenShellClient
	conditional conditionalv1.ConditionalSandboxesClient
	databaseURL string
}

// tests are given a fleet of their own each.
var tests = map[string]func(*testing.T, []*replica){
	"work of a killed gateway is taken over": killedGateway,
	"a stale delete races a replacement":     staleDeletes,
	"configurations are changed at once":     configurations,
	"a watch sees what other gateways do":    watched,
	"the database is away for a while":       outage,
}

// TestFleet has several gateways as processes of their own.
func TestFleet(t *testing.T) {
	binary := processtest.Build(t)
	for name, run := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, startFleet(t, binary))
		})
	}
}

// startFleet starts gateways on one new database.
func startFleet(t *testing.T, binary string) []*replica {
	t.Helper()
	dsn := pgtest.NewDatabase(t)
	var fleet []*replica
	for range size {
		g := processtest.Start(t, binary, dsn)
		conn := connect(t, g.Address)
		fleet = append(fleet, &replica{g, openshellv1.NewOpenShellClient(conn), conditionalv1.NewConditionalSandboxesClient(conn), dsn})
	}
	return fleet
}

// connect makes a connection that finds a restarted gateway soon.
func connect(t *testing.T, address string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{BaseDelay: poll, Multiplier: 1.5, MaxDelay: 10 * poll}, MinConnectTimeout: time.Second,
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	t.Cleanup(cancel)
	return ctx
}

// request asks for a sandbox steered by the keys of the simulated driver.
func request(name string, steer map[string]any) *openshellv1.CreateSandboxRequest {
	return &openshellv1.CreateSandboxRequest{
		Name: name, WorkspaceScope: gatewaytest.Default(),
		Spec: &openshellv1.SandboxSpec{Template: &openshellv1.SandboxTemplate{DriverConfig: gatewaytest.DriverConfig(steer)}},
	}
}

func (r *replica) create(t *testing.T, name string, steer map[string]any) *openshellv1.Sandbox {
	t.Helper()
	reply, err := r.plain.CreateSandbox(within(t), request(name, steer))
	if err != nil {
		t.Fatalf("create %s: %v", name, err)
	}
	return reply.GetSandbox()
}

// get reads the sandbox that holds a name, again while the gateway is being replaced; nil when there is none.
func (r *replica) get(ctx context.Context, t *testing.T, name string) *openshellv1.Sandbox {
	t.Helper()
	for {
		reply, err := r.plain.GetSandbox(ctx, &openshellv1.GetSandboxRequest{Name: name, WorkspaceScope: gatewaytest.Default()})
		switch status.Code(err) {
		case codes.OK:
			return reply.GetSandbox()
		case codes.NotFound:
			return nil
		case codes.Unavailable: // a killed gateway resets connections that look alive
		default:
			t.Fatalf("get %s: %v", name, err)
		}
	}
}

// await waits until what holds a name is as wanted.
func (r *replica) await(t *testing.T, name, what string, wanted func(*openshellv1.Sandbox) bool) *openshellv1.Sandbox {
	t.Helper()
	ctx := within(t)
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		s := r.get(ctx, t, name)
		if wanted(s) {
			return s
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("%s is not %s after %s: %v", name, what, timeout, s.GetStatus())
		}
	}
}

func (r *replica) awaitPhase(t *testing.T, name string, phase openshellv1.SandboxPhase) *openshellv1.Sandbox {
	t.Helper()
	return r.await(t, name, phase.String(), func(s *openshellv1.Sandbox) bool { return s.GetStatus().GetPhase() == phase })
}

func (r *replica) awaitGone(t *testing.T, name string) {
	t.Helper()
	r.await(t, name, "gone", func(s *openshellv1.Sandbox) bool { return s == nil })
}

func deleteRequest(name string) *openshellv1.DeleteSandboxRequest {
	return &openshellv1.DeleteSandboxRequest{Name: name, WorkspaceScope: gatewaytest.Default(), AllowMissing: true}
}

func (r *replica) delete(t *testing.T, name string) *openshellv1.DeleteSandboxResponse {
	t.Helper()
	reply, err := r.plain.DeleteSandbox(within(t), deleteRequest(name))
	if err != nil {
		t.Fatalf("delete %s: %v", name, err)
	}
	return reply
}

func meta(s *openshellv1.Sandbox) *datamodelv1.ObjectMeta { return s.GetMetadata() }
