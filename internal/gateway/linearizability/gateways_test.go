package linearizability

import (
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/pgtest"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// replicas is how many gateways share a PostgreSQL.
const replicas = 3

// shutdownTimeout bounds how long a gateway has for the calls under way.
const shutdownTimeout = 30 * time.Second

func TestMain(m *testing.M) { pgtest.Main(m) }

// mutation makes a store wrong; nil leaves it as it is.
type mutation func(store.Store) store.Store

// onSQLite starts a gateway on a SQLite file and connects to it.
func onSQLite(t *testing.T, mutate mutation) []grpc.ClientConnInterface {
	t.Helper()
	return []grpc.ClientConnInterface{connect(t, serve(t, "sqlite:"+filepath.Join(t.TempDir(), "gateway.db"), mutate))}
}

// onPostgreSQL starts replicas on one database and connects to each.
func onPostgreSQL(t *testing.T, mutate mutation) []grpc.ClientConnInterface {
	t.Helper()
	url := pgtest.NewDatabase(t)
	var conns []grpc.ClientConnInterface
	for range replicas {
		conns = append(conns, connect(t, serve(t, url, mutate)))
	}
	return conns
}

// serve has a gateway in this process serve a database until the test ends, and returns its address.
func serve(t *testing.T, databaseURL string, mutate mutation) string {
	t.Helper()
	s, err := gateway.OpenStore(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if mutate != nil {
		s = mutate(s)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(t.Context(), gateway.Config{
		Store: s, Version: gateway.APIVersion, Access: auth.Config{Unauthenticated: auth.FromLoopback},
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- g.Serve(listener) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
		defer cancel()
		g.Shutdown(ctx)
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return listener.Addr().String()
}

// connect makes a connection that waits for a gateway that is down instead of failing at once: a call that was never
// sent says nothing.
func connect(t *testing.T, address string) grpc.ClientConnInterface {
	t.Helper()
	conn, err := grpc.NewClient(address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.5, MaxDelay: 200 * time.Millisecond},
			MinConnectTimeout: time.Second,
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}
