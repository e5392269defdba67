package auth

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
)

// maxDocument is more than any discovery document or key set has.
const maxDocument = 1 << 20

// errWrongIssuer: the issuer's URL leads to somebody else, or its keys to a place they are not expected at.
var errWrongIssuer = errors.New("auth: the OIDC issuer is not as configured")

// issuer is an OpenID Connect provider, of which only discovery and keys are used (upstream-contract, OIDC).
type issuer struct {
	url    string // without a trailing slash
	keysAt []string
	client *http.Client
}

func newIssuer(configured string, keyOrigins []string) (*issuer, error) {
	address, err := url.Parse(configured)
	if err != nil {
		return nil, errors.New("auth: the OIDC issuer is not a URL")
	}
	if err := trustworthy(address); err != nil {
		return nil, fmt.Errorf("auth: OIDC issuer: %w", err)
	}
	if address.RawQuery != "" || address.Fragment != "" {
		return nil, errors.New("auth: the URL of the OIDC issuer must have no query and no fragment")
	}
	allowed := []string{origin(address)}
	for _, text := range keyOrigins {
		place, err := url.Parse(text)
		if err != nil {
			return nil, errors.New("auth: an allowed origin of OIDC keys is not a URL")
		}
		if err := trustworthy(place); err != nil {
			return nil, fmt.Errorf("auth: allowed origin of OIDC keys: %w", err)
		}
		allowed = append(allowed, origin(place))
	}
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // it is documented to be one
	transport.DisableKeepAlives = true                           // it is asked once in a long while
	return &issuer{
		url:    strings.TrimRight(configured, "/"),
		keysAt: allowed,
		client: &http.Client{
			Transport: limited{transport},
			Timeout:   fetchTimeout,
			// Whoever could redirect discovery could also name keys of his own.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// trustworthy refuses places whose answers anybody on the way could change.
func trustworthy(place *url.URL) error {
	switch {
	case place.Host == "" || place.User != nil:
		return errors.New("the URL must name a host and carry no credentials")
	case place.Scheme == "https":
		return nil
	case place.Scheme == "http" && (place.Hostname() == "localhost" || net.ParseIP(place.Hostname()).IsLoopback()):
		return nil
	default:
		return fmt.Errorf("%q must be https; http is for the loopback interface only", place.Redacted())
	}
}

// origin is scheme, host and port, the port always said.
func origin(place *url.URL) string {
	port := place.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[place.Scheme]
	}
	return place.Scheme + "://" + net.JoinHostPort(strings.ToLower(place.Hostname()), port)
}

// keys asks the issuer where its keys are and fetches them.
func (i *issuer) keys(ctx context.Context) (publicKeys, error) {
	// The issuer is compared below instead, since a trailing slash makes no difference here.
	ctx = oidc.InsecureIssuerURLContext(oidc.ClientContext(ctx, i.client), i.url)
	provider, err := oidc.NewProvider(ctx, i.url)
	if err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	var found struct {
		Issuer  string `json:"issuer"`
		JWKSURI string `json:"jwks_uri"`
	}
	if err := provider.Claims(&found); err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	if strings.TrimRight(found.Issuer, "/") != i.url {
		return nil, fmt.Errorf("%w: configured is %q, but it calls itself %q", errWrongIssuer, i.url, found.Issuer)
	}
	place, err := url.Parse(found.JWKSURI)
	if err != nil || !slices.Contains(i.keysAt, origin(place)) {
		return nil, fmt.Errorf("%w: its keys are at %q, which is not its own origin and not among the allowed origins of its keys", errWrongIssuer, found.JWKSURI)
	}
	return i.fetchKeys(ctx, place.String())
}

func (i *issuer) fetchKeys(ctx context.Context, place string) (publicKeys, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, place, nil)
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	response, err := i.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("keys: %s answers %s", place, response.Status)
	}
	var document struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.NewDecoder(response.Body).Decode(&document); err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	keys := publicKeys{}
	for _, raw := range document.Keys {
		// Keys for other purposes, or of kinds unknown here, may stand beside the ones that are wanted (RFC 7517, 5).
		if name, key, ok := signingKey(raw); ok {
			if _, taken := keys[name]; !taken {
				keys[name] = key
			}
		}
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("keys: none of the %d at %s is one for signatures that can be used here", len(document.Keys), place)
	}
	return keys, nil
}

// signingKey reads a public key for signatures. A key without an algorithm of its own gets the one of its kind.
func signingKey(raw json.RawMessage) (name keyName, key any, ok bool) {
	var use struct {
		Use        string   `json:"use"`
		Operations []string `json:"key_ops"`
	}
	var jwk jose.JSONWebKey
	if json.Unmarshal(raw, &use) != nil || json.Unmarshal(raw, &jwk) != nil || jwk.KeyID == "" {
		return keyName{}, nil, false
	}
	if use.Use != "" && use.Use != "sig" || len(use.Operations) > 0 && !slices.Contains(use.Operations, "verify") {
		return keyName{}, nil, false
	}
	possible := algorithmsOf(jwk.Key)
	if len(possible) == 0 {
		return keyName{}, nil, false
	}
	algorithm := possible[0]
	if jwk.Algorithm != "" {
		algorithm = jose.SignatureAlgorithm(jwk.Algorithm)
	}
	return keyName{id: jwk.KeyID, algorithm: algorithm}, jwk.Key, slices.Contains(possible, algorithm)
}

// algorithmsOf lists what a public key may be used with, the usual one first; nothing for symmetric, private and weak ones.
func algorithmsOf(key any) []jose.SignatureAlgorithm {
	switch key := key.(type) {
	case *rsa.PublicKey:
		if key.N.BitLen() >= 2048 { // RFC 7518, 3.3
			return []jose.SignatureAlgorithm{jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512}
		}
	case *ecdsa.PublicKey:
		switch key.Curve {
		case elliptic.P256():
			return []jose.SignatureAlgorithm{jose.ES256}
		case elliptic.P384():
			return []jose.SignatureAlgorithm{jose.ES384}
		case elliptic.P521():
			return []jose.SignatureAlgorithm{jose.ES512}
		}
	case ed25519.PublicKey:
		return []jose.SignatureAlgorithm{jose.EdDSA}
	}
	return nil
}

// limited bounds what is read of an answer.
type limited struct{ http.RoundTripper }

func (l limited) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := l.RoundTripper.RoundTrip(request)
	if err == nil {
		response.Body = http.MaxBytesReader(nil, response.Body, maxDocument)
	}
	return response, err
}
