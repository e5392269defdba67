package client

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const canary = "canary-3f9c"

// keyPair makes a self-signed certificate for localhost and its key, as PEM.
func keyPair(t *testing.T, end time.Time) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: end, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}))
}

// Each setting that cannot work is found without network, names its attribute and shows no secret.
func TestNewRefuses(t *testing.T) {
	cert, key := keyPair(t, time.Now().Add(time.Hour))
	_, otherKey := keyPair(t, time.Now().Add(time.Hour))
	oldCert, oldKey := keyPair(t, time.Now().Add(-time.Hour))
	encrypted := string(pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte(canary)}))
	missing := filepath.Join(t.TempDir(), "missing.pem")
	const secure = "https://gateway.example.com:17670"
	for name, tc := range map[string]struct {
		cfg       Config
		attribute string
	}{
		"no endpoint":                   {Config{}, "endpoint"},
		"no scheme":                     {Config{Endpoint: "127.0.0.1:17670"}, "endpoint"},
		"host and port as scheme":       {Config{Endpoint: "localhost:17670"}, "endpoint"},
		"other scheme":                  {Config{Endpoint: "grpc://localhost"}, "endpoint"},
		"no host":                       {Config{Endpoint: "https://:17670"}, "endpoint"},
		"a path":                        {Config{Endpoint: secure + "/api"}, "endpoint"},
		"a query":                       {Config{Endpoint: secure + "?token=" + canary}, "endpoint"},
		"a password":                    {Config{Endpoint: "https://user:" + canary + "@host"}, "endpoint"},
		"not a URL":                     {Config{Endpoint: "https://user:" + canary + "@ho st:%%"}, "endpoint"},
		"token with a line end":         {Config{Endpoint: secure, Credentials: Token(canary + "\n")}, "token"},
		"token with a blank":            {Config{Endpoint: secure, Credentials: Token("a " + canary)}, "token"},
		"token over the network":        {Config{Endpoint: "http://gateway.example.com", Credentials: Token(canary)}, "token"},
		"token to a loopback lookalike": {Config{Endpoint: "http://127.0.0.1.example.com", Credentials: Token(canary)}, "token"},
		"tls with plaintext":            {Config{Endpoint: "http://127.0.0.1", TLS: TLS{InsecureSkipVerify: true}}, "tls"},
		"CA missing":                    {Config{Endpoint: secure, TLS: TLS{CACertFile: missing}}, "tls.ca_cert_file"},
		"CA no PEM":                     {Config{Endpoint: secure, TLS: TLS{CACertPEM: canary}}, "tls.ca_cert_pem"},
		"CA twice":                      {Config{Endpoint: secure, TLS: TLS{CACertPEM: cert, CACertFile: missing}}, "tls.ca_cert_file"},
		"certificate without key":       {Config{Endpoint: secure, TLS: TLS{ClientCertPEM: cert}}, "tls.client_cert_pem"},
		"key without certificate":       {Config{Endpoint: secure, TLS: TLS{ClientKeyPEM: key}}, "tls.client_key_pem"},
		"key missing":                   {Config{Endpoint: secure, TLS: TLS{ClientCertPEM: cert, ClientKeyFile: missing}}, "tls.client_key_file"},
		"key no PEM":                    {Config{Endpoint: secure, TLS: TLS{ClientCertPEM: cert, ClientKeyPEM: canary}}, "tls.client_key_pem"},
		"certificate no PEM":            {Config{Endpoint: secure, TLS: TLS{ClientCertPEM: canary, ClientKeyPEM: key}}, "tls.client_cert_pem"},
		"key encrypted":                 {Config{Endpoint: secure, TLS: TLS{ClientCertPEM: cert, ClientKeyPEM: encrypted}}, "tls.client_key_pem"},
		"key of another certificate":    {Config{Endpoint: secure, TLS: TLS{ClientCertPEM: cert, ClientKeyPEM: otherKey}}, "tls.client_key_pem"},
		"certificate expired":           {Config{Endpoint: secure, TLS: TLS{ClientCertPEM: oldCert, ClientKeyPEM: oldKey}}, "tls.client_cert_pem"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := New(tc.cfg)
			if c != nil {
				t.Error("a client was made")
			}
			if e := as[*ConfigError](t, err); e.Attribute != tc.attribute {
				t.Errorf("attribute %s, want %s (%s)", e.Attribute, tc.attribute, e.Problem)
			}
			if text := err.Error(); strings.Contains(text, canary) || strings.Contains(text, "PRIVATE KEY-----\nM") {
				t.Errorf("a secret in %q", text)
			}
		})
	}
}

func TestNewAccepts(t *testing.T) {
	cert, key := keyPair(t, time.Now().Add(time.Hour))
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	for file, text := range map[string]string{certFile: cert, keyFile: key} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, cfg := range map[string]Config{
		"loopback name":        {Endpoint: "http://localhost:17670", Credentials: Token(canary)},
		"loopback address":     {Endpoint: "http://127.0.0.9", Credentials: Token(canary)},
		"loopback IPv6":        {Endpoint: "http://[::1]:17670", Credentials: Token(canary)},
		"plaintext, no token":  {Endpoint: "http://gateway.example.com/"},
		"TLS":                  {Endpoint: "https://gateway.example.com", Credentials: Token(canary)},
		"TLS with files":       {Endpoint: "https://localhost", TLS: TLS{CACertFile: certFile, ClientCertFile: certFile, ClientKeyFile: keyFile}},
		"TLS with texts":       {Endpoint: "https://localhost", TLS: TLS{CACertPEM: cert, ClientCertPEM: cert, ClientKeyPEM: key, ServerName: "x"}},
		"skipped verification": {Endpoint: "https://localhost", TLS: TLS{InsecureSkipVerify: true}},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			if c.Endpoint() != cfg.Endpoint {
				t.Error(c.Endpoint())
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
