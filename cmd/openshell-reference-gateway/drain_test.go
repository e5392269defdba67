package main

import (
	"context"
	"errors"
	"net/http"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

// creating begins a create that takes longer than anybody waits, and returns once it is under way.
func creating(t *testing.T, c openshellv1.OpenShellClient) <-chan error {
	t.Helper()
	answered := make(chan error, 1)
	go func() {
		_, err := create(context.Background(), c, "slow", map[string]any{"create_takes": "1h"})
		answered <- err
	}()
	eventually(t, c, "slow", "there", func(_ *openshellv1.Sandbox, err error) bool { return err == nil })
	return answered
}

// holding begins a call and returns once the gateway has taken it up, which then waits for the message of the call. finish
// sends that, and returns what comes of it.
func holding(t *testing.T, conn *grpc.ClientConn) (finish func() error) {
	t.Helper()
	stream, err := conn.NewStream(call(t), &grpc.StreamDesc{}, openshellv1.OpenShell_CreateSandbox_FullMethodName)
	if err != nil {
		t.Fatal(err)
	}
	// What comes behind it on the connection is answered, so it has arrived.
	if _, err := openshellv1.NewOpenShellClient(conn).Health(call(t), &openshellv1.HealthRequest{}); err != nil {
		t.Fatal(err)
	}
	return func() error {
		err := stream.SendMsg(&openshellv1.CreateSandboxRequest{Name: "web", WorkspaceScope: inDefault(), Spec: &openshellv1.SandboxSpec{}})
		return errors.Join(err, stream.CloseSend(), stream.RecvMsg(&openshellv1.SandboxResponse{}))
	}
}

// terminate sends a signal and returns when the process has taken notice, which it shows in no other way. A call under way
// keeps it from ending before.
func terminate(t *testing.T, cmd *exec.Cmd, sig syscall.Signal, health string) {
	t.Helper()
	if err := cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	for ctx := call(t); ; {
		status, _, err := fetch(t, "http://127.0.0.1:"+health+"/readyz")
		switch {
		case err != nil:
			t.Fatalf("it has gone, in spite of a call under way: %v", err)
		case status == http.StatusServiceUnavailable:
			return
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("it does not turn: %d", status)
		}
	}
}

// A signal makes a process not ready, lets the call under way end, and then ends the process well: SIGHUP too, which comes
// when its terminal is closed.
func TestSignalsDrain(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			if signal.Ignored(sig) {
				t.Skip("whoever runs this test ignores it, and so does what the test starts")
			}
			health := freePorts(t, 1)[0]
			conn, cmd := spawn(t, "--disable-tls", "--port", "0", "--db-url", "sqlite::memory:", "--health-port", health)
			finish := holding(t, conn)
			if status, _, err := fetch(t, "http://127.0.0.1:"+health+"/readyz"); status != http.StatusOK {
				t.Errorf("before: %d, %v", status, err)
			}
			terminate(t, cmd, sig, health)
			if err := finish(); err != nil {
				t.Errorf("the call under way: %v", err)
			}
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A second signal does not wait.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	health := freePorts(t, 1)[0]
	conn, cmd := spawn(t, "--disable-tls", "--port", "0", "--db-url", "sqlite::memory:", "--health-port", health)
	answered := creating(t, openshellv1.NewOpenShellClient(conn))
	terminate(t, cmd, syscall.SIGTERM, health)
	began := time.Now()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // ended by a signal, which is an error
	if err := <-answered; err == nil {
		t.Error("the call was answered")
	}
	if took := time.Since(began); took > drainTimeout/2 {
		t.Errorf("it took %v", took)
	}
}
