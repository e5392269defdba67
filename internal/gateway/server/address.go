package server

import (
	"net"
	"net/netip"
	"strconv"
)

// DefaultServiceDomain is the domain of services where none is configured; it is upstream's.
const DefaultServiceDomain = "openshell.localhost"

// Schemes and their own ports.
const (
	plaintext, plaintextPort = "http", 80
	encrypted, encryptedPort = "https", 443
)

// ListensOn tells the server where it can be reached, before it gets its first call. What is no TCP address is not told to
// clients.
func (s *Server) ListensOn(address net.Addr) {
	if tcp, ok := address.(*net.TCPAddr); ok {
		at := tcp.AddrPort()
		s.address = netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port())
	}
}

// host is the address at which clients reach the gateway. It is empty where the gateway cannot tell: when it listens on all
// the addresses of its machine, or on no TCP address.
func (s *Server) host() string {
	if ip := s.address.Addr(); ip.IsValid() && !ip.IsUnspecified() {
		return ip.String()
	}
	return ""
}

// scheme is that of a gateway with or without TLS.
func scheme(tls bool) string {
	if tls {
		return encrypted
	}
	return plaintext
}

// serviceURL is where a stock gateway would serve a service (upstream-contract, templates and services). On a loopback
// address that is in plaintext even beside TLS. It is empty where nobody knows.
func (s *Server) serviceURL(workspace, sandbox, service string) string {
	if !s.address.IsValid() || s.ServiceDomain == "" {
		return ""
	}
	host := workspace + "--" + endpointName(sandbox, service) + "." + s.ServiceDomain
	scheme, port := scheme(s.TLS && !s.address.Addr().IsLoopback()), s.address.Port()
	if scheme == plaintext && port == plaintextPort || scheme == encrypted && port == encryptedPort {
		return scheme + "://" + host + "/"
	}
	return scheme + "://" + net.JoinHostPort(host, strconv.Itoa(int(port))) + "/"
}

// endpointName is the name that a service has beside those of other sandboxes.
func endpointName(sandbox, service string) string {
	if service == "" {
		return sandbox
	}
	return sandbox + "--" + service
}
