package authtest

import (
	"bytes"
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

// CA is a certificate authority.
type CA struct {
	t           testing.TB
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// NewCA makes an authority of its own.
func NewCA(t testing.TB, name string) *CA {
	t.Helper()
	ca := &CA{t: t, key: newKey(t)}
	template := &x509.Certificate{
		SerialNumber: serial(t), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, ca.key.Public(), ca.key)
	if err != nil {
		t.Fatal(err)
	}
	if ca.certificate, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return ca
}

// PEM is the authority's certificate.
func (ca *CA) PEM() []byte { return encode("CERTIFICATE", ca.certificate.Raw) }

// Pool trusts the authority alone.
func (ca *CA) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(ca.certificate)
	return pool
}

// Server issues a certificate for this machine.
func (ca *CA) Server() Pair {
	return ca.Issue(pkix.Name{CommonName: "localhost"}, x509.ExtKeyUsageServerAuth, nil)
}

// Client issues a certificate with a common name and organizational units.
func (ca *CA) Client(name string, units ...string) Pair {
	return ca.Issue(pkix.Name{CommonName: name, OrganizationalUnit: units}, x509.ExtKeyUsageClientAuth, nil)
}

// Issue issues a certificate, valid for an hour around now; change may alter it before it is signed.
func (ca *CA) Issue(subject pkix.Name, usage x509.ExtKeyUsage, change func(*x509.Certificate)) Pair {
	ca.t.Helper()
	template := &x509.Certificate{
		SerialNumber: serial(ca.t), Subject: subject,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{usage},
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	if change != nil {
		change(template)
	}
	key := newKey(ca.t)
	der, err := x509.CreateCertificate(rand.Reader, template, ca.certificate, key.Public(), ca.key)
	if err != nil {
		ca.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		ca.t.Fatal(err)
	}
	return Pair{t: ca.t, Cert: encode("CERTIFICATE", der), Key: encode("PRIVATE KEY", private)}
}

// Pair is a certificate with its key, PEM.
type Pair struct {
	t         testing.TB
	Cert, Key []byte
}

// Certificate is the pair for a TLS configuration.
func (p Pair) Certificate() tls.Certificate {
	p.t.Helper()
	certificate, err := tls.X509KeyPair(p.Cert, p.Key)
	if err != nil {
		p.t.Fatal(err)
	}
	return certificate
}

// Files are the paths of a server's certificate files, in a folder of the test.
type Files struct {
	t                   testing.TB
	Cert, Key, ClientCA string
}

// WriteFiles puts a server's certificate, and the CAs of its clients if there are any, into files.
func WriteFiles(t testing.TB, pair Pair, clientCAs ...*CA) Files {
	t.Helper()
	dir := t.TempDir()
	files := Files{t: t, Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key")}
	files.SetServer(pair)
	if len(clientCAs) > 0 {
		files.ClientCA = filepath.Join(dir, "ca.crt")
		files.SetClientCAs(clientCAs...)
	}
	return files
}

// SetServer replaces the server's certificate.
func (f Files) SetServer(pair Pair) {
	f.t.Helper()
	f.Write(f.Cert, pair.Cert)
	f.Write(f.Key, pair.Key)
}

// SetClientCAs replaces the CAs of clients.
func (f Files) SetClientCAs(authorities ...*CA) {
	f.t.Helper()
	var all [][]byte
	for _, ca := range authorities {
		all = append(all, ca.PEM())
	}
	f.Write(f.ClientCA, bytes.Join(all, nil))
}

// Write replaces one of the files.
func (f Files) Write(path string, content []byte) {
	f.t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func serial(t testing.TB) *big.Int {
	t.Helper()
	number, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 64))
	if err != nil {
		t.Fatal(err)
	}
	return number
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
