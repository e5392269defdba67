package gateway

import (
	"cmp"
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
)

// Limits bound what callers can take of a gateway. A zero value stands for the default.
type Limits struct {
	// Connections are open at the same time; further ones wait until one is closed.
	Connections int
	// Streams are the calls under way at the same time on one connection; clients hold further ones back.
	Streams uint32
	// Watches are under way at the same time; further ones are refused.
	Watches int
	// CallTime is the longest that a call may take. One without a deadline, or with a later one, gets this one. What it
	// has begun goes on.
	CallTime time.Duration
	// ConnectionAge is how long a connection takes new calls; then clients open another. Calls under way end on the old
	// one. So a client certificate whose authority is not trusted any more, and a replica that is new, are noticed.
	ConnectionAge time.Duration
	// PingInterval is the shortest time between pings, calls under way or not. A client that keeps pinging faster is
	// disconnected.
	PingInterval time.Duration
	// KeepaliveTime is how long a connection may be silent before the gateway pings its client, at least a second. A client
	// that does not answer is gone.
	KeepaliveTime time.Duration
}

// Defaults of [Limits]. Streams and keepalive are upstream's (upstream-contract, transport); its clients ping every 10 s.
const (
	DefaultConnections   = 4096
	DefaultStreams       = 1024
	DefaultWatches       = 1000
	DefaultCallTime      = time.Hour
	DefaultConnectionAge = time.Hour
	DefaultPingInterval  = 5 * time.Second
	DefaultKeepaliveTime = 20 * time.Second
)

func (l Limits) withDefaults() Limits {
	return Limits{
		Connections:   cmp.Or(l.Connections, DefaultConnections),
		Streams:       cmp.Or(l.Streams, DefaultStreams),
		Watches:       cmp.Or(l.Watches, DefaultWatches),
		CallTime:      cmp.Or(l.CallTime, DefaultCallTime),
		ConnectionAge: cmp.Or(l.ConnectionAge, DefaultConnectionAge),
		PingInterval:  cmp.Or(l.PingInterval, DefaultPingInterval),
		KeepaliveTime: cmp.Or(l.KeepaliveTime, DefaultKeepaliveTime),
	}
}

const (
	// maxMessage is the largest request in bytes (upstream-contract, size limits).
	maxMessage = 1 << 20
	// maxHeaders is far above what a call carries, its token included, and far below gRPC's own 16 MiB.
	maxHeaders = 64 << 10
	// handshakeTimeout bounds how long a connection may take until it can carry calls.
	handshakeTimeout = 20 * time.Second
	// keepaliveTimeout is upstream's (upstream-contract, transport).
	keepaliveTimeout = 10 * time.Second
)

func (l Limits) options() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxHeaderListSize(maxHeaders),
		grpc.MaxConcurrentStreams(l.Streams),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			Time: l.KeepaliveTime, Timeout: keepaliveTimeout,
			// No call takes longer than the grace, so none is broken off by it.
			MaxConnectionAge: l.ConnectionAge, MaxConnectionAgeGrace: l.CallTime,
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: l.PingInterval, PermitWithoutStream: true}),
	}
}

// boundUnary gives every call its deadline; an earlier one of its own stays.
func (l Limits) boundUnary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	bounded, cancel := context.WithTimeout(ctx, l.CallTime)
	defer cancel()
	reply, err := handler(bounded, req)
	return reply, l.explain(ctx, bounded, err)
}

// errStreamDraining ends a stream when the gateway shuts down.
var errStreamDraining = status.Error(codes.Unavailable, "the gateway is shutting down; call again")

// boundStream is the same for streams, and ends them when the gateway drains: clients keep those of health, reflection and
// watches open for as long as they can.
func (l Limits) boundStream(draining context.Context) grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		bounded, cancel := context.WithTimeout(stream.Context(), l.CallTime)
		defer cancel()
		defer context.AfterFunc(draining, cancel)()
		err := handler(srv, boundedStream{stream, bounded})
		if status.Code(err) == codes.Canceled && draining.Err() != nil && stream.Context().Err() == nil {
			return errStreamDraining
		}
		return l.explain(stream.Context(), bounded, err)
	}
}

// explain tells the caller that it was the gateway who set the deadline.
func (l Limits) explain(own, bounded context.Context, err error) error {
	code := status.Code(err)
	if code != codes.DeadlineExceeded && code != codes.Canceled || own.Err() != nil || bounded.Err() == nil {
		return err
	}
	return status.Errorf(codes.DeadlineExceeded, "the call took longer than the %v that this gateway allows; what it has begun goes on", l.CallTime)
}

type boundedStream struct {
	grpc.ServerStream
	ctx context.Context
}

// Context implements [grpc.ServerStream].
func (s boundedStream) Context() context.Context { return s.ctx }

// RecvMsg implements [grpc.ServerStream]. gRPC's own waits until the client sends something or goes. When the bounds are
// reached the handler returns, whereupon gRPC ends what still waits here.
func (s boundedStream) RecvMsg(m any) error {
	received := make(chan error, 1)
	go func() { received <- s.ServerStream.RecvMsg(m) }()
	select {
	case err := <-received:
		return err
	case <-s.ctx.Done():
		return status.FromContextError(s.ctx.Err()).Err()
	}
}
