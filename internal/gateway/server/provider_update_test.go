package server_test

import (
	"maps"
	"slices"
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

func TestUpdateProviderMerges(t *testing.T) {
	g := gatewaytest.Start(t)
	importProfiles(t, g, nil, githubProfile())
	at := func(hour int) *timestamppb.Timestamp {
		return timestamppb.New(time.Date(2030, 1, 1, hour, 0, 0, 0, time.UTC))
	}
	created := mustCreateProvider(t, g, gatewaytest.Default(), "p", "github", map[string]string{"GH_TOKEN": "a", "webhook": "b"}, func(p *datamodelv1.Provider) {
		p.Metadata.Labels, p.Metadata.Annotations = map[string]string{"a": "b"}, map[string]string{"note": "x"}
		p.Config = map[string]string{"one": "1", "two": "2"}
		p.CredentialExpirationTimes = map[string]*timestamppb.Timestamp{"webhook": at(1)}
	})
	type contents struct {
		credentials, config []string
		expirations         map[string]*timestamppb.Timestamp
	}
	for i, tc := range []struct {
		name string
		req  *openshellv1.UpdateProviderRequest
		want contents
	}{
		{"nothing", &openshellv1.UpdateProviderRequest{Provider: &datamodelv1.Provider{}},
			contents{[]string{"GH_TOKEN", "webhook"}, []string{"one=1", "two=2"}, map[string]*timestamppb.Timestamp{"webhook": at(1)}}},
		{"what never changes, as it is, and what is ignored", &openshellv1.UpdateProviderRequest{Provider: &datamodelv1.Provider{
			Metadata: &datamodelv1.ObjectMeta{ResourceVersion: 2, Labels: map[string]string{"x": "y"}, Annotations: map[string]string{"x": "y"}}, Type: "GITHUB",
		}}, contents{[]string{"GH_TOKEN", "webhook"}, []string{"one=1", "two=2"}, map[string]*timestamppb.Timestamp{"webhook": at(1)}}},
		{"set, add and remove", &openshellv1.UpdateProviderRequest{Provider: &datamodelv1.Provider{
			Credentials: map[string]string{"GITHUB_TOKEN": "c", "GH_TOKEN": ""}, Config: map[string]string{"one": "11", "two": "", "three": "3", "four": ""},
		}}, contents{[]string{"GITHUB_TOKEN", "webhook"}, []string{"one=11", "three=3"}, map[string]*timestamppb.Timestamp{"webhook": at(1)}}},
		{"expirations in both places", &openshellv1.UpdateProviderRequest{
			Provider:                  &datamodelv1.Provider{CredentialExpirationTimes: map[string]*timestamppb.Timestamp{"GITHUB_TOKEN": at(2)}},
			CredentialExpirationTimes: map[string]*timestamppb.Timestamp{"webhook": at(3)},
		}, contents{[]string{"GITHUB_TOKEN", "webhook"}, []string{"one=11", "three=3"}, map[string]*timestamppb.Timestamp{"GITHUB_TOKEN": at(2), "webhook": at(3)}}},
		{"an expiration cleared", &openshellv1.UpdateProviderRequest{
			Provider: &datamodelv1.Provider{}, ClearCredentialExpirationKeys: []string{"GITHUB_TOKEN", "none"},
		}, contents{[]string{"GITHUB_TOKEN", "webhook"}, []string{"one=11", "three=3"}, map[string]*timestamppb.Timestamp{"webhook": at(3)}}},
		{"a credential takes its expiration along", &openshellv1.UpdateProviderRequest{
			Provider: &datamodelv1.Provider{Credentials: map[string]string{"webhook": ""}},
		}, contents{[]string{"GITHUB_TOKEN"}, []string{"one=11", "three=3"}, nil}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.req.GetProvider().GetMetadata() == nil {
				tc.req.Provider.Metadata = &datamodelv1.ObjectMeta{}
			}
			tc.req.Provider.Metadata.Name, tc.req.WorkspaceScope = "p", gatewaytest.Default()
			reply, err := g.OpenShell().UpdateProvider(call(t), tc.req)
			if err != nil {
				t.Fatal(err)
			}
			for name, got := range map[string]*datamodelv1.Provider{"update": reply.GetProvider(), "get": getProvider(t, g, "p")} {
				meta := got.GetMetadata()
				if meta.GetResourceVersion() != uint64(i)+2 || meta.GetId() != created.GetMetadata().GetId() || got.GetType() != "github" ||
					!maps.Equal(meta.GetLabels(), map[string]string{"a": "b"}) || !maps.Equal(meta.GetAnnotations(), map[string]string{"note": "x"}) {
					t.Errorf("%s: %v", name, got)
				}
				now := contents{expirations: got.GetCredentialExpirationTimes()}
				for _, key := range slices.Sorted(maps.Keys(got.GetCredentials())) {
					if got.GetCredentials()[key] != "REDACTED" {
						t.Errorf("%s: credential %s is %q", name, key, got.GetCredentials()[key])
					}
					now.credentials = append(now.credentials, key)
				}
				for _, key := range slices.Sorted(maps.Keys(got.GetConfig())) {
					now.config = append(now.config, key+"="+got.GetConfig()[key])
				}
				if diff := cmp.Diff(tc.want, now, cmp.AllowUnexported(contents{}), protocmp.Transform()); diff != "" {
					t.Errorf("%s (-want +got)\n%s", name, diff)
				}
			}
			if uuid.Validate(reply.GetMutationId()) != nil || len(reply.GetTargetReceipts()) != 0 {
				t.Errorf("mutation %q, receipts %v", reply.GetMutationId(), reply.GetTargetReceipts())
			}
		})
	}
}

func TestUpdateProviderRefusals(t *testing.T) {
	g := gatewaytest.Start(t)
	importProfiles(t, g, nil, githubProfile())
	mustCreateProvider(t, g, gatewaytest.Default(), "p", "github", map[string]string{"GH_TOKEN": "a", "webhook": "b"}, func(p *datamodelv1.Provider) { p.Config = numbered(64, "c") })
	before := getProvider(t, g, "p")
	for name, tc := range map[string]struct {
		edit  func(*openshellv1.UpdateProviderRequest)
		code  codes.Code
		field string
	}{
		"unknown name":          {func(r *openshellv1.UpdateProviderRequest) { r.Provider.Metadata.Name = "q" }, codes.NotFound, ""},
		"another version":       {func(r *openshellv1.UpdateProviderRequest) { r.Provider.Metadata.ResourceVersion = 2 }, codes.Aborted, ""},
		"another type":          {func(r *openshellv1.UpdateProviderRequest) { r.Provider.Type = "gitlab" }, codes.InvalidArgument, "provider.type"},
		"another profile scope": {func(r *openshellv1.UpdateProviderRequest) { r.Provider.ProfileWorkspace = "default" }, codes.InvalidArgument, "provider.profile_workspace"},
		"handles": {func(r *openshellv1.UpdateProviderRequest) {
			r.Provider.CredentialHandles = map[string]*datamodelv1.CredentialHandle{"GH_TOKEN": {}}
		}, codes.InvalidArgument, "provider.credential_handles"},
		"undeclared credential": {func(r *openshellv1.UpdateProviderRequest) {
			r.Provider.Credentials = map[string]string{"OTHER": "s3cret"}
		}, codes.InvalidArgument, "provider.credentials[OTHER]"},
		"required one removed": {func(r *openshellv1.UpdateProviderRequest) { r.Provider.Credentials = map[string]string{"GH_TOKEN": ""} }, codes.InvalidArgument, "provider.credentials"},
		"65 of config":         {func(r *openshellv1.UpdateProviderRequest) { r.Provider.Config = map[string]string{"one": "more"} }, codes.InvalidArgument, "provider.config"},
		"expiration of none": {func(r *openshellv1.UpdateProviderRequest) {
			r.CredentialExpirationTimes = map[string]*timestamppb.Timestamp{"OTHER": timestamppb.Now()}
		}, codes.InvalidArgument, "credential_expiration_times[OTHER]"},
		"set and cleared": {func(r *openshellv1.UpdateProviderRequest) {
			r.CredentialExpirationTimes = map[string]*timestamppb.Timestamp{"webhook": timestamppb.Now()}
			r.ClearCredentialExpirationKeys = []string{"GH_TOKEN", "webhook"}
		}, codes.InvalidArgument, "clear_credential_expiration_keys"},
		"no scope":        {func(r *openshellv1.UpdateProviderRequest) { r.WorkspaceScope = nil }, codes.InvalidArgument, "workspace_scope"},
		"no name":         {func(r *openshellv1.UpdateProviderRequest) { r.Provider.Metadata = nil }, codes.InvalidArgument, ""},
		"no provider":     {func(r *openshellv1.UpdateProviderRequest) { r.Provider = nil }, codes.InvalidArgument, ""},
		"other workspace": {func(r *openshellv1.UpdateProviderRequest) { r.WorkspaceScope = workspace("nowhere") }, codes.NotFound, ""},
	} {
		t.Run(name, func(t *testing.T) {
			req := &openshellv1.UpdateProviderRequest{
				Provider: &datamodelv1.Provider{Metadata: &datamodelv1.ObjectMeta{Name: "p"}}, WorkspaceScope: gatewaytest.Default(),
			}
			tc.edit(req)
			_, err := g.OpenShell().UpdateProvider(call(t), req)
			if tc.field != "" {
				wantField(t, err, tc.field)
			} else {
				wantPlain(t, err, tc.code, "") // a version conflict of a provider has no details either
			}
			if diff := cmp.Diff(before, getProvider(t, g, "p"), protocmp.Transform()); diff != "" {
				t.Errorf("after the refusal (-before +after)\n%s", diff)
			}
		})
	}
}
