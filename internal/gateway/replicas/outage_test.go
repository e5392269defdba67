package replicas

import (
	"context"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// outage takes the database away from gateways, one of which dies meanwhile, and gives it back.
func outage(t *testing.T, fleet []*replica) {
	fleet[0].create(t, "web", map[string]any{"ready_after": "0s"})
	before := fleet[0].awaitPhase(t, "web", ready)
	database, admin := administer(t, fleet[0].databaseURL)
	run := func(sql string, args ...any) {
		t.Helper()
		if _, err := admin.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	run("ALTER DATABASE " + database + " ALLOW_CONNECTIONS false")
	run("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = $1", database)
	for _, g := range fleet {
		g.wantUnavailable(t, meta(before).GetId(), database)
	}
	fleet[1].Kill()
	run("ALTER DATABASE " + database + " ALLOW_CONNECTIONS true")
	fleet[1].Restart(t)
	for _, g := range fleet {
		if now := g.awaitPhase(t, "web", ready); !proto.Equal(now, before) {
			t.Errorf("after the outage web is %v, was %v", now, before)
		}
		if other := g.get(within(t), t, "db"); other != nil {
			t.Errorf("what was refused is there: %v", other)
		}
	}
}

// administer connects to the server that has a database.
func administer(t *testing.T, databaseURL string) (database string, admin *pgx.Conn) {
	t.Helper()
	u, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	database = strings.TrimPrefix(u.Path, "/")
	u.Path = "/postgres"
	admin, err = pgx.Connect(t.Context(), u.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Close(context.WithoutCancel(t.Context())) })
	return database, admin
}

// wantUnavailable makes calls of every kind, and wants each refused without a word of the database.
func (r *replica) wantUnavailable(t *testing.T, id, database string) {
	t.Helper()
	for name, call := range map[string]func() error{
		"get": func() error {
			_, err := r.plain.GetSandbox(within(t), &openshellv1.GetSandboxRequest{Name: "web", WorkspaceScope: gatewaytest.Default()})
			return err
		},
		"list": func() error {
			_, err := r.plain.ListSandboxes(within(t), &openshellv1.ListSandboxesRequest{WorkspaceScope: gatewaytest.Default()})
			return err
		},
		"create": func() error {
			_, err := r.plain.CreateSandbox(within(t), request("db", nil))
			return err
		},
		"conditional delete": func() error {
			_, err := r.conditional.DeleteSandbox(within(t), &conditionalv1.ConditionalDeleteSandboxRequest{
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
}
