package auth_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth/authtest"
)

// Which certificates make a caller. A refusal by the TLS layer shows as UNAVAILABLE: there is no connection.
func TestClientCertificates(t *testing.T) {
	ca := authtest.NewCA(t, "clients")
	foreign := authtest.NewCA(t, "clients") // of the same name
	files := authtest.WriteFiles(t, ca.Server(), ca)
	client := func(usage x509.ExtKeyUsage, change func(*x509.Certificate)) authtest.Pair {
		return ca.Issue(pkix.Name{CommonName: "ann"}, usage, change)
	}
	hourAgo := time.Now().Add(-time.Hour)
	for name, tc := range map[string]struct {
		pair *authtest.Pair
		want codes.Code
	}{
		"good":              {new(ca.Client("ann")), codes.OK},
		"none":              {nil, codes.Unauthenticated},
		"foreign":           {new(foreign.Client("ann")), codes.Unavailable},
		"expired":           {new(client(x509.ExtKeyUsageClientAuth, func(c *x509.Certificate) { c.NotBefore, c.NotAfter = hourAgo.Add(-time.Hour), hourAgo })), codes.Unavailable},
		"not yet valid":     {new(client(x509.ExtKeyUsageClientAuth, func(c *x509.Certificate) { c.NotBefore = time.Now().Add(10 * time.Minute) })), codes.Unavailable},
		"not for clients":   {new(client(x509.ExtKeyUsageServerAuth, nil)), codes.Unavailable},
		"no common name":    {new(ca.Client("")), codes.Unauthenticated},
		"two common names":  {new(client(x509.ExtKeyUsageClientAuth, func(c *x509.Certificate) { c.Subject = twoNames("admin", "ann") })), codes.Unauthenticated},
		"self-made, for me": {new(authtest.NewCA(t, "me").Client("ann")), codes.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			server, err := auth.NewTLS(auth.TLSConfig{CertFile: files.Cert, KeyFile: files.Key, ClientCAFile: files.ClientCA})
			if err != nil {
				t.Fatal(err)
			}
			g := start(t, auth.Config{ClientCertificates: true}, server)
			transport := &tls.Config{RootCAs: ca.Pool()}
			if tc.pair != nil {
				certificate := tc.pair.Certificate()
				// Sent whatever CAs the server asks for.
				transport.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &certificate, nil }
			}
			wantCode(t, call(t, g.dial(transport), getCurrentUser, ""), tc.want)
			if reached := len(g.hits()) > 0; reached != (tc.want == codes.OK) {
				t.Errorf("handler reached: %v", reached)
			}
		})
	}
}

func twoNames(first, second string) pkix.Name {
	commonName := []int{2, 5, 4, 3}
	return pkix.Name{ExtraNames: []pkix.AttributeTypeAndValue{{Type: commonName, Value: first}, {Type: commonName, Value: second}}}
}

// A connection does not outlive the certificate it was opened with.
func TestCertificateExpiresUnderAConnection(t *testing.T) {
	now := newClock()
	ca := authtest.NewCA(t, "clients")
	files := authtest.WriteFiles(t, ca.Server(), ca)
	server, err := auth.NewTLS(auth.TLSConfig{CertFile: files.Cert, KeyFile: files.Key, ClientCAFile: files.ClientCA, Now: now.Now})
	if err != nil {
		t.Fatal(err)
	}
	conn := start(t, auth.Config{ClientCertificates: true, Now: now.Now}, server).
		dial(&tls.Config{RootCAs: ca.Pool(), Certificates: []tls.Certificate{ca.Client("ann").Certificate()}})
	wantCode(t, call(t, conn, getCurrentUser, ""), codes.OK)
	now.Advance(2 * time.Hour)
	wantCode(t, call(t, conn, getCurrentUser, ""), codes.Unauthenticated)
}
