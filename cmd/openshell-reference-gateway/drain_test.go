package main

import (
	"context"
	"net/http"
	"os/exec"
	"syscall"
	"testing"
	"time"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

// creating begins a create that takes a while, and returns once it is under way.
func creating(t *testing.T, c openshellv1.OpenShellClient, takes string) <-chan error {
	t.Helper()
	answered := make(chan error, 1)
	go func() {
		_, err := create(context.Background(), c, "slow", map[string]any{"create_takes": takes})
		answered <- err
	}()
	eventually(t, c, "slow", "there", func(_ *openshellv1.Sandbox, err error) bool { return err == nil })
	return answered
}

// terminate sends SIGTERM and returns when the process has taken notice, which it shows in no other way.
func terminate(t *testing.T, cmd *exec.Cmd, health string) {
	t.Helper()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for ctx := call(t); ; {
		status, _, err := fetch(t, "http://127.0.0.1:"+health+"/readyz")
		if status == http.StatusServiceUnavailable {
			return
		}
		if err != nil || ctx.Err() != nil {
			t.Fatalf("it does not turn: %d, %v", status, err)
		}
	}
}

// SIGTERM makes a process not ready, lets the call under way end, and then ends the process well.
func TestSIGTERMDrains(t *testing.T) {
	health := freePort(t)
	c, cmd := spawn(t, "--disable-tls", "--port", "0", "--db-url", "sqlite::memory:", "--health-port", health)
	answered := creating(t, c, "2s")
	if status, _, err := fetch(t, "http://127.0.0.1:"+health+"/readyz"); status != http.StatusOK {
		t.Errorf("before: %d, %v", status, err)
	}
	terminate(t, cmd, health)
	if err := <-answered; err != nil {
		t.Errorf("the call under way: %v", err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// A second signal does not wait.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	health := freePort(t)
	c, cmd := spawn(t, "--disable-tls", "--port", "0", "--db-url", "sqlite::memory:", "--health-port", health)
	answered := creating(t, c, "1h")
	terminate(t, cmd, health)
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
