package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

// runAsCommand makes the test binary be the command.
const runAsCommand = "TEST_RUN_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(runAsCommand) != "" {
		main()
	}
	os.Exit(m.Run())
}

// process runs the command as a process of its own on a database, which kill ends with SIGKILL.
func process(t *testing.T, db string) (c openshellv1.OpenShellClient, kill func()) {
	t.Helper()
	conn, cmd := spawn(t, "--disable-tls", "--port", "0", "--db-url", "sqlite:"+db)
	killed := false
	return openshellv1.NewOpenShellClient(conn), func() {
		if !killed {
			killed = true
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}
}

// spawn runs the command as a process of its own, which ends with the test at the latest.
func spawn(t *testing.T, args ...string) (*grpc.ClientConn, *exec.Cmd) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = []string{runAsCommand + "=1"}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		t.Fatalf("%v: %s", err, stderr.String())
	}
	_, endpoint, _ := strings.Cut(strings.TrimSpace(line), " listens on ")
	return dial(t, endpoint, insecure.NewCredentials()), cmd
}

func inDefault() *datamodelv1.WorkspaceSelector {
	return &datamodelv1.WorkspaceSelector{Selection: &datamodelv1.WorkspaceSelector_Workspace{Workspace: "default"}}
}

func create(ctx context.Context, c openshellv1.OpenShellClient, name string, keys map[string]any) (id string, err error) {
	config, err := structpb.NewStruct(map[string]any{"simulated": keys})
	if err != nil {
		return "", err
	}
	reply, err := c.CreateSandbox(ctx, &openshellv1.CreateSandboxRequest{
		Name: name, WorkspaceScope: inDefault(), Spec: &openshellv1.SandboxSpec{Template: &openshellv1.SandboxTemplate{DriverConfig: config}},
	})
	return reply.GetSandbox().GetMetadata().GetId(), err
}

// eventually asks a process, which cannot be waited for otherwise, until the sandbox under a name is as it should be.
func eventually(t *testing.T, c openshellv1.OpenShellClient, name, want string, reached func(s *openshellv1.Sandbox, err error) bool) {
	t.Helper()
	ctx := call(t)
	for {
		reply, err := c.GetSandbox(ctx, &openshellv1.GetSandboxRequest{Name: name, WorkspaceScope: inDefault()})
		if reached(reply.GetSandbox(), err) {
			return
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("%s is not %s but %v (%v)", name, want, reply.GetSandbox(), err)
		}
	}
}

func inPhase(id string, phase openshellv1.SandboxPhase) func(*openshellv1.Sandbox, error) bool {
	return func(s *openshellv1.Sandbox, err error) bool {
		return err == nil && s.GetMetadata().GetId() == id && s.GetStatus().GetPhase() == phase
	}
}

// A process that is killed leaves nothing stuck: deletes that were acknowledged end, by id, and creates that the driver had
// not answered are brought to their end.
func TestKill(t *testing.T) {
	const ready = openshellv1.SandboxPhase_SANDBOX_PHASE_READY
	db := filepath.Join(t.TempDir(), "a.db")
	for round := range 5 {
		c, kill := process(t, db)
		name := func(s string) string { return fmt.Sprintf("%s-%d", s, round) }
		doomed, err := create(call(t), c, name("doomed"), map[string]any{"delete_after": "500ms"})
		if err != nil {
			t.Fatal(err)
		}
		kept, err := create(call(t), c, name("kept"), map[string]any{"ready_after": "500ms"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.DeleteSandbox(call(t), &openshellv1.DeleteSandboxRequest{Name: name("doomed"), WorkspaceScope: inDefault()}); err != nil {
			t.Fatal(err)
		}
		pending := make(chan error, 1)
		go func() {
			_, err := create(call(t), c, name("pending"), map[string]any{"create_takes": "500ms"})
			pending <- err
		}()
		eventually(t, c, name("pending"), "there", func(_ *openshellv1.Sandbox, err error) bool { return err == nil })
		kill()
		if err := <-pending; status.Code(err) != codes.Unavailable {
			t.Errorf("the create under way: %v", err)
		}

		c, kill = process(t, db)
		eventually(t, c, name("doomed"), "gone", func(_ *openshellv1.Sandbox, err error) bool { return status.Code(err) == codes.NotFound })
		successor, err := create(call(t), c, name("doomed"), nil)
		if err != nil || successor == doomed {
			t.Errorf("the successor of %s: %s, %v", doomed, successor, err)
		}
		eventually(t, c, name("pending"), "ready", func(s *openshellv1.Sandbox, err error) bool {
			return err == nil && s.GetStatus().GetPhase() == ready && !s.GetStatus().GetProvisioning().GetDriverOperationPending()
		})
		eventually(t, c, name("kept"), "ready", inPhase(kept, ready))
		eventually(t, c, name("doomed"), "ready again", inPhase(successor, ready))
		kill()
	}
}
