package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

const (
	startTimeout = 30 * time.Second
	stopTimeout  = 15 * time.Second
)

// gateway is a running openshell-reference-gateway.
type gateway struct {
	endpoint string
	conn     *grpc.ClientConn
	cmd      *exec.Cmd
	ended    chan struct{}
}

// startGateway runs the gateway on a free port of the loopback interface, with a database of its own in dir, and returns
// once it answers.
func startGateway(ctx context.Context, binary, dir string, flags ...string) (_ *gateway, err error) {
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	logFile, err := os.Create(filepath.Join(dir, "gateway.log"))
	if err != nil {
		return nil, err
	}
	g := &gateway{endpoint: "http://" + address, ended: make(chan struct{})}
	g.conn, err = grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	args := append([]string{"--disable-tls", "--port", port, "--db-url", "sqlite:" + filepath.Join(dir, "gateway.db")}, flags...)
	g.cmd = exec.Command(binary, args...)
	g.cmd.Stdout, g.cmd.Stderr = logFile, logFile
	g.cmd.Env = slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, "OPENSHELL_") })
	// The process has its own handle of the log.
	if err := errors.Join(g.cmd.Start(), logFile.Close()); err != nil {
		return nil, errors.Join(err, g.conn.Close())
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, errors.New("the gateway did not answer in time"))
	defer cancel()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	go func() {
		fail(fmt.Errorf("the gateway ended: %w", cmp.Or(g.cmd.Wait(), errors.New("exit code 0"))))
		close(g.ended)
	}()
	if _, err := g.api().Health(ctx, &openshellv1.HealthRequest{}, grpc.WaitForReady(true)); err != nil {
		printed, _ := os.ReadFile(logFile.Name())
		return nil, errors.Join(err, context.Cause(ctx), fmt.Errorf("it printed:\n%s", printed), g.stop())
	}
	return g, nil
}

func (g *gateway) api() openshellv1.OpenShellClient { return openshellv1.NewOpenShellClient(g.conn) }

// stop asks the gateway to end, and kills it when it does not.
func (g *gateway) stop() error {
	err := g.conn.Close()
	_ = g.cmd.Process.Signal(os.Interrupt)
	select {
	case <-g.ended:
		return err
	case <-time.After(stopTimeout):
		_ = g.cmd.Process.Kill()
		<-g.ended
		return errors.Join(err, fmt.Errorf("the gateway did not end within %s of SIGINT and was killed", stopTimeout))
	}
}

// freeAddress finds a port that nothing listens on.
func freeAddress(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
