package client

import (
	"context"
	"errors"
	"os"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Credentials say where the bearer token of every call comes from: [Token], [TokenFile], [StoredLogin] or
// [OIDC].
type Credentials interface {
	// attribute is the setting that errors are about.
	attribute() string
	// source finds, without the network, what cannot work. Errors are of type ConfigError.
	source() (tokenSource, error)
}

// tokenSource gives a token that is valid now. refused is empty, or the token that the gateway has just refused: if there
// is no other one, it is returned again. Errors are of type CredentialError.
type tokenSource interface {
	token(ctx context.Context, refused string) (string, error)
}

// CredentialError is a call that was not made, or not made again, because there is no valid token for it.
type CredentialError struct {
	// Attribute is the setting at fault, such as token_file.
	Attribute string
	Problem   string
	// Remedy is what to do; empty if the problem says it all.
	Remedy string
}

func (e *CredentialError) Error() string { return "no valid token: " + e.Problem }

// Token is a bearer token that stays the same.
type Token string

func (Token) attribute() string { return "token" }

func (t Token) source() (tokenSource, error) {
	if problem := badToken(string(t)); problem != "" {
		return nil, &ConfigError{Attribute: "token", Problem: problem, Remedy: "a token read from a file often ends in a newline: trimspace() removes it, or use token_file"}
	}
	return t, nil
}

func (t Token) token(context.Context, string) (string, error) { return string(t), nil }

// TokenFile is a file with a bearer token in it, which is read for every call, since others may renew it. White space around
// the token does not matter.
type TokenFile string

func (TokenFile) attribute() string { return "token_file" }

func (f TokenFile) source() (tokenSource, error) {
	_, err := f.token(context.Background(), "")
	return f, asConfigError(err)
}

func (f TokenFile) token(context.Context, string) (string, error) {
	fault := func(problem string) (string, error) {
		return "", &CredentialError{Attribute: f.attribute(), Problem: problem, Remedy: "have the file " + string(f) + " hold a bearer token and nothing else"}
	}
	content, err := os.ReadFile(string(f))
	if err != nil {
		return fault("the file cannot be read: " + err.Error())
	}
	token := strings.TrimSpace(string(content))
	if token == "" {
		return fault("the file " + string(f) + " is empty")
	}
	if problem := badToken(token); problem != "" {
		return fault("the file " + string(f) + " does not hold a token: " + problem)
	}
	return token, nil
}

// asConfigError is for what is wrong with credentials from the start.
func asConfigError(err error) error {
	if e, ok := errors.AsType[*CredentialError](err); ok {
		return &ConfigError{Attribute: e.Attribute, Problem: e.Problem, Remedy: e.Remedy}
	}
	return err
}

// badToken tells why a text cannot be a bearer token, without repeating it.
func badToken(token string) string {
	for _, r := range token {
		if r <= ' ' || r > '~' {
			return "it contains blanks, line ends or other characters that no token has"
		}
	}
	return ""
}

// authenticate is the outermost interceptor: it adds the headers and the token. A call that was refused for its token has
// had no effect, so it is made once more if there is another token by then.
func (c *Client) authenticate(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	ctx = metadata.AppendToOutgoingContext(ctx, c.headers...)
	if c.tokens == nil {
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	token, err := c.tokens.token(ctx, "")
	if err != nil {
		return err
	}
	err = invoke(c.withToken(ctx, token), method, req, reply, cc, opts...)
	if status.Code(err) != codes.Unauthenticated {
		return err
	}
	another, renewal := c.tokens.token(ctx, token)
	if renewal != nil {
		if unmade, ok := errors.AsType[*CredentialError](renewal); ok {
			renewal = &CredentialError{Attribute: unmade.Attribute, Remedy: unmade.Remedy, Problem: unmade.Problem + "; the gateway refused the last one: " + status.Convert(err).Message()}
		}
		return renewal
	}
	if another == token {
		return err
	}
	return invoke(c.withToken(ctx, another), method, req, reply, cc, opts...)
}

func (c *Client) withToken(ctx context.Context, token string) context.Context {
	c.secrets.add(token)
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
}
