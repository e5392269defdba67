package auth_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth/authtest"
)

const (
	workspaceUser  = openshellv1.WorkspaceRole_WORKSPACE_ROLE_USER
	workspaceAdmin = openshellv1.WorkspaceRole_WORKSPACE_ROLE_ADMIN
)

// Who may do what in a workspace, and how the refusal reads. Sandboxes stay hidden from whoever is no member; a member
// without the role is told so.
func TestWorkspaceRoles(t *testing.T) {
	issuer := authtest.NewIssuer(t)
	g := start(t, auth.Config{OIDC: issuer.Config(), Members: members{
		{"default", "user"}: workspaceUser, {"default", "admin"}: workspaceAdmin, {"other", "stranger"}: workspaceAdmin,
		{"default", "odd"}: 7,
	}}, nil)
	client := openshellv1.NewOpenShellClient(g.dial(nil))
	const hidden = "sandbox not found"

	calls := map[string]struct {
		make  func(token string) error
		admin bool // the method asks for the workspace's admin
		about string
	}{
		"GetSandbox": {about: "sandbox", make: func(token string) error {
			_, err := client.GetSandbox(withToken(t.Context(), token), &openshellv1.GetSandboxRequest{Name: "web", WorkspaceScope: in("default")})
			return err
		}},
		"UpdateConfig": {about: "sandbox", admin: true, make: func(token string) error {
			_, err := client.UpdateConfig(withToken(t.Context(), token), &openshellv1.UpdateConfigRequest{Sandbox: "web", WorkspaceScope: in("default")})
			return err
		}},
		"WatchSandbox": {about: "sandbox", make: func(token string) error {
			stream, err := client.WatchSandbox(withToken(t.Context(), token), &openshellv1.WatchSandboxRequest{Sandbox: "web", WorkspaceScope: in("default")})
			if err != nil {
				return err
			}
			_, err = stream.Recv()
			return err
		}},
		"ListSandboxes": {about: "workspace", make: func(token string) error {
			_, err := client.ListSandboxes(withToken(t.Context(), token), &openshellv1.ListSandboxesRequest{WorkspaceScope: in("default")})
			return err
		}},
		"CreateProvider": {about: "workspace", admin: true, make: func(token string) error {
			_, err := client.CreateProvider(withToken(t.Context(), token), &openshellv1.CreateProviderRequest{WorkspaceScope: in("default")})
			return err
		}},
	}
	token := func(subject, role string) string {
		return issuer.Token(subject, map[string]any{"realm_access": map[string]any{"roles": []string{role}}})
	}
	for method, c := range calls {
		for caller, tc := range map[string]struct {
			token  string
			member bool
			admin  bool
		}{
			"workspace user":      {token("user", "openshell-user"), true, false},
			"workspace admin":     {token("admin", "openshell-user"), true, true},
			"of another":          {token("stranger", "openshell-user"), false, false},
			"of none":             {token("nobody", "openshell-user"), false, false},
			"of an unknown role":  {token("odd", "openshell-user"), false, false},
			"platform admin":      {token("root", "openshell-admin"), true, true},
			"admin by letter":     {token("root", "OpenShell-Admin openshell-user"), false, false}, // one role of a strange name
			"subject of no token": {issuer.Token("Admin", nil), false, false},                      // not "admin"
		} {
			t.Run(method+" by "+caller, func(t *testing.T) {
				err := c.make(tc.token)
				text := status.Convert(err).Message()
				switch {
				case caller == "admin by letter":
					wantCode(t, err, codes.PermissionDenied) // at the door
				case tc.admin || tc.member && !c.admin:
					wantCode(t, err, codes.OK)
				case c.about == "sandbox" && !tc.member:
					wantCode(t, err, codes.NotFound)
					if text != hidden {
						t.Errorf("says %q", text)
					}
				default:
					wantCode(t, err, codes.PermissionDenied)
					if want := map[bool]string{true: "role 'admin' in workspace 'default'", false: "not a member of workspace 'default'"}[tc.member]; !strings.Contains(text, want) {
						t.Errorf("says %q, want %q", text, want)
					}
				}
			})
		}
	}
}

// All workspaces at once are for platform administrators; lists of workspaces show one's own.
func TestAcrossWorkspaces(t *testing.T) {
	issuer := authtest.NewIssuer(t)
	client := openshellv1.NewOpenShellClient(start(t, auth.Config{OIDC: issuer.Config()}, nil).dial(nil))
	all := &openshellv1.ListSandboxesRequest{WorkspaceScope: &datamodelv1.WorkspaceSelector{
		Selection: &datamodelv1.WorkspaceSelector_AllWorkspaces{AllWorkspaces: &datamodelv1.AllWorkspaces{}},
	}}
	for name, tc := range map[string]struct {
		role  string
		want  codes.Code
		shows string
	}{
		"user":           {"openshell-user", codes.PermissionDenied, "ann"},
		"platform admin": {"openshell-admin", codes.OK, "*"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := withToken(t.Context(), issuer.Token("ann", map[string]any{"realm_access": map[string]any{"roles": []string{tc.role}}}))
			_, err := client.ListSandboxes(ctx, all)
			wantCode(t, err, tc.want)
			shown, err := client.ListWorkspaces(ctx, &openshellv1.ListWorkspacesRequest{})
			if err != nil || shown.GetNextPageToken() != tc.shows {
				t.Errorf("shows %q (%v), want %q", shown.GetNextPageToken(), err, tc.shows)
			}
		})
	}
}

// Without roles, as with certificates or on a developer's machine, everybody administers the platform.
func TestEverybodyIsAdminWithoutRoles(t *testing.T) {
	issuer := authtest.NewIssuer(t)
	authenticationOnly := issuer.Config()
	authenticationOnly.AdminRole, authenticationOnly.UserRole = "", ""
	for name, tc := range map[string]struct {
		cfg   auth.Config
		token string
	}{
		"local development":    {cfg: auth.Config{Unauthenticated: auth.FromLoopback}},
		"OIDC, no roles named": {cfg: auth.Config{OIDC: authenticationOnly}, token: issuer.Token("ann", map[string]any{"realm_access": nil})},
	} {
		t.Run(name, func(t *testing.T) {
			g := start(t, tc.cfg, nil)
			conn := g.dial(nil)
			if reached, code := g.reaches(conn, "/openshell.v1.OpenShell/CreateWorkspace", tc.token); !reached {
				t.Errorf("CreateWorkspace: %v", code)
			}
			_, err := openshellv1.NewOpenShellClient(conn).CreateProvider(withToken(t.Context(), tc.token), &openshellv1.CreateProviderRequest{WorkspaceScope: in("anything")})
			wantCode(t, err, codes.OK)
		})
	}
}

// Trouble in finding out is not an absence: a client would drop the sandbox from its state.
func TestMembersCannotBeAsked(t *testing.T) {
	issuer := authtest.NewIssuer(t)
	client := openshellv1.NewOpenShellClient(start(t, auth.Config{OIDC: issuer.Config()}, nil).dial(nil))
	_, err := client.GetSandbox(withToken(t.Context(), issuer.Token("ann", nil)), &openshellv1.GetSandboxRequest{WorkspaceScope: in("broken")})
	wantCode(t, err, codes.Unavailable)
}

// A handler that forgets to ask whether the caller may is kept from answering.
func TestForgetfulHandler(t *testing.T) {
	g := start(t, auth.Config{Unauthenticated: auth.FromLoopback}, nil)
	client := openshellv1.NewOpenShellClient(g.dial(nil))
	_, err := client.StopSandbox(t.Context(), &openshellv1.StopSandboxRequest{})
	wantCode(t, err, codes.Internal)
	stream, err := client.WatchSandbox(t.Context(), &openshellv1.WatchSandboxRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = stream.Recv(); errors.Is(err, io.EOF) {
		t.Error("the stream ended well")
	}
	wantCode(t, err, codes.Internal)
	if !strings.Contains(g.log.String(), "without having authorized its caller") {
		t.Errorf("the log says %s", g.log)
	}
	_, err = client.RevokeSshSession(t.Context(), &openshellv1.RevokeSshSessionRequest{})
	wantCode(t, err, codes.OK) // says that it is about no workspace
}

// A handler that is called past the gate gives nothing away.
func TestPastTheGate(t *testing.T) {
	wantCode(t, auth.AuthorizeWorkspace(t.Context(), "default", auth.Other), codes.Unauthenticated)
	wantCode(t, auth.RequirePlatformAdmin(t.Context()), codes.Unauthenticated)
	if subject, all := auth.Memberships(t.Context()); subject != "" || all {
		t.Errorf("shows %q, %v", subject, all)
	}
	if caller, ok := auth.FromContext(t.Context()); ok {
		t.Errorf("caller %v", caller)
	}
	auth.NoWorkspace(t.Context())
}

// Two callers never share a key, whatever their names look like; one caller always has the same.
func TestCallerKeys(t *testing.T) {
	seen := map[string]auth.Identity{}
	for _, caller := range []auth.Identity{
		{Provider: auth.OIDC, Issuer: "https://a", Subject: "ann"},
		{Provider: auth.OIDC, Issuer: "https://a", Subject: "bob"},
		{Provider: auth.OIDC, Issuer: "https://b", Subject: "ann"},
		{Provider: auth.OIDC, Issuer: "https://a,3:", Subject: "ann"},
		{Provider: auth.OIDC, Issuer: "", Subject: "https://aann"},
		{Provider: auth.MTLS, Subject: "ann"},
		{Provider: auth.LocalDev, Subject: "ann"},
	} {
		key := caller.Key()
		if other, taken := seen[key]; taken {
			t.Errorf("%v and %v share a key", caller, other)
		}
		seen[key] = caller
		if strings.Contains(key, "ann") {
			t.Errorf("the key %s tells who it is", key)
		}
		caller.Roles, caller.Scopes, caller.DisplayName = []string{"x"}, []string{"y"}, "z"
		if caller.Key() != key {
			t.Errorf("the key of %v depends on more than who it is", caller)
		}
	}
}
