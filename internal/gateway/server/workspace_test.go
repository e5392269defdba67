package server_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"google.golang.org/grpc/codes"

	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

func createWorkspace(ctx context.Context, g *gatewaytest.Gateway, name string) error {
	_, err := g.OpenShell().CreateWorkspace(ctx, &openshellv1.CreateWorkspaceRequest{Name: name})
	return err
}

func mustCreateTeam(t *testing.T, g *gatewaytest.Gateway) {
	t.Helper()
	if err := createWorkspace(call(t), g, "team"); err != nil {
		t.Fatal(err)
	}
}

func deleteWorkspace(t *testing.T, g *gatewaytest.Gateway, name string, allowMissing bool) (openshellv1.DeletionOutcome, error) {
	t.Helper()
	reply, err := g.OpenShell().DeleteWorkspace(call(t), &openshellv1.DeleteWorkspaceRequest{Name: name, AllowMissing: allowMissing})
	return reply.GetOutcome(), err
}

func getWorkspace(t *testing.T, g *gatewaytest.Gateway, name string) *datamodelv1.Workspace {
	t.Helper()
	reply, err := g.OpenShell().GetWorkspace(call(t), &openshellv1.GetWorkspaceRequest{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return reply.GetWorkspace()
}

func TestCreateWorkspace(t *testing.T) {
	g := gatewaytest.Start(t)
	longest := strings.Repeat("x", 19)
	create := func(req *openshellv1.CreateWorkspaceRequest) error {
		_, err := g.OpenShell().CreateWorkspace(call(t), req)
		return err
	}
	reply, err := g.OpenShell().CreateWorkspace(call(t), &openshellv1.CreateWorkspaceRequest{Name: longest, Labels: map[string]string{"a": "b"}})
	meta := reply.GetWorkspace().GetMetadata()
	if err != nil || uuid.Validate(meta.GetId()) != nil || meta.GetName() != longest || meta.GetResourceVersion() != 1 || meta.GetCreatedTime() == nil ||
		meta.GetLabels()["a"] != "b" || meta.GetWorkspace() != "" || meta.GetDeletionTime() != nil ||
		reply.GetWorkspace().GetStatus().GetPhase() != datamodelv1.WorkspacePhase_WORKSPACE_PHASE_ACTIVE {
		t.Errorf("%v, %v", reply, err)
	}
	wantPlain(t, create(&openshellv1.CreateWorkspaceRequest{Name: longest}), codes.AlreadyExists, "already exists")
	wantPlain(t, create(&openshellv1.CreateWorkspaceRequest{Name: "default"}), codes.AlreadyExists, "already exists")
	wantPlain(t, create(&openshellv1.CreateWorkspaceRequest{}), codes.InvalidArgument, "must not be empty")
	wantPlain(t, create(&openshellv1.CreateWorkspaceRequest{Name: longest + "x"}), codes.InvalidArgument, "19")
	for _, name := range []string{"A", "a_b", "-a", "a-", "a--b", "a b", "ä"} {
		wantField(t, create(&openshellv1.CreateWorkspaceRequest{Name: name}), "name")
	}
	wantPlain(t, create(&openshellv1.CreateWorkspaceRequest{Name: "l", Labels: map[string]string{"-": ""}}), codes.InvalidArgument, "label")
	wantField(t, create(&openshellv1.CreateWorkspaceRequest{Name: "r", RequestId: "one"}), "request_id")
}

func TestListWorkspaces(t *testing.T) {
	g, callers := startWithOIDC(t)
	for _, req := range []*openshellv1.CreateWorkspaceRequest{
		{Name: "c", Labels: map[string]string{"x": "1"}}, {Name: "a"}, {Name: "b", Labels: map[string]string{"x": "1"}},
	} {
		if _, err := g.OpenShell().CreateWorkspace(callers.as("root"), req); err != nil {
			t.Fatal(err)
		}
	}
	for where, subject := range map[string]string{"c": "ann", "b": "ann", "a": "bob"} {
		if err := addMember(callers.as("root"), g, where, subject, roleUser); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		subject, selector string
		want              []string
	}{
		{"root", "", []string{"default", "c", "a", "b"}},
		{"root", "x=1", []string{"c", "b"}},
		{"ann", "", []string{"c", "b"}},
		{"bob", "", []string{"a"}},
		{"bob", "x=1", nil},
		{"nobody", "", nil},
	} {
		for _, size := range []int32{0, 1, 2} {
			var got []string
			req := &openshellv1.ListWorkspacesRequest{PageSize: size, LabelSelector: tc.selector}
			for {
				reply, err := g.OpenShell().ListWorkspaces(callers.as(tc.subject), req)
				if err != nil {
					t.Fatal(err)
				}
				for _, w := range reply.GetWorkspaces() {
					got = append(got, w.GetMetadata().GetName())
				}
				if req.PageToken = reply.GetNextPageToken(); req.GetPageToken() == "" {
					break
				}
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("%+v, pages of %d: %v", tc, size, got)
			}
		}
	}
	page := func(subject string, req *openshellv1.ListWorkspacesRequest) (string, error) {
		reply, err := g.OpenShell().ListWorkspaces(callers.as(subject), req)
		return reply.GetNextPageToken(), err
	}
	token, err := page("ann", &openshellv1.ListWorkspacesRequest{PageSize: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		subject string
		req     *openshellv1.ListWorkspacesRequest
	}{
		{"bob", &openshellv1.ListWorkspacesRequest{PageToken: token}},
		{"root", &openshellv1.ListWorkspacesRequest{PageToken: token}},
		{"ann", &openshellv1.ListWorkspacesRequest{PageToken: token, LabelSelector: "x=1"}},
		{"ann", &openshellv1.ListWorkspacesRequest{PageToken: "x"}},
	} {
		_, err := page(tc.subject, tc.req)
		wantPlain(t, err, codes.InvalidArgument, "page_token")
	}
	_, err = page("ann", &openshellv1.ListWorkspacesRequest{PageSize: -1})
	wantPlain(t, err, codes.InvalidArgument, "page_size")
	_, err = page("ann", &openshellv1.ListWorkspacesRequest{LabelSelector: "x"})
	wantPlain(t, err, codes.InvalidArgument, "label_selector")
}

func TestDeleteWorkspace(t *testing.T) {
	g := gatewaytest.Start(t)
	_, err := deleteWorkspace(t, g, "", true)
	wantPlain(t, err, codes.InvalidArgument, "name is required")
	_, err = deleteWorkspace(t, g, "default", false)
	wantPlain(t, err, codes.FailedPrecondition, "cannot be deleted")
	_, err = deleteWorkspace(t, g, "team", false)
	wantPlain(t, err, codes.NotFound, "workspace 'team' not found")
	if outcome, err := deleteWorkspace(t, g, "team", true); err != nil || outcome != alreadyAbsent {
		t.Errorf("%v, %v", outcome, err)
	}

	mustCreateTeam(t, g)
	before := getWorkspace(t, g, "team")
	if err := addMember(call(t), g, "team", "ann", roleUser); err != nil {
		t.Fatal(err)
	}
	if outcome, err := deleteWorkspace(t, g, "team", false); err != nil || outcome != finished {
		t.Errorf("%v, %v", outcome, err)
	}
	mustCreateTeam(t, g)
	if after := getWorkspace(t, g, "team"); after.GetMetadata().GetId() == before.GetMetadata().GetId() {
		t.Error("the id was used again")
	}
	members, err := g.OpenShell().ListWorkspaceMembers(call(t), &openshellv1.ListWorkspaceMembersRequest{WorkspaceScope: workspace("team")})
	if err != nil || len(members.GetMembers()) != 0 {
		t.Errorf("members of the one before: %v, %v", members, err)
	}
}

// A workload template keeps its workspace from being deleted, and can be deleted meanwhile.
func TestWorkspaceThatHoldsATemplate(t *testing.T) {
	g := gatewaytest.Start(t)
	mustCreateTeam(t, g)
	req := templateRequest("small", nil)
	req.WorkspaceScope = workspace("team")
	if _, err := g.OpenShell().CreateSandboxTemplate(call(t), req); err != nil {
		t.Fatal(err)
	}
	_, err := deleteWorkspace(t, g, "team", false)
	wantPlain(t, err, codes.FailedPrecondition, "It still holds: sandbox template.")
	if _, err := g.OpenShell().DeleteSandboxTemplate(call(t), &openshellv1.DeleteSandboxTemplateRequest{Name: "small", WorkspaceScope: workspace("team")}); err != nil {
		t.Fatal(err)
	}
	if outcome, err := deleteWorkspace(t, g, "team", false); err != nil || outcome != finished {
		t.Errorf("%v, %v", outcome, err)
	}
}

// A workspace that holds something is marked, for good, and takes nothing new: neither creates nor attaches.
func TestTerminatingWorkspace(t *testing.T) {
	g := gatewaytest.Start(t)
	mustCreateTeam(t, g)
	scope := workspace("team")
	importProfiles(t, g, scope, tokenProfile("own"))
	mustCreateProvider(t, g, scope, "p", "own", map[string]string{"TOKEN": "x"}, func(p *datamodelv1.Provider) { p.ProfileWorkspace = "team" })
	mustCreateProvider(t, g, scope, "q", "own", map[string]string{"TOKEN": "x"}, func(p *datamodelv1.Provider) { p.ProfileWorkspace = "team" })
	web := g.MustCreate(t, "web", gatewaytest.Request(func(r *openshellv1.CreateSandboxRequest) {
		r.WorkspaceScope, r.Spec.Providers = scope, []string{"p"}
	}))

	for range 2 {
		_, err := deleteWorkspace(t, g, "team", false)
		wantPlain(t, err, codes.FailedPrecondition, "provider, provider profile, sandbox")
		w := getWorkspace(t, g, "team")
		if w.GetStatus().GetPhase() != datamodelv1.WorkspacePhase_WORKSPACE_PHASE_TERMINATING || w.GetMetadata().GetDeletionTime() == nil {
			t.Errorf("workspace %v", w)
		}
	}
	for name, do := range map[string]func() error{
		"CreateSandbox": func() error {
			_, err := g.OpenShell().CreateSandbox(call(t), &openshellv1.CreateSandboxRequest{Name: "new", WorkspaceScope: scope, Spec: &openshellv1.SandboxSpec{}})
			return err
		},
		"CreateProvider": func() error {
			_, err := g.OpenShell().CreateProvider(call(t), &openshellv1.CreateProviderRequest{
				WorkspaceScope: scope, Provider: &datamodelv1.Provider{Type: "own", ProfileWorkspace: "team", Credentials: map[string]string{"TOKEN": "x"}},
			})
			return err
		},
		"ImportProviderProfiles": func() error {
			_, err := g.OpenShell().ImportProviderProfiles(call(t), importRequest(scope, tokenProfile("new")))
			return err
		},
		"ExposeService": func() error {
			req := exposeRequest("web", "api", 80)
			req.WorkspaceScope = scope
			_, err := g.OpenShell().ExposeService(call(t), req)
			return err
		},
		"CreateSandboxTemplate": func() error {
			req := templateRequest("new", nil)
			req.WorkspaceScope = scope
			_, err := g.OpenShell().CreateSandboxTemplate(call(t), req)
			return err
		},
		"AddWorkspaceMember":    func() error { return addMember(call(t), g, "team", "ann", roleUser) },
		"AttachSandboxProvider": func() error { _, err := attachIn(t, g, scope, "web", "q", 0); return err },
		"AttachSandboxProvider of one that is": func() error {
			_, err := attachIn(t, g, scope, "web", "p", 0)
			return err
		},
		"conditional AttachSandboxProvider": func() error {
			req := conditionalAttach("web", "q", expect(id(web)))
			req.Request.WorkspaceScope = scope
			_, err := g.Conditional().AttachSandboxProvider(call(t), req)
			return err
		},
		"conditional AttachSandboxProvider to none": func() error { // the workspace comes first
			req := conditionalAttach("none", "q", expect(anID))
			req.Request.WorkspaceScope = scope
			_, err := g.Conditional().AttachSandboxProvider(call(t), req)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) { wantPlain(t, do(), codes.FailedPrecondition, "workspace 'team' is being deleted") })
	}

	// What is there can be read, changed and taken away.
	if _, err := g.OpenShell().UpdateProvider(call(t), &openshellv1.UpdateProviderRequest{
		WorkspaceScope: scope, Provider: &datamodelv1.Provider{Metadata: &datamodelv1.ObjectMeta{Name: "p"}, Config: map[string]string{"a": "b"}},
	}); err != nil {
		t.Error(err)
	}
	req := conditionalDetach("web", "p", expect(id(web)))
	req.Request.WorkspaceScope = scope
	if _, err := g.Conditional().DetachSandboxProvider(call(t), req); err != nil {
		t.Error(err)
	}
	if _, err := g.OpenShell().DeleteSandbox(call(t), &openshellv1.DeleteSandboxRequest{Name: "web", WorkspaceScope: scope}); err != nil {
		t.Error(err)
	}
	g.WaitGone(t, id(web))
	for _, name := range []string{"p", "q"} {
		if _, err := g.OpenShell().DeleteProvider(call(t), &openshellv1.DeleteProviderRequest{Name: name, WorkspaceScope: scope}); err != nil {
			t.Error(err)
		}
	}
	_, err := deleteWorkspace(t, g, "team", false)
	wantPlain(t, err, codes.FailedPrecondition, "provider profile")
	if _, err := g.OpenShell().DeleteProviderProfile(call(t), &openshellv1.DeleteProviderProfileRequest{Id: "own", WorkspaceScope: scope}); err != nil {
		t.Error(err)
	}
	if outcome, err := deleteWorkspace(t, g, "team", false); err != nil || outcome != finished {
		t.Errorf("the last delete: %v, %v", outcome, err)
	}
}
