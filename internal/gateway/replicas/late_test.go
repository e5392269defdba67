package replicas

import (
	"context"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/driver"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/driver/simulated"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/pgtest"
)

// heldDriver holds its stops and deletes back until they are released, and says when one has come.
type heldDriver struct {
	simulated.Driver
	mu   sync.Mutex
	held map[string]hold // by the kind of call
}

type hold struct {
	came    chan struct{} // gets one a call
	release chan struct{} // closed to let them go on
}

func (d *heldDriver) hold(kind string) hold {
	h := hold{came: make(chan struct{}, 10), release: make(chan struct{})}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.held == nil {
		d.held = map[string]hold{}
	}
	d.held[kind] = h
	return h
}

func (d *heldDriver) wait(ctx context.Context, kind string) error {
	d.mu.Lock()
	h, held := d.held[kind]
	d.mu.Unlock()
	if !held {
		return nil
	}
	h.came <- struct{}{}
	select {
	case <-h.release:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Stop implements [driver.Driver].
func (d *heldDriver) Stop(ctx context.Context, _ driver.Instance) error { return d.wait(ctx, "stop") }

// Delete implements [driver.Driver].
func (d *heldDriver) Delete(ctx context.Context, i driver.Instance) (driver.Deletion, error) {
	if err := d.wait(ctx, "delete"); err != nil {
		return driver.Deletion{}, err
	}
	return d.Driver.Delete(ctx, i)
}

// inProcess serves a gateway on a database with a driver of the test's.
func inProcess(t *testing.T, dsn string, d driver.Driver) *replica {
	t.Helper()
	s, err := gateway.OpenStore(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(t.Context(), gateway.Config{
		Store: s, Driver: d, Version: gateway.APIVersion, Access: auth.Config{Unauthenticated: auth.FromLoopback},
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- g.Serve(listener) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		g.Shutdown(ctx)
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	})
	conn := connect(t, listener.Addr().String())
	return &replica{plain: openshellv1.NewOpenShellClient(conn), conditional: conditionalv1.NewConditionalSandboxesClient(conn)}
}

// TestLateAnswersChangeNothing has the driver of one gateway answer a stop only after another gateway has gone on: when
// that is deleting the sandbox, and when it has made another under the name.
func TestLateAnswersChangeNothing(t *testing.T) {
	dsn := pgtest.NewDatabase(t)
	slow, quick := &heldDriver{}, &heldDriver{}
	a, b := inProcess(t, dsn, slow), inProcess(t, dsn, quick)
	steer := map[string]any{"ready_after": "0s", "delete_after": "0s"}

	// stopSlowly returns when the stop is with the driver. It ends when that is released.
	stopSlowly := func(name string) (stop hold, stopped chan error) {
		a.create(t, name, steer)
		b.awaitPhase(t, name, ready)
		stop, stopped = slow.hold("stop"), make(chan error, 1)
		go func() {
			_, err := a.plain.StopSandbox(within(t), &openshellv1.StopSandboxRequest{Name: name, WorkspaceScope: gatewaytest.Default()})
			stopped <- err
		}()
		<-stop.came
		return stop, stopped
	}

	t.Run("it is being deleted", func(t *testing.T) {
		stop, stopped := stopSlowly("web")
		remove, deleted := quick.hold("delete"), make(chan error, 1)
		go func() {
			_, err := b.plain.DeleteSandbox(within(t), deleteRequest("web"))
			deleted <- err
		}()
		<-remove.came
		before := b.awaitPhase(t, "web", deleting)
		close(stop.release)
		if err := <-stopped; status.Code(err) != codes.FailedPrecondition {
			t.Errorf("the stop that was overtaken answered %v", err)
		}
		if after := b.get(within(t), t, "web"); !proto.Equal(after, before) {
			t.Errorf("the late answer changed it: it is %v, was %v", after, before)
		}
		close(remove.release)
		if err := <-deleted; err != nil {
			t.Error(err)
		}
		b.awaitGone(t, "web")
	})
	t.Run("it has a successor", func(t *testing.T) {
		stop, stopped := stopSlowly("db")
		b.delete(t, "db")
		b.awaitGone(t, "db")
		b.create(t, "db", steer)
		successor := b.awaitPhase(t, "db", ready)
		close(stop.release)
		if err := <-stopped; status.Code(err) != codes.NotFound {
			t.Errorf("the stop that was overtaken answered %v", err)
		}
		if now := b.get(within(t), t, "db"); !proto.Equal(now, successor) {
			t.Errorf("the late answer touched the successor: it is %v, was %v", now, successor)
		}
	})
}
