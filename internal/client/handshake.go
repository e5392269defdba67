package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"sync"

	"google.golang.org/grpc/credentials"
)

// handshakes remembers why the last TLS handshake failed. gRPC reports that as UNAVAILABLE, with the cause as text only,
// which looks like a gateway that is down for a moment.
type handshakes struct {
	mu   sync.Mutex
	last error // nil after a success
}

func (h *handshakes) record(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = err
}

// problem is what is wrong with the gateway's certificate, or that it speaks no TLS; nil if neither is. It does not pass by
// itself. A call that was under way when a connection broke may have been carried out all the same.
func (h *handshakes) problem() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if wrong, ok := errors.AsType[*tls.CertificateVerificationError](h.last); ok {
		return wrong.Err
	}
	if noTLS, ok := errors.AsType[tls.RecordHeaderError](h.last); ok {
		return noTLS
	}
	return nil
}

// watched tells handshakes about every handshake of credentials.
type watched struct {
	credentials.TransportCredentials
	handshakes *handshakes
}

// ClientHandshake implements credentials.TransportCredentials.
func (w watched) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := w.TransportCredentials.ClientHandshake(ctx, authority, raw)
	w.handshakes.record(err)
	return conn, info, err
}

// Clone implements credentials.TransportCredentials.
func (w watched) Clone() credentials.TransportCredentials {
	return watched{TransportCredentials: w.TransportCredentials.Clone(), handshakes: w.handshakes}
}

// TLSRemedy is what to do about a gateway's certificate that cannot be accepted, or about one that speaks no TLS; empty if
// the call failed for another reason.
func (e *CallError) TLSRemedy() string {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](e.handshake); ok {
		return "the gateway's certificate comes from an authority that is not trusted here. Give the authority's certificate in tls.ca_cert_file or tls.ca_cert_pem; if it is there, the gateway has got a new one, or another server answers at " + e.Endpoint + ". For a registered gateway, register it again with \"openshell gateway add\"."
	}
	if _, ok := errors.AsType[x509.HostnameError](e.handshake); ok {
		return "the gateway's certificate is for another name than that of " + e.Endpoint + ": use a name from the certificate in endpoint, or set tls.server_name to one."
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](e.handshake); ok {
		return "the server at " + e.Endpoint + " does not speak TLS: correct the endpoint, or use http:// if the gateway is meant to be reached in plaintext."
	}
	if e.handshake != nil {
		return "the gateway's certificate is not valid: renew it at the gateway, and check the clocks of both machines."
	}
	return ""
}
