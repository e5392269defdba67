package server_test

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth/authtest"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// Roles, for short.
const (
	roleUser  = openshellv1.WorkspaceRole_WORKSPACE_ROLE_USER
	roleAdmin = openshellv1.WorkspaceRole_WORKSPACE_ROLE_ADMIN
)

// callers are those of a gateway that takes the tokens of an issuer: "root" is a platform administrator, everybody else a
// user.
type callers struct {
	t      *testing.T
	issuer *authtest.Issuer
}

func startWithOIDC(t *testing.T) (*gatewaytest.Gateway, callers) {
	t.Helper()
	issuer := authtest.NewIssuer(t)
	g := gatewaytest.Start(t, gatewaytest.WithAccess(auth.Config{OIDC: &auth.OIDCConfig{
		Issuer: issuer.URL(), Audience: auth.DefaultAudience, JWKSTTL: auth.DefaultJWKSTTL, Leeway: auth.DefaultLeeway,
		RolesClaim: auth.DefaultRolesClaim, AdminRole: auth.DefaultAdminRole, UserRole: auth.DefaultUserRole,
	}}))
	return g, callers{t: t, issuer: issuer}
}

// as is the context of a call by a subject.
func (c callers) as(subject string) context.Context {
	c.t.Helper()
	role := auth.DefaultUserRole
	if subject == "root" {
		role = auth.DefaultAdminRole
	}
	token := c.issuer.Token(subject, map[string]any{"realm_access": map[string]any{"roles": []string{role}}})
	return metadata.AppendToOutgoingContext(call(c.t), "authorization", "Bearer "+token)
}

func addMember(ctx context.Context, g *gatewaytest.Gateway, where, subject string, role openshellv1.WorkspaceRole) error {
	_, err := g.OpenShell().AddWorkspaceMember(ctx, &openshellv1.AddWorkspaceMemberRequest{
		WorkspaceScope: workspace(where), PrincipalSubject: subject, Role: role,
	})
	return err
}

// Who may make which of the calls, in the workspace "default" of which "ann" is a user and "eve" the administrator; "bob"
// is a member of another.
func TestWhoMayCall(t *testing.T) {
	g, callers := startWithOIDC(t)
	for _, err := range []error{
		addMember(callers.as("root"), g, "default", "ann", roleUser),
		addMember(callers.as("root"), g, "default", "eve", roleAdmin),
		createWorkspace(callers.as("root"), g, "team"),
		addMember(callers.as("root"), g, "team", "bob", roleAdmin),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	o, c := g.OpenShell(), g.Conditional()
	scope := gatewaytest.Default()
	const denied, hidden = codes.PermissionDenied, codes.NotFound
	for name, tc := range map[string]struct {
		call func(ctx context.Context) error
		// code is what somebody gets who may call; the request is such that nothing comes of it.
		code          codes.Code
		bob, ann, eve codes.Code // codes.OK means that the caller may
	}{
		"CreateWorkspace": {call: func(ctx context.Context) error {
			_, err := o.CreateWorkspace(ctx, &openshellv1.CreateWorkspaceRequest{Name: "team"})
			return err
		}, code: codes.AlreadyExists, bob: denied, ann: denied, eve: denied},
		"GetWorkspace": {call: func(ctx context.Context) error {
			_, err := o.GetWorkspace(ctx, &openshellv1.GetWorkspaceRequest{Name: "default"})
			return err
		}, bob: denied},
		"ListWorkspaces": {call: func(ctx context.Context) error {
			_, err := o.ListWorkspaces(ctx, &openshellv1.ListWorkspacesRequest{})
			return err
		}},
		"DeleteWorkspace": {call: func(ctx context.Context) error {
			_, err := o.DeleteWorkspace(ctx, &openshellv1.DeleteWorkspaceRequest{Name: "none"})
			return err
		}, code: codes.NotFound, bob: denied, ann: denied, eve: denied},
		"AddWorkspaceMember": {call: func(ctx context.Context) error { return addMember(ctx, g, "default", "ann", roleUser) },
			code: codes.AlreadyExists, bob: denied, ann: denied},
		"AddWorkspaceMember, administrator": {call: func(ctx context.Context) error { return addMember(ctx, g, "default", "eve", roleAdmin) },
			code: codes.AlreadyExists, bob: denied, ann: denied, eve: denied},
		"RemoveWorkspaceMember": {call: func(ctx context.Context) error {
			_, err := o.RemoveWorkspaceMember(ctx, &openshellv1.RemoveWorkspaceMemberRequest{WorkspaceScope: scope, PrincipalSubject: "none"})
			return err
		}, code: codes.NotFound, bob: denied, ann: denied},
		"ListWorkspaceMembers": {call: func(ctx context.Context) error {
			_, err := o.ListWorkspaceMembers(ctx, &openshellv1.ListWorkspaceMembersRequest{WorkspaceScope: scope})
			return err
		}, bob: denied},
		"UpdateConfig": {call: func(ctx context.Context) error {
			_, err := o.UpdateConfig(ctx, &openshellv1.UpdateConfigRequest{Sandbox: "web", WorkspaceScope: scope})
			return err
		}, code: codes.NotFound, bob: hidden, ann: hidden},
		"UpdateConfig, platform-wide": {call: func(ctx context.Context) error {
			_, err := o.UpdateConfig(ctx, &openshellv1.UpdateConfigRequest{Global: true})
			return err
		}, code: codes.InvalidArgument, bob: denied, ann: denied, eve: denied},
		"UpdateSandboxConfig": {call: func(ctx context.Context) error {
			_, err := c.UpdateSandboxConfig(ctx, conditionalUpdate(expect(anID), &openshellv1.UpdateConfigRequest{}))
			return err
		}, code: codes.NotFound, bob: hidden, ann: hidden},
		"GetSandboxConfig": {call: func(ctx context.Context) error {
			_, err := o.GetSandboxConfig(ctx, &sandboxv1.GetSandboxConfigRequest{Name: "web", WorkspaceScope: scope})
			return err
		}, code: codes.NotFound, bob: hidden},
		"GetGatewayConfig": {call: func(ctx context.Context) error {
			_, err := o.GetGatewayConfig(ctx, &sandboxv1.GetGatewayConfigRequest{})
			return err
		}},
		"GetSandboxPolicyStatus": {call: func(ctx context.Context) error {
			_, err := o.GetSandboxPolicyStatus(ctx, &openshellv1.GetSandboxPolicyStatusRequest{Sandbox: "web", WorkspaceScope: scope})
			return err
		}, code: codes.NotFound, bob: hidden},
		"GetSandboxPolicyStatus, platform-wide": {call: func(ctx context.Context) error {
			_, err := o.GetSandboxPolicyStatus(ctx, &openshellv1.GetSandboxPolicyStatusRequest{Global: true})
			return err
		}, code: codes.NotFound, bob: denied, ann: denied, eve: denied},
		"ListSandboxPolicies": {call: func(ctx context.Context) error {
			_, err := o.ListSandboxPolicies(ctx, &openshellv1.ListSandboxPoliciesRequest{Sandbox: "web", WorkspaceScope: scope})
			return err
		}, code: codes.NotFound, bob: hidden},
		"ListSandboxPolicies, platform-wide": {call: func(ctx context.Context) error {
			_, err := o.ListSandboxPolicies(ctx, &openshellv1.ListSandboxPoliciesRequest{Global: true})
			return err
		}, bob: denied, ann: denied, eve: denied},
		"ImportProviderProfiles": {call: func(ctx context.Context) error {
			_, err := o.ImportProviderProfiles(ctx, &openshellv1.ImportProviderProfilesRequest{WorkspaceScope: scope})
			return err
		}, bob: denied, ann: denied},
		"ImportProviderProfiles, platform-wide": {call: func(ctx context.Context) error {
			_, err := o.ImportProviderProfiles(ctx, &openshellv1.ImportProviderProfilesRequest{})
			return err
		}, bob: denied, ann: denied, eve: denied},
		"ListProviderProfiles": {call: func(ctx context.Context) error {
			_, err := o.ListProviderProfiles(ctx, &openshellv1.ListProviderProfilesRequest{WorkspaceScope: scope})
			return err
		}, bob: denied},
		"ListProviderProfiles, platform-wide": {call: func(ctx context.Context) error {
			_, err := o.ListProviderProfiles(ctx, &openshellv1.ListProviderProfilesRequest{})
			return err
		}, bob: denied, ann: denied, eve: denied},
		"GetProviderProfile": {call: func(ctx context.Context) error {
			_, err := o.GetProviderProfile(ctx, &openshellv1.GetProviderProfileRequest{Id: "none", WorkspaceScope: scope})
			return err
		}, code: codes.NotFound, bob: denied},
		"GetProviderProfile, platform-wide": {call: func(ctx context.Context) error {
			_, err := o.GetProviderProfile(ctx, &openshellv1.GetProviderProfileRequest{Id: "none"})
			return err
		}, code: codes.NotFound, bob: denied, ann: denied, eve: denied},
		"UpdateProviderProfiles": {call: func(ctx context.Context) error {
			_, err := o.UpdateProviderProfiles(ctx, &openshellv1.UpdateProviderProfilesRequest{
				Id: "none", ExpectedResourceVersion: 1, Profile: &openshellv1.ProviderProfileImportItem{Profile: &openshellv1.ProviderProfile{Id: "none"}}, WorkspaceScope: scope,
			})
			return err
		}, code: codes.NotFound, bob: denied, ann: denied},
		"DeleteProviderProfile": {call: func(ctx context.Context) error {
			_, err := o.DeleteProviderProfile(ctx, &openshellv1.DeleteProviderProfileRequest{Id: "none", WorkspaceScope: scope})
			return err
		}, code: codes.NotFound, bob: denied, ann: denied},
		"CreateProvider": {call: func(ctx context.Context) error {
			_, err := o.CreateProvider(ctx, &openshellv1.CreateProviderRequest{Provider: &datamodelv1.Provider{Type: "none"}, WorkspaceScope: scope})
			return err
		}, code: codes.InvalidArgument, bob: denied, ann: denied},
		"GetProvider": {call: func(ctx context.Context) error {
			_, err := o.GetProvider(ctx, &openshellv1.GetProviderRequest{Name: "none", WorkspaceScope: scope})
			return err
		}, code: codes.NotFound, bob: denied},
		"ListProviders": {call: func(ctx context.Context) error {
			_, err := o.ListProviders(ctx, &openshellv1.ListProvidersRequest{WorkspaceScope: scope})
			return err
		}, bob: denied},
		"ListProviders, all workspaces": {call: func(ctx context.Context) error {
			_, err := o.ListProviders(ctx, &openshellv1.ListProvidersRequest{WorkspaceScope: allWorkspaces()})
			return err
		}, bob: denied, ann: denied, eve: denied},
		"UpdateProvider": {call: func(ctx context.Context) error {
			_, err := o.UpdateProvider(ctx, &openshellv1.UpdateProviderRequest{
				Provider: &datamodelv1.Provider{Metadata: &datamodelv1.ObjectMeta{Name: "none"}}, WorkspaceScope: scope,
			})
			return err
		}, code: codes.NotFound, bob: denied, ann: denied},
		"DeleteProvider": {call: func(ctx context.Context) error {
			_, err := o.DeleteProvider(ctx, &openshellv1.DeleteProviderRequest{Name: "none", WorkspaceScope: scope})
			return err
		}, code: codes.NotFound, bob: denied, ann: denied},
		"CreateSandboxTemplate": {call: func(ctx context.Context) error {
			req := templateRequest("none", nil)
			req.RequestId = "none"
			_, err := o.CreateSandboxTemplate(ctx, req)
			return err
		}, code: codes.InvalidArgument, bob: denied, ann: denied},
		"GetSandboxTemplate": {call: func(ctx context.Context) error {
			_, err := o.GetSandboxTemplate(ctx, &openshellv1.GetSandboxTemplateRequest{Name: "none", WorkspaceScope: scope})
			return err
		}, code: codes.NotFound, bob: denied},
		"ListSandboxTemplates": {call: func(ctx context.Context) error {
			_, err := o.ListSandboxTemplates(ctx, &openshellv1.ListSandboxTemplatesRequest{WorkspaceScope: scope})
			return err
		}, bob: denied},
		"ListSandboxTemplates, all workspaces": {call: func(ctx context.Context) error {
			_, err := o.ListSandboxTemplates(ctx, &openshellv1.ListSandboxTemplatesRequest{WorkspaceScope: allWorkspaces()})
			return err
		}, bob: denied, ann: denied, eve: denied},
		"DeleteSandboxTemplate": {call: func(ctx context.Context) error {
			_, err := o.DeleteSandboxTemplate(ctx, &openshellv1.DeleteSandboxTemplateRequest{Name: "none", WorkspaceScope: scope})
			return err
		}, code: codes.NotFound, bob: denied, ann: denied},
		"ExposeService": {call: func(ctx context.Context) error {
			_, err := o.ExposeService(ctx, exposeRequest("none", "", 80))
			return err
		}, code: codes.NotFound, bob: hidden},
		"GetService": {call: func(ctx context.Context) error {
			_, err := o.GetService(ctx, &openshellv1.GetServiceRequest{Sandbox: "none", WorkspaceScope: scope})
			return err
		}, code: codes.NotFound, bob: hidden},
		"ListServices": {call: func(ctx context.Context) error {
			_, err := o.ListServices(ctx, &openshellv1.ListServicesRequest{WorkspaceScope: scope})
			return err
		}, bob: denied},
		"ListServices of a sandbox": {call: func(ctx context.Context) error {
			_, err := o.ListServices(ctx, &openshellv1.ListServicesRequest{Sandbox: "none", WorkspaceScope: scope})
			return err
		}, code: codes.NotFound, bob: hidden},
		"ListServices, all workspaces": {call: func(ctx context.Context) error {
			_, err := o.ListServices(ctx, &openshellv1.ListServicesRequest{WorkspaceScope: allWorkspaces()})
			return err
		}, bob: denied, ann: denied, eve: denied},
		"DeleteService": {call: func(ctx context.Context) error {
			_, err := o.DeleteService(ctx, &openshellv1.DeleteServiceRequest{Sandbox: "none", WorkspaceScope: scope, AllowMissing: true})
			return err
		}, code: codes.NotFound, bob: hidden},
		"CreateSshSession": {call: func(ctx context.Context) error {
			_, err := o.CreateSshSession(ctx, &openshellv1.CreateSshSessionRequest{Sandbox: "none", WorkspaceScope: scope})
			return err
		}, code: codes.NotFound, bob: hidden},
		"RevokeSshSession": {call: func(ctx context.Context) error {
			_, err := o.RevokeSshSession(ctx, &openshellv1.RevokeSshSessionRequest{Token: "none"})
			return err
		}, code: codes.NotFound},
		"WatchSandbox": {call: func(ctx context.Context) error {
			stream, err := o.WatchSandbox(ctx, &openshellv1.WatchSandboxRequest{Sandbox: "none", WorkspaceScope: scope})
			if err == nil {
				_, err = stream.Recv()
			}
			return err
		}, code: codes.NotFound, bob: hidden},
		"AttachSandboxProvider": {call: func(ctx context.Context) error {
			_, err := o.AttachSandboxProvider(ctx, &openshellv1.AttachSandboxProviderRequest{Sandbox: "none", Provider: "p", WorkspaceScope: scope})
			return err
		}, code: codes.NotFound, bob: hidden},
		"DetachSandboxProvider": {call: func(ctx context.Context) error {
			_, err := o.DetachSandboxProvider(ctx, &openshellv1.DetachSandboxProviderRequest{Sandbox: "none", Provider: "p", WorkspaceScope: scope})
			return err
		}, code: codes.NotFound, bob: hidden},
		"ListSandboxProviders": {call: func(ctx context.Context) error {
			_, err := o.ListSandboxProviders(ctx, &openshellv1.ListSandboxProvidersRequest{Sandbox: "none", WorkspaceScope: scope})
			return err
		}, code: codes.NotFound, bob: hidden},
		"GetSandboxProviderStatus": {call: func(ctx context.Context) error {
			_, err := o.GetSandboxProviderStatus(ctx, &openshellv1.GetSandboxProviderStatusRequest{Sandbox: "none", Provider: "p", WorkspaceScope: scope})
			return err
		}, code: codes.NotFound, bob: hidden},
		"conditional AttachSandboxProvider": {call: func(ctx context.Context) error {
			_, err := c.AttachSandboxProvider(ctx, conditionalAttach("none", "p", expect(anID)))
			return err
		}, code: codes.NotFound, bob: hidden},
		"conditional DetachSandboxProvider": {call: func(ctx context.Context) error {
			_, err := c.DetachSandboxProvider(ctx, conditionalDetach("none", "p", expect(anID)))
			return err
		}, code: codes.NotFound, bob: hidden},
	} {
		t.Run(name, func(t *testing.T) {
			for subject, refusal := range map[string]codes.Code{"bob": tc.bob, "ann": tc.ann, "eve": tc.eve, "root": codes.OK} {
				want := tc.code
				if refusal != codes.OK {
					want = refusal
				}
				wantPlainOrNone(t, subject, tc.call(callers.as(subject)), want)
			}
			wantStatus(t, tc.call(call(t)), codes.Unauthenticated, "")
		})
	}
}

func wantPlainOrNone(t *testing.T, subject string, err error, code codes.Code) {
	t.Helper()
	if code == codes.PermissionDenied || code == codes.NotFound {
		wantPlain(t, err, code, "")
		return
	}
	wantStatus(t, err, code, "")
	if t.Failed() {
		t.Logf("by %s", subject)
	}
}

// The membership of a caller counts at once, and ends at once.
func TestMembershipCounts(t *testing.T) {
	g, callers := startWithOIDC(t)
	list := func(subject string) error {
		_, err := g.OpenShell().ListSandboxes(callers.as(subject), &openshellv1.ListSandboxesRequest{WorkspaceScope: gatewaytest.Default()})
		return err
	}
	wantPlain(t, list("ann"), codes.PermissionDenied, "not a member of workspace 'default'")
	if err := addMember(callers.as("root"), g, "default", "ann", roleUser); err != nil {
		t.Fatal(err)
	}
	wantStatus(t, list("ann"), codes.OK, "")
	wantPlain(t, list("Ann"), codes.PermissionDenied, "not a member") // not by another spelling
	if _, err := g.OpenShell().RemoveWorkspaceMember(callers.as("root"), &openshellv1.RemoveWorkspaceMemberRequest{
		WorkspaceScope: gatewaytest.Default(), PrincipalSubject: "ann",
	}); err != nil {
		t.Fatal(err)
	}
	wantPlain(t, list("ann"), codes.PermissionDenied, "not a member")
}

// A page token is for the caller who got it.
func TestPageTokensAreTheCallers(t *testing.T) {
	g, callers := startWithOIDC(t)
	for _, subject := range []string{"ann", "bob"} {
		if err := addMember(callers.as("root"), g, "default", subject, roleUser); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a", "b"} {
		if _, err := g.OpenShell().CreateSandbox(callers.as("ann"), &openshellv1.CreateSandboxRequest{
			Name: name, WorkspaceScope: gatewaytest.Default(), Spec: &openshellv1.SandboxSpec{},
		}); err != nil {
			t.Fatal(err)
		}
	}
	for name, list := range map[string]func(ctx context.Context, token string) (string, error){
		"sandboxes": func(ctx context.Context, token string) (string, error) {
			reply, err := g.OpenShell().ListSandboxes(ctx, &openshellv1.ListSandboxesRequest{PageSize: 1, PageToken: token, WorkspaceScope: gatewaytest.Default()})
			return reply.GetNextPageToken(), err
		},
		"members": func(ctx context.Context, token string) (string, error) {
			reply, err := g.OpenShell().ListWorkspaceMembers(ctx, &openshellv1.ListWorkspaceMembersRequest{PageSize: 1, PageToken: token, WorkspaceScope: gatewaytest.Default()})
			return reply.GetNextPageToken(), err
		},
	} {
		t.Run(name, func(t *testing.T) {
			token, err := list(callers.as("ann"), "")
			if err != nil || token == "" {
				t.Fatal(token, err)
			}
			if _, err := list(callers.as("ann"), token); err != nil {
				t.Errorf("the caller's own: %v", err)
			}
			for _, other := range []string{"bob", "root"} {
				_, err := list(callers.as(other), token)
				wantPlain(t, err, codes.InvalidArgument, "page_token")
			}
		})
	}
}
