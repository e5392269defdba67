// Package client talks to an OpenShell gateway: connection, discovery, typed calls, and the operations that must not
// confuse one sandbox with another of the same name.
//
// Calls that only read are repeated on passing trouble. Calls that change something are made once, except where a repeat
// cannot hit another sandbox: the conditional delete, which carries an id, and the create, which carries a marker.
//
// Errors are [*CallError] for a refused call, or one of the types in errors.go; callers decide by type. Their text never
// holds the token or a value given to [WithSecrets], even when a gateway repeats it.
package client

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/retry"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/rules"
	"github.com/openshell-iac/terraform-provider-openshell/internal/apierr"
)

const (
	// maxReceive leaves room for a full page of large sandboxes.
	maxReceive = 32 << 20
	// readAttempts with the back-off below spans about six seconds: a restart of the gateway, not an outage.
	readAttempts = 6
)

// Client is a connection to one gateway. It is safe for concurrent use and connects at the first call.
type Client struct {
	endpoint       endpoint
	requestTimeout time.Duration
	headers        []string    // names and values in turn
	tokens         tokenSource // nil: none is sent
	secrets        secrets
	handshakes     handshakes
	conn           *grpc.ClientConn
	openshell      openshellv1.OpenShellClient
	conditional    conditionalv1.ConditionalSandboxesClient
	health         healthv1.HealthClient
	readOptions    []grpc.CallOption

	version, access *once
}

// New checks the configuration and prepares a connection, without using the network. Errors are of type [*ConfigError].
func New(cfg Config) (*Client, error) {
	e, err := parseEndpoint(cfg.Endpoint)
	if err != nil {
		return nil, err
	}
	if err := checkSecrecy(cfg, e); err != nil {
		return nil, err
	}
	c := &Client{endpoint: e, requestTimeout: cfg.RequestTimeout, version: newOnce(), access: newOnce()}
	if c.headers, err = headerPairs(cfg.Headers); err != nil {
		return nil, err
	}
	c.secrets.add(slices.Collect(maps.Values(cfg.Headers))...)
	if cfg.Credentials != nil {
		if c.tokens, err = cfg.Credentials.source(); err != nil {
			return nil, err
		}
	}
	transport := insecure.NewCredentials()
	if e.tls {
		tlsConfig, err := cfg.TLS.config(e.host)
		if err != nil {
			return nil, err
		}
		transport = watched{TransportCredentials: credentials.NewTLS(tlsConfig), handshakes: &c.handshakes}
	} else if !cfg.TLS.isZero() {
		return nil, &ConfigError{Attribute: "tls", Problem: "it has no effect with a plaintext endpoint; use https:// or leave it out"}
	}
	if c.requestTimeout <= 0 {
		c.requestTimeout = DefaultRequestTimeout
	}
	c.readOptions = []grpc.CallOption{
		retry.WithMax(readAttempts),
		retry.WithPerRetryTimeout(c.requestTimeout),
		retry.WithRetriable(func(err error) bool { return passing(err) && c.handshakes.problem() == nil }),
		retry.WithBackoff(retry.BackoffExponentialWithJitterBounded(200*time.Millisecond, 0.1, 3*time.Second)),
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(transport),
		grpc.WithUserAgent(cfg.UserAgent),
		grpc.WithDisableServiceConfig(), // no retries dictated from DNS
		// Better a clear error here than a stream that the gateway drops.
		grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(rules.MaxMessage), grpc.MaxCallRecvMsgSize(maxReceive)),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 200 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 3 * time.Second},
			MinConnectTimeout: 5 * time.Second,
		}),
		// A create can block for minutes; without pings a connection that died meanwhile would go unnoticed.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}),
		grpc.WithChainUnaryInterceptor(c.authenticate, c.scrubErrors, retry.UnaryClientInterceptor(), observe(cfg.OnCall)),
	}
	if !e.tls && (c.tokens != nil || len(c.headers) > 0) {
		options = append(options, grpc.WithContextDialer(dialLoopback))
	}
	c.conn, err = grpc.NewClient("dns:///"+e.hostPort, append(options, cfg.DialOptions...)...)
	if err != nil {
		return nil, &ConfigError{Attribute: "endpoint", Problem: "no connection can be made to it: " + err.Error()}
	}
	c.openshell = openshellv1.NewOpenShellClient(c.conn)
	c.conditional = conditionalv1.NewConditionalSandboxesClient(c.conn)
	c.health = healthv1.NewHealthClient(c.conn)
	return c, nil
}

// Close ends the connection.
func (c *Client) Close() error { return c.conn.Close() }

// Endpoint is the URL the client was made for.
func (c *Client) Endpoint() string { return c.endpoint.url }

type rpc[Req, Rep any] func(context.Context, Req, ...grpc.CallOption) (Rep, error)

// read makes a call that changes nothing and is therefore repeated on passing trouble.
func read[Req, Rep any](ctx context.Context, c *Client, name string, call rpc[Req, Rep], req Req) (Rep, error) {
	if err := c.checkVersion(ctx); err != nil {
		var none Rep
		return none, err
	}
	return readAnyVersion(ctx, c, name, call, req)
}

func readAnyVersion[Req, Rep any](ctx context.Context, c *Client, name string, call rpc[Req, Rep], req Req) (Rep, error) {
	reply, err := call(ctx, req, c.readOptions...)
	return reply, c.fail(name, err)
}

// change makes a call that changes something: one attempt, bounded by timeout unless that is 0.
func change[Req, Rep any](ctx context.Context, c *Client, name string, timeout time.Duration, call rpc[Req, Rep], req Req) (Rep, error) {
	if err := c.checkAccess(ctx); err != nil {
		var none Rep
		return none, err
	}
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	reply, err := call(ctx, req)
	return reply, c.fail(name, err)
}

func (c *Client) fail(name string, err error) error {
	if err == nil {
		return nil
	}
	if unmade, ok := errors.AsType[*CredentialError](err); ok {
		return unmade
	}
	failure := &CallError{Call: name, Endpoint: c.endpoint.url, err: apierr.From(err)}
	if failure.Code() == codes.Unavailable {
		failure.handshake = c.handshakes.problem()
	}
	return failure
}

// observe reports every attempt, innermost of all interceptors.
func observe(onCall func(context.Context, Attempt)) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		start := time.Now()
		err := invoke(ctx, method, req, reply, cc, opts...)
		if onCall != nil {
			onCall(ctx, Attempt{Method: method, Code: status.Code(err), Duration: time.Since(start)})
		}
		return err
	}
}

// passing tells whether an error may go away by itself. A call that failed so may still have taken effect.
func passing(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.ResourceExhausted:
		return true
	default:
		return false
	}
}
