package gateway_test

import (
	"context"
	"crypto/tls"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth/authtest"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/telemetry"
)

// concealing are the calls about a sandbox: who is no member of its workspace gets the answer for one that is not there.
var concealing = []string{
	"GetSandbox", "DeleteSandbox", "StopSandbox", "StartSandbox", "WatchSandbox",
	"AttachSandboxProvider", "DetachSandboxProvider", "ListSandboxProviders", "GetSandboxProviderStatus",
	"ExposeService", "GetService", "ListServices", "DeleteService", "CreateSshSession",
	"UpdateConfig", "UpdateSandboxConfig", "GetSandboxConfig", "GetSandboxPolicyStatus", "ListSandboxPolicies",
}

// caller is somebody with a token.
type caller struct {
	token string
	// bad says that the token is no good; scopes that it carries them all; admin that it is of a platform administrator.
	bad, scopes, admin bool
	// role is the one in the workspace "default".
	role openshellv1.WorkspaceRole
}

const (
	noRole    = openshellv1.WorkspaceRole_WORKSPACE_ROLE_UNSPECIFIED
	userRole  = openshellv1.WorkspaceRole_WORKSPACE_ROLE_USER
	adminRole = openshellv1.WorkspaceRole_WORKSPACE_ROLE_ADMIN
)

// everyCaller is the whole list: one who is let in in each way, and one who is kept out in each.
func everyCaller(t *testing.T, issuer *authtest.Issuer) map[string]caller {
	t.Helper()
	claims := func(role, scope string, changes map[string]any) map[string]any {
		all := map[string]any{"realm_access": map[string]any{"roles": []string{role}}, "scope": scope}
		maps.Copy(all, changes)
		return all
	}
	admin := func(changes map[string]any) map[string]any {
		return claims(auth.DefaultAdminRole, "openshell:all", changes)
	}
	bad := func(token string) caller { return caller{token: token, bad: true, scopes: true, admin: true} }
	user := func(subject string, role openshellv1.WorkspaceRole) caller {
		return caller{token: issuer.Token(subject, claims(auth.DefaultUserRole, "openshell:all", nil)), scopes: true, role: role}
	}
	key := issuer.Key()
	forged := authtest.NewECKey(t, key.ID)
	now := time.Now()
	return map[string]caller{
		"no credential":      bad(""),
		"bad signature":      bad(authtest.Sign(t, forged.Private, forged.Algorithm, forged.ID, issuer.Claims("root", admin(nil)))),
		"wrong issuer":       bad(issuer.Token("root", admin(map[string]any{"iss": "https://other.example"}))),
		"wrong audience":     bad(issuer.Token("root", admin(map[string]any{"aud": "other"}))),
		"expired":            bad(issuer.Token("root", admin(map[string]any{"exp": now.Add(-time.Hour).Unix()}))),
		"not yet valid":      bad(issuer.Token("root", admin(map[string]any{"nbf": now.Add(time.Hour).Unix()}))),
		"alg none":           bad(authtest.Unsigned(t, key.ID, issuer.Claims("root", admin(nil)))),
		"user without scope": {token: issuer.Token("eve", claims(auth.DefaultUserRole, "", nil)), role: adminRole},

		"member of another workspace": user("bob", noRole),
		"workspace user":              user("ann", userRole),
		"workspace admin":             user("eve", adminRole),
		"platform admin":              {token: issuer.Token("root", admin(nil)), scopes: true, admin: true},
	}
}

// expected is the whole of the rules: what a caller gets from a method, and whether it is the method itself who says so.
// A method that the gateway does not implement says so to everybody who comes as far as to it; it knows of no workspace.
func expected(m method, c caller, implemented bool) (code codes.Code, itself bool) {
	own := m.answer()
	if !implemented {
		own = codes.Unimplemented
	}
	aboutNone := m.rule.GetWorkspaceRole() == "" || m.short() == "ListWorkspaces" || m.short() == "RevokeSshSession" // of a session that is not there
	enough := c.role == adminRole || c.role == userRole && m.rule.GetWorkspaceRole() == "user"
	switch {
	case m.rule.GetAuthMode() == "unauthenticated":
		return own, true
	case c.bad:
		return codes.Unauthenticated, false
	case m.rule.GetScope() != "" && !c.scopes, m.rule.GetGlobalRole() != "" && !c.admin:
		return codes.PermissionDenied, false
	case c.admin, aboutNone, enough, !implemented:
		return own, true
	case c.role == noRole && slices.Contains(concealing, m.short()):
		return codes.NotFound, false
	default:
		return codes.PermissionDenied, false
	}
}

// Every call by every caller.
func TestEveryCall(t *testing.T) {
	g, conn, callers, web := startForEveryCaller(t)
	for _, m := range everyMethod(t) {
		t.Run(strings.TrimPrefix(m.name, "/"), func(t *testing.T) {
			implemented := status.Code(invoke(t, conn, m, callers["platform admin"].token)) != codes.Unimplemented
			for name, c := range callers {
				err := invoke(t, conn, m, c.token)
				want, itself := expected(m, c, implemented)
				concealed := status.Convert(err).Message() == "sandbox not found"
				if status.Code(err) != want || concealed != (want == codes.NotFound && !itself) {
					t.Errorf("%s: %v, want %v", name, err, want)
				}
			}
		})
	}
	if s, ok := g.GetByID(t, web.GetMetadata().GetId()); !ok || s.GetMetadata().GetName() != "web" {
		t.Errorf("after all that: %v", s)
	}
}

// startForEveryCaller has all that the calls are about, and all who make them.
func startForEveryCaller(t *testing.T) (*gatewaytest.Gateway, *grpc.ClientConn, map[string]caller, *openshellv1.Sandbox) {
	t.Helper()
	issuer := authtest.NewIssuer(t)
	g := gatewaytest.Start(t, gatewaytest.WithAccess(auth.Config{OIDC: issuer.ScopedConfig()}))
	conn := dial(t, g.Address())
	callers := everyCaller(t, issuer)
	root := metadata.AppendToOutgoingContext(call(t), "authorization", "Bearer "+callers["platform admin"].token)
	web := populate(root, t, openshellv1.NewOpenShellClient(conn))
	g.WaitPhase(t, web.GetMetadata().GetId(), openshellv1.SandboxPhase_SANDBOX_PHASE_READY)
	return g, conn, callers, web
}

// populate makes the sandbox that the calls are about, and the members that make them.
func populate(ctx context.Context, t *testing.T, client openshellv1.OpenShellClient) *openshellv1.Sandbox {
	t.Helper()
	other := inWorkspace("other")
	if _, err := client.CreateWorkspace(ctx, &openshellv1.CreateWorkspaceRequest{Name: "other"}); err != nil {
		t.Fatal(err)
	}
	for _, m := range []*openshellv1.AddWorkspaceMemberRequest{
		{PrincipalSubject: "ann", Role: userRole, WorkspaceScope: gatewaytest.Default()},
		{PrincipalSubject: "eve", Role: adminRole, WorkspaceScope: gatewaytest.Default()},
		{PrincipalSubject: "bob", Role: adminRole, WorkspaceScope: other},
	} {
		if _, err := client.AddWorkspaceMember(ctx, m); err != nil {
			t.Fatal(err)
		}
	}
	created, err := client.CreateSandbox(ctx, createWeb(&openshellv1.SandboxSpec{}))
	if err != nil {
		t.Fatal(err)
	}
	return created.GetSandbox()
}

// Every call with a client certificate: one of ours may do everything, nobody gets as far as a call with another's.
func TestEveryCallWithCertificates(t *testing.T) {
	g := gatewaytest.Start(t, gatewaytest.WithClientCertificate())
	g.MustCreate(t, "web")
	with := func(certificate tls.Certificate) *grpc.ClientConn {
		return dial(t, g.Address(), credentials.NewTLS(&tls.Config{
			RootCAs: trusted(t, g),
			// Whatever authorities the gateway says it knows: a client of good will would show no other certificate.
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &certificate, nil },
		}))
	}
	ours, err := tls.LoadX509KeyPair(g.TLS().ClientCert, g.TLS().ClientKey)
	if err != nil {
		t.Fatal(err)
	}
	foreign := with(authtest.NewCA(t, "foreign").Client("tester", "openshell-admin").Certificate())
	known, none := with(ours), with(tls.Certificate{})
	for _, m := range everyMethod(t) {
		t.Run(strings.TrimPrefix(m.name, "/"), func(t *testing.T) {
			err := invoke(t, known, m, "")
			want, _ := expected(m, caller{scopes: true, admin: true}, status.Code(err) != codes.Unimplemented)
			wantCode(t, err, want)
			want, _ = expected(m, caller{bad: true}, status.Code(err) != codes.Unimplemented)
			wantCode(t, invoke(t, none, m, ""), want)
			g.ResetCalls()
			wantCode(t, invoke(t, foreign, m, ""), codes.Unavailable)
			if calls := g.AllCalls(); len(calls) != 0 {
				t.Errorf("with a foreign certificate: %v", calls)
			}
		})
	}
}

// The log says of every call what it is about, if it is about something.
func TestEveryCallIsAboutSomething(t *testing.T) {
	nothing := []string{
		"Health", "GetCurrentUser", "GetGatewayInfo", "GetGatewayConfig", "ListSandboxes", "ListSandboxTemplates", "ListProviders",
		"ListProviderProfiles", "ListWorkspaces", "ListWorkspaceMembers", "ImportProviderProfiles",
		"CreateProvider",   // without a name, which is made then
		"RevokeSshSession", // named by a secret
	}
	for _, m := range everyMethod(t) {
		workspace, name := telemetry.About(m.request(t))
		if (name == "") != slices.Contains(nothing, m.short()) || name != "" && name != "web" && name != "none" && name != "default" {
			t.Errorf("%s is about %q", m.name, name)
		}
		scoped := m.request(t).ProtoReflect().Descriptor().Fields().ByName("workspace_scope") != nil ||
			m.request(t).ProtoReflect().Descriptor().Fields().ByName("request") != nil
		if scoped != (workspace == "default") {
			t.Errorf("%s is about workspace %q", m.name, workspace)
		}
	}
}
