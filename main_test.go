//go:build unix

package main

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/openshell-iac/terraform-provider-openshell/internal/acceptance/cli"
)

// A signal to the whole process group, as a container's or a CI runner's end sends it, must not end the plugin: the
// command line does that once the call under way has ended.
func TestPluginOutlivesSignals(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	binary, err := cli.Build(ctx, t.TempDir(), ".")
	if err != nil {
		t.Fatal(err)
	}
	plugin := exec.CommandContext(ctx, binary)
	// What every command line passes to a plugin it starts.
	plugin.Env = append(os.Environ(), "TF_PLUGIN_MAGIC_COOKIE=d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2", "PLUGIN_PROTOCOL_VERSIONS=6")
	stdout, err := plugin.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := plugin.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = plugin.Process.Kill()
		_ = plugin.Wait()
	}()
	handshake, err := bufio.NewReader(stdout).ReadString('\n') // 1|6|unix|PATH|grpc|…
	fields := strings.Split(handshake, "|")
	if err != nil || len(fields) < 5 {
		t.Fatalf("handshake %q, %v", handshake, err)
	}
	for _, signal := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		if err := plugin.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
	}
	conn, err := grpc.NewClient("unix://"+fields[3], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	reply, err := healthv1.NewHealthClient(conn).Check(ctx, &healthv1.HealthCheckRequest{Service: "plugin"})
	if err != nil || reply.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		t.Errorf("after the signals: %v, %v", reply, err)
	}
}
