package auth_test

import (
	"crypto/tls"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth/authtest"
)

// watched is a gateway with TLS whose clock and files a test moves.
type watched struct {
	*gateway
	clock  *clock
	files  authtest.Files
	tlsLog *buffer
}

const checkEvery = 10 * time.Second

func startTLS(t *testing.T, pair authtest.Pair, clients *authtest.CA) watched {
	t.Helper()
	w := watched{clock: newClock(), files: authtest.WriteFiles(t, pair, clients), tlsLog: &buffer{}}
	server, err := auth.NewTLS(auth.TLSConfig{
		CertFile: w.files.Cert, KeyFile: w.files.Key, ClientCAFile: w.files.ClientCA,
		Now: w.clock.Now, Logger: slog.New(slog.NewJSONHandler(w.tlsLog, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	w.gateway = start(t, auth.Config{ClientCertificates: true, Now: w.clock.Now}, server)
	return w
}

// as connects with a client certificate, trusting one CA.
func as(client authtest.Pair, trusted *authtest.CA) *tls.Config {
	certificate := client.Certificate()
	return &tls.Config{
		RootCAs:            trusted.Pool(),
		ClientSessionCache: tls.NewLRUClientSessionCache(8),
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return &certificate, nil
		},
	}
}

// The server's certificate is replaced while a connection is open: that one goes on, the next one gets the new one.
func TestServerCertificateIsReloaded(t *testing.T) {
	before, after, clients := authtest.NewCA(t, "before"), authtest.NewCA(t, "after"), authtest.NewCA(t, "clients")
	w := startTLS(t, before.Server(), clients)
	client := clients.Client("ann")
	open := w.dial(as(client, before))
	wantCode(t, call(t, open, getCurrentUser, ""), codes.OK)

	w.files.SetServer(after.Server())
	w.clock.Advance(checkEvery - 1)
	wantCode(t, call(t, w.dial(as(client, before)), getCurrentUser, ""), codes.OK) // not looked at yet
	w.clock.Advance(1)
	wantCode(t, call(t, w.dial(as(client, after)), getCurrentUser, ""), codes.OK)
	wantCode(t, call(t, w.dial(as(client, before)), getCurrentUser, ""), codes.Unavailable)
	wantCode(t, call(t, open, getCurrentUser, ""), codes.OK)
	if log := w.tlsLog.String(); strings.Count(log, "reloaded the TLS certificates") != 1 {
		t.Errorf("the log says %s", log)
	}
}

// The CAs of clients are replaced: certificates of the old one are refused from then on, session tickets or not.
func TestClientCAsAreReloaded(t *testing.T) {
	server, before, after := authtest.NewCA(t, "server"), authtest.NewCA(t, "before"), authtest.NewCA(t, "after")
	w := startTLS(t, server.Server(), before)
	old := as(before.Client("ann"), server)
	wantCode(t, call(t, w.dial(old), getCurrentUser, ""), codes.OK)
	wantCode(t, call(t, w.dial(as(after.Client("ann"), server)), getCurrentUser, ""), codes.Unavailable)

	w.files.SetClientCAs(after)
	w.clock.Advance(checkEvery)
	wantCode(t, call(t, w.dial(as(after.Client("ann"), server)), getCurrentUser, ""), codes.OK)
	wantCode(t, call(t, w.dial(old), getCurrentUser, ""), codes.Unavailable)
}

// Files that cannot be used leave things as they are, are complained about once, and are used once they are whole.
func TestBrokenFilesKeepTheOldCertificates(t *testing.T) {
	ca := authtest.NewCA(t, "server")
	next := authtest.NewCA(t, "next")
	for name, spoil := range map[string]func(authtest.Files){
		"no certificate":    func(f authtest.Files) { f.Write(f.Cert, []byte("canary")) },
		"empty":             func(f authtest.Files) { f.Write(f.Cert, nil) },
		"key of another":    func(f authtest.Files) { f.Write(f.Key, ca.Server().Key) },
		"half-way replaced": func(f authtest.Files) { f.Write(f.Cert, next.Server().Cert) },
		"no client CA":      func(f authtest.Files) { f.Write(f.ClientCA, []byte("canary")) },
		"second client CA cut off": func(f authtest.Files) {
			f.Write(f.ClientCA, append(next.PEM(), ca.PEM()[:len(ca.PEM())/2]...))
		},
		"second client CA garbled": func(f authtest.Files) {
			f.Write(f.ClientCA, slices.Concat(next.PEM(), []byte("-----BEGIN CERTIFICATE-----\nY2FuYXJ5\n-----END CERTIFICATE-----\n"), ca.PEM()))
		},
		"chain cut off": func(f authtest.Files) {
			fresh := next.Server()
			f.Write(f.Key, fresh.Key)
			f.Write(f.Cert, append(fresh.Cert, next.PEM()[:len(next.PEM())/2]...))
		},
		"gone": func(f authtest.Files) {
			if err := os.Remove(f.Key); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := startTLS(t, ca.Server(), ca)
			client := ca.Client("ann")
			spoil(w.files)
			for range 3 {
				w.clock.Advance(checkEvery)
				wantCode(t, call(t, w.dial(as(client, ca)), getCurrentUser, ""), codes.OK)
			}
			log := w.tlsLog.String()
			if strings.Count(log, "the old certificates stay") != 1 || strings.Contains(log, "canary") || strings.Contains(log, "PRIVATE KEY") {
				t.Errorf("the log says %s", log)
			}
			w.files.SetServer(next.Server())
			w.files.SetClientCAs(ca)
			w.clock.Advance(checkEvery)
			wantCode(t, call(t, w.dial(as(client, next)), getCurrentUser, ""), codes.OK)
		})
	}
}

// A certificate that has run out is served all the same, for want of another, but not in silence.
func TestExpiredServerCertificateIsToldOnce(t *testing.T) {
	ca := authtest.NewCA(t, "server")
	w := startTLS(t, ca.Server(), ca)
	client := as(ca.Client("ann"), ca)
	client.Time = w.clock.Now
	complaints := func() int { return strings.Count(w.tlsLog.String(), "the certificate of the gateway is not valid") }
	wantCode(t, call(t, w.dial(client), getCurrentUser, ""), codes.OK)
	if n := complaints(); n != 0 {
		t.Errorf("%d complaints about a good one", n)
	}
	w.clock.Advance(2 * time.Hour)
	for range 3 {
		w.clock.Advance(checkEvery)
		wantCode(t, call(t, w.dial(client), getCurrentUser, ""), codes.Unavailable)
	}
	if n := complaints(); n != 1 {
		t.Errorf("%d complaints, want 1: %s", n, w.tlsLog)
	}
}

// The server does not start on files that it could not use.
func TestBrokenFilesAtTheStart(t *testing.T) {
	ca := authtest.NewCA(t, "server")
	for name, tc := range map[string]struct {
		spoil func(*auth.TLSConfig, authtest.Files)
		says  string
	}{
		"missing certificate": {func(c *auth.TLSConfig, _ authtest.Files) { c.CertFile += ".gone" }, "tls.crt.gone"},
		"no key file":         {func(c *auth.TLSConfig, _ authtest.Files) { c.KeyFile = "" }, "auth: TLS:"},
		"key of another":      {func(_ *auth.TLSConfig, f authtest.Files) { f.Write(f.Key, ca.Server().Key) }, "tls.key: "},
		"no client CA":        {func(_ *auth.TLSConfig, f authtest.Files) { f.Write(f.ClientCA, []byte("canary")) }, "ca.crt holds no certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			files := authtest.WriteFiles(t, ca.Server(), ca)
			cfg := auth.TLSConfig{CertFile: files.Cert, KeyFile: files.Key, ClientCAFile: files.ClientCA}
			tc.spoil(&cfg, files)
			_, err := auth.NewTLS(cfg)
			if err == nil || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "canary") {
				t.Errorf("got %v, want it to say %q", err, tc.says)
			}
		})
	}
}

// A client certificate may be missing, for calls that need no credential; a bad one never passes.
func TestMissingClientCertificate(t *testing.T) {
	ca := authtest.NewCA(t, "server")
	w := startTLS(t, ca.Server(), ca)
	const health = "/openshell.v1.OpenShell/Health"
	without := &tls.Config{RootCAs: ca.Pool()}
	wantCode(t, call(t, w.dial(without), health, ""), codes.OK)
	wantCode(t, call(t, w.dial(without), getCurrentUser, ""), codes.Unauthenticated)
	wantCode(t, call(t, w.dial(as(authtest.NewCA(t, "foreign").Client("ann"), ca)), health, ""), codes.Unavailable)
	wantCode(t, call(t, w.dial(as(ca.Client("ann"), ca)), getCurrentUser, ""), codes.OK)
}

// Plaintext and old TLS get no further than the handshake.
func TestTransportFloor(t *testing.T) {
	ca := authtest.NewCA(t, "server")
	w := startTLS(t, ca.Server(), ca)
	wantCode(t, call(t, w.dial(nil), getCurrentUser, ""), codes.Unavailable)
	_, err := tls.Dial("tcp", w.address, &tls.Config{RootCAs: ca.Pool(), ServerName: "127.0.0.1", MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11})
	if err == nil {
		t.Error("TLS 1.1 was taken")
	}
}

// Every connection shows its certificates anew: a session that could be resumed would go on with those of then.
func TestSessionsAreNotResumed(t *testing.T) {
	ca := authtest.NewCA(t, "server")
	w := startTLS(t, ca.Server(), ca)
	client := as(ca.Client("ann"), ca)
	client.ServerName, client.NextProtos = "localhost", []string{"h2"}
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		client.MaxVersion = version
		for range 2 {
			conn, err := tls.Dial("tcp", w.address, client)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Read(make([]byte, 1)); err != nil { // tickets come before what the server says first
				t.Error(err)
			}
			if conn.ConnectionState().DidResume {
				t.Errorf("a session of TLS %#x was resumed", version)
			}
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
