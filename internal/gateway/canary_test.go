package gateway_test

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth/authtest"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// Nothing that lets somebody in, and nothing that is confided to the gateway, is in its log, its errors or its metrics:
// whatever is sent, with good credentials and with bad ones, while the issuer answers and while it does not. What lets
// somebody in is not in the database either.
func TestCanaries(t *testing.T) {
	issuer := authtest.NewIssuer(t)
	ca := authtest.NewCA(t, "ours")
	server, client := ca.Server(), ca.Client("me", "openshell-admin")
	files := authtest.WriteFiles(t, server, ca)
	encrypted, err := auth.NewTLS(auth.TLSConfig{CertFile: files.Cert, KeyFile: files.Key, ClientCAFile: files.ClientCA})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "gateway.db")
	database, err := gateway.OpenStore(t.Context(), "sqlite:"+path)
	if err != nil {
		t.Fatal(err)
	}
	r := run(t, gateway.Config{Store: database, TLS: encrypted, Access: auth.Config{ClientCertificates: true, OIDC: issuer.Config()}})
	conn := dial(t, r.address, credentials.NewTLS(&tls.Config{RootCAs: ca.Pool(), Certificates: []tls.Certificate{client.Certificate()}}))
	admin := map[string]any{"realm_access": map[string]any{"roles": []string{auth.DefaultAdminRole}}, "jti": "canary-claim"}
	with := func(changes map[string]any) map[string]any {
		for name, value := range admin {
			if _, ok := changes[name]; !ok {
				changes[name] = value
			}
		}
		return changes
	}
	forged := authtest.NewECKey(t, issuer.Key().ID)
	tokens := []string{
		"", "canary-token", "canary-token.canary-token.canary-token",
		issuer.Token("ann", with(map[string]any{})), issuer.Token("ann", with(map[string]any{"exp": 1})),
		issuer.Token("ann", with(map[string]any{"iss": "https://canary-issuer.example"})), issuer.Token("ann", with(map[string]any{"aud": "canary-audience"})),
		authtest.Sign(t, forged.Private, forged.Algorithm, forged.ID, issuer.Claims("ann", admin)),
		authtest.Unsigned(t, issuer.Key().ID, issuer.Claims("ann", admin)),
	}
	rotated := issuer.Rotate()
	tokens = append(tokens, authtest.Sign(t, rotated.Private, rotated.Algorithm, "canary-key-id", issuer.Claims("ann", admin)))

	var said strings.Builder
	ask := func(token string) {
		for name, do := range confidences(openshellv1.NewOpenShellClient(conn)) {
			ctx := call(t)
			if token != "" {
				ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
			}
			err := do(ctx)
			fmt.Fprintln(&said, name, status.Code(err), err)
		}
	}
	for _, token := range tokens {
		ask(token)
	}
	issuer.Answer(authtest.Down)
	issuer.Rotate()
	ask(issuer.Token("ann", with(map[string]any{})))
	files.Write(files.Key, []byte("-----BEGIN PRIVATE KEY-----\ncanary-key\n-----END PRIVATE KEY-----\n"))

	text := map[string]string{"the metrics": metrics(t, r), "the log": r.log.String(), "an error": said.String()}
	for where, text := range text {
		if i := strings.Index(text, "canary"); i >= 0 {
			t.Errorf("%s has what was confided to the gateway: %s", where, text[max(0, i-200):min(len(text), i+200)])
		}
	}
	if err := database.Close(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(content), "canary-environment") {
		t.Errorf("what is confided to the gateway is not where it should be, in the database (%v)", err)
	}
	text["the database"] = string(content)
	if len(text["the log"]) < 10_000 || len(text["an error"]) < 3_000 || len(text["the metrics"]) < 10_000 {
		t.Error("hardly anything was said")
	}
	for where, text := range text {
		for name, secret := range letIn(tokens, server, client) {
			if i := strings.Index(text, secret); i >= 0 {
				t.Errorf("%s has %s: %s", where, name, text[max(0, i-200):min(len(text), i+200)])
			}
		}
	}
}

// letIn is what lets somebody in, or was taken for it.
func letIn(tokens []string, pairs ...authtest.Pair) map[string]string {
	secrets := map[string]string{}
	for _, kind := range []string{"token", "key", "claim", "issuer", "audience", "credential", "session"} {
		secrets["a canary "+kind] = "canary-" + kind
	}
	for i, token := range tokens {
		for part := range strings.SplitSeq(token, ".") {
			if len(part) > 10 {
				secrets[fmt.Sprintf("a part of token %d", i)+part] = part
			}
		}
	}
	for i, pair := range pairs {
		name := fmt.Sprintf("key %d", i)
		block, _ := pem.Decode(pair.Key)
		secrets[name] = string(block.Bytes)
		for line := range strings.Lines(string(pair.Key)) {
			if line = strings.TrimSpace(line); !strings.HasPrefix(line, "-") {
				secrets[name+line] = line
			}
		}
	}
	return secrets
}

// confidences are calls with something in them that nobody else should see.
func confidences(client openshellv1.OpenShellClient) map[string]func(context.Context) error {
	scope := gatewaytest.Default()
	return map[string]func(context.Context) error{
		"CreateSandbox": func(ctx context.Context) error {
			_, err := client.CreateSandbox(ctx, createWeb(&openshellv1.SandboxSpec{
				Environment: map[string]string{"A": "canary-environment"}, Command: []string{"canary-command"},
			}))
			return err
		},
		"CreateSandbox, bad": func(ctx context.Context) error {
			_, err := client.CreateSandbox(ctx, createWeb(&openshellv1.SandboxSpec{Environment: map[string]string{"A": "canary\n"}}))
			return err
		},
		"GetSandbox": func(ctx context.Context) error {
			_, err := client.GetSandbox(ctx, getWeb())
			return err
		},
		"CreateProvider": func(ctx context.Context) error {
			_, err := client.CreateProvider(ctx, &openshellv1.CreateProviderRequest{WorkspaceScope: scope, Provider: &datamodelv1.Provider{
				Type: "none", Credentials: map[string]string{"A": "canary-credential"}, Config: map[string]string{"B": "canary-config"},
			}})
			return err
		},
		"UpdateProvider": func(ctx context.Context) error {
			_, err := client.UpdateProvider(ctx, &openshellv1.UpdateProviderRequest{WorkspaceScope: scope, Provider: &datamodelv1.Provider{
				Metadata: &datamodelv1.ObjectMeta{Name: "none"}, Credentials: map[string]string{"A": "canary-credential"},
			}})
			return err
		},
		"RevokeSshSession": func(ctx context.Context) error {
			_, err := client.RevokeSshSession(ctx, &openshellv1.RevokeSshSessionRequest{Token: "canary-session"})
			return err
		},
	}
}
