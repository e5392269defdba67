package replicas

import (
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/driver/simulated"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/pgtest"
)

// TestOutageOfTheDatabase takes the database away from a gateway and gives it back.
func TestOutageOfTheDatabase(t *testing.T) {
	dsn := pgtest.NewDatabase(t)
	g := inProcess(t, dsn, simulated.Driver{})
	made := g.create(t, "web", map[string]any{"ready_after": "0s"})
	g.awaitPhase(t, "web", ready)

	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	database := strings.TrimPrefix(u.Path, "/")
	u.Path = "/postgres"
	admin, err := pgx.Connect(t.Context(), u.String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = admin.Close(t.Context()) }()
	run := func(sql string, args ...any) {
		t.Helper()
		if _, err := admin.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	run("ALTER DATABASE " + database + " ALLOW_CONNECTIONS false")
	run("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = $1", database)

	id := meta(made).GetId()
	for name, call := range map[string]func() error{
		"get": func() error {
			_, err := g.plain.GetSandbox(within(t), &openshellv1.GetSandboxRequest{Name: "web", WorkspaceScope: gatewaytest.Default()})
			return err
		},
		"list": func() error {
			_, err := g.plain.ListSandboxes(within(t), &openshellv1.ListSandboxesRequest{WorkspaceScope: gatewaytest.Default()})
			return err
		},
		"create": func() error {
			_, err := g.plain.CreateSandbox(within(t), request("db", nil))
			return err
		},
		"conditional delete": func() error {
			_, err := g.conditional.DeleteSandbox(within(t), &conditionalv1.ConditionalDeleteSandboxRequest{
				Precondition: &conditionalv1.SandboxPrecondition{Id: &id}, Request: deleteRequest("web"),
			})
			return err
		},
	} {
		err := call()
		if status.Code(err) != codes.Unavailable {
			t.Errorf("%s: %v, want UNAVAILABLE", name, err)
		}
		for _, secret := range []string{database, "SQLSTATE", "postgres", "connect"} {
			if strings.Contains(status.Convert(err).Message(), secret) {
				t.Errorf("%s tells its caller of the database: %v", name, err)
			}
		}
	}

	run("ALTER DATABASE " + database + " ALLOW_CONNECTIONS true")
	if now := g.awaitPhase(t, "web", ready); meta(now).GetId() != id {
		t.Errorf("after the outage web is %s, was %s", meta(now).GetId(), id)
	}
}
