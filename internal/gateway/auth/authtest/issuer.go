// Package authtest makes the credentials that tests need: an OpenID Connect issuer on the loopback interface and a small
// certificate authority. Both can do wrong on purpose.
package authtest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth"
)

// Key is a signing key of an issuer.
type Key struct {
	ID        string
	Algorithm jose.SignatureAlgorithm
	Private   crypto.Signer
}

// JWK is the public half, as an issuer publishes it.
func (k Key) JWK() jose.JSONWebKey {
	return jose.JSONWebKey{KeyID: k.ID, Algorithm: string(k.Algorithm), Use: "sig", Key: k.Private.Public()}
}

// NewECKey makes a P-256 key.
func NewECKey(t testing.TB, id string) Key {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return Key{ID: id, Algorithm: jose.ES256, Private: private}
}

// NewRSAKey makes an RSA key of so many bits.
func NewRSAKey(t testing.TB, id string, bits int) Key {
	t.Helper()
	private, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return Key{ID: id, Algorithm: jose.RS256, Private: private}
}

// Issuer is an OpenID Connect provider with discovery and keys, tokens for tests that ask, and a token endpoint for programs.
type Issuer struct {
	server *httptest.Server
	t      testing.TB

	mu        sync.Mutex
	key       Key
	published []jose.JSONWebKey
	answer    http.HandlerFunc // instead of the usual ones
	document  map[string]any
	keyCalls  int
	made      int
	programs  map[string]Program
	grants    []url.Values
}

// NewIssuer starts an issuer with one P-256 key. It ends with the test.
func NewIssuer(t testing.TB) *Issuer {
	t.Helper()
	i := &Issuer{t: t, document: map[string]any{}, programs: map[string]Program{}}
	i.Rotate()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", i.serveDiscovery)
	mux.HandleFunc("GET /keys", i.serveKeys)
	mux.HandleFunc("POST /token", i.serveToken)
	i.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		answer := i.answer
		i.mu.Unlock()
		if answer != nil {
			answer(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(i.server.Close)
	return i
}

// URL is the issuer's, without a trailing slash.
func (i *Issuer) URL() string { return i.server.URL }

// Config takes the issuer's tokens as the stock gateway does by default: without scopes.
func (i *Issuer) Config() *auth.OIDCConfig {
	return &auth.OIDCConfig{
		Issuer: i.URL(), Audience: auth.DefaultAudience, JWKSTTL: auth.DefaultJWKSTTL, Leeway: auth.DefaultLeeway,
		RolesClaim: auth.DefaultRolesClaim, AdminRole: auth.DefaultAdminRole, UserRole: auth.DefaultUserRole,
	}
}

// ScopedConfig is [Issuer.Config] with scopes, which the claim "scope" has.
func (i *Issuer) ScopedConfig() *auth.OIDCConfig {
	config := i.Config()
	config.ScopesClaim = "scope"
	return config
}

// Key is the one that tokens are signed with.
func (i *Issuer) Key() Key {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.key
}

// Rotate makes a new key, signs with it from now on, and publishes no other.
func (i *Issuer) Rotate() Key {
	i.mu.Lock()
	i.made++
	id := "key-" + strconv.Itoa(i.made)
	i.mu.Unlock()
	key := NewECKey(i.t, id)
	i.Use(key)
	return key
}

// Use signs with a key from now on, and publishes no other.
func (i *Issuer) Use(key Key) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.key, i.published = key, []jose.JSONWebKey{key.JWK()}
}

// Publish replaces the keys that are published, whatever the tokens are signed with.
func (i *Issuer) Publish(keys ...jose.JSONWebKey) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.published = keys
}

// Announce replaces entries of the discovery document.
func (i *Issuer) Announce(entries map[string]any) {
	i.mu.Lock()
	defer i.mu.Unlock()
	maps.Copy(i.document, entries)
}

// Answer makes the issuer answer everything in this way; nil makes it answer as usual again.
func (i *Issuer) Answer(handler http.HandlerFunc) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.answer = handler
}

// Down is an answer for [Issuer.Answer]: the connection breaks.
func Down(w http.ResponseWriter, _ *http.Request) {
	if connection, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_ = connection.Close()
	}
}

// KeyCalls counts how often the keys were fetched.
func (i *Issuer) KeyCalls() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.keyCalls
}

func (i *Issuer) serveDiscovery(w http.ResponseWriter, _ *http.Request) {
	i.mu.Lock()
	document := map[string]any{"issuer": i.server.URL, "jwks_uri": i.server.URL + "/keys", "token_endpoint": i.server.URL + "/token"}
	maps.Copy(document, i.document)
	i.mu.Unlock()
	i.write(w, document)
}

func (i *Issuer) serveKeys(w http.ResponseWriter, _ *http.Request) {
	i.mu.Lock()
	i.keyCalls++
	set := jose.JSONWebKeySet{Keys: i.published}
	i.mu.Unlock()
	i.write(w, set)
}

func (i *Issuer) write(w http.ResponseWriter, document any) {
	text, err := json.Marshal(document)
	if err != nil {
		i.t.Error(err)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text) // who asked may be gone
}

// Claims are those of a good token of a user, for the stock audience, with changes; a nil value takes a claim out.
func (i *Issuer) Claims(subject string, changes map[string]any) map[string]any {
	now := time.Now()
	claims := map[string]any{
		"iss": i.URL(), "sub": subject, "aud": "openshell-cli",
		"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
		"preferred_username": subject,
		"realm_access":       map[string]any{"roles": []string{"openshell-user"}},
	}
	maps.Copy(claims, changes)
	maps.DeleteFunc(claims, func(_ string, value any) bool { return value == nil })
	return claims
}

// Token signs [Issuer.Claims] with the current key.
func (i *Issuer) Token(subject string, changes map[string]any) string {
	key := i.Key()
	return Sign(i.t, key.Private, key.Algorithm, key.ID, i.Claims(subject, changes))
}

// Sign makes a token of any kind; key is a private key, or the bytes of a shared one.
func Sign(t testing.TB, key any, algorithm jose.SignatureAlgorithm, keyID string, claims map[string]any) string {
	t.Helper()
	options := (&jose.SignerOptions{}).WithType("JWT")
	if keyID != "" {
		options = options.WithHeader("kid", keyID)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, options)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// Unsigned makes a token with the algorithm "none" and an empty signature.
func Unsigned(t testing.TB, keyID string, claims map[string]any) string {
	t.Helper()
	header, err := json.Marshal(map[string]any{"alg": "none", "typ": "JWT", "kid": keyID})
	if err != nil {
		t.Fatal(err)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(header) + "." + base64.RawURLEncoding.EncodeToString(payload) + "."
}
