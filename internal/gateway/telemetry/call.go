package telemetry

import (
	"context"
	"sync"

	"github.com/google/uuid"
	"google.golang.org/grpc/metadata"
)

// RequestIDHeader is in every response: the caller's value, or else one made here.
const RequestIDHeader = "x-request-id"

// maxText keeps a caller from filling the log; it is more than any name that can exist has.
const maxText = 256

// call is what is known of a call while it lasts.
type call struct {
	method    string
	requestID string
	peer      string

	mu               sync.Mutex // handlers may have goroutines of their own
	described        bool
	caller, provider string
	workspace, name  string
	expectedID, id   string
	precondition     Outcome
	replayed         bool
}

type callKey struct{}

func newCall(ctx context.Context, fullMethod string) *call {
	c := &call{method: clip(fullMethod), requestID: uuid.NewString()}
	if given := metadata.ValueFromIncomingContext(ctx, RequestIDHeader); len(given) > 0 && given[0] != "" && len(given[0]) <= maxText {
		c.requestID = given[0]
	}
	return c
}

// of is the call that ctx belongs to; one that nobody looks at when it belongs to none.
func of(ctx context.Context) *call {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		return c
	}
	return &call{}
}

// RequestID is the id of the call that ctx belongs to.
func RequestID(ctx context.Context) string { return of(ctx).requestID }

// Caller says who makes a call, and how that is known.
func Caller(ctx context.Context, subject, provider string) {
	c := of(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.caller, c.provider = clip(subject), provider
}

// Precondition says what came of the precondition of a call.
func Precondition(ctx context.Context, outcome Outcome) {
	c := of(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.precondition = outcome
}

// Replayed says that a call was answered from what came of an earlier one, and did nothing: no precondition was looked at.
func Replayed(ctx context.Context) {
	c := of(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.replayed = true
}

// Payload is what holds a request; its message is nil when the request could not be decoded.
type Payload interface{ Decoded() any }

// asked takes from a request what it is about.
func (c *call) asked(req any) {
	if p, ok := req.(Payload); ok {
		req = p.Decoded()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if req == nil || c.described { // streams may have further messages
		return
	}
	c.described = true
	workspace, name := About(req)
	c.workspace, c.name, c.expectedID = clip(workspace), clip(name), clip(expectedID(req))
}

// answered takes from a reply the id of what it is about.
func (c *call) answered(reply any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.id == "" {
		c.id = idIn(reply)
	}
}

func clip(text string) string {
	if len(text) <= maxText {
		return text
	}
	return text[:maxText] + "…"
}
