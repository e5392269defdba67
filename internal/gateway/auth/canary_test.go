package auth_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth/authtest"
)

// No credential, nor a part of one, nor what somebody took for one, comes back in an error or shows in the log, at its
// most talkative.
func TestNoCredentialInLogsOrErrors(t *testing.T) {
	issuer := authtest.NewIssuer(t)
	g := start(t, auth.Config{OIDC: issuer.Config()}, nil)
	conn := g.dial(nil)
	key := issuer.Key()
	const canary = "canary-in-a-claim"
	sign := func(changes map[string]any) string { return issuer.Token("ann", changes) }

	credentials := map[string]string{
		"good":                  sign(map[string]any{"jti": canary}),
		"without a role":        sign(map[string]any{"jti": canary, "realm_access": nil}),
		"expired":               sign(map[string]any{"jti": canary, "exp": 1}),
		"other audience":        sign(map[string]any{"aud": canary}),
		"other issuer":          sign(map[string]any{"iss": "https://" + canary}),
		"unknown key":           authtest.Sign(t, key.Private, key.Algorithm, canary, issuer.Claims("ann", nil)),
		"bad signature":         sign(nil) + "AAAA",
		"unsigned":              authtest.Unsigned(t, canary, issuer.Claims("ann", nil)),
		"HMAC":                  authtest.Sign(t, []byte("canary-shared-secret-of-32-bytes"), jose.HS256, "k", issuer.Claims("ann", nil)),
		"claims of wrong types": sign(map[string]any{"sub": []string{canary}}),
		"a password":            "canary-password",
		"a password in parts":   "canary.password.here",
		"broken header":         base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"canary"`)) + ".e30.AAAA",
		"odd algorithm":         base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"canary","kid":"canary"}`)) + ".e30.AAAA",
		"too long":              strings.Repeat("canary-", 3000),
	}
	var said strings.Builder
	for name, credential := range credentials {
		for _, method := range []string{getCurrentUser, "/openshell.v1.OpenShell/CreateWorkspace", "/no.such.Service/Method"} {
			said.WriteString(status.Convert(call(t, conn, method, credential)).String() + "\n")
		}
		for _, entry := range []string{"Basic " + credential, credential} {
			ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", entry, "authorization", entry)
			_, err := openshellv1.NewOpenShellClient(conn).GetCurrentUser(ctx, &openshellv1.GetCurrentUserRequest{})
			if err == nil {
				t.Errorf("%s: taken", name)
			}
			said.WriteString(status.Convert(err).String() + "\n")
		}
	}
	for what, text := range map[string]string{"the log": g.log.String(), "an error": said.String()} {
		if strings.Contains(text, "canary") {
			t.Errorf("%s has the canary: %s", what, text)
		}
		for name, credential := range credentials {
			for part := range strings.SplitSeq(credential, ".") {
				if len(part) > 10 && strings.Contains(text, part) {
					t.Errorf("%s has a part of %q: %s", what, name, text)
				}
			}
		}
	}
	if len(said.String()) < 1000 {
		t.Error("hardly anything was said")
	}
}

// An identity is what handlers log; it holds no credential, so neither can they.
func TestIdentityHoldsNoCredential(t *testing.T) {
	issuer := authtest.NewIssuer(t)
	g := start(t, auth.Config{OIDC: issuer.Config()}, nil)
	token := issuer.Token("ann", map[string]any{"jti": "canary", "email": "canary@example.com"})
	if err := call(t, g.dial(nil), getCurrentUser, token); err != nil {
		t.Fatal(err)
	}
	for _, caller := range g.seen() {
		text := strings.Join(append(append(caller.Roles, caller.Scopes...), caller.Subject, caller.DisplayName, caller.Issuer, caller.Key()), " ")
		if strings.Contains(text, "canary") || strings.Contains(text, token) {
			t.Errorf("%s", text)
		}
	}
}
