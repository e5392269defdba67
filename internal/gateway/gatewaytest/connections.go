package gatewaytest

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"
	"time"
)

// connections are those that are open, by the client's address.
type connections struct {
	mu   sync.Mutex
	open map[string]bool
	// others are of the other client.
	others map[string]bool
}

// WaitIdle waits until nobody but the other client is connected and every call has come to an end, as it is some time after
// a client process has ended: what that sent last may arrive even later.
func (g *Gateway) WaitIdle(t testing.TB) {
	t.Helper()
	ctx := timeout(t)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !g.connections.idle() || slices.ContainsFunc(g.AllCalls(), func(c Call) bool { return !c.Answered }) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("a client is still connected after %v", Timeout)
		}
	}
}

func (c *connections) idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for address := range c.open {
		if !c.others[address] {
			return false
		}
	}
	return true
}

// dial connects the other client.
func (c *connections) dial(ctx context.Context, address string) (net.Conn, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.others[conn.LocalAddr().String()] = true
	}
	return conn, err
}

// listener notes what it accepts.
type listener struct {
	net.Listener
	connections *connections
}

// Accept implements [net.Listener].
func (l listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.connections.mu.Lock()
	defer l.connections.mu.Unlock()
	l.connections.open[conn.RemoteAddr().String()] = true
	return accepted{conn, l.connections}, nil
}

type accepted struct {
	net.Conn
	connections *connections
}

// Close implements [net.Conn].
func (a accepted) Close() error {
	a.connections.mu.Lock()
	defer a.connections.mu.Unlock()
	delete(a.connections.open, a.RemoteAddr().String())
	return a.Conn.Close()
}
