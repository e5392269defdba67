package auth

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// TLSConfig says where the server's certificates are.
type TLSConfig struct {
	// CertFile and KeyFile are the server's certificate with its chain and its key, PEM.
	CertFile, KeyFile string
	// ClientCAFile holds the CAs of client certificates, PEM. When it is empty no client certificate is asked for. Else a
	// certificate of another CA, or one that is not valid now, is refused. Callers may come without one, as to a stock
	// gateway: what they may do then is for the [Gate] to say.
	ClientCAFile string
	// CheckEvery is the least time between two looks at the files; 0 means ten seconds.
	CheckEvery time.Duration
	// Logger takes reloads and failed ones; nil means slog.Default().
	Logger *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// NewTLS returns a configuration that follows its files: whoever connects after they changed gets the new ones, and
// connections that are open go on. While the new files cannot be used, the old certificates stay, and the log says why.
func NewTLS(cfg TLSConfig) (*tls.Config, error) {
	if cfg.CheckEvery == 0 {
		cfg.CheckEvery = 10 * time.Second
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	files := &certificateFiles{cfg: cfg}
	content, err := files.read()
	if err != nil {
		return nil, err
	}
	if files.current, err = files.parse(content); err != nil {
		return nil, err
	}
	files.seen, files.nextCheck = content.sum(), cfg.Now().Add(cfg.CheckEvery)
	files.checkValidity(cfg.Now())
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return files.config(), nil
		},
	}, nil
}

type certificateFiles struct {
	cfg TLSConfig

	mu        sync.Mutex
	current   *tls.Config
	seen      [sha256.Size]byte // of the last content that was tried
	unread    string            // why the files could not be read the last time
	nextCheck time.Time
	told      bool // that the current certificate is not valid
}

// config returns what a new connection gets. It compares contents, since neither times nor sizes of files are to be
// relied on when they are replaced by links, as orchestrators do.
func (f *certificateFiles) config() *tls.Config {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.cfg.Now()
	if now.Before(f.nextCheck) {
		return f.current
	}
	f.nextCheck = now.Add(f.cfg.CheckEvery)
	defer f.checkValidity(now) // of what is current then
	content, err := f.read()
	if err != nil {
		if f.unread != err.Error() {
			f.unread = err.Error()
			f.keepOld(err)
		}
		return f.current
	}
	f.unread = ""
	if content.sum() == f.seen {
		return f.current
	}
	f.seen = content.sum()
	fresh, err := f.parse(content)
	if err != nil {
		f.keepOld(err)
		return f.current
	}
	f.current, f.told = fresh, false
	f.cfg.Logger.Info("reloaded the TLS certificates", "cert_file", f.cfg.CertFile, "not_after", fresh.Certificates[0].Leaf.NotAfter)
	return f.current
}

// checkValidity tells once of a certificate that clients will not take.
func (f *certificateFiles) checkValidity(now time.Time) {
	leaf := f.current.Certificates[0].Leaf
	if f.told || !now.Before(leaf.NotBefore) && !now.After(leaf.NotAfter) {
		return
	}
	f.told = true
	f.cfg.Logger.Warn("the certificate of the gateway is not valid now, so clients will refuse it; replace the file",
		"cert_file", f.cfg.CertFile, "not_before", leaf.NotBefore, "not_after", leaf.NotAfter)
}

func (f *certificateFiles) keepOld(err error) {
	f.cfg.Logger.Warn("the TLS files have changed but cannot be used; the old certificates stay", "error", err.Error())
}

type certificateContent struct {
	certificate, key, clientCAs []byte
}

func (c certificateContent) sum() [sha256.Size]byte {
	return sha256.Sum256(bytes.Join([][]byte{c.certificate, c.key, c.clientCAs}, []byte{0}))
}

func (f *certificateFiles) read() (content certificateContent, err error) {
	for _, file := range []struct {
		into *[]byte
		path string
	}{
		{&content.certificate, f.cfg.CertFile}, {&content.key, f.cfg.KeyFile}, {&content.clientCAs, f.cfg.ClientCAFile},
	} {
		if file.path == "" && file.into == &content.clientCAs {
			continue
		}
		if *file.into, err = os.ReadFile(file.path); err != nil {
			return content, fmt.Errorf("auth: TLS: %w", err)
		}
	}
	return content, nil
}

func (f *certificateFiles) parse(content certificateContent) (*tls.Config, error) {
	pair, err := tls.X509KeyPair(content.certificate, content.key)
	if err != nil {
		return nil, fmt.Errorf("auth: TLS certificate %s with key %s: %w", f.cfg.CertFile, f.cfg.KeyFile, err)
	}
	if begun := begun(content.certificate); begun != len(pair.Certificate) {
		return nil, fmt.Errorf("auth: TLS certificate %s is not whole: only %d of its %d certificates can be read", f.cfg.CertFile, len(pair.Certificate), begun)
	}
	config := &tls.Config{
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{"h2"},
		Certificates: []tls.Certificate{pair},
		Time:         f.cfg.Now,
		// A resumed session would stand on a client certificate that was verified against CAs of then.
		SessionTicketsDisabled: true,
	}
	if f.cfg.ClientCAFile == "" {
		return config, nil
	}
	if config.ClientCAs, err = authorities(content.clientCAs); err != nil {
		return nil, fmt.Errorf("auth: TLS client CA file %s %w", f.cfg.ClientCAFile, err)
	}
	config.ClientAuth = tls.VerifyClientCertIfGiven
	return config, nil
}

// authorities reads all certificates of a file, or fails: a file that is still being written must not shut out the clients
// of the authority that is at its end.
func authorities(text []byte) (*x509.CertPool, error) {
	pool, read := x509.NewCertPool(), 0
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != certificateBlock {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("has a certificate that cannot be read, after %d that can: %w", read, err)
		}
		pool.AddCert(certificate)
		read++
	}
	switch begun := begun(text); {
	case begun == 0:
		return nil, errors.New("holds no certificate")
	case begun != read:
		return nil, fmt.Errorf("is not whole: only %d of its %d certificates can be read", read, begun)
	}
	return pool, nil
}

const certificateBlock = "CERTIFICATE"

// begun counts the certificates whose beginning is in a text. What reads PEM passes over those that have no proper end.
func begun(text []byte) int { return bytes.Count(text, []byte("-----BEGIN "+certificateBlock+"-----")) }
