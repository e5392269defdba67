package client

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"time"
)

// TLS is how an https:// endpoint is verified and which certificate this side shows. Of each File and PEM pair at most
// one may be set; PEM is text, File a path to it.
type TLS struct {
	// CACertFile and CACertPEM hold the authorities that may have signed the gateway's certificate, instead of the
	// system's.
	CACertFile, CACertPEM string
	// ClientCertFile and ClientCertPEM hold this side's certificate chain; they need a key.
	ClientCertFile, ClientCertPEM string
	// ClientKeyFile and ClientKeyPEM hold the unencrypted key of the client certificate.
	ClientKeyFile, ClientKeyPEM string
	// InsecureSkipVerify accepts any gateway certificate. The client certificate is shown all the same.
	InsecureSkipVerify bool
	// ServerName is the name to verify in the gateway's certificate, instead of the endpoint's host.
	ServerName string
}

func (t TLS) isZero() bool { return t == TLS{} }

// config reads and checks the files and texts. Errors are of type ConfigError and never show a key.
func (t TLS) config(host string) (*tls.Config, error) {
	cfg := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ServerName:         host,
		InsecureSkipVerify: t.InsecureSkipVerify, //nolint:gosec // the user asks for it by name
	}
	if t.ServerName != "" {
		cfg.ServerName = t.ServerName
	}
	ca, caAttr, err := material(t.CACertFile, t.CACertPEM, "ca_cert")
	if err != nil {
		return nil, err
	}
	if ca != nil {
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(ca) {
			return nil, &ConfigError{Attribute: caAttr, Problem: "it holds no PEM certificate (-----BEGIN CERTIFICATE-----)"}
		}
	}
	return cfg, t.clientCertificate(cfg)
}

func (t TLS) clientCertificate(cfg *tls.Config) error {
	cert, certAttr, err := material(t.ClientCertFile, t.ClientCertPEM, "client_cert")
	if err != nil {
		return err
	}
	key, keyAttr, err := material(t.ClientKeyFile, t.ClientKeyPEM, "client_key")
	if err != nil {
		return err
	}
	switch {
	case cert == nil && key == nil:
		return nil
	case key == nil:
		return &ConfigError{Attribute: certAttr, Problem: "a client certificate needs its key: set tls.client_key_file or tls.client_key_pem"}
	case cert == nil:
		return &ConfigError{Attribute: keyAttr, Problem: "a client key needs its certificate: set tls.client_cert_file or tls.client_cert_pem"}
	}
	if !hasPEMCertificate(cert) {
		return &ConfigError{Attribute: certAttr, Problem: "it holds no PEM certificate (-----BEGIN CERTIFICATE-----)"}
	}
	if block, _ := pem.Decode(key); block == nil {
		return &ConfigError{Attribute: keyAttr, Problem: "it holds no PEM key (-----BEGIN … PRIVATE KEY-----)"}
	} else if block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["DEK-Info"] != "" {
		return &ConfigError{Attribute: keyAttr, Problem: "the key is encrypted with a passphrase; give it unencrypted"}
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil { // the cause is fixed text of crypto/tls, but only about the key: keep it out all the same
		return &ConfigError{Attribute: keyAttr, Problem: "it is not the key of the client certificate, or one of the two is damaged"}
	}
	if end := pair.Leaf.NotAfter; time.Now().After(end) {
		return &ConfigError{Attribute: certAttr, Problem: "the certificate expired on " + end.UTC().Format(time.DateOnly)}
	}
	cfg.Certificates = []tls.Certificate{pair}
	return nil
}

// material returns what either form of a setting holds, and the attribute it came from; nil when neither is set.
func material(file, text, name string) (data []byte, attribute string, err error) {
	fileAttr, textAttr := "tls."+name+"_file", "tls."+name+"_pem"
	switch {
	case file != "" && text != "":
		return nil, fileAttr, &ConfigError{Attribute: fileAttr, Problem: "give either the file or " + textAttr + ", not both"}
	case text != "":
		return []byte(text), textAttr, nil
	case file == "":
		return nil, fileAttr, nil
	}
	data, err = os.ReadFile(file)
	if err != nil {
		return nil, fileAttr, &ConfigError{Attribute: fileAttr, Problem: "it cannot be read: " + err.Error()}
	}
	return data, fileAttr, nil
}

func hasPEMCertificate(data []byte) bool {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			return true
		}
	}
	return false
}
