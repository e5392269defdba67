package gateway_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// watchWeb begins a watch of the sandbox "web".
func (r *running) watchWeb(ctx context.Context, t *testing.T) grpc.ServerStreamingClient[openshellv1.SandboxStreamEvent] {
	t.Helper()
	stream, err := r.client.WatchSandbox(ctx, &openshellv1.WatchSandboxRequest{Sandbox: "web", WorkspaceScope: gatewaytest.Default()})
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

// storeWithWeb is a store with a sandbox.
func storeWithWeb(t *testing.T) store.Store {
	t.Helper()
	s := open(t)
	r := run(t, gateway.Config{Store: s})
	if _, err := r.client.CreateSandbox(call(t), createWeb(&openshellv1.SandboxSpec{})); err != nil {
		t.Fatal(err)
	}
	r.Shutdown(call(t))
	return s
}

// As many watches as the limit says; one more is refused, and has a place when another has ended.
func TestWatchLimit(t *testing.T) {
	r := run(t, gateway.Config{Store: storeWithWeb(t), Limits: gateway.Limits{Watches: 2}})
	ctx, endFirst := context.WithCancel(call(t))
	for _, ctx := range []context.Context{ctx, call(t)} {
		if _, err := r.watchWeb(ctx, t).Recv(); err != nil {
			t.Fatal(err)
		}
	}
	_, err := r.watchWeb(call(t), t).Recv()
	wantCode(t, err, codes.ResourceExhausted)
	endFirst()
	for ctx := call(t); status.Code(err) == codes.ResourceExhausted && ctx.Err() == nil; { // until the gateway has noticed
		_, err = r.watchWeb(ctx, t).Recv()
	}
	wantCode(t, err, codes.OK)
}

// No watch takes longer than a call may.
func TestWatchCallTime(t *testing.T) {
	r := run(t, gateway.Config{Store: storeWithWeb(t), Limits: gateway.Limits{CallTime: 100 * time.Millisecond}})
	w := r.watchWeb(call(t), t)
	var err error
	for err == nil {
		_, err = w.Recv()
	}
	wantCode(t, err, codes.DeadlineExceeded)
	if !strings.Contains(err.Error(), "100ms") {
		t.Errorf("error %v", err)
	}
}

// A watch does not hold up a shutdown, and its client is told to come again.
func TestShutdownEndsWatches(t *testing.T) {
	r := run(t, gateway.Config{Store: storeWithWeb(t)})
	w := r.watchWeb(call(t), t)
	if _, err := w.Recv(); err != nil {
		t.Fatal(err)
	}
	ctx := call(t)
	r.Shutdown(ctx)
	if ctx.Err() != nil {
		t.Error("the shutdown waited for the watch")
	}
	_, err := w.Recv()
	wantCode(t, err, codes.Unavailable)
}
