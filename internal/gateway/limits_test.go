package gateway_test

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// As many calls on a connection as the limit says; one more is refused, and has a place when another has ended.
func TestStreamLimit(t *testing.T) {
	r := run(t, gateway.Config{Store: open(t), Limits: gateway.Limits{Streams: 3}})
	w := connect(t, r.address).taken()
	if got := w.settings[http2.SettingMaxConcurrentStreams]; got != 3 {
		t.Errorf("clients are told %d", got)
	}
	first := w.watchHealth()
	w.watchHealth()
	w.watchHealth()
	if refused := w.refused(); refused != nil {
		t.Errorf("refused within the limit: %v", refused)
	}
	tooMany := w.watchHealth()
	if refused := w.refused(); !slices.Equal(refused, []uint32{tooMany}) {
		t.Errorf("refused %v, want %d", refused, tooMany)
	}
	w.must(w.framer.WriteRSTStream(first, http2.ErrCodeCancel))
	w.watchHealth()
	if refused := w.refused(); refused != nil {
		t.Errorf("refused although another has ended: %v", refused)
	}
}

func TestDefaultStreamLimit(t *testing.T) {
	r := run(t, gateway.Config{Store: open(t)})
	if got := connect(t, r.address).taken().settings[http2.SettingMaxConcurrentStreams]; got != 1024 {
		t.Errorf("clients are told %d", got)
	}
}

// Pings that come faster than every five seconds are forgiven twice, the third time the connection ends.
func TestPingLimit(t *testing.T) {
	r := run(t, gateway.Config{Store: open(t)})
	w := connect(t, r.address).taken()
	for range 3 { // the first is in time
		w.ping()
		until[*http2.PingFrame](w)
	}
	w.ping()
	away := until[*http2.GoAwayFrame](w)
	if away.ErrCode != http2.ErrCodeEnhanceYourCalm || string(away.DebugData()) != "too_many_pings" {
		t.Errorf("%v: %s", away.ErrCode, away.DebugData())
	}
	for {
		if _, err := w.framer.ReadFrame(); err != nil {
			if !errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "reset") {
				t.Error(err)
			}
			return
		}
	}
}

// Clients that ping in time, as here every one is, stay connected also while they make no calls.
func TestPingsWithoutCalls(t *testing.T) {
	r := run(t, gateway.Config{Store: open(t), Limits: gateway.Limits{PingInterval: time.Nanosecond}})
	w := connect(t, r.address).taken()
	for range 8 {
		if refused := w.refused(); refused != nil { // a ping, and its answer
			t.Errorf("refused %v", refused)
		}
	}
}

// A client that is silent is asked whether it is still there.
func TestSilentClientsArePinged(t *testing.T) {
	r := run(t, gateway.Config{Store: open(t), Limits: gateway.Limits{KeepaliveTime: time.Second}})
	w := connect(t, r.address).taken()
	for until[*http2.PingFrame](w).IsAck() {
	}
}

// witness tells when connections come and go.
type witness struct {
	net.Listener
	mu     sync.Mutex
	events []string
}

func (l *witness) happened(event string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, event)
}

func (l *witness) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.happened("accept")
	return &witnessed{Conn: conn, listener: l}, nil
}

type witnessed struct {
	net.Conn
	listener *witness
	once     sync.Once
}

func (c *witnessed) Close() error {
	c.once.Do(func() { c.listener.happened("close") })
	return c.Conn.Close()
}

// As many connections as the limit says; one more waits until another is closed.
func TestConnectionLimit(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener := &witness{Listener: inner}
	r := runOn(t, listener, gateway.Config{Store: open(t), Limits: gateway.Limits{Connections: 2}})
	first, second := connect(t, r.address).taken(), connect(t, r.address).taken()
	third := connect(t, r.address)
	second.refused() // a round trip
	w := []error{first.conn.Close()}
	third.taken()
	w = append(w, second.conn.Close(), third.conn.Close())
	if err := errors.Join(w...); err != nil {
		t.Error(err)
	}
	listener.mu.Lock()
	defer listener.mu.Unlock()
	if want := []string{"accept", "accept", "close", "accept"}; len(listener.events) < 4 || !slices.Equal(listener.events[:4], want) {
		t.Errorf("%v", listener.events)
	}
}

// deadlines is a store that tells how long calls may take.
type deadlines struct {
	store.Store
	seen chan time.Duration
}

func (d deadlines) Sandbox(ctx context.Context, _, _ string) (store.Sandbox, error) {
	deadline, ok := ctx.Deadline()
	if !ok {
		d.seen <- -1
	} else {
		d.seen <- time.Until(deadline)
	}
	return store.Sandbox{}, store.ErrNotFound
}

// unbounded is the context of a call without a deadline, which a test waits for no longer than for others all the same.
func unbounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	timer := time.AfterFunc(gatewaytest.Timeout, cancel)
	t.Cleanup(func() { timer.Stop(); cancel() })
	return ctx
}

// A call without a deadline, or with a later one, gets the ceiling; an earlier one stays.
func TestDeadlineCeiling(t *testing.T) {
	d := deadlines{open(t), make(chan time.Duration, 1)}
	r := run(t, gateway.Config{Store: d, Limits: gateway.Limits{CallTime: time.Hour}})
	for name, tc := range map[string]struct{ asked, most time.Duration }{
		"none": {0, time.Hour}, "earlier": {10 * time.Minute, 10 * time.Minute}, "later": {2 * time.Hour, time.Hour},
	} {
		ctx := unbounded(t)
		if tc.asked != 0 {
			var cancel func()
			ctx, cancel = context.WithTimeout(ctx, tc.asked)
			defer cancel()
		}
		_, err := r.client.GetSandbox(ctx, getWeb())
		wantCode(t, err, codes.NotFound)
		if left := <-d.seen; left > tc.most || left < tc.most-time.Minute {
			t.Errorf("%s: %v are left, want %v", name, left, tc.most)
		}
	}
}

// What a call has begun goes on when its time is over.
func TestCallsEndAtTheCeiling(t *testing.T) {
	h, sandboxes := newHeld(), open(t)
	r := run(t, gateway.Config{Store: sandboxes, Driver: h, Limits: gateway.Limits{CallTime: time.Second}})
	_, err := r.client.CreateSandbox(unbounded(t), createWeb(&openshellv1.SandboxSpec{}))
	if wantCode(t, err, codes.DeadlineExceeded); !strings.Contains(err.Error(), "1s that this gateway allows") {
		t.Error(err)
	}
	select {
	case <-h.called:
	case <-call(t).Done():
		t.Fatal("the driver was not called")
	}
	close(h.goOn)
	r.Shutdown(call(t)) // which waits for what was begun
	if s, err := sandboxes.Sandbox(call(t), store.DefaultWorkspace, "web"); err != nil || s.Operation.Pending {
		t.Errorf("%v, %v", s, err)
	}
}

func TestStreamsEndAtTheCeiling(t *testing.T) {
	r := run(t, gateway.Config{Store: open(t), Limits: gateway.Limits{CallTime: 100 * time.Millisecond}})
	began := time.Now()
	watch, err := r.health.Watch(unbounded(t), &healthv1.HealthCheckRequest{})
	for err == nil {
		_, err = watch.Recv()
	}
	wantCode(t, err, codes.DeadlineExceeded)
	idle, err := reflectionv1.NewServerReflectionClient(r.conn).ServerReflectionInfo(unbounded(t))
	if err == nil {
		_, err = idle.Recv()
	}
	if wantCode(t, err, codes.DeadlineExceeded); time.Since(began) > gatewaytest.Timeout/3 {
		t.Errorf("the streams ended after %v", time.Since(began))
	}
}

// A connection that has become old takes no new calls. Those under way end on it, and the client notices nothing.
func TestConnectionAge(t *testing.T) {
	h := newHeld()
	r := run(t, gateway.Config{Store: open(t), Driver: h, Limits: gateway.Limits{ConnectionAge: 50 * time.Millisecond}})
	answered := make(chan error, 1)
	go func() {
		_, err := r.client.CreateSandbox(unbounded(t), createWeb(&openshellv1.SandboxSpec{}))
		answered <- err
	}()
	<-h.called
	if !r.conn.WaitForStateChange(call(t), connectivity.Ready) {
		t.Error("the connection stays")
	}
	if _, err := r.client.Health(call(t), &openshellv1.HealthRequest{}); err != nil {
		t.Errorf("a new call: %v", err)
	}
	close(h.goOn)
	if err := <-answered; err != nil {
		t.Errorf("the call under way: %v", err)
	}
	if away := until[*http2.GoAwayFrame](connect(t, r.address).taken()); away.ErrCode != http2.ErrCodeNo {
		t.Errorf("%v", away.ErrCode)
	}
}

// Headers may be as long as a call can need.
func TestHeaderLimit(t *testing.T) {
	r := run(t, gateway.Config{Store: open(t)})
	with := func(size int) error {
		ctx := metadata.AppendToOutgoingContext(call(t), "x-much", strings.Repeat("~", size))
		_, err := r.client.Health(ctx, &openshellv1.HealthRequest{})
		return err
	}
	wantCode(t, with(63<<10), codes.OK)
	wantCode(t, with(64<<10), codes.Internal) // a client may know the limit, and then does not send
}
