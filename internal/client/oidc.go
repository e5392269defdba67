package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
	"golang.org/x/sync/singleflight"
)

const (
	// tokenMargin is how long before its end a token is renewed (upstream-contract 5.4).
	tokenMargin = 30 * time.Second
	// issuerTimeout bounds one request to the issuer, issuerTries how many are made for a token while the trouble may pass,
	// issuerPause the first wait between them, and renewalLimit all of it.
	issuerTimeout = 10 * time.Second
	issuerTries   = 4
	issuerPause   = 500 * time.Millisecond
	renewalLimit  = 30 * time.Second
)

// OIDC gets tokens from an OpenID Connect issuer for a program (RFC 6749, section 4.4). A token is kept in memory
// and renewed before it ends, or when the gateway refuses it; however many calls want one, the issuer is asked once.
type OIDC struct {
	// Issuer is its URL, as in the tokens' claim iss.
	Issuer string
	// ClientID and ClientSecret are the program's credentials.
	ClientID, ClientSecret string
	// Audience is asked for in the form field "audience"; empty asks for none.
	Audience string
	// Scopes are asked for; without any, the issuer decides.
	Scopes []string

	transport http.RoundTripper // nil outside tests
}

func (OIDC) attribute() string { return "oidc" }

func (c OIDC) source() (tokenSource, error) {
	for _, needed := range []struct{ attribute, value string }{
		{"oidc.issuer", c.Issuer}, {"oidc.client_id", c.ClientID}, {"oidc.client_secret", c.ClientSecret},
	} {
		if needed.value == "" {
			return nil, &ConfigError{Attribute: needed.attribute, Problem: "it is missing", Remedy: "set it; client credentials need issuer, client_id and client_secret"}
		}
	}
	u, err := url.Parse(c.Issuer)
	if err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || !keepsSecrets(u) {
		return nil, &ConfigError{Attribute: "oidc.issuer", Problem: "it is not the URL of an issuer", Remedy: "give it as https://issuer.example.com/path, without user, query or fragment; http:// is for an issuer on this machine only"}
	}
	return &clientCredentials{OIDC: c, http: &http.Client{
		Transport:     c.transport,
		Timeout:       issuerTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the secret goes nowhere else
	}}, nil
}

// keepsSecrets tells whether what is sent to a URL cannot be read on the way.
func keepsSecrets(u *url.URL) bool {
	return u.Scheme == "https" || u.Scheme == "http" && isLoopback(u.Hostname())
}

type clientCredentials struct {
	OIDC
	http    *http.Client
	renewal singleflight.Group

	mu      sync.Mutex
	config  *clientcredentials.Config // nil until the issuer was discovered
	current *oauth2.Token
	renewAt time.Time // zero: only when refused
}

func (c *clientCredentials) token(ctx context.Context, refused string) (string, error) {
	if token := c.fresh(refused); token != "" {
		return token, nil
	}
	// The renewal serves everybody who waits for it, so it does not end with the one who came first; it has limits of its own.
	result := c.renewal.DoChan("", func() (any, error) { return c.renew(context.WithoutCancel(ctx), refused) })
	select {
	case <-ctx.Done():
		return "", &CredentialError{Attribute: c.attribute(), Problem: fmt.Sprintf("the time ended while the issuer %s was asked for a token (%v)", c.Issuer, ctx.Err())}
	case r := <-result:
		token, _ := r.Val.(string)
		return token, r.Err
	}
}

// fresh is the current token unless it is due, or refused.
func (c *clientCredentials) fresh(refused string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current == nil || c.current.AccessToken == refused || !c.renewAt.IsZero() && !time.Now().Before(c.renewAt) {
		return ""
	}
	return c.current.AccessToken
}

func (c *clientCredentials) renew(ctx context.Context, refused string) (string, error) {
	if token := c.fresh(refused); token != "" { // another renewal ended just before this one began
		return token, nil
	}
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, c.http), renewalLimit)
	defer cancel()
	asked := time.Now()
	token, err := c.askPatiently(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		if c.current != nil && c.current.AccessToken != refused && time.Now().Before(c.current.Expiry) {
			return c.current.AccessToken, nil // not for long, but it is good yet
		}
		return "", err
	}
	c.current, c.renewAt = token, time.Time{}
	if lifetime := token.Expiry.Sub(asked); !token.Expiry.IsZero() {
		c.renewAt = token.Expiry.Add(-min(tokenMargin, lifetime/2))
	}
	return token.AccessToken, nil
}

// askPatiently asks again while the trouble may pass.
func (c *clientCredentials) askPatiently(ctx context.Context) (*oauth2.Token, error) {
	pause := issuerPause
	for try := 1; ; try++ {
		token, err := c.ask(ctx)
		if trouble, ok := errors.AsType[*issuerError](err); !ok || !trouble.passing || try == issuerTries {
			return token, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(pause):
		}
		pause *= 2
	}
}

// ask asks the issuer once, first for where its tokens are. Its answers are not repeated in errors: what was sent to it is
// a secret.
func (c *clientCredentials) ask(ctx context.Context) (*oauth2.Token, error) {
	config, err := c.discover(ctx)
	if err != nil {
		return nil, err
	}
	token, err := config.Token(ctx)
	if err == nil {
		if problem := badToken(token.AccessToken); problem != "" {
			return nil, c.fault("oidc.issuer", "the issuer answers with what is no token: "+problem, false)
		}
		return token, nil
	}
	refusal, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok {
		return nil, c.fault("oidc.issuer", "the issuer does not answer with a token: "+transportProblem(err), isTransport(err))
	}
	passing := refusal.Response.StatusCode >= http.StatusInternalServerError || refusal.Response.StatusCode == http.StatusTooManyRequests
	problem := "the issuer refuses a token with HTTP status " + refusal.Response.Status
	attribute, known := tokenErrors[refusal.ErrorCode]
	if !known {
		return nil, c.fault("oidc", problem, passing)
	}
	return nil, c.fault(attribute, problem+", "+refusal.ErrorCode, passing)
}

// tokenErrors are the error codes of RFC 6749, section 5.2, and the setting that each is about.
var tokenErrors = map[string]string{
	"invalid_client": "oidc.client_secret", "invalid_scope": "oidc.scopes", "invalid_request": "oidc", "invalid_grant": "oidc",
	"unauthorized_client": "oidc.client_id", "unsupported_grant_type": "oidc.client_id",
}

// discover asks where the issuer gives its tokens, once.
func (c *clientCredentials) discover(ctx context.Context) (*clientcredentials.Config, error) {
	c.mu.Lock()
	config := c.config
	c.mu.Unlock()
	if config != nil {
		return config, nil
	}
	issuer, err := oidc.NewProvider(ctx, c.Issuer)
	if mismatch, ok := errors.AsType[*oidc.IssuerMismatchError](err); ok {
		return nil, c.fault("oidc.issuer", fmt.Sprintf("the issuer calls itself %q; the two must be the same, to the last slash", mismatch.Discovered), false)
	}
	if err != nil {
		return nil, c.fault("oidc.issuer", "its discovery document (.well-known/openid-configuration) could not be read: "+transportProblem(err), true)
	}
	endpoint := issuer.Endpoint()
	if u, err := url.Parse(endpoint.TokenURL); err != nil || endpoint.TokenURL == "" || !keepsSecrets(u) {
		return nil, c.fault("oidc.issuer", "its discovery document names no token_endpoint with https://", false)
	}
	var document struct {
		Methods []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := issuer.Claims(&document); err != nil {
		return nil, c.fault("oidc.issuer", "its discovery document is not what it should be", false)
	}
	style := oauth2.AuthStyleInParams // as the command line does, unless the issuer says otherwise
	if slices.Contains(document.Methods, "client_secret_basic") && !slices.Contains(document.Methods, "client_secret_post") {
		style = oauth2.AuthStyleInHeader
	}
	config = &clientcredentials.Config{
		ClientID: c.ClientID, ClientSecret: c.ClientSecret, Scopes: c.Scopes, TokenURL: endpoint.TokenURL, AuthStyle: style,
	}
	if c.Audience != "" {
		config.EndpointParams = url.Values{"audience": {c.Audience}}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.config = config
	return config, nil
}

// issuerError is a failure at the issuer, and whether it may pass.
type issuerError struct {
	*CredentialError
	passing bool
}

func (e *issuerError) Unwrap() error { return e.CredentialError }

func (c *clientCredentials) fault(attribute, problem string, passing bool) error {
	return &issuerError{passing: passing, CredentialError: &CredentialError{
		Attribute: attribute, Problem: problem + " (issuer " + c.Issuer + ")",
		Remedy: "check " + attribute + ", and that the issuer is up, then run this again",
	}}
}

// isTransport tells that there was no answer at all.
func isTransport(err error) bool {
	_, ok := errors.AsType[*url.Error](err)
	return ok
}

// transportProblem is why there was no answer, without what an answer said.
func transportProblem(err error) string {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err.Error()
	}
	return "the answer is not what it should be"
}
