package soak

import (
	"context"
	"fmt"

	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

// importProfile imports a provider profile into home, unless it is there.
func (c *caller) importProfile(ctx context.Context, id string) error {
	profile := &openshellv1.ProviderProfile{
		Id: id, DisplayName: id, Category: openshellv1.ProviderProfileCategory_PROVIDER_PROFILE_CATEGORY_OTHER,
		Credentials: []*openshellv1.ProviderProfileCredential{{Name: "token", EnvVars: []string{"FORGE_TOKEN"}}},
	}
	_, err := c.ImportProviderProfiles(ctx, &openshellv1.ImportProviderProfilesRequest{
		WorkspaceScope: home, Profiles: []*openshellv1.ProviderProfileImportItem{{Profile: profile}},
	})
	return err
}

// passing is a profile that comes and goes.
func (c *caller) passing() string { return fmt.Sprint("passing-", c.rng.IntN(4)) }

// objectCalls are about all that is no sandbox.
var objectCalls = []action{
	{"import a profile", []string{ok}, func(ctx context.Context, c *caller) error { return c.importProfile(ctx, c.passing()) }},
	{"get a profile", []string{ok, notFound}, func(ctx context.Context, c *caller) error {
		_, err := c.GetProviderProfile(ctx, &openshellv1.GetProviderProfileRequest{Id: c.passing(), WorkspaceScope: home})
		return err
	}},
	{"list profiles", []string{ok}, func(ctx context.Context, c *caller) error {
		_, err := c.ListProviderProfiles(ctx, &openshellv1.ListProviderProfilesRequest{WorkspaceScope: home})
		return err
	}},
	{"delete a profile", []string{ok, notFound}, func(ctx context.Context, c *caller) error {
		_, err := c.DeleteProviderProfile(ctx, &openshellv1.DeleteProviderProfileRequest{Id: c.passing(), WorkspaceScope: home})
		return err
	}},
	{"create a provider", []string{ok, alreadyExists}, func(ctx context.Context, c *caller) error {
		_, err := c.CreateProvider(ctx, &openshellv1.CreateProviderRequest{WorkspaceScope: home, Provider: &datamodelv1.Provider{
			Metadata: &datamodelv1.ObjectMeta{Name: c.provider()}, Type: "forge", ProfileWorkspace: "default",
			Credentials: map[string]string{"FORGE_TOKEN": "secret"},
		}})
		return err
	}},
	{"get a provider", []string{ok, notFound}, func(ctx context.Context, c *caller) error {
		_, err := c.GetProvider(ctx, &openshellv1.GetProviderRequest{Name: c.provider(), WorkspaceScope: home})
		return err
	}},
	{"list providers", []string{ok}, func(ctx context.Context, c *caller) error {
		_, err := c.ListProviders(ctx, &openshellv1.ListProvidersRequest{PageSize: 3, WorkspaceScope: home})
		return err
	}},
	{"update a provider at a version", []string{ok, notFound, objectConflict}, func(ctx context.Context, c *caller) error {
		_, err := c.UpdateProvider(ctx, &openshellv1.UpdateProviderRequest{WorkspaceScope: home, Provider: &datamodelv1.Provider{
			Metadata: &datamodelv1.ObjectMeta{Name: c.provider(), ResourceVersion: uint64(c.rng.IntN(3))},
			Config:   map[string]string{"host": "forge.example.com"},
		}})
		return err
	}},
	{"delete a provider", []string{ok, notFound, precondition}, func(ctx context.Context, c *caller) error {
		_, err := c.DeleteProvider(ctx, &openshellv1.DeleteProviderRequest{Name: c.provider(), WorkspaceScope: home})
		return err
	}},
	{"create a workspace", []string{ok, alreadyExists}, func(ctx context.Context, c *caller) error {
		_, err := c.CreateWorkspace(ctx, &openshellv1.CreateWorkspaceRequest{Name: c.team()})
		return err
	}},
	{"get a workspace", []string{ok, notFound}, func(ctx context.Context, c *caller) error {
		_, err := c.GetWorkspace(ctx, &openshellv1.GetWorkspaceRequest{Name: c.team()})
		return err
	}},
	{"list workspaces", []string{ok}, func(ctx context.Context, c *caller) error {
		_, err := c.ListWorkspaces(ctx, &openshellv1.ListWorkspacesRequest{})
		return err
	}},
	{"delete a workspace", []string{ok, notFound, precondition}, func(ctx context.Context, c *caller) error {
		_, err := c.DeleteWorkspace(ctx, &openshellv1.DeleteWorkspaceRequest{Name: c.team()})
		return err
	}},
	{"create in a workspace", []string{ok, notFound, alreadyExists, precondition}, func(ctx context.Context, c *caller) error {
		req := creation("web")
		req.WorkspaceScope = in(c.team())
		_, err := c.CreateSandbox(ctx, req)
		return err
	}},
	{"delete in a workspace", []string{ok, notFound, precondition}, func(ctx context.Context, c *caller) error {
		_, err := c.DeleteSandbox(ctx, &openshellv1.DeleteSandboxRequest{Name: "web", WorkspaceScope: in(c.team())})
		return err
	}},
	{"add a member", []string{ok, notFound, alreadyExists, precondition}, func(ctx context.Context, c *caller) error {
		_, err := c.AddWorkspaceMember(ctx, &openshellv1.AddWorkspaceMemberRequest{
			PrincipalSubject: "ann", Role: openshellv1.WorkspaceRole_WORKSPACE_ROLE_USER, WorkspaceScope: in(c.team()),
		})
		return err
	}},
	{"list members", []string{ok, notFound}, func(ctx context.Context, c *caller) error {
		_, err := c.ListWorkspaceMembers(ctx, &openshellv1.ListWorkspaceMembersRequest{WorkspaceScope: in(c.team())})
		return err
	}},
	{"remove a member", []string{ok, notFound}, func(ctx context.Context, c *caller) error {
		_, err := c.RemoveWorkspaceMember(ctx, &openshellv1.RemoveWorkspaceMemberRequest{PrincipalSubject: "ann", WorkspaceScope: in(c.team())})
		return err
	}},
}
