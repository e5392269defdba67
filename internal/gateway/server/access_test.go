package server_test

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
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
	g := gatewaytest.Start(t, gatewaytest.WithOIDC(issuer))
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

// Who may make the calls in forms in which they ask for more than in that of gateway.TestEveryCall, or could hide less: for
// the whole gateway, for all workspaces, for what need not be there. In the workspace "default" "ann" is a user and "eve"
// the administrator; "bob" is a member of another.
func TestWhoMayCall(t *testing.T) {
	g, callers := startWithOIDC(t)
	o, scope := g.OpenShell(), gatewaytest.Default()
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
	if _, err := o.CreateSandbox(callers.as("ann"), &openshellv1.CreateSandboxRequest{
		Name: "web", WorkspaceScope: scope, Spec: &openshellv1.SandboxSpec{},
	}); err != nil {
		t.Fatal(err)
	}
	const denied, hidden = codes.PermissionDenied, codes.NotFound
	for name, tc := range map[string]struct {
		call func(ctx context.Context) error
		// code is what somebody gets who may call; the request is such that nothing comes of it.
		code          codes.Code
		bob, ann, eve codes.Code // codes.OK means that the caller may
	}{
		"ListSandboxes, all workspaces": {call: func(ctx context.Context) error {
			_, err := o.ListSandboxes(ctx, &openshellv1.ListSandboxesRequest{WorkspaceScope: allWorkspaces()})
			return err
		}, bob: denied, ann: denied, eve: denied},
		"ListSandboxTemplates, all workspaces": {call: func(ctx context.Context) error {
			_, err := o.ListSandboxTemplates(ctx, &openshellv1.ListSandboxTemplatesRequest{WorkspaceScope: allWorkspaces()})
			return err
		}, bob: denied, ann: denied, eve: denied},
		"ListProviders, all workspaces": {call: func(ctx context.Context) error {
			_, err := o.ListProviders(ctx, &openshellv1.ListProvidersRequest{WorkspaceScope: allWorkspaces()})
			return err
		}, bob: denied, ann: denied, eve: denied},
		"ListServices, all workspaces": {call: func(ctx context.Context) error {
			_, err := o.ListServices(ctx, &openshellv1.ListServicesRequest{WorkspaceScope: allWorkspaces()})
			return err
		}, bob: denied, ann: denied, eve: denied},
		"ListServices of no sandbox": {call: func(ctx context.Context) error {
			_, err := o.ListServices(ctx, &openshellv1.ListServicesRequest{WorkspaceScope: scope})
			return err
		}, bob: denied},
		"AddWorkspaceMember, administrator": {call: func(ctx context.Context) error { return addMember(ctx, g, "default", "eve", roleAdmin) },
			code: codes.AlreadyExists, bob: denied, ann: denied, eve: denied},
		"UpdateConfig, platform-wide": {call: func(ctx context.Context) error {
			_, err := o.UpdateConfig(ctx, &openshellv1.UpdateConfigRequest{Global: true})
			return err
		}, code: codes.InvalidArgument, bob: denied, ann: denied, eve: denied},
		"GetSandboxPolicyStatus, platform-wide": {call: func(ctx context.Context) error {
			_, err := o.GetSandboxPolicyStatus(ctx, &openshellv1.GetSandboxPolicyStatusRequest{Global: true})
			return err
		}, code: codes.NotFound, bob: denied, ann: denied, eve: denied},
		"ListSandboxPolicies, platform-wide": {call: func(ctx context.Context) error {
			_, err := o.ListSandboxPolicies(ctx, &openshellv1.ListSandboxPoliciesRequest{Global: true})
			return err
		}, bob: denied, ann: denied, eve: denied},
		"ImportProviderProfiles, platform-wide": {call: func(ctx context.Context) error {
			_, err := o.ImportProviderProfiles(ctx, &openshellv1.ImportProviderProfilesRequest{})
			return err
		}, bob: denied, ann: denied, eve: denied},
		"ListProviderProfiles, platform-wide": {call: func(ctx context.Context) error {
			_, err := o.ListProviderProfiles(ctx, &openshellv1.ListProviderProfilesRequest{})
			return err
		}, bob: denied, ann: denied, eve: denied},
		"GetProviderProfile, platform-wide": {call: func(ctx context.Context) error {
			_, err := o.GetProviderProfile(ctx, &openshellv1.GetProviderProfileRequest{Id: "none"})
			return err
		}, code: codes.NotFound, bob: denied, ann: denied, eve: denied},
		"UpdateProviderProfiles, platform-wide": {call: func(ctx context.Context) error {
			_, err := o.UpdateProviderProfiles(ctx, &openshellv1.UpdateProviderProfilesRequest{
				Id: "none", ExpectedResourceVersion: 1, Profile: &openshellv1.ProviderProfileImportItem{Profile: &openshellv1.ProviderProfile{Id: "none"}},
			})
			return err
		}, code: codes.NotFound, bob: denied, ann: denied, eve: denied},
		"DeleteProviderProfile, platform-wide": {call: func(ctx context.Context) error {
			_, err := o.DeleteProviderProfile(ctx, &openshellv1.DeleteProviderProfileRequest{Id: "none"})
			return err
		}, code: codes.NotFound, bob: denied, ann: denied, eve: denied},
		"DeleteSandbox, allow_missing": {call: func(ctx context.Context) error {
			_, err := o.DeleteSandbox(ctx, &openshellv1.DeleteSandboxRequest{Name: "none", WorkspaceScope: scope, AllowMissing: true})
			return err
		}, bob: hidden},
		"conditional DeleteSandbox, allow_missing": {call: func(ctx context.Context) error {
			_, err := g.Conditional().DeleteSandbox(ctx, &conditionalv1.ConditionalDeleteSandboxRequest{
				Precondition: expect(anID), Request: &openshellv1.DeleteSandboxRequest{Name: "none", WorkspaceScope: scope, AllowMissing: true},
			})
			return err
		}, bob: hidden},
		"DeleteService, allow_missing": {call: func(ctx context.Context) error {
			_, err := o.DeleteService(ctx, &openshellv1.DeleteServiceRequest{Sandbox: "web", WorkspaceScope: scope, AllowMissing: true})
			return err
		}, bob: hidden},
	} {
		t.Run(name, func(t *testing.T) {
			for subject, refusal := range map[string]codes.Code{"bob": tc.bob, "ann": tc.ann, "eve": tc.eve, "root": codes.OK} {
				t.Run(subject, func(t *testing.T) {
					switch err := tc.call(callers.as(subject)); refusal {
					case codes.OK:
						wantStatus(t, err, tc.code, "")
					case hidden:
						wantPlain(t, err, hidden, "sandbox not found")
					default:
						wantPlain(t, err, refusal, "")
					}
				})
			}
			wantStatus(t, tc.call(call(t)), codes.Unauthenticated, "")
		})
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

// A page token is for the caller who got it, whatever it lists.
func TestPageTokensAreTheCallers(t *testing.T) {
	g, callers := startWithOIDC(t)
	root, o, scope := callers.as("root"), g.OpenShell(), gatewaytest.Default()
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(nil, createWorkspace(root, g, "team"))
	for _, where := range []string{"default", "team"} {
		for _, subject := range []string{"ann", "bob"} {
			must(nil, addMember(root, g, where, subject, roleUser))
		}
	}
	must(o.ImportProviderProfiles(root, importRequest(scope, tokenProfile("a"), tokenProfile("b"))))
	for _, name := range []string{"a", "b"} {
		must(o.CreateProvider(root, &openshellv1.CreateProviderRequest{WorkspaceScope: scope, Provider: &datamodelv1.Provider{
			Metadata: &datamodelv1.ObjectMeta{Name: name}, Type: name, ProfileWorkspace: "default",
		}}))
		must(o.CreateSandboxTemplate(root, templateRequest(name, nil)))
		must(o.CreateSandbox(root, &openshellv1.CreateSandboxRequest{
			Name: name, WorkspaceScope: scope, Spec: &openshellv1.SandboxSpec{},
		}))
		must(o.AttachSandboxProvider(root, &openshellv1.AttachSandboxProviderRequest{Sandbox: "a", Provider: name, WorkspaceScope: scope}))
		must(o.ExposeService(root, exposeRequest("a", name, 80)))
		must(o.UpdateConfig(root, &openshellv1.UpdateConfigRequest{Sandbox: "a", Policy: reaching(name + ".example.com"), WorkspaceScope: scope}))
	}
	type list = func(ctx context.Context, token string) (string, error)
	lists := map[string]list{
		"ListSandboxes": func(ctx context.Context, token string) (string, error) {
			reply, err := o.ListSandboxes(ctx, &openshellv1.ListSandboxesRequest{PageSize: 1, PageToken: token, WorkspaceScope: scope})
			return reply.GetNextPageToken(), err
		},
		"ListSandboxTemplates": func(ctx context.Context, token string) (string, error) {
			reply, err := o.ListSandboxTemplates(ctx, &openshellv1.ListSandboxTemplatesRequest{PageSize: 1, PageToken: token, WorkspaceScope: scope})
			return reply.GetNextPageToken(), err
		},
		"ListSandboxProviders": func(ctx context.Context, token string) (string, error) {
			reply, err := o.ListSandboxProviders(ctx, &openshellv1.ListSandboxProvidersRequest{Sandbox: "a", PageSize: 1, PageToken: token, WorkspaceScope: scope})
			return reply.GetNextPageToken(), err
		},
		"ListSandboxPolicies": func(ctx context.Context, token string) (string, error) {
			reply, err := o.ListSandboxPolicies(ctx, &openshellv1.ListSandboxPoliciesRequest{Sandbox: "a", PageSize: 1, PageToken: token, WorkspaceScope: scope})
			return reply.GetNextPageToken(), err
		},
		"ListServices": func(ctx context.Context, token string) (string, error) {
			reply, err := o.ListServices(ctx, &openshellv1.ListServicesRequest{PageSize: 1, PageToken: token, WorkspaceScope: scope})
			return reply.GetNextPageToken(), err
		},
		"ListServices of a sandbox": func(ctx context.Context, token string) (string, error) {
			reply, err := o.ListServices(ctx, &openshellv1.ListServicesRequest{Sandbox: "a", PageSize: 1, PageToken: token, WorkspaceScope: scope})
			return reply.GetNextPageToken(), err
		},
		"ListProviders": func(ctx context.Context, token string) (string, error) {
			reply, err := o.ListProviders(ctx, &openshellv1.ListProvidersRequest{PageSize: 1, PageToken: token, WorkspaceScope: scope})
			return reply.GetNextPageToken(), err
		},
		"ListProviderProfiles": func(ctx context.Context, token string) (string, error) {
			reply, err := o.ListProviderProfiles(ctx, &openshellv1.ListProviderProfilesRequest{PageSize: 1, PageToken: token, WorkspaceScope: scope})
			return reply.GetNextPageToken(), err
		},
		"ListWorkspaces": func(ctx context.Context, token string) (string, error) {
			reply, err := o.ListWorkspaces(ctx, &openshellv1.ListWorkspacesRequest{PageSize: 1, PageToken: token})
			return reply.GetNextPageToken(), err
		},
		"ListWorkspaceMembers": func(ctx context.Context, token string) (string, error) {
			reply, err := o.ListWorkspaceMembers(ctx, &openshellv1.ListWorkspaceMembersRequest{PageSize: 1, PageToken: token, WorkspaceScope: scope})
			return reply.GetNextPageToken(), err
		},
	}
	for _, method := range openshellv1.OpenShell_ServiceDesc.Methods {
		if strings.HasPrefix(method.MethodName, "List") && lists[method.MethodName] == nil {
			t.Errorf("%s is not tested", method.MethodName)
		}
	}
	tokens := map[string]string{}
	for name, list := range lists {
		t.Run(name, func(t *testing.T) {
			token, err := list(callers.as("ann"), "")
			if err != nil || token == "" {
				t.Fatal(token, err)
			}
			tokens[name] = token
			if _, err := list(callers.as("ann"), token); err != nil {
				t.Errorf("the caller's own: %v", err)
			}
			for _, other := range []string{"bob", "root"} {
				_, err := list(callers.as(other), token)
				wantPlain(t, err, codes.InvalidArgument, "page_token")
			}
		})
	}
	for name, list := range lists {
		for from, token := range tokens {
			if from != name {
				_, err := list(callers.as("ann"), token)
				wantPlain(t, err, codes.InvalidArgument, "page_token")
			}
		}
	}
}
