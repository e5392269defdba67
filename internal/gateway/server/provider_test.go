package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// githubProfile requires one credential, under either of two names, and may have another. Two more are made without the user,
// by the gateway and at the time of use.
func githubProfile() *openshellv1.ProviderProfile {
	return &openshellv1.ProviderProfile{Id: "github", Credentials: []*openshellv1.ProviderProfileCredential{
		{Name: "token", EnvVars: []string{"GITHUB_TOKEN", "GH_TOKEN"}, Required: true},
		{Name: "webhook"},
		{Name: "minted", EnvVars: []string{"MINTED"}, Required: true, Refresh: &openshellv1.ProviderCredentialRefresh{
			Strategy: openshellv1.ProviderCredentialRefreshStrategy_PROVIDER_CREDENTIAL_REFRESH_STRATEGY_EXTERNAL,
		}},
		{Name: "exchanged", EnvVars: []string{"EXCHANGED"}, Required: true, TokenGrant: &openshellv1.ProviderCredentialTokenGrant{
			TokenEndpoint: "https://login.example.com/token",
		}},
	}}
}

func mustCreateProvider(t *testing.T, g *gatewaytest.Gateway, scope *datamodelv1.WorkspaceSelector, name, kind string, credentials map[string]string, edits ...func(*datamodelv1.Provider)) *datamodelv1.Provider {
	t.Helper()
	provider := &datamodelv1.Provider{Metadata: &datamodelv1.ObjectMeta{Name: name}, Type: kind, Credentials: credentials}
	for _, edit := range edits {
		edit(provider)
	}
	reply, err := g.OpenShell().CreateProvider(call(t), &openshellv1.CreateProviderRequest{Provider: provider, WorkspaceScope: scope})
	if err != nil {
		t.Fatalf("create provider %s: %v", name, err)
	}
	return reply.GetProvider()
}

func getProvider(t *testing.T, g *gatewaytest.Gateway, name string) *datamodelv1.Provider {
	t.Helper()
	reply, err := g.OpenShell().GetProvider(call(t), &openshellv1.GetProviderRequest{Name: name, WorkspaceScope: gatewaytest.Default()})
	if err != nil {
		t.Fatal(err)
	}
	return reply.GetProvider()
}

func numbered(n int, prefix string) map[string]string {
	all := map[string]string{}
	for i := range n {
		all[fmt.Sprintf("%s%d", prefix, i)] = "v"
	}
	return all
}

func TestCreateProvider(t *testing.T) {
	g := gatewaytest.Start(t)
	importProfiles(t, g, nil, githubProfile())
	expires := timestamppb.New(time.Now().Add(time.Hour))
	created := mustCreateProvider(t, g, gatewaytest.Default(), "my Provider/ä", " GitHub", map[string]string{"GH_TOKEN": "s3cret", "webhook": "s3cret"}, func(p *datamodelv1.Provider) {
		p.Metadata.Id, p.Metadata.Workspace, p.Metadata.ResourceVersion = anID, "elsewhere", 9
		p.Metadata.Labels, p.Metadata.Annotations = map[string]string{"a": "b"}, map[string]string{"note": "any text"}
		p.Config = map[string]string{"host": "example.com"}
		p.CredentialExpirationTimes = map[string]*timestamppb.Timestamp{"GH_TOKEN": expires}
	})
	want := &datamodelv1.Provider{
		Metadata: &datamodelv1.ObjectMeta{
			Id: created.GetMetadata().GetId(), Name: "my Provider/ä", Workspace: "default", ResourceVersion: 1, CreatedTime: created.GetMetadata().GetCreatedTime(),
			Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"note": "any text"},
		},
		Type: "github", Credentials: map[string]string{"GH_TOKEN": "REDACTED", "webhook": "REDACTED"}, Config: map[string]string{"host": "example.com"},
		CredentialExpirationTimes: map[string]*timestamppb.Timestamp{"GH_TOKEN": expires},
	}
	if id := created.GetMetadata().GetId(); id == anID || uuid.Validate(id) != nil || created.GetMetadata().GetCreatedTime() == nil {
		t.Errorf("metadata %v", created.GetMetadata())
	}
	list, err := g.OpenShell().ListProviders(call(t), &openshellv1.ListProvidersRequest{WorkspaceScope: gatewaytest.Default()})
	if err != nil || len(list.GetProviders()) != 1 {
		t.Fatal(list, err)
	}
	for name, got := range map[string]*datamodelv1.Provider{"create": created, "get": getProvider(t, g, "my Provider/ä"), "list": list.GetProviders()[0]} {
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
	invented := mustCreateProvider(t, g, gatewaytest.Default(), "", "github", map[string]string{"GITHUB_TOKEN": "x"}).GetMetadata().GetName()
	if len(invented) != 6 || strings.Trim(invented, "abcdefghijklmnopqrstuvwxyz") != "" {
		t.Errorf("invented the name %q", invented)
	}
}

func TestCreateProviderRefusals(t *testing.T) {
	g := gatewaytest.Start(t)
	mustCreateTeam(t, g)
	files := tokenProfile("files")
	files.Files = []*openshellv1.ProviderProfileFile{{Path: "/etc/x"}}
	wide := &openshellv1.ProviderProfile{Id: strings.Repeat("w", 64)}
	for i := range 40 {
		wide.Credentials = append(wide.Credentials, &openshellv1.ProviderProfileCredential{Name: fmt.Sprintf("K%d", i)})
	}
	wide.Credentials = append(wide.Credentials, &openshellv1.ProviderProfileCredential{Name: strings.Repeat("k", 256)}, &openshellv1.ProviderProfileCredential{Name: strings.Repeat("k", 257)})
	importProfiles(t, g, nil, githubProfile(), files, wide, tokenProfile("any"))
	importProfiles(t, g, workspace("team"), tokenProfile("theirs"))
	importProfiles(t, g, gatewaytest.Default(), tokenProfile("own"))
	mustCreateProvider(t, g, gatewaytest.Default(), "taken", "any", nil)
	x := strings.Repeat
	for name, tc := range map[string]struct {
		edit  func(*datamodelv1.Provider)
		code  codes.Code
		field string // of an INVALID_ARGUMENT with details
	}{
		"fine":                     {func(*datamodelv1.Provider) {}, codes.OK, ""},
		"taken name":               {func(p *datamodelv1.Provider) { p.Metadata.Name = "taken" }, codes.AlreadyExists, ""},
		"name of 253 bytes":        {func(p *datamodelv1.Provider) { p.Metadata.Name = x("n", 253) }, codes.OK, ""},
		"name of 254 bytes":        {func(p *datamodelv1.Provider) { p.Metadata.Name = x("n", 254) }, codes.InvalidArgument, "provider.metadata.name"},
		"name with NUL":            {func(p *datamodelv1.Provider) { p.Metadata.Name = "a\x00" }, codes.InvalidArgument, "provider.metadata.name"},
		"file name":                {func(p *datamodelv1.Provider) { p.Type, p.Metadata.Name = "files", "a-B_1" }, codes.OK, ""},
		"no file name":             {func(p *datamodelv1.Provider) { p.Type, p.Metadata.Name = "files", "a.b" }, codes.InvalidArgument, "provider.metadata.name"},
		"no type":                  {func(p *datamodelv1.Provider) { p.Type = "" }, codes.InvalidArgument, "provider.type"},
		"type of 64 bytes":         {func(p *datamodelv1.Provider) { p.Type, p.Credentials = x("w", 64), nil }, codes.OK, ""},
		"type of 65 bytes":         {func(p *datamodelv1.Provider) { p.Type = x("w", 65) }, codes.InvalidArgument, "provider.type"},
		"type of another charset":  {func(p *datamodelv1.Provider) { p.Type = "a_b" }, codes.InvalidArgument, "provider.type"},
		"unknown type":             {func(p *datamodelv1.Provider) { p.Type = "none" }, codes.InvalidArgument, "provider.type"},
		"type of the workspace":    {func(p *datamodelv1.Provider) { p.Type, p.ProfileWorkspace = "own", "default" }, codes.OK, ""},
		"type not platform-wide":   {func(p *datamodelv1.Provider) { p.Type = "own" }, codes.InvalidArgument, "provider.type"},
		"type only platform-wide":  {func(p *datamodelv1.Provider) { p.ProfileWorkspace = "default" }, codes.InvalidArgument, "provider.type"},
		"type of another's":        {func(p *datamodelv1.Provider) { p.Type, p.ProfileWorkspace = "theirs", "team" }, codes.InvalidArgument, "provider.profile_workspace"},
		"undeclared credential":    {func(p *datamodelv1.Provider) { p.Credentials["OTHER"] = "s3cret" }, codes.InvalidArgument, "provider.credentials[OTHER]"},
		"empty credential":         {func(p *datamodelv1.Provider) { p.Credentials["webhook"] = "" }, codes.InvalidArgument, "provider.credentials[webhook]"},
		"required one missing":     {func(p *datamodelv1.Provider) { p.Credentials = map[string]string{"webhook": "s3cret"} }, codes.InvalidArgument, "provider.credentials"},
		"required one empty":       {func(p *datamodelv1.Provider) { p.Credentials = map[string]string{"GH_TOKEN": ""} }, codes.InvalidArgument, "provider.credentials"},
		"credential of 8192 bytes": {func(p *datamodelv1.Provider) { p.Credentials["webhook"] = x("s", 8192) }, codes.OK, ""},
		"credential of 8193 bytes": {func(p *datamodelv1.Provider) { p.Credentials["webhook"] = x("s", 8193) }, codes.InvalidArgument, "provider.credentials[webhook]"},
		"32 credentials":           {func(p *datamodelv1.Provider) { p.Type, p.Credentials = x("w", 64), numbered(32, "K") }, codes.OK, ""},
		"33 credentials":           {func(p *datamodelv1.Provider) { p.Type, p.Credentials = x("w", 64), numbered(33, "K") }, codes.InvalidArgument, "provider.credentials"},
		"key of 256 bytes":         {func(p *datamodelv1.Provider) { p.Type, p.Credentials = x("w", 64), map[string]string{x("k", 256): "s"} }, codes.OK, ""},
		"key of 257 bytes":         {func(p *datamodelv1.Provider) { p.Type, p.Credentials = x("w", 64), map[string]string{x("k", 257): "s"} }, codes.InvalidArgument, "provider.credentials"},
		"empty key":                {func(p *datamodelv1.Provider) { p.Credentials[""] = "s3cret" }, codes.InvalidArgument, "provider.credentials"},
		"64 of config":             {func(p *datamodelv1.Provider) { p.Config = numbered(64, "c") }, codes.OK, ""},
		"65 of config":             {func(p *datamodelv1.Provider) { p.Config = numbered(65, "c") }, codes.InvalidArgument, "provider.config"},
		"config key of 256 bytes":  {func(p *datamodelv1.Provider) { p.Config = map[string]string{x("c", 256): x("s", 8192)} }, codes.OK, ""},
		"config key of 257 bytes":  {func(p *datamodelv1.Provider) { p.Config = map[string]string{x("c", 257): ""} }, codes.InvalidArgument, "provider.config"},
		"config of 8193 bytes":     {func(p *datamodelv1.Provider) { p.Config = map[string]string{"c": x("s", 8193)} }, codes.InvalidArgument, "provider.config[c]"},
		"handles": {func(p *datamodelv1.Provider) {
			p.CredentialHandles = map[string]*datamodelv1.CredentialHandle{"GH_TOKEN": {}}
		}, codes.InvalidArgument, "provider.credential_handles"},
		"expiration of none": {func(p *datamodelv1.Provider) {
			p.CredentialExpirationTimes = map[string]*timestamppb.Timestamp{"OTHER": timestamppb.Now()}
		}, codes.InvalidArgument, "provider.credential_expiration_times[OTHER]"},
		"expiration at no time": {func(p *datamodelv1.Provider) {
			p.CredentialExpirationTimes = map[string]*timestamppb.Timestamp{"GH_TOKEN": {Nanos: -1}}
		}, codes.InvalidArgument, "provider.credential_expiration_times[GH_TOKEN]"},
		"label key":      {func(p *datamodelv1.Provider) { p.Metadata.Labels = map[string]string{"-": ""} }, codes.InvalidArgument, ""},
		"annotation key": {func(p *datamodelv1.Provider) { p.Metadata.Annotations = map[string]string{"-": ""} }, codes.InvalidArgument, "provider.metadata.annotations"},
	} {
		t.Run(name, func(t *testing.T) {
			provider := &datamodelv1.Provider{Metadata: &datamodelv1.ObjectMeta{}, Type: "github", Credentials: map[string]string{"GH_TOKEN": "s3cret"}}
			tc.edit(provider)
			if provider.GetType() == "files" || provider.GetType() == "own" {
				provider.Credentials = nil
			}
			_, err := g.OpenShell().CreateProvider(call(t), &openshellv1.CreateProviderRequest{Provider: provider, WorkspaceScope: gatewaytest.Default()})
			if tc.field != "" {
				wantField(t, err, tc.field)
			} else {
				wantPlain(t, err, tc.code, "")
			}
			if err != nil && strings.Contains(err.Error(), "s3cret") {
				t.Errorf("the error repeats a credential: %v", err)
			}
		})
	}
	create := func(req *openshellv1.CreateProviderRequest) error {
		_, err := g.OpenShell().CreateProvider(call(t), req)
		return err
	}
	any := &datamodelv1.Provider{Type: "any"}
	wantPlain(t, create(&openshellv1.CreateProviderRequest{WorkspaceScope: gatewaytest.Default()}), codes.InvalidArgument, "provider is required")
	wantField(t, create(&openshellv1.CreateProviderRequest{Provider: any}), "workspace_scope")
	wantField(t, create(&openshellv1.CreateProviderRequest{Provider: any, WorkspaceScope: allWorkspaces()}), "workspace_scope")
	wantPlain(t, create(&openshellv1.CreateProviderRequest{Provider: any, WorkspaceScope: workspace("nowhere")}), codes.NotFound, "workspace 'nowhere' not found")
	wantField(t, create(&openshellv1.CreateProviderRequest{Provider: any, WorkspaceScope: gatewaytest.Default(), RequestId: "one"}), "request_id")
}

func TestListProviders(t *testing.T) {
	g := gatewaytest.Start(t)
	mustCreateTeam(t, g)
	importProfiles(t, g, nil, tokenProfile("any"))
	label := func(p *datamodelv1.Provider) { p.Metadata.Labels = map[string]string{"x": "1"} }
	mustCreateProvider(t, g, gatewaytest.Default(), "c", "any", nil, label)
	mustCreateProvider(t, g, workspace("team"), "a", "any", nil, label)
	mustCreateProvider(t, g, gatewaytest.Default(), "a", "any", nil)
	mustCreateProvider(t, g, gatewaytest.Default(), "b", "any", nil, label)
	for _, tc := range []struct {
		scope    *datamodelv1.WorkspaceSelector
		selector string
		want     []string
	}{
		{gatewaytest.Default(), "", []string{"default/c", "default/a", "default/b"}},
		{gatewaytest.Default(), "x=1", []string{"default/c", "default/b"}},
		{workspace("team"), "", []string{"team/a"}},
		{allWorkspaces(), "", []string{"default/c", "team/a", "default/a", "default/b"}},
		{allWorkspaces(), "x=1", []string{"default/c", "team/a", "default/b"}},
	} {
		for _, size := range []int32{0, 1, 2} {
			var got []string
			req := &openshellv1.ListProvidersRequest{WorkspaceScope: tc.scope, LabelSelector: tc.selector, PageSize: size}
			for {
				page, err := g.OpenShell().ListProviders(call(t), req)
				if err != nil {
					t.Fatal(err)
				}
				for _, p := range page.GetProviders() {
					got = append(got, p.GetMetadata().GetWorkspace()+"/"+p.GetMetadata().GetName())
				}
				if req.PageToken = page.GetNextPageToken(); req.GetPageToken() == "" {
					break
				}
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("%v %q, pages of %d: %v", tc.scope, tc.selector, size, got)
			}
		}
	}
	first, err := g.OpenShell().ListProviders(call(t), &openshellv1.ListProvidersRequest{WorkspaceScope: gatewaytest.Default(), PageSize: 1})
	if err != nil {
		t.Fatal(err)
	}
	for name, req := range map[string]*openshellv1.ListProvidersRequest{
		"another workspace": {WorkspaceScope: workspace("team")}, "all": {WorkspaceScope: allWorkspaces()},
		"another selector": {WorkspaceScope: gatewaytest.Default(), LabelSelector: "x=1"},
	} {
		req.PageToken = first.GetNextPageToken()
		_, err := g.OpenShell().ListProviders(call(t), req)
		if err == nil {
			t.Errorf("the token is good for %s", name)
		}
		wantPlain(t, err, codes.InvalidArgument, "page_token")
	}
}

func TestGetAndDeleteProvider(t *testing.T) {
	g := gatewaytest.Start(t)
	importProfiles(t, g, nil, tokenProfile("any"))
	mustCreateProvider(t, g, gatewaytest.Default(), "p", "any", nil)
	get := func(name string, scope *datamodelv1.WorkspaceSelector) error {
		_, err := g.OpenShell().GetProvider(call(t), &openshellv1.GetProviderRequest{Name: name, WorkspaceScope: scope})
		return err
	}
	del := func(name string, scope *datamodelv1.WorkspaceSelector, allowMissing bool) (openshellv1.DeletionOutcome, error) {
		reply, err := g.OpenShell().DeleteProvider(call(t), &openshellv1.DeleteProviderRequest{Name: name, WorkspaceScope: scope, AllowMissing: allowMissing})
		return reply.GetOutcome(), err
	}
	wantPlain(t, get("", gatewaytest.Default()), codes.InvalidArgument, "name is required")
	wantPlain(t, get("P", gatewaytest.Default()), codes.NotFound, "provider 'P' not found in workspace 'default'")
	wantPlain(t, get("p", workspace("nowhere")), codes.NotFound, "workspace 'nowhere' not found")
	wantField(t, get("p", nil), "workspace_scope")

	_, err := del("", gatewaytest.Default(), true)
	wantPlain(t, err, codes.InvalidArgument, "name is required")
	_, err = del("q", gatewaytest.Default(), false)
	wantPlain(t, err, codes.NotFound, "provider 'q' not found")
	_, err = del("p", workspace("nowhere"), true)
	wantPlain(t, err, codes.NotFound, "workspace 'nowhere' not found")

	var names []string
	for i := range 12 {
		name := fmt.Sprintf("s%d", i)
		names = append(names, id(g.MustCreate(t, name, gatewaytest.NoWait(), gatewaytest.Request(func(r *openshellv1.CreateSandboxRequest) { r.Spec.Providers = []string{"p"} }))))
	}
	_, err = del("p", gatewaytest.Default(), true)
	wantPlain(t, err, codes.FailedPrecondition, "sandbox 's0', sandbox 's1'")
	wantPlain(t, err, codes.FailedPrecondition, "and 2 more")
	g.WaitPhase(t, names[0], ready)
	g.SetPhase(t, "s0", deleting) // still counts
	for i := 1; i < 12; i++ {
		g.MustDelete(t, fmt.Sprintf("s%d", i))
	}
	_, err = del("p", gatewaytest.Default(), false)
	wantPlain(t, err, codes.FailedPrecondition, "attached to sandbox 's0' and")
	g.SetPhase(t, "s0", ready)
	g.MustDelete(t, "s0")
	if outcome, err := del("p", gatewaytest.Default(), false); err != nil || outcome != finished {
		t.Errorf("%v, %v", outcome, err)
	}
	if outcome, err := del("p", gatewaytest.Default(), true); err != nil || outcome != alreadyAbsent {
		t.Errorf("%v, %v", outcome, err)
	}
}
