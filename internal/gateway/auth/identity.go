package auth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"sync/atomic"
)

// Provider names how a caller was recognised. The values are those of GetCurrentUserResponse.identity_provider
// (upstream-contract, pseudo enums).
type Provider string

// How callers are recognised.
const (
	LocalDev Provider = "local_dev"
	MTLS     Provider = "mtls"
	OIDC     Provider = "oidc"
)

// Identity is who is calling, as the gateway has verified it.
type Identity struct {
	// Subject is unique within Provider and Issuer: the token's sub, or the certificate's common name. Workspace members
	// are listed by it.
	Subject string
	// DisplayName is for people; it may be empty and is not unique.
	DisplayName string
	// Roles and Scopes are those the credential carries, whatever they mean to this gateway.
	Roles, Scopes []string
	Provider      Provider
	// Issuer is the URL of the token's issuer without a trailing slash; empty for other providers.
	Issuer string
}

// Key is the same for every call of one caller and different for any two callers, of whatever provider and issuer.
// Request ids and page tokens are bound to it, so that those of one caller are useless to another. It tells nothing
// about the caller.
func (i Identity) Key() string {
	hash := sha256.New()
	for _, part := range []string{string(i.Provider), i.Issuer, i.Subject} {
		fmt.Fprintf(hash, "%d:%s,", len(part), part) // the length keeps ("a", "bc") and ("ab", "c") apart
	}
	return hex.EncodeToString(hash.Sum(nil))
}

func (i Identity) hasRole(role string) bool { return slices.Contains(i.Roles, role) }

// localDeveloper is everybody, on a gateway that asks for no credential (upstream-contract, GetCurrentUser).
var localDeveloper = Identity{
	Subject:     "unauthenticated-local-dev",
	DisplayName: "Unauthenticated Local Dev",
	Roles:       []string{"openshell-user", "openshell-admin"},
	Scopes:      []string{scopeAll},
	Provider:    LocalDev,
}

// call is what the interceptor knows about the call it let through.
type call struct {
	gate     *Gate
	method   string
	rule     rule
	identity Identity
	// authorized is set once the handler has asked whether the caller may do this in the workspace it is about.
	authorized atomic.Bool
}

type callKey struct{}

func callFrom(ctx context.Context) (*call, bool) {
	c, ok := ctx.Value(callKey{}).(*call)
	return c, ok
}

// FromContext returns who makes the call that ctx belongs to; false for calls that need no credential.
func FromContext(ctx context.Context) (Identity, bool) {
	c, ok := callFrom(ctx)
	if !ok {
		return Identity{}, false
	}
	return c.identity, true
}
