package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"
)

// Bounds of the HTTP servers for health and metrics, which anybody may ask who reaches them.
const (
	httpReadTimeout  = 5 * time.Second
	httpWriteTimeout = 15 * time.Second
	httpIdleTimeout  = time.Minute
	httpMaxHeaders   = 16 << 10
	httpStopTimeout  = time.Second
)

// serveHTTP serves a handler at the port that a flag gives, until stop is called; at port 0 it serves nothing.
func (f flags) serveHTTP(ctx context.Context, flag string, port uint16, handler http.Handler, log *slog.Logger) (stop func(), err error) {
	if port == 0 {
		return func() {}, nil
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(f.BindAddress, strconv.Itoa(int(port))))
	if err != nil {
		return nil, fmt.Errorf("%s %d: %w", flag, port, err)
	}
	server := &http.Server{
		Handler:     handler,
		ReadTimeout: httpReadTimeout, WriteTimeout: httpWriteTimeout, IdleTimeout: httpIdleTimeout, MaxHeaderBytes: httpMaxHeaders,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("an HTTP server ended", "flag", flag, "error", err)
		}
	}()
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), httpStopTimeout)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			_ = server.Close() // whoever is still asking has had time
		}
		<-served
	}, nil
}
