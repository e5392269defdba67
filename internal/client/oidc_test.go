package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
)

const issuerURL = "https://issuer.example.com/realm"

// issuer is one without a network, so that it works where time is fake.
type issuer struct {
	mu       sync.Mutex
	lifetime int // seconds; 0: not told
	granted  int
	form     url.Values
	requests []string
	document map[string]any
	answer   func(nth int) (status int, body string) // of the token endpoint; nil for tokens
	takes    time.Duration
}

func newIssuer(lifetime int) *issuer {
	return &issuer{lifetime: lifetime, document: map[string]any{"issuer": issuerURL, "token_endpoint": "https://tokens.example.com/token"}}
}

func (i *issuer) credentials() OIDC {
	return OIDC{Issuer: issuerURL, ClientID: "terraform", ClientSecret: canary, transport: i}
}

func (i *issuer) tokenRequests() (n int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, request := range i.requests {
		if strings.HasPrefix(request, "POST ") {
			n++
		}
	}
	return n
}

// RoundTrip implements http.RoundTripper.
func (i *issuer) RoundTrip(r *http.Request) (*http.Response, error) {
	if i.takes > 0 {
		select {
		case <-time.After(i.takes):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.requests = append(i.requests, r.Method+" "+r.URL.String())
	reply := func(status int, body string) (*http.Response, error) {
		header := http.Header{"Content-Type": {"application/json"}, "Location": {"https://elsewhere.example.com/token"}}
		return &http.Response{StatusCode: status, Status: fmt.Sprint(status), Header: header, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
	}
	if r.Method == http.MethodGet {
		body, _ := json.Marshal(i.document)
		return reply(http.StatusOK, string(body))
	}
	body, _ := io.ReadAll(r.Body)
	i.form, _ = url.ParseQuery(string(body))
	if id, secret, ok := r.BasicAuth(); ok {
		i.form.Set("basic", id+":"+secret)
	}
	if i.answer != nil {
		if status, text := i.answer(len(i.requests)); status != 0 {
			return reply(status, text)
		}
	}
	i.granted++
	expires := ""
	if i.lifetime > 0 {
		expires = fmt.Sprintf(`, "expires_in": %d`, i.lifetime)
	}
	return reply(http.StatusOK, fmt.Sprintf(`{"access_token": "token-%d", "token_type": "Bearer"%s}`, i.granted, expires))
}

func serveOIDC(t *testing.T, f *fake, i *issuer, test func(ctx context.Context, c *Client)) {
	t.Helper()
	serveConfig(t, f, Config{Endpoint: "http://127.0.0.1:1", Credentials: i.credentials()}, test)
}

func readOnce(ctx context.Context, t *testing.T, c *Client) {
	t.Helper()
	if _, err := c.Workspace(ctx, "default"); err != nil {
		t.Error(err)
	}
}

// One token serves until shortly before its end; the issuer is asked as the command line asks.
func TestOIDCRenewsBeforeTheEnd(t *testing.T) {
	f, i := newFake(), newIssuer(300)
	credentials := i.credentials()
	credentials.Audience, credentials.Scopes = "openshell-cli", []string{"sandbox:read", "sandbox:write"}
	serveConfig(t, f, Config{Endpoint: "http://127.0.0.1:1", Credentials: credentials}, func(ctx context.Context, c *Client) {
		for _, tokens := range []int{1, 1, 2, 2, 3} {
			readOnce(ctx, t, c)
			if i.granted != tokens || f.tokens[len(f.tokens)-1] != fmt.Sprintf("Bearer token-%d", tokens) {
				t.Errorf("%d tokens, want %d", i.granted, tokens)
			}
			<-time.After(140 * time.Second)
		}
		want := url.Values{
			"grant_type": {"client_credentials"}, "client_id": {"terraform"}, "client_secret": {canary},
			"audience": {"openshell-cli"}, "scope": {"sandbox:read sandbox:write"},
		}
		if i.form.Encode() != want.Encode() {
			t.Errorf("form %v", i.form)
		}
		if n := len(i.requests) - i.tokenRequests(); n != 1 {
			t.Errorf("%d discoveries", n)
		}
	})
}

// An issuer that takes the secret in the header only gets it there; a token of unknown life is used until it is refused.
func TestOIDCVariants(t *testing.T) {
	f, i := newFake(), newIssuer(0)
	i.document["token_endpoint_auth_methods_supported"] = []string{"client_secret_basic"}
	serveOIDC(t, f, i, func(ctx context.Context, c *Client) {
		readOnce(ctx, t, c)
		<-time.After(24 * time.Hour)
		ctx = context.WithoutCancel(ctx)
		readOnce(ctx, t, c)
		if i.form.Get("basic") != "terraform:"+canary || i.form.Has("client_secret") || i.granted != 1 {
			t.Errorf("form %v, %d tokens", i.form, i.granted)
		}
	})
}

// However many calls want a new token, the issuer is asked once; each waits no longer than its own context.
func TestOIDCAsksOnce(t *testing.T) {
	f, i := newFake(), newIssuer(300)
	i.takes = 2 * time.Second
	serveOIDC(t, f, i, func(ctx context.Context, c *Client) {
		var calls sync.WaitGroup
		calls.Go(func() {
			hasty, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			start := time.Now()
			if _, err := c.Workspace(hasty, "default"); err == nil || time.Since(start) > time.Second {
				t.Errorf("%v after %v", err, time.Since(start))
			}
		})
		for range 10 {
			calls.Go(func() { readOnce(ctx, t, c) })
		}
		calls.Wait()
		if i.granted != 1 {
			t.Errorf("%d tokens", i.granted)
		}
		f.mu.Lock()
		f.hooks["GetWorkspace"] = func(f *fake, _ int, _ any) error {
			if f.tokens[len(f.tokens)-1] == "Bearer token-1" {
				return refuse(codes.Unauthenticated)(f, 0, nil)
			}
			return nil
		}
		f.mu.Unlock()
		for range 10 {
			calls.Go(func() { readOnce(ctx, t, c) })
		}
		calls.Wait()
		if i.granted != 2 {
			t.Errorf("%d tokens", i.granted)
		}
	})
}

// Trouble at the issuer is waited out for a few seconds. If it lasts, the call is not made, unless the token is good yet.
func TestOIDCIssuerInTrouble(t *testing.T) {
	down := func(int) (int, string) { return http.StatusInternalServerError, "secret " + canary }
	f, i := newFake(), newIssuer(300)
	serveOIDC(t, f, i, func(ctx context.Context, c *Client) {
		first := true
		i.answer = func(nth int) (int, string) {
			if first {
				first = false
				return down(nth)
			}
			return 0, ""
		}
		readOnce(ctx, t, c)
		i.answer = down
		<-time.After(280 * time.Second) // due, but good for 20 seconds more
		readOnce(ctx, t, c)
		<-time.After(20 * time.Second)
		calls, start := len(f.calls), time.Now()
		_, err := c.Create(ctx, newWeb(), nil)
		if e := as[*CredentialError](t, err); e.Attribute != "oidc" || !strings.Contains(e.Problem, "500") || strings.Contains(e.Error(), canary) {
			t.Errorf("%+v", e)
		}
		if took := time.Since(start); took > 10*time.Second || len(f.calls) != calls {
			t.Errorf("%v, calls %v", took, f.calls[calls:])
		}
		i.answer = nil
		readOnce(ctx, t, c)
	})
}

// Every refusal names the setting at fault, is not repeated, and shows nothing of what the issuer says.
func TestOIDCRefusals(t *testing.T) {
	refusal := func(status int, code string) func(*issuer) {
		return func(i *issuer) {
			i.answer = func(int) (int, string) {
				return status, fmt.Sprintf(`{"error": %q, "error_description": "your secret %s is wrong"}`, code, canary)
			}
		}
	}
	announce := func(key string, value any) func(*issuer) { return func(i *issuer) { i.document[key] = value } }
	for name, tc := range map[string]struct {
		change    func(*issuer)
		attribute string
		says      string
		asked     int
	}{
		"secret":               {refusal(401, "invalid_client"), "oidc.client_secret", "invalid_client", 1},
		"scope":                {refusal(400, "invalid_scope"), "oidc.scopes", "invalid_scope", 1},
		"client":               {refusal(400, "unauthorized_client"), "oidc.client_id", "unauthorized_client", 1},
		"code of its own":      {refusal(400, canary), "oidc", "400", 1},
		"redirect":             {func(i *issuer) { i.answer = func(int) (int, string) { return 307, canary } }, "oidc", "307", 1},
		"no token":             {func(i *issuer) { i.answer = func(int) (int, string) { return 200, `{"token": "` + canary + `"}` } }, "oidc.issuer", "not what it should be", 1},
		"a token that is none": {func(i *issuer) { i.answer = func(int) (int, string) { return 200, `{"access_token": "two words"}` } }, "oidc.issuer", "no token", 1},
		"another issuer":       {announce("issuer", issuerURL+"/"), "oidc.issuer", "to the last slash", 0},
		"no token endpoint":    {announce("token_endpoint", ""), "oidc.issuer", "token_endpoint", 0},
		"plaintext endpoint":   {announce("token_endpoint", "http://tokens.example.com/token"), "oidc.issuer", "https://", 0},
		"hangs":                {func(i *issuer) { i.takes = time.Hour }, "oidc.issuer", issuerURL, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f, i := newFake(), newIssuer(300)
			tc.change(i)
			serveOIDC(t, f, i, func(ctx context.Context, c *Client) {
				start := time.Now()
				_, err := c.Workspace(ctx, "default")
				e := as[*CredentialError](t, err)
				if text := e.Error() + e.Remedy; e.Attribute != tc.attribute || !strings.Contains(text, tc.says) || strings.Contains(text, canary) {
					t.Errorf("%+v", e)
				}
				if i.tokenRequests() != tc.asked || len(f.calls) != 0 || time.Since(start) > time.Minute {
					t.Errorf("requests %v, calls %v, %v", i.requests, f.calls, time.Since(start))
				}
			})
		})
	}
}
