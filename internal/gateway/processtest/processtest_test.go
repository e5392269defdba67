package processtest_test

import (
	"path/filepath"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/processtest"
)

func TestKilledGatewayComesBackWhereItWas(t *testing.T) {
	g := processtest.Start(t, processtest.Build(t), "sqlite:"+filepath.Join(t.TempDir(), "gateway.db"))
	conn, err := grpc.NewClient(g.Address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	health := func() error {
		_, err := openshellv1.NewOpenShellClient(conn).Health(t.Context(), &openshellv1.HealthRequest{})
		return err
	}
	if err := health(); err != nil {
		t.Fatal(err)
	}
	address := g.Address
	g.Kill()
	if err := health(); status.Code(err) != codes.Unavailable {
		t.Errorf("a killed gateway answers %v", err)
	}
	g.Restart(t)
	if g.Address != address {
		t.Errorf("it came back at %s, was at %s", g.Address, address)
	}
	conn.ResetConnectBackoff()
	if _, err := openshellv1.NewOpenShellClient(conn).Health(t.Context(), &openshellv1.HealthRequest{}, grpc.WaitForReady(true)); err != nil {
		t.Error(err)
	}
}
