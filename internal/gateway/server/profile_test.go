package server_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// tokenProfile has one credential, which is not required.
func tokenProfile(id string) *openshellv1.ProviderProfile {
	return &openshellv1.ProviderProfile{
		Id: id, DisplayName: "Any", Category: openshellv1.ProviderProfileCategory_PROVIDER_PROFILE_CATEGORY_OTHER,
		Credentials: []*openshellv1.ProviderProfileCredential{{Name: "token", EnvVars: []string{"TOKEN", "OTHER_TOKEN"}}},
		Annotations: map[string]string{"note": "any text"},
	}
}

func importRequest(scope *datamodelv1.WorkspaceSelector, profiles ...*openshellv1.ProviderProfile) *openshellv1.ImportProviderProfilesRequest {
	req := &openshellv1.ImportProviderProfilesRequest{WorkspaceScope: scope}
	for _, p := range profiles {
		req.Profiles = append(req.Profiles, &openshellv1.ProviderProfileImportItem{Profile: p, Source: p.GetId() + ".yaml"})
	}
	return req
}

func importProfiles(t *testing.T, g *gatewaytest.Gateway, scope *datamodelv1.WorkspaceSelector, profiles ...*openshellv1.ProviderProfile) *openshellv1.ImportProviderProfilesResponse {
	t.Helper()
	reply, err := g.OpenShell().ImportProviderProfiles(call(t), importRequest(scope, profiles...))
	if err != nil || !reply.GetImported() {
		t.Fatalf("import: %v, %v", reply, err)
	}
	return reply
}

func getProfile(t *testing.T, g *gatewaytest.Gateway, id string, scope *datamodelv1.WorkspaceSelector) (*openshellv1.ProviderProfile, error) {
	t.Helper()
	reply, err := g.OpenShell().GetProviderProfile(call(t), &openshellv1.GetProviderProfileRequest{Id: id, WorkspaceScope: scope})
	return reply.GetProfile(), err
}

func TestProfilesKeepWhatWasImported(t *testing.T) {
	g := gatewaytest.Start(t)
	full := tokenProfile("github")
	full.Description, full.InferenceCapable = "text", true
	full.Credentials[0].Required, full.Credentials[0].AuthStyle, full.Credentials[0].HeaderName = true, "bearer", "authorization"
	full.Discovery = &openshellv1.ProviderProfileDiscovery{Credentials: []string{"token"}}
	full.Endpoints = []*sandboxv1.NetworkEndpoint{{Host: "api.example.com", Port: 443, Ports: []uint32{443}}}
	full.Binaries = []*sandboxv1.NetworkBinary{{Path: "/usr/bin/gh"}}
	full.Files = []*openshellv1.ProviderProfileFile{{Path: "/etc/x", Content: "a", EnvVar: "X"}}
	sent := proto.CloneOf(full)
	sent.ResourceVersion, sent.Source, sent.Scope = 7, "builtin", "workspace" // the gateway's own

	for scope, where := range map[*datamodelv1.WorkspaceSelector]string{nil: "platform", gatewaytest.Default(): "workspace"} {
		want := proto.CloneOf(full)
		want.ResourceVersion, want.Source, want.Scope = 1, "user", where
		reply := importProfiles(t, g, scope, sent)
		got, err := getProfile(t, g, " GitHub ", scope) // in whatever case
		if err != nil {
			t.Fatal(err)
		}
		for name, got := range map[string]*openshellv1.ProviderProfile{"import": reply.GetProfiles()[0], "get": got} {
			if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
				t.Errorf("%s, %s (-want +got)\n%s", where, name, diff)
			}
		}
	}
}

func TestImportIsAllOrNothing(t *testing.T) {
	g := gatewaytest.Start(t)
	importProfiles(t, g, nil, tokenProfile("there"))
	for name, tc := range map[string]struct {
		profiles []*openshellv1.ProviderProfile
		want     []string // source field severity
	}{
		"an id that is taken":    {[]*openshellv1.ProviderProfile{tokenProfile("new"), tokenProfile("there")}, []string{"there.yaml id error"}},
		"one that is wrong":      {[]*openshellv1.ProviderProfile{tokenProfile("new"), tokenProfile("Wrong")}, []string{"Wrong.yaml id error"}},
		"an id that comes twice": {[]*openshellv1.ProviderProfile{tokenProfile("new"), tokenProfile("new")}, []string{"new.yaml id error"}},
		"none at all":            {nil, []string{" profiles error"}},
	} {
		t.Run(name, func(t *testing.T) {
			reply, err := g.OpenShell().ImportProviderProfiles(call(t), importRequest(nil, tc.profiles...))
			if err != nil || reply.GetImported() || len(reply.GetProfiles()) != 0 {
				t.Errorf("%v, %v", reply, err)
			}
			if got := remarks(reply.GetDiagnostics()); !slices.Equal(got, tc.want) {
				t.Errorf("diagnostics %v, want %v", got, tc.want)
			}
			_, err = getProfile(t, g, "new", nil)
			wantPlain(t, err, codes.NotFound, "not found")
		})
	}
	_, err := g.OpenShell().ImportProviderProfiles(call(t), importRequest(workspace("nowhere"), tokenProfile("new")))
	wantPlain(t, err, codes.NotFound, "workspace 'nowhere' not found")
	_, err = g.OpenShell().ImportProviderProfiles(call(t), importRequest(allWorkspaces(), tokenProfile("new")))
	wantField(t, err, "workspace_scope")
}

func remarks(diagnostics []*openshellv1.ProviderProfileDiagnostic) []string {
	var all []string
	for _, d := range diagnostics {
		all = append(all, d.GetSource()+" "+d.GetField()+" "+d.GetSeverity())
	}
	return all
}

func TestImportDiagnostics(t *testing.T) {
	g := gatewaytest.Start(t)
	credential := func(p *openshellv1.ProviderProfile) *openshellv1.ProviderProfileCredential {
		return p.GetCredentials()[0]
	}
	const refreshed = openshellv1.ProviderCredentialRefreshStrategy_PROVIDER_CREDENTIAL_REFRESH_STRATEGY_OAUTH2_CLIENT_CREDENTIALS
	for name, tc := range map[string]struct {
		edit  func(*openshellv1.ProviderProfile)
		field string // "" when it is fine
	}{
		"id of 64 bytes":      {func(p *openshellv1.ProviderProfile) { p.Id = strings.Repeat("x", 64) }, ""},
		"id of 65 bytes":      {func(p *openshellv1.ProviderProfile) { p.Id = strings.Repeat("x", 65) }, "id"},
		"no id":               {func(p *openshellv1.ProviderProfile) { p.Id = "" }, "id"},
		"id with two hyphens": {func(p *openshellv1.ProviderProfile) { p.Id = "a--b" }, "id"},
		"unknown category":    {func(p *openshellv1.ProviderProfile) { p.Category = 99 }, "category"},
		"annotation key":      {func(p *openshellv1.ProviderProfile) { p.Annotations = map[string]string{"-": ""} }, "annotations"},
		"no credential name":  {func(p *openshellv1.ProviderProfile) { credential(p).Name = " " }, "credentials[0].name"},
		"credential name twice": {func(p *openshellv1.ProviderProfile) {
			p.Credentials = append(p.Credentials, &openshellv1.ProviderProfileCredential{Name: "token"})
		}, "credentials[1].name"},
		"bad variable": {func(p *openshellv1.ProviderProfile) { credential(p).EnvVars[1] = "1A" }, "credentials[0].env_vars[1]"},
		"variable twice": {func(p *openshellv1.ProviderProfile) {
			p.Credentials = append(p.Credentials, &openshellv1.ProviderProfileCredential{Name: "other", EnvVars: []string{"TOKEN"}})
		}, "credentials[1].env_vars[0]"},
		"bearer without header": {func(p *openshellv1.ProviderProfile) { credential(p).AuthStyle = "bearer" }, "credentials[0].header_name"},
		"query without name":    {func(p *openshellv1.ProviderProfile) { credential(p).AuthStyle = "query" }, "credentials[0].query_param"},
		"path without place":    {func(p *openshellv1.ProviderProfile) { credential(p).AuthStyle = "path" }, "credentials[0].path_template"},
		"path with a place": {func(p *openshellv1.ProviderProfile) {
			credential(p).AuthStyle, credential(p).PathTemplate = "path", "/x/{credential}"
		}, ""},
		"unknown auth style": {func(p *openshellv1.ProviderProfile) { credential(p).AuthStyle = "magic" }, "credentials[0].auth_style"},
		"refresh without strategy": {func(p *openshellv1.ProviderProfile) {
			credential(p).Refresh = &openshellv1.ProviderCredentialRefresh{}
		}, "credentials[0].refresh.strategy"},
		"unknown strategy": {func(p *openshellv1.ProviderProfile) {
			credential(p).Refresh = &openshellv1.ProviderCredentialRefresh{Strategy: 99}
		}, "credentials[0].refresh.strategy"},
		"token grant without endpoint": {func(p *openshellv1.ProviderProfile) {
			credential(p).TokenGrant = &openshellv1.ProviderCredentialTokenGrant{}
		}, "credentials[0].token_grant.token_endpoint"},
		"token grant of an unknown type": {func(p *openshellv1.ProviderProfile) {
			credential(p).TokenGrant = &openshellv1.ProviderCredentialTokenGrant{TokenEndpoint: "https://example.com", GrantType: 99}
		}, "credentials[0].token_grant.grant_type"},
		"negative cache time": {func(p *openshellv1.ProviderProfile) {
			credential(p).TokenGrant = &openshellv1.ProviderCredentialTokenGrant{TokenEndpoint: "https://example.com", CacheTtl: durationpb.New(-1)}
		}, "credentials[0].token_grant.cache_ttl"},
		"refresh": {func(p *openshellv1.ProviderProfile) {
			credential(p).Refresh = &openshellv1.ProviderCredentialRefresh{
				Strategy: refreshed, RefreshBefore: durationpb.New(0), MaxLifetime: durationpb.New(time.Hour),
				Material: []*openshellv1.ProviderCredentialRefreshMaterial{{Name: "a"}, {Name: "b"}},
			}
		}, ""},
		"negative refresh time": {func(p *openshellv1.ProviderProfile) {
			credential(p).Refresh = &openshellv1.ProviderCredentialRefresh{Strategy: refreshed, RefreshBefore: durationpb.New(-1)}
		}, "credentials[0].refresh.refresh_before"},
		"lifetime that is none": {func(p *openshellv1.ProviderProfile) {
			credential(p).Refresh = &openshellv1.ProviderCredentialRefresh{Strategy: refreshed, MaxLifetime: &durationpb.Duration{Seconds: 1, Nanos: -1}}
		}, "credentials[0].refresh.max_lifetime"},
		"refresh material without name": {func(p *openshellv1.ProviderProfile) {
			credential(p).Refresh = &openshellv1.ProviderCredentialRefresh{Strategy: refreshed, Material: []*openshellv1.ProviderCredentialRefreshMaterial{{}}}
		}, "credentials[0].refresh.material[0].name"},
		"refresh material twice": {func(p *openshellv1.ProviderProfile) {
			credential(p).Refresh = &openshellv1.ProviderCredentialRefresh{Strategy: refreshed, Material: []*openshellv1.ProviderCredentialRefreshMaterial{{Name: "a"}, {Name: "a"}}}
		}, "credentials[0].refresh.material[1].name"},
		"discovery of nothing": {func(p *openshellv1.ProviderProfile) {
			p.Discovery = &openshellv1.ProviderProfileDiscovery{Credentials: []string{"none"}}
		}, "discovery.credentials[0]"},
		"file without path": {func(p *openshellv1.ProviderProfile) { p.Files = []*openshellv1.ProviderProfileFile{{}} }, "files[0].path"},
		"endpoint without port": {func(p *openshellv1.ProviderProfile) {
			p.Endpoints = []*sandboxv1.NetworkEndpoint{{Host: "a.example.com", Port: 443}, {Host: "a.example.com"}}
		}, "endpoints[1].port"},
		"endpoint bound to a provider": {func(p *openshellv1.ProviderProfile) {
			p.Endpoints = []*sandboxv1.NetworkEndpoint{{Host: "a.example.com", Port: 443, CredentialBinding: &sandboxv1.NetworkCredentialBinding{Provider: "p"}}}
		}, "endpoints[0].credential_binding"},
	} {
		t.Run(name, func(t *testing.T) {
			profile := tokenProfile("x-" + strings.ReplaceAll(name, " ", "-"))
			tc.edit(profile)
			reply, err := g.OpenShell().ImportProviderProfiles(call(t), importRequest(nil, profile))
			if err != nil {
				t.Fatal(err)
			}
			if tc.field == "" {
				if !reply.GetImported() || len(reply.GetDiagnostics()) != 0 {
					t.Errorf("refused: %v", reply)
				}
				return
			}
			d := reply.GetDiagnostics()
			if reply.GetImported() || len(d) != 1 || d[0].GetField() != tc.field || d[0].GetSeverity() != "error" || d[0].GetMessage() == "" ||
				d[0].GetProfileId() != profile.GetId() {
				t.Errorf("%v, want an error about %s", reply, tc.field)
			}
		})
	}
	reply, err := g.OpenShell().ImportProviderProfiles(call(t), &openshellv1.ImportProviderProfilesRequest{Profiles: []*openshellv1.ProviderProfileImportItem{{Source: "empty.yaml"}}})
	if got := remarks(reply.GetDiagnostics()); err != nil || !slices.Equal(got, []string{"empty.yaml profile error"}) {
		t.Errorf("%v, %v", got, err)
	}
}

// A workspace sees the platform-wide profiles and its own, which win.
func TestProfileScopes(t *testing.T) {
	g := gatewaytest.Start(t)
	mustCreateTeam(t, g)
	team := workspace("team")
	importProfiles(t, g, nil, tokenProfile("b"), tokenProfile("d"), tokenProfile("c"))
	importProfiles(t, g, gatewaytest.Default(), tokenProfile("a"))
	own := tokenProfile("b")
	own.DisplayName = "Our own"
	reply := importProfiles(t, g, team, own, tokenProfile("e"))
	if got := remarks(reply.GetDiagnostics()); !slices.Equal(got, []string{"b.yaml id warning"}) {
		t.Errorf("diagnostics %v", got)
	}
	for name, tc := range map[string]struct {
		scope *datamodelv1.WorkspaceSelector
		want  []string
	}{
		"platform-wide":  {nil, []string{"b platform", "c platform", "d platform"}},
		"of a workspace": {team, []string{"b platform", "b workspace", "c platform", "d platform", "e workspace"}},
	} {
		for _, size := range []int32{0, 1, 2} {
			var got []string
			req := &openshellv1.ListProviderProfilesRequest{WorkspaceScope: tc.scope, PageSize: size}
			for {
				page, err := g.OpenShell().ListProviderProfiles(call(t), req)
				if err != nil {
					t.Fatal(err)
				}
				for _, p := range page.GetProfiles() {
					got = append(got, p.GetId()+" "+p.GetScope())
				}
				if req.PageToken = page.GetNextPageToken(); req.GetPageToken() == "" {
					break
				}
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("%s, pages of %d: %v", name, size, got)
			}
		}
	}
	for scope, want := range map[*datamodelv1.WorkspaceSelector]string{nil: "Any", team: "Our own", gatewaytest.Default(): "Any"} {
		if got, err := getProfile(t, g, "b", scope); err != nil || got.GetDisplayName() != want {
			t.Errorf("in %v: %v, %v", scope, got, err)
		}
	}
	_, err := getProfile(t, g, "e", nil)
	wantPlain(t, err, codes.NotFound, "'e' not found among the platform-wide ones")
	_, err = getProfile(t, g, "e", gatewaytest.Default())
	wantPlain(t, err, codes.NotFound, "'e' not found in workspace 'default'")
	_, err = getProfile(t, g, "", nil)
	wantPlain(t, err, codes.InvalidArgument, "id is required")
	_, err = getProfile(t, g, "a_b", nil)
	wantPlain(t, err, codes.InvalidArgument, "id must")
	_, err = getProfile(t, g, "a", workspace("nowhere"))
	wantPlain(t, err, codes.NotFound, "workspace 'nowhere' not found")
	page, err := g.OpenShell().ListProviderProfiles(call(t), &openshellv1.ListProviderProfilesRequest{WorkspaceScope: team, PageSize: 1})
	if err != nil {
		t.Fatal(err)
	}
	_, err = g.OpenShell().ListProviderProfiles(call(t), &openshellv1.ListProviderProfilesRequest{PageToken: page.GetNextPageToken()})
	wantPlain(t, err, codes.InvalidArgument, "page_token")
}

func TestUpdateProfile(t *testing.T) {
	g := gatewaytest.Start(t)
	importProfiles(t, g, nil, tokenProfile("p"))
	update := func(edit func(*openshellv1.UpdateProviderProfilesRequest)) (*openshellv1.UpdateProviderProfilesResponse, error) {
		profile := tokenProfile("p")
		profile.DisplayName = "New"
		req := &openshellv1.UpdateProviderProfilesRequest{Id: "p", Profile: &openshellv1.ProviderProfileImportItem{Profile: profile, Source: "p.yaml"}}
		edit(req)
		return g.OpenShell().UpdateProviderProfiles(call(t), req)
	}
	for name, edit := range map[string]func(*openshellv1.UpdateProviderProfilesRequest){
		"no version": func(*openshellv1.UpdateProviderProfilesRequest) {},
		"two versions": func(r *openshellv1.UpdateProviderProfilesRequest) {
			r.ExpectedResourceVersion, r.Profile.Profile.ResourceVersion = 1, 2
		},
	} {
		t.Run(name, func(t *testing.T) { _, err := update(edit); wantField(t, err, "expected_resource_version") })
	}
	_, err := update(func(r *openshellv1.UpdateProviderProfilesRequest) { r.ExpectedResourceVersion = 2 })
	wantPlain(t, err, codes.Aborted, "version 1")
	_, err = update(func(r *openshellv1.UpdateProviderProfilesRequest) {
		r.Id, r.Profile.Profile.Id, r.ExpectedResourceVersion = "q", "q", 1
	})
	wantPlain(t, err, codes.NotFound, "'q' not found")
	_, err = update(func(r *openshellv1.UpdateProviderProfilesRequest) { r.Profile, r.ExpectedResourceVersion = nil, 1 })
	wantPlain(t, err, codes.InvalidArgument, "profile is required")
	_, err = update(func(r *openshellv1.UpdateProviderProfilesRequest) { r.Id, r.ExpectedResourceVersion = "", 1 })
	wantPlain(t, err, codes.InvalidArgument, "id is required")
	for name, edit := range map[string]func(*openshellv1.ProviderProfile){
		"another id": func(p *openshellv1.ProviderProfile) { p.Id = "q" }, "unknown category": func(p *openshellv1.ProviderProfile) { p.Category = 99 },
	} {
		reply, err := update(func(r *openshellv1.UpdateProviderProfilesRequest) {
			r.ExpectedResourceVersion = 1
			edit(r.GetProfile().GetProfile())
		})
		if err != nil || reply.GetUpdated() || len(reply.GetDiagnostics()) != 1 || reply.GetProfile() != nil {
			t.Errorf("%s: %v, %v", name, reply, err)
		}
	}
	if got, err := getProfile(t, g, "p", nil); err != nil || got.GetResourceVersion() != 1 || got.GetDisplayName() != "Any" {
		t.Errorf("after refusals: %v, %v", got, err)
	}
	for version, edit := range map[uint64]func(*openshellv1.UpdateProviderProfilesRequest, uint64){
		1: func(r *openshellv1.UpdateProviderProfilesRequest, v uint64) { r.ExpectedResourceVersion = v },
	} {
		reply, err := update(func(r *openshellv1.UpdateProviderProfilesRequest) { edit(r, version) })
		if err != nil || !reply.GetUpdated() || reply.GetProfile().GetResourceVersion() != 2 || reply.GetProfile().GetDisplayName() != "New" {
			t.Errorf("%v, %v", reply, err)
		}
	}
	reply, err := update(func(r *openshellv1.UpdateProviderProfilesRequest) { r.Profile.Profile.ResourceVersion = 2 })
	if err != nil || reply.GetProfile().GetResourceVersion() != 3 {
		t.Errorf("with the version in the profile: %v, %v", reply, err)
	}
}

func TestDeleteProfile(t *testing.T) {
	g := gatewaytest.Start(t)
	importProfiles(t, g, nil, tokenProfile("p"))
	del := func(id string, allowMissing bool) (openshellv1.DeletionOutcome, error) {
		reply, err := g.OpenShell().DeleteProviderProfile(call(t), &openshellv1.DeleteProviderProfileRequest{Id: id, AllowMissing: allowMissing})
		return reply.GetOutcome(), err
	}
	mustCreateProvider(t, g, gatewaytest.Default(), "mine", "p", nil)
	_, err := del("p", false)
	wantPlain(t, err, codes.FailedPrecondition, "in use by provider 'mine'")
	if _, err := getProfile(t, g, "p", nil); err != nil {
		t.Error(err)
	}
	if _, err := g.OpenShell().DeleteProvider(call(t), &openshellv1.DeleteProviderRequest{Name: "mine", WorkspaceScope: gatewaytest.Default()}); err != nil {
		t.Fatal(err)
	}
	if outcome, err := del("P", false); err != nil || outcome != finished {
		t.Errorf("%v, %v", outcome, err)
	}
	_, err = del("p", false)
	wantPlain(t, err, codes.NotFound, "'p' not found")
	if outcome, err := del("p", true); err != nil || outcome != alreadyAbsent {
		t.Errorf("%v, %v", outcome, err)
	}
	_, err = del("", true)
	wantPlain(t, err, codes.InvalidArgument, "id is required")
}
