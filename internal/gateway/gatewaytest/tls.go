package gatewaytest

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"testing"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth/authtest"
)

// TLSFiles are the paths of what a client needs, in PEM.
type TLSFiles struct {
	// CACert is the authority that issued the gateway's certificate, for 127.0.0.1, ::1 and localhost.
	CACert string
	// ClientCert and ClientKey are of a client that the gateway accepts: common name "tester", organizational unit
	// "openshell-admin".
	ClientCert, ClientKey string
}

// WithTLS serves TLS with a certificate of an authority made for the test, see [Gateway.TLS]. Everybody may call.
func WithTLS() Option { return func(o *options) { o.tls = &authority{} } }

// WithClientCertificate serves TLS to those who have a client certificate of the same authority.
func WithClientCertificate() Option {
	return func(o *options) { o.tls, o.clientCertificate = &authority{}, true }
}

// TLS says where the certificates are. The gateway must have been started with TLS.
func (g *Gateway) TLS() TLSFiles { return g.opts.tls.files }

// authority issues the certificates of one gateway.
type authority struct {
	files          TLSFiles
	ca             *authtest.CA
	gateway, other authtest.Pair
}

// issue makes the certificates, in files that go with the test.
func (a *authority) issue(t testing.TB) {
	t.Helper()
	a.ca = authtest.NewCA(t, "gatewaytest")
	a.gateway, a.other = a.ca.Server(), a.ca.Client("tester", "openshell-admin")
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	a.files = TLSFiles{
		CACert: write("ca.crt", a.ca.PEM()), ClientCert: write("client.crt", a.other.Cert), ClientKey: write("client.key", a.other.Key),
	}
}

func (a *authority) server(clientCertificate bool) *tls.Config {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{a.gateway.Certificate()}}
	if clientCertificate {
		cfg.ClientAuth, cfg.ClientCAs = tls.VerifyClientCertIfGiven, a.ca.Pool()
	}
	return cfg
}

func (a *authority) client() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: a.ca.Pool(), Certificates: []tls.Certificate{a.other.Certificate()}}
}
