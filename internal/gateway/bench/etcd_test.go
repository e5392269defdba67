package bench

import (
	"context"
	"fmt"
	"math"
	"net"
	"os/exec"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/openshell-iac/terraform-provider-openshell/internal/testproc"
)

// etcd measures the same compare-and-delete as a transaction of etcd on the same disk; not a number where there is no
// etcd.
func etcd(b *testing.B, n int) float64 {
	b.Helper()
	path, err := exec.LookPath("etcd")
	if err != nil {
		b.Log("etcd is not measured: it is missing (Debian: apt-get install etcd-server)")
		return math.NaN()
	}
	conns, stop := startEtcd(b, path, n)
	defer stop()
	each(b, n, func(client int) error {
		for i := range deletesPerClient {
			if _, err := conns[client].Put(b.Context(), name(client, i), id(client, i)); err != nil {
				return err
			}
		}
		return nil
	})
	return perSecond(n*deletesPerClient, each(b, n, func(client int) error {
		for i := range deletesPerClient {
			key := name(client, i)
			reply, err := conns[client].Txn(b.Context()).
				If(clientv3.Compare(clientv3.Value(key), "=", id(client, i))).
				Then(clientv3.OpDelete(key)).Else(clientv3.OpGet(key)).Commit()
			if err != nil || !reply.Succeeded {
				return fmt.Errorf("etcd: %v (%w)", reply, err)
			}
		}
		return nil
	}))
}

func id(client, i int) string { return fmt.Sprintf("00000000-0000-4000-8000-%06d%06d", client, i) }

// startEtcd starts an etcd without data and returns a connection to it for each client.
func startEtcd(b *testing.B, path string, n int) (conns []*clientv3.Client, stop func()) {
	b.Helper()
	clientURL, peerURL := "http://"+freeAddress(b), "http://"+freeAddress(b)
	cmd := exec.Command(path, "--data-dir", b.TempDir(), "--log-level", "error",
		"--listen-client-urls", clientURL, "--advertise-client-urls", clientURL,
		"--listen-peer-urls", peerURL, "--initial-advertise-peer-urls", peerURL, "--initial-cluster", "default="+peerURL)
	ended, err := testproc.Start(cmd, syscall.SIGKILL)
	if err != nil {
		b.Fatal(err)
	}
	kill := func() {
		_ = cmd.Process.Kill()
		<-ended
	}
	b.Cleanup(kill)
	conns = make([]*clientv3.Client, n)
	for i := range conns {
		if conns[i], err = clientv3.New(clientv3.Config{Endpoints: []string{clientURL}, DialTimeout: 30 * time.Second, Logger: zap.NewNop()}); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = conns[i].Close() })
	}
	ctx, cancel := context.WithTimeout(b.Context(), 30*time.Second)
	defer cancel()
	for { // until it has elected itself
		attempt, cancel := context.WithTimeout(ctx, time.Second)
		_, err := conns[0].Put(attempt, "ready", "")
		cancel()
		if err == nil {
			return conns, kill
		}
		if ctx.Err() != nil {
			b.Fatalf("etcd does not get ready: %v", err)
		}
	}
}

func freeAddress(b *testing.B) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}
