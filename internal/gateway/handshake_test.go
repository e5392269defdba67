package gateway_test

import (
	"crypto/tls"
	"net"
	"regexp"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth/authtest"
)

// Who is refused before he can make a call has no call in the log. The log says so all the same; of those who only look
// whether the port is open it does so at the level for that.
func TestFailedHandshakesAreLogged(t *testing.T) {
	ca := authtest.NewCA(t, "ours")
	files := authtest.WriteFiles(t, ca.Server(), ca)
	encrypted, err := auth.NewTLS(auth.TLSConfig{CertFile: files.Cert, KeyFile: files.Key, ClientCAFile: files.ClientCA})
	if err != nil {
		t.Fatal(err)
	}
	r := run(t, gateway.Config{Store: open(t), TLS: encrypted, Access: auth.Config{ClientCertificates: true}})

	probe, err := net.Dial("tcp", r.address)
	if err != nil {
		t.Fatal(err)
	}
	if err := probe.Close(); err != nil {
		t.Fatal(err)
	}
	stranger := authtest.NewCA(t, "theirs").Client("eve")
	conn := dial(t, r.address, credentials.NewTLS(&tls.Config{
		RootCAs: ca.Pool(),
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			c := stranger.Certificate()
			return &c, nil
		},
	}))
	_, err = openshellv1.NewOpenShellClient(conn).Health(call(t), &openshellv1.HealthRequest{})
	wantCode(t, err, codes.Unavailable)

	r.Shutdown(call(t)) // which waits for handshakes
	for _, want := range []string{
		`"level":"INFO","msg":"a TLS handshake failed","peer":"127\.0\.0\.1:\d+","error":".*unknown authority`,
		`"level":"DEBUG","msg":"a TLS handshake failed","peer":"127\.0\.0\.1:\d+","error":"EOF"`,
	} {
		if !regexp.MustCompile(want).MatchString(r.log.String()) {
			t.Errorf("the log says %s, not %s", r.log, want)
		}
	}
}
