package client

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
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

// file holds a content until the test ends.
func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	writeFile(t, path, content)
	return path
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
		"token file missing":            {Config{Endpoint: secure, Credentials: TokenFile(missing)}, "token_file"},
		"token file empty":              {Config{Endpoint: secure, Credentials: TokenFile(file(t, " \n"))}, "token_file"},
		"token file with more":          {Config{Endpoint: secure, Credentials: TokenFile(file(t, "token: "+canary))}, "token_file"},
		"token file over the network":   {Config{Endpoint: "http://gateway.example.com", Credentials: TokenFile(file(t, canary))}, "token_file"},
		"not logged in":                 {Config{Endpoint: secure, Credentials: StoredLogin{Path: missing}}, "gateway"},
		"login expired":                 {Config{Endpoint: secure, Credentials: StoredLogin{Path: file(t, login(canary, time.Now()))}}, "gateway"},
		"login damaged":                 {Config{Endpoint: secure, Credentials: StoredLogin{Path: file(t, login(canary+"\n", time.Now().Add(time.Hour)))}}, "gateway"},
		"login over the network":        {Config{Endpoint: "http://gateway.example.com", Credentials: StoredLogin{Path: missing}}, "gateway"},
		"no issuer":                     {Config{Endpoint: secure, Credentials: OIDC{ClientID: "a", ClientSecret: canary}}, "oidc.issuer"},
		"no client":                     {Config{Endpoint: secure, Credentials: OIDC{Issuer: issuerURL, ClientSecret: canary}}, "oidc.client_id"},
		"no client secret":              {Config{Endpoint: secure, Credentials: OIDC{Issuer: issuerURL, ClientID: "a"}}, "oidc.client_secret"},
		"issuer no URL":                 {Config{Endpoint: secure, Credentials: OIDC{Issuer: "issuer", ClientID: "a", ClientSecret: canary}}, "oidc.issuer"},
		"issuer in plaintext":           {Config{Endpoint: secure, Credentials: OIDC{Issuer: "http://issuer.example.com", ClientID: "a", ClientSecret: canary}}, "oidc.issuer"},
		"issuer with a password":        {Config{Endpoint: secure, Credentials: OIDC{Issuer: "https://a:" + canary + "@b", ClientID: "a", ClientSecret: canary}}, "oidc.issuer"},
		"header over the network":       {Config{Endpoint: "http://gateway.example.com", Headers: map[string]string{"x-key": canary}}, "headers"},
		"header with a line end":        {Config{Endpoint: secure, Headers: map[string]string{"x-key": canary + "\r\nx: y"}}, "headers"},
		"header without a name":         {Config{Endpoint: secure, Headers: map[string]string{"": canary}}, "headers"},
		"header with a bad name":        {Config{Endpoint: secure, Headers: map[string]string{"bearer " + canary: "authorization"}}, "headers"},
		"header twice":                  {Config{Endpoint: secure, Headers: map[string]string{"X-Key": canary, "x-key": canary}}, "headers"},
		"header of the credentials":     {Config{Endpoint: secure, Headers: map[string]string{"Authorization": "Bearer " + canary}}, "headers"},
		"header of the protocol":        {Config{Endpoint: secure, Headers: map[string]string{"grpc-timeout": "1S"}}, "headers"},
		"binary header":                 {Config{Endpoint: secure, Headers: map[string]string{"x-bin": canary}}, "headers"},
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
	certFile, keyFile := file(t, cert), file(t, key)
	for name, cfg := range map[string]Config{
		"loopback name":        {Endpoint: "http://localhost:17670", Credentials: Token(canary)},
		"loopback address":     {Endpoint: "http://127.0.0.9", Credentials: Token(canary)},
		"loopback IPv6":        {Endpoint: "http://[::1]:17670", Credentials: Token(canary)},
		"token file":           {Endpoint: "https://gateway.example.com", Credentials: TokenFile(file(t, canary+"\n"))},
		"login":                {Endpoint: "https://gateway.example.com", Credentials: StoredLogin{Path: file(t, login(canary, time.Now().Add(time.Hour)))}},
		"issuer":               {Endpoint: "https://gateway.example.com", Credentials: OIDC{Issuer: issuerURL, ClientID: "a", ClientSecret: canary}},
		"issuer on loopback":   {Endpoint: "http://localhost", Credentials: OIDC{Issuer: "http://127.0.0.1:8080", ClientID: "a", ClientSecret: canary}},
		"headers":              {Endpoint: "https://gateway.example.com", Headers: map[string]string{"X-Key.a_b": canary + " ~"}},
		"headers on loopback":  {Endpoint: "http://127.0.0.1", Headers: map[string]string{"x-key": canary}},
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

// A name for this machine that leads elsewhere gets no connection.
func TestDialLoopback(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	conn, err := dialLoopback(t.Context(), listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	if conn, err := dialLoopback(t.Context(), "192.0.2.1:80"); err == nil || !strings.Contains(err.Error(), "this machine") {
		t.Errorf("%v, %v", conn, err)
	}
}
