package client

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
)

// DefaultRequestTimeout bounds one attempt of a call that [Config.RequestTimeout] does not.
const DefaultRequestTimeout = 30 * time.Second

// Config says which gateway to talk to and how. It is checked by [New] without any network traffic.
type Config struct {
	// Endpoint is the URL of the gateway; http:// is plaintext, https:// is TLS. Without a port it is the scheme's.
	Endpoint string
	// Credentials say where the bearer token of every call comes from; nil sends none. They and Headers are refused in
	// plaintext to any host but this one.
	Credentials Credentials
	// Headers are sent with every call, by name, for a proxy in front of the gateway. The values count as secrets.
	Headers map[string]string
	// TLS applies to https:// only.
	TLS TLS
	// RequestTimeout bounds one attempt of a call; 0 means DefaultRequestTimeout. Creating and stopping a sandbox wait
	// for the compute driver, so only the caller's context bounds them.
	RequestTimeout time.Duration
	// UserAgent names the program and its version to the gateway.
	UserAgent string
	// OnCall, if set, is told about every attempt after it ended. It must not block.
	OnCall func(context.Context, Attempt)
	// DialOptions are added last; tests use them to reach an in-process gateway.
	DialOptions []grpc.DialOption
}

// Attempt describes one attempt of a call, without anything that was sent or received.
type Attempt struct {
	Method   string
	Code     codes.Code
	Duration time.Duration
}

// ConfigError is a setting that cannot work. It never repeats a value that may be secret.
type ConfigError struct {
	// Attribute is the setting's name, such as endpoint or tls.ca_cert_file.
	Attribute string
	Problem   string
	// Remedy is what to do; empty if the problem says it all.
	Remedy string
}

func (e *ConfigError) Error() string { return e.Attribute + ": " + e.Problem }

// endpoint is a checked Config.Endpoint.
type endpoint struct {
	url      string
	hostPort string
	host     string
	tls      bool
}

func parseEndpoint(raw string) (endpoint, error) {
	bad := func(problem string) (endpoint, error) {
		return endpoint{}, &ConfigError{Attribute: "endpoint", Problem: problem}
	}
	const shape = "it must look like https://gateway.example.com:17670, or http://127.0.0.1:17670 for plaintext"
	if raw == "" {
		return bad("it is empty; " + shape)
	}
	u, err := url.Parse(raw)
	if err != nil { // the parser's text repeats the value, which could hold a password
		return bad("it is not a URL; " + shape)
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return bad("the scheme must be http or https; " + shape)
	}
	if u.User != nil {
		return bad("it must not contain a user name or password; credentials go into token or tls")
	}
	if u.Hostname() == "" {
		return bad("it names no host; " + shape)
	}
	if strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return bad("it must end after the port, without a path, query or fragment; " + shape)
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return endpoint{url: raw, hostPort: net.JoinHostPort(u.Hostname(), port), host: u.Hostname(), tls: u.Scheme == "https"}, nil
}

// keepsSecrets tells whether what is sent to the endpoint cannot be read on the way.
func (e endpoint) keepsSecrets() bool { return e.tls || isLoopback(e.host) }

// isLoopback tells whether what is sent to a host stays on this machine.
func isLoopback(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// dialLoopback connects to this machine only: a name such as localhost is looked up, and could lead elsewhere.
func dialLoopback(ctx context.Context, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err == nil && !isLoopback(host) {
		err = errors.New("the name does not lead to this machine, so nothing is sent there in plaintext")
	}
	if err != nil {
		return nil, err
	}
	return new(net.Dialer).DialContext(ctx, "tcp", address)
}

// checkSecrecy refuses to send a secret in plaintext over a network.
func checkSecrecy(cfg Config, e endpoint) error {
	attribute := ""
	switch {
	case e.keepsSecrets():
		return nil
	case cfg.Credentials != nil:
		attribute = cfg.Credentials.attribute()
	case len(cfg.Headers) > 0:
		attribute = "headers"
	default:
		return nil
	}
	return &ConfigError{
		Attribute: attribute, Problem: "secrets would be sent unencrypted to " + e.host + ", where anybody on the way can read them",
		Remedy: "use an https:// endpoint; http:// takes credentials only for this machine itself",
	}
}
