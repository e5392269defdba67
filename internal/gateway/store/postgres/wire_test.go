package postgres

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync"
)

// wire is the network between a store and its database. It can break at a COMMIT.
type wire struct {
	mu sync.Mutex
	// commit, when set, is called in place of the next COMMIT that is sent, and then taken off.
	commit func(c *brokenConn)
	// down refuses new connections.
	down bool
}

// through makes the store connect through w.
func (w *wire) through(cfg *config) {
	dial := cfg.conn.DialFunc
	cfg.conn.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		w.mu.Lock()
		down := w.down
		w.mu.Unlock()
		if down {
			return nil, &net.OpError{Op: "dial", Net: network, Err: errors.New("the wire is cut")}
		}
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &brokenConn{Conn: conn, wire: w}, nil
	}
}

// loseCommit cuts the connection before the next COMMIT is sent, and then calls then.
func (w *wire) loseCommit(then func()) {
	w.atCommit(func(c *brokenConn) {
		_ = c.Conn.Close()
		then()
	})
}

// loseAnswer cuts the connection when the answer to the next COMMIT has come, before it is passed on, and then calls then.
func (w *wire) loseAnswer(then func()) {
	w.atCommit(func(c *brokenConn) {
		c.send()
		_, _ = c.Conn.Read(make([]byte, 1024))
		_ = c.Conn.Close()
		then()
	})
}

// send passes a COMMIT on.
func (c *brokenConn) send() { _, _ = c.Conn.Write(commitMessage) }

func (w *wire) atCommit(fn func(c *brokenConn)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.commit = fn
}

func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = true
}

// commitMessage is a simple query of the protocol.
var commitMessage = append([]byte{'Q', 0, 0, 0, 11}, "COMMIT\x00"...)

type brokenConn struct {
	net.Conn
	wire *wire
}

func (c *brokenConn) Write(b []byte) (int, error) {
	if bytes.Equal(b, commitMessage) {
		c.wire.mu.Lock()
		fn := c.wire.commit
		c.wire.commit = nil
		c.wire.mu.Unlock()
		if fn != nil {
			done := make(chan struct{})
			go func() { // of its own, so that a test that fails in there does not end in the middle of the driver
				defer close(done)
				fn(c)
			}()
			<-done
			return len(b), nil // it is only when the answer does not come that the client sees
		}
	}
	return c.Conn.Write(b)
}
