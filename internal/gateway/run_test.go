package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/driver"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/driver/simulated"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store/sqlite"
)

// lines is a log.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// running is a gateway over parts of the test's own.
type running struct {
	*gateway.Gateway
	address     string
	conn        *grpc.ClientConn
	client      openshellv1.OpenShellClient
	conditional conditionalv1.ConditionalSandboxesClient
	health      healthv1.HealthClient
	log         *lines
	served      chan error
}

func run(t *testing.T, cfg gateway.Config) *running {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return runOn(t, listener, cfg)
}

func runOn(t *testing.T, listener net.Listener, cfg gateway.Config) *running {
	t.Helper()
	r := &running{address: listener.Addr().String(), log: &lines{}, served: make(chan error, 1)}
	cfg.Logger = slog.New(slog.NewJSONHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if cfg.TLS == nil {
		cfg.Access.Unauthenticated = auth.FromLoopback
	}
	var err error
	if r.Gateway, err = gateway.New(call(t), cfg); err != nil {
		t.Fatal(err)
	}
	go func() { r.served <- r.Serve(listener) }()
	t.Cleanup(func() { r.Shutdown(call(t)) })
	r.conn = dial(t, r.address)
	r.client, r.conditional = openshellv1.NewOpenShellClient(r.conn), conditionalv1.NewConditionalSandboxesClient(r.conn)
	r.health = healthv1.NewHealthClient(r.conn)
	return r
}

func open(t *testing.T) store.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "a.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func getWeb() *openshellv1.GetSandboxRequest {
	return &openshellv1.GetSandboxRequest{Name: "web", WorkspaceScope: gatewaytest.Default()}
}

func createWeb(spec *openshellv1.SandboxSpec) *openshellv1.CreateSandboxRequest {
	return &openshellv1.CreateSandboxRequest{Name: "web", WorkspaceScope: gatewaytest.Default(), Spec: spec}
}

// broken is a store that fails to read in ways that are not for clients.
type broken struct {
	store.Store
	fail func() error
}

func (b broken) Sandbox(context.Context, string, string) (store.Sandbox, error) {
	return store.Sandbox{}, b.fail()
}

// What is inside the gateway stays there; its log says what happened, under the id that the client is told.
func TestTroubleInside(t *testing.T) {
	for name, tc := range map[string]struct {
		fail func() error
		code codes.Code
	}{
		"unknown error": {func() error { return errors.New("inner secret") }, codes.Internal},
		"store failed":  {func() error { return errors.Join(store.ErrInternal, errors.New("inner secret")) }, codes.Internal},
		"panic":         {func() error { panic("inner secret") }, codes.Internal},
		"busy":          {func() error { return errors.Join(store.ErrUnavailable, errors.New("inner secret")) }, codes.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, gateway.Config{Store: broken{open(t), tc.fail}})
			_, err := r.client.GetSandbox(metadata.AppendToOutgoingContext(call(t), "x-request-id", "find-me"), getWeb())
			wantCode(t, err, tc.code)
			if strings.Contains(err.Error(), "inner") {
				t.Errorf("the client is told %v", err)
			}
			if tc.code == codes.Internal && (!strings.Contains(err.Error(), "find-me") || !strings.Contains(r.log.String(), "inner secret")) {
				t.Errorf("error %v, log %s", err, r.log)
			}
			if _, err := r.client.Health(call(t), &openshellv1.HealthRequest{}); err != nil {
				t.Errorf("the next call: %v", err)
			}
		})
	}
}

// A line a call, with what an operator looks for and none of the contents.
func TestLog(t *testing.T) {
	r := run(t, gateway.Config{Store: open(t)})
	req := createWeb(&openshellv1.SandboxSpec{
		Environment: map[string]string{"TOKEN": "canary-1"}, Command: []string{"run", "canary-2"},
		Template: &openshellv1.SandboxTemplate{Environment: map[string]string{"B": "canary-3"}},
	})
	req.Annotations = map[string]string{"note": "canary-4"}
	created, err := r.client.CreateSandbox(metadata.AppendToOutgoingContext(call(t), "x-request-id", "find-me"), req)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []map[string]string{{"A": "canary-5\n"}, {"B": "canary-6\x00"}} {
		_, err = r.client.CreateSandbox(call(t), createWeb(&openshellv1.SandboxSpec{Environment: bad}))
		wantCode(t, err, codes.InvalidArgument)
		if strings.Contains(err.Error(), "canary") {
			t.Errorf("error %v", err)
		}
	}
	r.Shutdown(call(t)) // so that the last line is there
	text := r.log.String()
	if strings.Contains(text, "canary") {
		t.Errorf("the log repeats contents:\n%s", text)
	}
	var found bool
	for line := range strings.Lines(text) {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if entry["request_id"] != "find-me" {
			continue
		}
		found = true
		for key, want := range map[string]any{
			"msg": "call", "level": "INFO", "method": openshellv1.OpenShell_CreateSandbox_FullMethodName,
			"caller": "unauthenticated-local-dev", "identity_provider": "local_dev", "workspace": "default", "name": "web",
			"id": created.GetSandbox().GetMetadata().GetId(), "outcome": "OK",
		} {
			if entry[key] != want {
				t.Errorf("%s is %v, want %v", key, entry[key], want)
			}
		}
		if took, ok := entry["duration_seconds"].(float64); !ok || took <= 0 {
			t.Errorf("duration %v", entry["duration_seconds"])
		}
	}
	if !found {
		t.Errorf("no line about the create:\n%s", text)
	}
}

// held is a driver whose creates wait for the test.
type held struct {
	driver.Driver
	called, goOn chan struct{}
}

func newHeld() *held {
	return &held{Driver: simulated.Driver{}, called: make(chan struct{}), goOn: make(chan struct{})}
}

func (h *held) Create(ctx context.Context, i driver.Instance) error {
	close(h.called)
	select {
	case <-h.goOn:
		return h.Driver.Create(ctx, i)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Shutdown lets calls under way end, and takes no more. Streams, which clients would keep up, end at once.
func TestShutdownDrains(t *testing.T) {
	h := newHeld()
	r := run(t, gateway.Config{Store: open(t), Driver: h})
	answered := make(chan error, 1)
	go func() {
		_, err := r.client.CreateSandbox(context.Background(), createWeb(&openshellv1.SandboxSpec{}))
		answered <- err
	}()
	<-h.called
	watch, err := r.health.Watch(call(t), &healthv1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if reply, err := watch.Recv(); err != nil || reply.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		t.Fatal(reply, err)
	}
	idle, err := reflectionv1.NewServerReflectionClient(r.conn).ServerReflectionInfo(call(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := idle.Send(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}}); err != nil {
		t.Fatal(err)
	}
	if _, err := idle.Recv(); err != nil {
		t.Fatal(err)
	}
	down := make(chan struct{})
	go func() { r.Shutdown(call(t)); close(down) }()
	if reply, err := watch.Recv(); err != nil || reply.GetStatus() != healthv1.HealthCheckResponse_NOT_SERVING {
		t.Errorf("health while draining: %v, %v", reply, err)
	}
	for _, stream := range []grpc.ClientStream{watch, idle} {
		wantCode(t, stream.RecvMsg(&emptypb.Empty{}), codes.Unavailable)
	}
	close(h.goOn)
	if err := <-answered; err != nil {
		t.Errorf("the call under way: %v", err)
	}
	<-down
	if err := <-r.served; err != nil {
		t.Error(err)
	}
	_, err = r.client.Health(call(t), &openshellv1.HealthRequest{})
	wantCode(t, err, codes.Unavailable)
}

// When time is up, calls are broken off, and their work is left to the next gateway on the database.
func TestShutdownBreaksOff(t *testing.T) {
	s, h := open(t), newHeld()
	r := run(t, gateway.Config{Store: s, Driver: h})
	answered := make(chan error, 1)
	go func() {
		_, err := r.client.CreateSandbox(context.Background(), createWeb(&openshellv1.SandboxSpec{}))
		answered <- err
	}()
	<-h.called
	ctx, cancel := context.WithCancel(call(t))
	cancel()
	r.Shutdown(ctx)
	if code := status.Code(<-answered); code != codes.Unavailable && code != codes.Canceled {
		t.Errorf("the call under way: %v", code)
	}
	next, ok, err := s.NextDue(call(t))
	if err != nil || !ok || next > 0 {
		t.Errorf("the work left behind is due in %v (%v, %v)", next, ok, err)
	}
}

// Deletes in flight end after a restart, by id: whoever has come by the name since is not touched.
func TestRestartWithDeletesInFlight(t *testing.T) {
	g := gatewaytest.Start(t)
	a := g.MustCreate(t, "web", gatewaytest.Simulated(map[string]any{"delete_after": "300ms"}))
	quick := g.MustCreate(t, "quick")
	for _, name := range []string{"web", "quick"} {
		if _, err := g.OpenShell().DeleteSandbox(call(t), plainDelete(name)); err != nil {
			t.Fatal(err)
		}
	}
	g.Kill(t)
	g.Restart(t)
	g.WaitGone(t, quick.GetMetadata().GetId())
	b := g.MustCreate(t, "quick")
	g.WaitGone(t, a.GetMetadata().GetId())
	if s, ok := g.GetByID(t, b.GetMetadata().GetId()); !ok || s.GetMetadata().GetResourceVersion() != b.GetMetadata().GetResourceVersion() {
		t.Errorf("the successor: %v", s)
	}
}
