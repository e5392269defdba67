package gatewaytest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TLSFiles are the paths of what a client needs, in PEM.
type TLSFiles struct {
	// CACert is the authority that issued the gateway's certificate, for 127.0.0.1 and localhost.
	CACert string
	// ClientCert and ClientKey are of a client that the gateway accepts: common name "tester", organisational unit
	// "openshell-admin".
	ClientCert, ClientKey string
	// ServerCert and ServerKey are the gateway's own.
	ServerCert, ServerKey string
}

// WithTLS serves TLS with a certificate of an authority made for the test: see [Gateway.TLS].
func WithTLS() Option { return func(o *options) { o.tls = &authority{} } }

// WithClientCertificate serves TLS and asks for a client certificate of the same authority.
func WithClientCertificate() Option {
	return func(o *options) { o.tls, o.clientCertificate = &authority{}, true }
}

// TLS says where the certificates are. The gateway must have been started with TLS.
func (g *Gateway) TLS() TLSFiles { return g.opts.tls.files }

// authority issues the certificates of one gateway.
type authority struct {
	files          TLSFiles
	pool           *x509.CertPool
	gateway, other tls.Certificate
}

func (a *authority) server(clientCertificate bool) *tls.Config {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{a.gateway}}
	if clientCertificate {
		cfg.ClientAuth, cfg.ClientCAs = tls.RequireAndVerifyClientCert, a.pool
	}
	return cfg
}

func (a *authority) client() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: a.pool, Certificates: []tls.Certificate{a.other}}
}

// issue makes the certificates and writes them to files that go with the test.
func (a *authority) issue(t testing.TB) {
	t.Helper()
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	a.files = TLSFiles{
		CACert: path("ca.crt"), ClientCert: path("client.crt"), ClientKey: path("client.key"),
		ServerCert: path("server.crt"), ServerKey: path("server.key"),
	}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "gatewaytest"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	caKey := newKey(t)
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, a.files.CACert, "CERTIFICATE", caDER)
	a.pool = x509.NewCertPool()
	a.pool.AddCert(must(x509.ParseCertificate(caDER))(t))

	leaf := func(serial int64, subject pkix.Name, usage x509.ExtKeyUsage, certPath, keyPath string) tls.Certificate {
		key := newKey(t)
		der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
			SerialNumber: big.NewInt(serial), Subject: subject, NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
			KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{usage},
			DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		}, ca, key.Public(), caKey)
		if err != nil {
			t.Fatal(err)
		}
		writePEM(t, certPath, "CERTIFICATE", der)
		writePEM(t, keyPath, "PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(key))(t))
		return must(tls.LoadX509KeyPair(certPath, keyPath))(t)
	}
	a.gateway = leaf(2, pkix.Name{CommonName: "gateway"}, x509.ExtKeyUsageServerAuth, a.files.ServerCert, a.files.ServerKey)
	a.other = leaf(3, pkix.Name{CommonName: "tester", OrganizationalUnit: []string{"openshell-admin"}},
		x509.ExtKeyUsageClientAuth, a.files.ClientCert, a.files.ClientKey)
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
}

func writePEM(t testing.TB, path, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// must returns a value, or fails the test that it is given.
func must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}
