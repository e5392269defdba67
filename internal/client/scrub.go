package client

import (
	"context"
	"regexp"
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
	// minPiece is how much of a secret must be left for the rest to be taken for a piece of it.
	minPiece = 3
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

// scrub replaces every secret in a text, and what is left of one where the text was shortened: its beginning before a mark of
// omission or the end of the text, its end after such a mark.
func scrub(text string, secrets []string) string {
	hidden := make([]bool, len(text))
	hide := func(from, to int) {
		for i := from; i < to; i++ {
			hidden[i] = true
		}
	}
	omissions := append(omission.FindAllStringIndex(text, -1), []int{len(text), len(text)})
	for _, n := range needles(secrets) {
		for from := 0; ; from++ {
			i := strings.Index(text[from:], n)
			if i < 0 {
				break
			}
			from += i
			hide(from, from+len(n))
		}
		for _, o := range omissions {
			hide(o[0]-beginningAtEnd(text[:o[0]], n), o[0])
			hide(o[1], o[1]+endAtBeginning(text[o[1]:], n))
		}
	}
	var clean strings.Builder
	for i := range len(text) {
		switch {
		case !hidden[i]:
			clean.WriteByte(text[i])
		case i == 0 || !hidden[i-1]:
			clean.WriteString(redacted)
		}
	}
	return clean.String()
}

// omission is what shortened texts have in place of what was left out.
var omission = regexp.MustCompile(`…|\.{3,}`)

// needles are the forms in which secrets may stand in a text: servers often quote values, which escapes some characters.
func needles(secrets []string) []string {
	var all []string
	for _, s := range secrets {
		if len(s) >= minSecret {
			all = append(all, s, strings.Trim(strconv.Quote(s), `"`), strings.Trim(strconv.QuoteToASCII(s), `"`))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// beginningAtEnd is how long a beginning of a secret a text ends with, 0 if that is too short to be one.
func beginningAtEnd(text, secret string) int {
	for n := min(len(text), len(secret)); n >= minPiece; n-- {
		if strings.HasSuffix(text, secret[:n]) {
			return n
		}
	}
	return 0
}

// endAtBeginning is how long an end of a secret a text begins with, 0 if that is too short to be one.
func endAtBeginning(text, secret string) int {
	for n := min(len(text), len(secret)); n >= minPiece; n-- {
		if strings.HasPrefix(text, secret[len(secret)-n:]) {
			return n
		}
	}
	return 0
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
