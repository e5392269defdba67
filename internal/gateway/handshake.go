package gateway

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"syscall"

	"google.golang.org/grpc/credentials"
)

// loggedHandshakes says in the log why a client did not get as far as a call, such as with a certificate of an authority that
// is not trusted. Nothing else does.
type loggedHandshakes struct {
	credentials.TransportCredentials
	log *slog.Logger
}

// ServerHandshake implements [credentials.TransportCredentials].
func (l loggedHandshakes) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := l.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		level := slog.LevelInfo
		if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) { // a look whether the port is open
			level = slog.LevelDebug
		}
		l.log.Log(context.Background(), level, "a TLS handshake failed", "peer", raw.RemoteAddr().String(), "error", err)
	}
	return conn, info, err
}

// Clone implements [credentials.TransportCredentials].
func (l loggedHandshakes) Clone() credentials.TransportCredentials {
	return loggedHandshakes{l.TransportCredentials.Clone(), l.log}
}
