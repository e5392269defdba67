package auth

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Defaults of [OIDCConfig], those of the stock gateway.
const (
	DefaultAudience   = "openshell-cli"
	DefaultRolesClaim = "realm_access.roles"
	DefaultAdminRole  = "openshell-admin"
	DefaultUserRole   = "openshell-user"
	DefaultJWKSTTL    = time.Hour
	DefaultLeeway     = time.Minute
)

// OIDCConfig says which tokens are taken and what is read from them. Zero values are not replaced by the defaults.
type OIDCConfig struct {
	// Issuer is the URL that tokens carry as iss; whether it ends in a slash does not matter. It must be https, or http on
	// the loopback interface.
	Issuer string
	// Audience must be among the aud of a token.
	Audience string
	// JWKSTTL is how long the issuer's keys are used; in the last tenth of that they are fetched again.
	JWKSTTL time.Duration
	// JWKSOrigins are further origins, such as https://keys.example.com, that the issuer may name for its keys. Its own is
	// always allowed.
	JWKSOrigins []string
	// RolesClaim is the path of the list of roles, names joined by dots.
	RolesClaim string
	// AdminRole makes a platform administrator, who also counts as having UserRole; UserRole is needed for everything that
	// is about workspaces. Both or none must be set; with none, every valid token may do everything.
	AdminRole, UserRole string
	// ScopesClaim is the path of the scopes. When it is empty, scopes are not enforced.
	ScopesClaim string
	// Leeway is how far the clocks of issuer and gateway may be apart.
	Leeway time.Duration
}

func (c OIDCConfig) check() error {
	switch {
	case c.Audience == "":
		return errors.New("auth: the audience of OIDC tokens must not be empty, or tokens for other services would be taken")
	case c.JWKSTTL <= 0:
		return errors.New("auth: the JWKS TTL must be more than 0, or the issuer would be asked for every call")
	case c.Leeway < 0:
		return errors.New("auth: the leeway must not be negative")
	case (c.AdminRole == "") != (c.UserRole == ""):
		return fmt.Errorf("auth: OIDC admin role %q and user role %q: set both, or leave both empty to let every valid token do everything", c.AdminRole, c.UserRole)
	case c.AdminRole != "" && c.RolesClaim == "":
		return errors.New("auth: an OIDC admin role is set, but not the claim that carries the roles")
	}
	return nil
}

// maxTokenLength is far above what issuers make and far below what would hurt to parse.
const maxTokenLength = 16 << 10

// algorithms are those a token may be signed with. "none" is not among them, and neither are the symmetric ones, whose
// key an issuer cannot publish.
var algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512,
	jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

// tokens takes bearer tokens that an OpenID Connect issuer has signed. go-oidc, which finds the issuer's keys, verifies
// ID tokens; these are access tokens, and its fixed leeway, its keys that never expire and its untyped errors do not
// serve here, so they are verified with the library below it.
type tokens struct {
	cfg    OIDCConfig
	issuer string
	keys   *keySet
	now    func() time.Time
}

func newTokens(ctx context.Context, cfg OIDCConfig, now func() time.Time, logger *slog.Logger) (*tokens, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	source, err := newIssuer(cfg.Issuer, cfg.JWKSOrigins)
	if err != nil {
		return nil, err
	}
	keys := newKeySet(source.url, source.keys, cfg.JWKSTTL, now, logger)
	if err := keys.warm(ctx); errors.Is(err, errWrongIssuer) {
		return nil, err
	}
	return &tokens{cfg: cfg, issuer: source.url, keys: keys, now: now}, nil
}

func (t *tokens) authenticate(ctx context.Context) (Identity, error) {
	raw, err := bearer(ctx)
	if err != nil {
		return Identity{}, err
	}
	token, err := t.verified(ctx, raw)
	if err != nil {
		return Identity{}, err
	}
	if err := t.valid(token.claims); err != nil {
		return Identity{}, err
	}
	return token.caller, nil
}

// signedToken is what is known of a token that one of the issuer's keys has signed. Whether it is valid depends on the time.
type signedToken struct {
	claims jwt.Claims
	caller Identity
}

// verified returns what a token says that one of the issuer's keys has signed. Nothing of an unverified token is believed
// but which key it names.
func (t *tokens) verified(ctx context.Context, raw string) (signedToken, error) {
	if len(raw) > maxTokenLength {
		return signedToken{}, invalidToken("longer than %d bytes", maxTokenLength)
	}
	hash := sha256.Sum256([]byte(raw))
	if keys := t.keys.usable(); keys != nil {
		if token, known := keys.tokens.Get(hash); known {
			return token, nil
		}
	}
	parsed, err := jwt.ParseSigned(raw, algorithms)
	var algorithm *jose.ErrUnexpectedSignatureAlgorithm
	if errors.As(err, &algorithm) {
		return signedToken{}, invalidToken("not signed with an algorithm that this gateway takes (%v)", algorithms)
	}
	if err != nil {
		return signedToken{}, invalidToken("malformed")
	}
	header := parsed.Headers[0]
	if header.KeyID == "" {
		return signedToken{}, invalidToken("does not name the key it is signed with (kid)")
	}
	name := keyName{id: header.KeyID, algorithm: jose.SignatureAlgorithm(header.Algorithm)}
	keys, err := t.keys.find(ctx, name)
	if errors.Is(err, errUnknownKey) {
		return signedToken{}, invalidToken("not signed with a key that the issuer publishes for this algorithm")
	}
	if err != nil {
		return signedToken{}, status.Errorf(codes.Unavailable, "the token cannot be checked, because its issuer %s cannot be asked for its keys right now; try again", t.issuer)
	}
	var token signedToken
	var all map[string]any
	err = parsed.Claims(keys.keys[name], &token.claims, &all)
	if errors.Is(err, jose.ErrCryptoFailure) {
		return signedToken{}, invalidToken("the signature is wrong")
	}
	if err != nil {
		return signedToken{}, invalidToken("malformed claims")
	}
	token.caller = t.caller(token.claims, all)
	keys.tokens.Add(hash, token)
	return token, nil
}

// caller is who a token speaks for.
func (t *tokens) caller(claims jwt.Claims, all map[string]any) Identity {
	name, _ := all["preferred_username"].(string)
	caller := Identity{
		Subject: claims.Subject, DisplayName: name,
		Roles:    rolesIn(claimAt(all, t.cfg.RolesClaim)),
		Provider: OIDC, Issuer: t.issuer,
	}
	if t.cfg.ScopesClaim != "" {
		caller.Scopes = scopesIn(claimAt(all, t.cfg.ScopesClaim))
	}
	return caller
}

func (t *tokens) valid(claims jwt.Claims) error {
	switch {
	case strings.TrimRight(claims.Issuer, "/") != t.issuer:
		return invalidToken("from another issuer; this gateway takes tokens of %s", t.issuer)
	case claims.Expiry == nil:
		return invalidToken("without an expiry (exp)")
	case claims.Subject == "":
		return invalidToken("without a subject (sub)")
	}
	err := claims.ValidateWithLeeway(jwt.Expected{AnyAudience: jwt.Audience{t.cfg.Audience}, Time: t.now()}, t.cfg.Leeway)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jwt.ErrInvalidAudience):
		return invalidToken("for another audience; this gateway takes tokens for %q", t.cfg.Audience)
	case errors.Is(err, jwt.ErrExpired):
		return invalidToken("expired")
	case errors.Is(err, jwt.ErrNotValidYet), errors.Is(err, jwt.ErrIssuedInTheFuture):
		return invalidToken("not valid yet")
	default:
		return invalidToken("invalid claims")
	}
}

func invalidToken(format string, args ...any) error {
	return status.Errorf(codes.Unauthenticated, "invalid token: "+format, args...)
}
