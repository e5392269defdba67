package client

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
)

const (
	redacted = "(sensitive value)"
	// minSecret keeps values like "1" or "on" from tearing every text apart; nothing that short is a secret.
	minSecret = 4
)

type secretsKey struct{}

// WithSecrets makes calls under the context keep the values out of error texts, besides the client's own tokens and headers.
func WithSecrets(ctx context.Context, values ...string) context.Context {
	have, _ := ctx.Value(secretsKey{}).([]string)
	return context.WithValue(ctx, secretsKey{}, append(slices.Clone(have), values...))
}

// Scrub removes the secrets known to the client and the context from text that a gateway wrote.
func (c *Client) Scrub(ctx context.Context, text string) string {
	fromContext, _ := ctx.Value(secretsKey{}).([]string)
	return scrub(text, append(c.secrets.all(), fromContext...))
}

// secrets are the values that a client has sent to prove who it is. The zero value is empty.
type secrets struct {
	mu     sync.Mutex
	values []string
}

func (s *secrets) add(values ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, value := range values {
		if !slices.Contains(s.values, value) {
			s.values = append(s.values, value)
		}
	}
}

func (s *secrets) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.values)
}

func scrub(text string, secrets []string) string {
	var needles []string
	for _, s := range secrets {
		if len(s) < minSecret {
			continue
		}
		// Servers often quote values, which escapes some characters.
		needles = append(needles, s, strings.Trim(strconv.Quote(s), `"`), strings.Trim(strconv.QuoteToASCII(s), `"`))
	}
	// The longest first, so that a secret that contains another one leaves no tail.
	slices.SortFunc(needles, func(a, b string) int { return len(b) - len(a) })
	for _, n := range slices.Compact(needles) {
		text = strings.ReplaceAll(text, n, redacted)
	}
	return text
}

// scrubErrors is the interceptor right inside authenticate, which adds the secrets: what a gateway says reaches nobody before
// it is clean.
func (c *Client) scrubErrors(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	err := invoke(ctx, method, req, reply, cc, opts...)
	if err == nil {
		return nil
	}
	st, _ := status.FromError(err)
	var details []protoadapt.MessageV1
	for _, d := range st.Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			clean := proto.CloneOf(d)
			for k, v := range clean.GetMetadata() {
				if !IsUUID(v) { // an id decides what happens next, even if somebody put it into the environment
					clean.Metadata[k] = c.Scrub(ctx, v)
				}
			}
			details = append(details, clean)
		case *errdetails.BadRequest:
			clean := proto.CloneOf(d)
			for _, v := range clean.GetFieldViolations() {
				v.Field, v.Description = c.Scrub(ctx, v.GetField()), c.Scrub(ctx, v.GetDescription())
			}
			details = append(details, clean)
		} // others are not read here, so they are dropped
	}
	clean := status.New(st.Code(), c.Scrub(ctx, st.Message()))
	if len(details) > 0 {
		if withDetails, err := clean.WithDetails(details...); err == nil {
			clean = withDetails
		}
	}
	return clean.Err()
}
