package client

import (
	"context"
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
	// Token is sent as a bearer token with every call; empty sends none. It is refused in plaintext to any host but
	// this one.
	Token string
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

// loopback tells whether what is sent to the endpoint stays on this machine.
func (e endpoint) loopback() bool {
	if e.host == "localhost" || strings.HasSuffix(e.host, ".localhost") {
		return true
	}
	addr, err := netip.ParseAddr(e.host)
	return err == nil && addr.Unmap().IsLoopback()
}

func checkToken(token string, e endpoint) error {
	if token == "" {
		return nil
	}
	for _, r := range token {
		if r <= ' ' || r > '~' {
			return &ConfigError{Attribute: "token", Problem: "it contains blanks, line ends or other characters that no token has; a token read from a file often ends in a newline, which trimspace() removes"}
		}
	}
	if !e.tls && !e.loopback() {
		return &ConfigError{Attribute: "token", Problem: "it would be sent unencrypted to " + e.host + ", where anybody on the way can read it; use an https:// endpoint (http:// takes a token only for this machine itself)"}
	}
	return nil
}
