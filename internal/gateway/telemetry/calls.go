package telemetry

import (
	"context"
	"log/slog"
	"time"

	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
)

// TagRPC implements [stats.Handler]: a call begins.
func (t *Telemetry) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	return context.WithValue(ctx, callKey{}, newCall(ctx, info.FullMethodName))
}

// HandleRPC implements [stats.Handler].
func (t *Telemetry) HandleRPC(ctx context.Context, event stats.RPCStats) {
	c := of(ctx)
	switch event := event.(type) {
	case *stats.InHeader:
		if event.RemoteAddr != nil {
			c.peer = event.RemoteAddr.String()
		}
	case *stats.InPayload:
		c.asked(event.Payload)
	case *stats.OutPayload:
		c.answered(event.Payload)
	case *stats.End:
		t.ended(ctx, c, event)
	}
}

// TagConn implements [stats.Handler].
func (t *Telemetry) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements [stats.Handler].
func (t *Telemetry) HandleConn(_ context.Context, event stats.ConnStats) {
	switch event.(type) {
	case *stats.ConnBegin:
		t.metrics.connections.Inc()
	case *stats.ConnEnd:
		t.metrics.connections.Dec()
	}
}

// ended writes the line of a call and counts it.
func (t *Telemetry) ended(ctx context.Context, c *call, end *stats.End) {
	c.mu.Lock()
	defer c.mu.Unlock()
	took := end.EndTime.Sub(end.BeginTime)
	outcome := status.Code(end.Error)

	if c.replayed {
		c.precondition = ""
	}
	m := t.method(c.method)
	t.metrics.calls.WithLabelValues(m.kind, m.service, m.name, outcome.String()).Inc()
	t.metrics.callTime.WithLabelValues(m.kind, m.service, m.name).Observe(took.Seconds())
	if c.precondition != "" {
		t.metrics.preconditions.WithLabelValues(m.name, string(c.precondition)).Inc()
	}
	t.log.LogAttrs(ctx, c.level(outcome), "call", c.attributes(outcome, end.Error, took)...)
}

func (c *call) attributes(outcome codes.Code, err error, took time.Duration) []slog.Attr {
	attrs := []slog.Attr{slog.String("request_id", c.requestID), slog.String("method", c.method)}
	add := func(key, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(key, value))
		}
	}
	add("peer", c.peer)
	add("caller", c.caller)
	add("identity_provider", c.provider)
	add("workspace", c.workspace)
	add("name", c.name)
	add("expected_id", c.expectedID)
	add("id", c.id)
	add("precondition", string(c.precondition))
	if c.replayed {
		attrs = append(attrs, slog.Bool("replayed", true))
	}
	add("outcome", code.Code(outcome).String()) //nolint:gosec // codes are small
	if err != nil {
		add("reason", reason(err))
		add("error", clip(status.Convert(err).Message()))
	}
	return append(attrs, slog.Float64("duration_seconds", took.Round(time.Microsecond).Seconds()))
}

// reason is that of the structured errors.
func reason(err error) string {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			return info.GetReason()
		}
	}
	return ""
}

// level keeps errors for what the gateway's operator should look into.
func (c *call) level(outcome codes.Code) slog.Level {
	switch outcome {
	case codes.Internal, codes.Unknown, codes.DataLoss:
		if !c.described { // there was no request, or none that could be decoded
			return slog.LevelInfo
		}
		return slog.LevelError
	case codes.Unavailable, codes.ResourceExhausted:
		return slog.LevelWarn
	default:
		return slog.LevelInfo
	}
}
