package auth

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	"crypto/x509"
	"encoding/asn1"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// errNoCredential is what an authenticator returns when the caller shows no credential of its kind, so that the next one
// is asked. Any other error is the answer: a bad credential never falls through.
var errNoCredential = errors.New("no credential of this kind")

type authenticator func(ctx context.Context) (Identity, error)

func (g *Gate) authenticate(ctx context.Context) (Identity, error) {
	for _, authenticate := range g.authenticators {
		caller, err := authenticate(ctx)
		if errors.Is(err, errNoCredential) {
			continue
		}
		return caller, err
	}
	return Identity{}, status.Error(codes.Unauthenticated, "no credential: this gateway takes "+g.accepted)
}

// bearer returns the token of the authorization entry; [errNoCredential] when there is none, or one of another scheme.
func bearer(ctx context.Context) (string, error) {
	entries := metadata.ValueFromIncomingContext(ctx, "authorization")
	if len(entries) == 0 {
		return "", errNoCredential
	}
	if len(entries) > 1 {
		return "", status.Error(codes.Unauthenticated, "more than one authorization entry; send one")
	}
	scheme, token, _ := strings.Cut(entries[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", errNoCredential
	}
	return strings.TrimSpace(token), nil
}

// certificates takes client certificates (upstream-contract, transport and headers): the common name is the subject, the
// organizational units are the roles, and there are no scopes.
type certificates struct {
	now func() time.Time
}

func (a certificates) authenticate(ctx context.Context) (Identity, error) {
	certificate := verifiedCertificate(ctx)
	if certificate == nil {
		return Identity{}, errNoCredential
	}
	// A connection may outlive the certificate that it was opened with.
	if now := a.now(); now.Before(certificate.NotBefore) || now.After(certificate.NotAfter) {
		return Identity{}, status.Error(codes.Unauthenticated, "the client certificate of this connection is not valid any more; connect anew with a valid one")
	}
	name, ok := commonName(certificate)
	if !ok {
		return Identity{}, status.Error(codes.Unauthenticated, "the client certificate must have exactly one common name, and not an empty one")
	}
	return Identity{
		Subject: name, DisplayName: name,
		Roles:    certificate.Subject.OrganizationalUnit,
		Provider: MTLS,
	}, nil
}

// verifiedCertificate returns the client certificate, if there is one and the TLS layer has found it good.
func verifiedCertificate(ctx context.Context) *x509.Certificate {
	connection, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	info, ok := connection.AuthInfo.(credentials.TLSInfo)
	if !ok || len(info.State.VerifiedChains) == 0 {
		return nil
	}
	return info.State.VerifiedChains[0][0]
}

// commonName is strict because implementations differ on which of two common names counts.
func commonName(certificate *x509.Certificate) (string, bool) {
	commonNameType := asn1.ObjectIdentifier{2, 5, 4, 3}
	count := 0
	for _, attribute := range certificate.Subject.Names {
		if attribute.Type.Equal(commonNameType) {
			count++
		}
	}
	name := certificate.Subject.CommonName
	return name, count == 1 && name != ""
}

// anybody takes callers without a credential.
type anybody struct {
	from Unauthenticated
}

func (a anybody) authenticate(ctx context.Context) (Identity, error) {
	if a.from == FromAnywhere || a.from == FromLoopback && plaintextFromLoopback(ctx) {
		return localDeveloper, nil
	}
	return Identity{}, errNoCredential
}

func plaintextFromLoopback(ctx context.Context) bool {
	connection, ok := peer.FromContext(ctx)
	if !ok {
		return false
	}
	if _, encrypted := connection.AuthInfo.(credentials.TLSInfo); encrypted {
		return false
	}
	switch address := connection.Addr.(type) {
	case *net.TCPAddr:
		return address.IP.IsLoopback()
	case *net.UnixAddr:
		return true
	default:
		return false
	}
}
