package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/apierr"
)

// Reads are repeated on passing trouble, and on nothing else.
func TestReadsAreRetried(t *testing.T) {
	for code, calls := range map[codes.Code]int{
		codes.Unavailable: readAttempts, codes.DeadlineExceeded: readAttempts, codes.ResourceExhausted: readAttempts,
		codes.NotFound: 1, codes.PermissionDenied: 1, codes.Unauthenticated: 1, codes.Internal: 1, codes.Unimplemented: 1,
	} {
		t.Run(code.String(), func(t *testing.T) {
			f := newFake()
			f.hooks["GetSandbox"] = refuse(code)
			serve(t, f, func(ctx context.Context, c *Client) {
				start := time.Now()
				_, err := c.Sandbox(ctx, "default", "web")
				hasCode(code)(t, err)
				if n := f.count("GetSandbox"); n != calls {
					t.Errorf("%d calls, want %d", n, calls)
				}
				if took := time.Since(start); took > 10*time.Second {
					t.Errorf("took %v", took)
				}
			})
		})
	}
}

// One attempt of a read that hangs is bounded, and the next one made.
func TestAttemptsAreBounded(t *testing.T) {
	f := newFake()
	f.put("web", idA, ready)
	f.hooks["GetSandbox"] = func(f *fake, nth int, _ any) error {
		if nth == 1 {
			f.mu.Unlock()
			defer f.mu.Lock()
			<-time.After(8 * time.Second)
		}
		return nil
	}
	var attempts []Attempt
	cfg := Config{Endpoint: "http://127.0.0.1:1", RequestTimeout: 7 * time.Second, OnCall: func(_ context.Context, a Attempt) { attempts = append(attempts, a) }}
	serveConfig(t, f, cfg, func(ctx context.Context, c *Client) {
		start := time.Now()
		if _, err := c.Sandbox(ctx, "default", "web"); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took < 7*time.Second || took > 8*time.Second {
			t.Errorf("took %v", took)
		}
		want := []codes.Code{codes.OK /* Health */, codes.DeadlineExceeded, codes.OK}
		if got := codesOf(attempts); !slices.Equal(got, want) {
			t.Errorf("attempts %v, want %v", got, want)
		}
		<-time.After(time.Minute) // the first attempt's handler ends
	})
}

func codesOf(attempts []Attempt) []codes.Code {
	var got []codes.Code
	for _, a := range attempts {
		got = append(got, a.Code)
	}
	return got
}

func TestTokenIsSent(t *testing.T) {
	f := newFake()
	serveConfig(t, f, Config{Endpoint: "http://127.0.0.1:1", Credentials: Token(canary)}, func(ctx context.Context, c *Client) {
		if _, err := c.Workspace(ctx, "default"); err != nil {
			t.Error(err)
		}
		if want := []string{"Bearer " + canary, "Bearer " + canary}; !slices.Equal(f.tokens, want) {
			t.Errorf("%d tokens seen", len(f.tokens))
		}
	})
}

// A 0.0.x gateway is refused before it gets to misread anything; one that does not even answer Health is none.
func TestVersionIsChecked(t *testing.T) {
	for _, version := range []string{"0.0.111", "v0.0.1", "0.0.112-dev.3"} {
		f := newFake()
		f.version = version
		serve(t, f, func(ctx context.Context, c *Client) {
			_, err := c.Sandbox(ctx, "default", "web")
			if e := as[*UnsupportedGatewayError](t, err); e.Version != version {
				t.Errorf("%+v", e)
			}
			_, err = c.Delete(ctx, web, true)
			want[*UnsupportedGatewayError](t, err)
			if n := len(f.calls) - f.count("Health"); n != 0 {
				t.Errorf("calls %v", f.calls)
			}
		})
	}
	for _, version := range []string{"0.1.5", "0.1.0", "0.2.0-dev", "1.0.0", ""} {
		f := newFake()
		f.version = version
		serve(t, f, func(ctx context.Context, c *Client) {
			for range 3 {
				if _, err := c.Workspace(ctx, "default"); err != nil {
					t.Error(version, err)
				}
			}
			if f.count("Health") != 1 {
				t.Errorf("calls %v", f.calls)
			}
		})
	}
	t.Run("no gateway", func(t *testing.T) {
		f := newFake()
		f.hooks["OpenShell/Health"] = refuse(codes.Unimplemented)
		serve(t, f, func(ctx context.Context, c *Client) {
			_, err := c.Delete(ctx, web, true)
			if e := as[*CallError](t, err); e.Call != "Health" || f.count("Sandbox") != 0 {
				t.Errorf("%v, calls %v", e, f.calls)
			}
		})
	})
}

// What a gateway repeats of our secrets never leaves the client.
func TestErrorsAreScrubbed(t *testing.T) {
	const env, quoted = "env-secret", `pa"ss\word`
	st, err := status.New(codes.InvalidArgument, `token `+canary+` and env-secret and "pa\"ss\\word" and on`).WithDetails(
		&errdetails.ErrorInfo{Domain: apierr.DomainOpenShell, Reason: apierr.ReasonInvalidArgument, Metadata: map[string]string{"value": env}},
		&errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: "spec.environment", Description: "bad value env-secret"}}},
		&errdetails.DebugInfo{Detail: env})
	if err != nil {
		t.Fatal(err)
	}
	f := newFake()
	serveConfig(t, f, Config{Endpoint: "http://127.0.0.1:1", Credentials: Token(canary)}, func(ctx context.Context, c *Client) {
		ctx = WithSecrets(WithSecrets(ctx, env), quoted, "on", "")
		for _, refusal := range []error{st.Err(), status.Error(codes.Internal, st.Message())} {
			f.hooks["GetSandbox"] = func(*fake, int, any) error { return refusal }
			_, err := c.Sandbox(ctx, "default", "web")
			for _, secret := range []string{canary, env, quoted, `pa\"ss`} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("%q in %q", secret, err)
				}
			}
			received, _ := status.FromError(err)
			if strings.Contains(received.Proto().String(), env) {
				t.Errorf("secret in the details: %v", received.Proto())
			}
		}
		f.hooks["GetSandbox"] = func(*fake, int, any) error { return st.Err() }
		_, err := c.Sandbox(ctx, "default", "web")
		if e := as[*apierr.InvalidArgument](t, err); e.Field != "spec.environment" || e.Problem != "bad value "+redacted {
			t.Errorf("%+v", e)
		}
	})
}

// A condition may repeat the environment, which a caller that only reads the sandbox does not know.
func TestConditionsAreScrubbed(t *testing.T) {
	serveConfig(t, newFake(), Config{Endpoint: "http://127.0.0.1:1"}, func(ctx context.Context, c *Client) {
		seen := c.Observed(ctx, &openshellv1.Sandbox{
			Spec: &openshellv1.SandboxSpec{
				Environment: map[string]string{"KEY": canary},
				Template:    &openshellv1.SandboxTemplate{Environment: map[string]string{"OTHER": "another-" + canary}},
			},
			Status: &openshellv1.SandboxStatus{Conditions: []*openshellv1.SandboxCondition{
				{Type: "Ready", Status: "False", Reason: "Failed", Message: "bad keys " + canary + ", another-" + canary},
			}},
		})
		if seen.Message != "bad keys "+redacted+", "+redacted {
			t.Errorf("%q", seen.Message)
		}
	})
}

func TestConditionalSupport(t *testing.T) {
	for name, tc := range map[string]struct {
		hook      hook
		supported bool
		said      string
	}{
		"serving": {supported: true, said: "SERVING"},
		"stock":   {hook: refuse(codes.Unimplemented), said: "UNIMPLEMENTED"},
		"unknown": {hook: refuse(codes.NotFound), said: "NOT_FOUND"},
	} {
		f := newFake()
		if tc.hook != nil {
			f.hooks["Health/Check"] = tc.hook
		}
		serve(t, f, func(ctx context.Context, c *Client) {
			supported, said, err := c.ConditionalSupport(ctx)
			if supported != tc.supported || said != tc.said || err != nil {
				t.Errorf("%s: %v, %s, %v", name, supported, said, err)
			}
		})
	}
}

// insecure_skip_verify skips the verification of the gateway, not the client certificate.
func TestTLS(t *testing.T) {
	cert, key := keyPair(t, time.Now().Add(time.Hour))
	otherCert, _ := keyPair(t, time.Now().Add(time.Hour))
	pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	clientCAs := x509.NewCertPool()
	clientCAs.AppendCertsFromPEM([]byte(cert))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clientCAs, MinVersion: tls.VersionTLS12,
	})))
	openshellv1.RegisterOpenShellServer(server, newFake())
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() { server.Stop(); serving.Wait() })
	endpoint := "https://" + strings.Replace(listener.Addr().String(), "127.0.0.1", "localhost", 1)
	const refused = "openssl" // by the server, so that no remedy is known here
	for name, tc := range map[string]struct {
		tls    TLS
		remedy string // empty: it works
	}{
		"mutual":                       {TLS{CACertPEM: cert, ClientCertPEM: cert, ClientKeyPEM: key}, ""},
		"skip keeps the certificate":   {TLS{InsecureSkipVerify: true, ClientCertPEM: cert, ClientKeyPEM: key}, ""},
		"name given although skipping": {TLS{InsecureSkipVerify: true, ServerName: "x", ClientCertPEM: cert, ClientKeyPEM: key}, ""},
		"wrong authority":              {TLS{CACertPEM: otherCert, ClientCertPEM: cert, ClientKeyPEM: key}, "tls.ca_cert_file"},
		"system's authorities":         {TLS{ClientCertPEM: cert, ClientKeyPEM: key}, "tls.ca_cert_file"},
		"wrong name":                   {TLS{CACertPEM: cert, ClientCertPEM: cert, ClientKeyPEM: key, ServerName: "elsewhere"}, "tls.server_name"},
		"no client certificate":        {TLS{CACertPEM: cert}, refused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := New(Config{Endpoint: endpoint, TLS: tc.tls})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			limit := 30 * time.Second
			if tc.remedy == refused { // looks like trouble, and is tried again until then
				limit = 2 * time.Second
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			_, err = c.Workspace(ctx, "default")
			switch tc.remedy {
			case "":
				if err != nil {
					t.Error(err)
				}
			case refused:
				if e := as[*CallError](t, err); e.TLSRemedy() != "" {
					t.Error(e.TLSRemedy())
				}
			default: // found at once, without a second attempt
				if e := as[*CallError](t, err); !strings.Contains(e.TLSRemedy(), tc.remedy) || ctx.Err() != nil {
					t.Errorf("%v: %s", e, e.TLSRemedy())
				}
			}
		})
	}
}

// A gateway that speaks plaintext where TLS is expected is told apart from one that is down.
func TestTLSToPlaintext(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() { server.Stop(); serving.Wait() })
	c, err := New(Config{Endpoint: "https://" + listener.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_, err = c.Workspace(t.Context(), "default")
	if e := as[*CallError](t, err); !strings.Contains(e.TLSRemedy(), "http://") {
		t.Errorf("%v: %s", e, e.TLSRemedy())
	}
}

func TestUnreachable(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := New(Config{Endpoint: "http://" + address})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = c.Workspace(ctx, "default")
	if e := as[*CallError](t, err); e.Endpoint != "http://"+address {
		t.Error(e)
	}
	if errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
