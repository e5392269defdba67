package soak

import (
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth/authtest"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/pgtest"
)

const (
	// envDuration is how long each store is kept busy, such as 10m.
	envDuration     = "OPENSHELL_SOAK_DURATION"
	defaultDuration = 3 * time.Second

	// callers call at the same time, each over a connection of its own.
	callers = 200
	// subjects are the people that they call for.
	subjects = 20

	callTimeout     = 30 * time.Second
	shutdownTimeout = 30 * time.Second
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// Callers that get in each other's way see no answer that the contract does not name, the memory stays flat, and no
// goroutine outlives the gateway.
func TestSoak(t *testing.T) {
	duration := defaultDuration
	if value := os.Getenv(envDuration); value != "" {
		var err error
		if duration, err = time.ParseDuration(value); err != nil {
			t.Fatalf("%s: %v", envDuration, err)
		}
	}
	for name, database := range map[string]func(*testing.T) string{
		"SQLite":     func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "gateway.db") },
		"PostgreSQL": func(t *testing.T) string { return pgtest.NewDatabase(t) },
	} {
		t.Run(name, func(t *testing.T) {
			url, issuer := database(t), authtest.NewIssuer(t)
			before := goleak.IgnoreCurrent()
			soak(t, url, issuer, duration)
			goleak.VerifyNone(t, before)
		})
	}
}

// soak keeps a gateway busy for a while, from its start to its shutdown.
func soak(t *testing.T, databaseURL string, issuer *authtest.Issuer, duration time.Duration) {
	t.Helper()
	address, stop := serve(t, databaseURL, issuer)
	defer stop()
	w := newWorld()
	prepare(t, connect(t, address, issuer, 0, w))
	all := make([]*caller, callers)
	for i := range all {
		all[i] = connect(t, address, issuer, i, w)
	}
	ctx, cancel := context.WithTimeout(t.Context(), duration)
	defer cancel()
	var busy sync.WaitGroup
	for _, c := range all {
		busy.Go(func() {
			defer func() { _ = c.conn.Close() }()
			for ctx.Err() == nil {
				c.act(context.WithoutCancel(ctx))
			}
		})
	}
	usage := observe(ctx, duration)
	busy.Wait()
	w.tally.report(t, duration)
	usage.judge(t, duration)
}

// serve starts a gateway with everything switched on. stop shuts it down and closes its store.
func serve(t *testing.T, databaseURL string, issuer *authtest.Issuer) (address string, stop func()) {
	t.Helper()
	store, err := gateway.OpenStore(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(t.Context(), gateway.Config{
		Store: store, Version: gateway.Version("soak"),
		Logger: slog.New(slog.NewJSONHandler(io.Discard, nil)),
		Access: auth.Config{OIDC: issuer.ScopedConfig()},
	})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- g.Serve(listener) }()
	return listener.Addr().String(), func() {
		ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
		defer cancel()
		g.Shutdown(ctx)
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
		if err := store.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	}
}

// connect makes a caller, who acts for one of the subjects.
func connect(t *testing.T, address string, issuer *authtest.Issuer, number int, w *world) *caller {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	token := issuer.Token("subject-"+strconv.Itoa(number%subjects), map[string]any{
		"realm_access": map[string]any{"roles": []string{auth.DefaultAdminRole}}, "scope": "openshell:all",
	})
	return newCaller(conn, rand.New(rand.NewPCG(rand.Uint64(), uint64(number))), w, token)
}

// as makes the calls of a context those of a token.
func as(ctx context.Context, token string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
}
