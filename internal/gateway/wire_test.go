package gateway_test

import (
	"bytes"
	"net"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// wire is an HTTP/2 client that minds no limit, other than those of libraries.
type wire struct {
	t      *testing.T
	conn   net.Conn
	framer *http2.Framer
	// settings are those of the server.
	settings map[http2.SettingID]uint32
	streams  uint32
}

// connect opens a connection, which the server may not take up yet.
func connect(t *testing.T, address string) *wire {
	t.Helper()
	conn, err := net.DialTimeout("tcp", address, gatewaytest.Timeout)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(gatewaytest.Timeout)); err != nil {
		t.Fatal(err)
	}
	w := &wire{t: t, conn: conn, framer: http2.NewFramer(conn, conn), settings: map[http2.SettingID]uint32{}}
	if _, err := conn.Write([]byte(http2.ClientPreface)); err != nil {
		t.Fatal(err)
	}
	w.must(w.framer.WriteSettings())
	return w
}

func (w *wire) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// taken waits until the server has taken the connection up.
func (w *wire) taken() *wire {
	w.t.Helper()
	settings := until[*http2.SettingsFrame](w)
	w.must(settings.ForeachSetting(func(s http2.Setting) error { w.settings[s.ID] = s.Val; return nil }))
	w.must(w.framer.WriteSettingsAck())
	return w
}

// until reads to the next frame of a kind.
func until[F http2.Frame](w *wire) F {
	w.t.Helper()
	for {
		frame, err := w.framer.ReadFrame()
		w.must(err)
		if f, ok := frame.(F); ok {
			return f
		}
	}
}

// watchHealth opens a stream of the health service and sends no message. It returns the id of the stream.
func (w *wire) watchHealth() uint32 {
	w.t.Helper()
	id := 2*w.streams + 1
	w.streams++
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for _, field := range [][2]string{
		{":method", "POST"}, {":scheme", "http"}, {":path", healthv1.Health_Watch_FullMethodName}, {":authority", "gateway"},
		{"content-type", "application/grpc"}, {"te", "trailers"},
	} {
		w.must(encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}))
	}
	w.must(w.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(), EndHeaders: true}))
	return id
}

func (w *wire) ping() {
	w.t.Helper()
	w.must(w.framer.WritePing(false, [8]byte{}))
}

// refused has the server answer a ping, and returns the streams that it refused before it did.
func (w *wire) refused() []uint32 {
	w.t.Helper()
	w.ping()
	var streams []uint32
	for {
		frame, err := w.framer.ReadFrame()
		w.must(err)
		switch frame := frame.(type) {
		case *http2.RSTStreamFrame:
			if frame.ErrCode == http2.ErrCodeRefusedStream {
				streams = append(streams, frame.StreamID)
			}
		case *http2.PingFrame:
			if frame.IsAck() {
				return streams
			}
		}
	}
}
