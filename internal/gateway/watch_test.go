package gateway_test

import (
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// watchWeb begins a watch of the sandbox "web".
func (r *running) watchWeb(t *testing.T) grpc.ServerStreamingClient[openshellv1.SandboxStreamEvent] {
	t.Helper()
	stream, err := r.client.WatchSandbox(call(t), &openshellv1.WatchSandboxRequest{Sandbox: "web", WorkspaceScope: gatewaytest.Default()})
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

func runWithWeb(t *testing.T, limits gateway.Limits) *running {
	t.Helper()
	r := run(t, gateway.Config{Store: open(t), Limits: limits})
	if _, err := r.client.CreateSandbox(call(t), createWeb(&openshellv1.SandboxSpec{})); err != nil {
		t.Fatal(err)
	}
	return r
}

// As many watches as the limit says; one more is refused, and has a place when another has ended.
func TestWatchLimit(t *testing.T) {
	r := runWithWeb(t, gateway.Limits{Watches: 2, CallTime: 2 * time.Second})
	first, second := r.watchWeb(t), r.watchWeb(t)
	for _, w := range []grpc.ServerStreamingClient[openshellv1.SandboxStreamEvent]{first, second} {
		if _, err := w.Recv(); err != nil {
			t.Fatal(err)
		}
	}
	_, err := r.watchWeb(t).Recv()
	wantCode(t, err, codes.ResourceExhausted)
	_, err = first.Recv() // until the time of a call is over, which is that of a watch too
	wantCode(t, err, codes.DeadlineExceeded)
	if _, err := r.watchWeb(t).Recv(); err != nil {
		t.Error(err)
	}
}

// A watch does not hold up a shutdown, and its client is told to come again.
func TestShutdownEndsWatches(t *testing.T) {
	r := runWithWeb(t, gateway.Limits{})
	w := r.watchWeb(t)
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
