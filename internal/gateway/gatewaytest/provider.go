package gatewaytest

import (
	"testing"

	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

// MustProvider makes a credential provider in the workspace "default". Its credentials set the given environment variables,
// of which a sandbox can have each from one provider only.
func (g *Gateway) MustProvider(t testing.TB, name string, variables ...string) {
	t.Helper()
	profile := &openshellv1.ProviderProfile{Id: name, DisplayName: name, Category: openshellv1.ProviderProfileCategory_PROVIDER_PROFILE_CATEGORY_OTHER}
	provider := &datamodelv1.Provider{Metadata: &datamodelv1.ObjectMeta{Name: name}, Type: name, Credentials: map[string]string{}}
	for _, variable := range variables {
		profile.Credentials = append(profile.Credentials, &openshellv1.ProviderProfileCredential{Name: variable, EnvVars: []string{variable}})
		provider.Credentials[variable] = "value"
	}
	imported, err := g.OpenShell().ImportProviderProfiles(timeout(t), &openshellv1.ImportProviderProfilesRequest{
		Profiles: []*openshellv1.ProviderProfileImportItem{{Profile: profile}},
	})
	if err != nil || !imported.GetImported() {
		t.Fatalf("import the profile of provider %s: %v, %v", name, imported.GetDiagnostics(), err)
	}
	if _, err := g.OpenShell().CreateProvider(timeout(t), &openshellv1.CreateProviderRequest{Provider: provider, WorkspaceScope: Default()}); err != nil {
		t.Fatalf("create provider %s: %v", name, err)
	}
}

// Attach attaches a provider to the sandbox that holds a name, as a foreign client would.
func (g *Gateway) Attach(t testing.TB, name, provider string) {
	t.Helper()
	if _, err := g.OpenShell().AttachSandboxProvider(timeout(t), &openshellv1.AttachSandboxProviderRequest{
		Sandbox: name, Provider: provider, WorkspaceScope: Default(),
	}); err != nil {
		t.Fatalf("attach provider %s to %s: %v", provider, name, err)
	}
}

// Detach detaches one.
func (g *Gateway) Detach(t testing.TB, name, provider string) {
	t.Helper()
	if _, err := g.OpenShell().DetachSandboxProvider(timeout(t), &openshellv1.DetachSandboxProviderRequest{
		Sandbox: name, Provider: provider, WorkspaceScope: Default(),
	}); err != nil {
		t.Fatalf("detach provider %s from %s: %v", provider, name, err)
	}
}
