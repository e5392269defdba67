package server_test

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"google.golang.org/grpc/codes"

	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

func TestGet(t *testing.T) {
	g := gatewaytest.Start(t)
	g.MustCreate(t, "web")
	get := func(name string, scope *datamodelv1.WorkspaceSelector) error {
		_, err := g.OpenShell().GetSandbox(call(t), &openshellv1.GetSandboxRequest{Name: name, WorkspaceScope: scope})
		return err
	}
	if err := get("web", gatewaytest.Default()); err != nil {
		t.Error(err)
	}
	wantPlain(t, get("other", gatewaytest.Default()), codes.NotFound, "sandbox not found")
	wantPlain(t, get("web", workspace("nowhere")), codes.NotFound, "sandbox not found") // not told apart
	wantPlain(t, get("WEB", gatewaytest.Default()), codes.NotFound, "sandbox not found")
	wantPlain(t, get("", gatewaytest.Default()), codes.InvalidArgument, "sandbox is required")
	wantField(t, get("", nil), "workspace_scope") // which comes first here
	wantField(t, get("web", allWorkspaces()), "workspace_scope")
	wantField(t, get("web", &datamodelv1.WorkspaceSelector{}), "workspace_scope")
}

func TestGetWorkspace(t *testing.T) {
	g := gatewaytest.Start(t)
	reply, err := g.OpenShell().GetWorkspace(call(t), &openshellv1.GetWorkspaceRequest{Name: "default"})
	meta := reply.GetWorkspace().GetMetadata()
	if err != nil || uuid.Validate(meta.GetId()) != nil || meta.GetName() != "default" || meta.GetWorkspace() != "" || meta.GetResourceVersion() != 1 ||
		meta.GetCreatedTime() == nil || reply.GetWorkspace().GetStatus().GetPhase() != datamodelv1.WorkspacePhase_WORKSPACE_PHASE_ACTIVE {
		t.Errorf("%v, %v", reply, err)
	}
	_, err = g.OpenShell().GetWorkspace(call(t), &openshellv1.GetWorkspaceRequest{})
	wantPlain(t, err, codes.InvalidArgument, "name is required")
	_, err = g.OpenShell().GetWorkspace(call(t), &openshellv1.GetWorkspaceRequest{Name: "nowhere"})
	wantPlain(t, err, codes.NotFound, "workspace 'nowhere' not found")

	other := gatewaytest.Start(t)
	theirs, err := other.OpenShell().GetWorkspace(call(t), &openshellv1.GetWorkspaceRequest{Name: "default"})
	if err != nil || theirs.GetWorkspace().GetMetadata().GetId() == meta.GetId() {
		t.Errorf("another gateway's workspace: %v, %v", theirs, err)
	}
	g.Restart(t)
	again, err := g.OpenShell().GetWorkspace(call(t), &openshellv1.GetWorkspaceRequest{Name: "default"})
	if err != nil || again.GetWorkspace().GetMetadata().GetId() != meta.GetId() {
		t.Errorf("after a restart: %v, %v", again, err)
	}
}

// listed walks a list page by page and returns the names; between, when given, runs after each page.
func listed(t *testing.T, g *gatewaytest.Gateway, req *openshellv1.ListSandboxesRequest, between func(page []*openshellv1.Sandbox)) []string {
	t.Helper()
	var names []string
	for {
		reply, err := g.OpenShell().ListSandboxes(call(t), req)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range reply.GetSandboxes() {
			names = append(names, s.GetMetadata().GetName())
		}
		if between != nil {
			between(reply.GetSandboxes())
		}
		if reply.GetNextPageToken() == "" {
			return names
		}
		if reply.GetNextPageToken() == req.GetPageToken() {
			t.Fatal("the page after this one is this one")
		}
		req.PageToken = reply.GetNextPageToken()
	}
}

func TestListPages(t *testing.T) {
	g := gatewaytest.Start(t)
	var want []string
	for i := range 101 {
		name := fmt.Sprintf("s%d", (i*37)%101) // not in the order of their names
		g.MustCreate(t, name, gatewaytest.NoWait(), gatewaytest.Simulated(map[string]any{"never_ready": true, "delete_after": "0s"}))
		want = append(want, name)
	}
	for _, size := range []int32{1, 7, 100, 101, 102, 1000, 1001} {
		for _, scope := range []*datamodelv1.WorkspaceSelector{gatewaytest.Default(), allWorkspaces()} {
			if got := listed(t, g, &openshellv1.ListSandboxesRequest{PageSize: size, WorkspaceScope: scope}, nil); !slices.Equal(got, want) {
				t.Errorf("pages of %d: %v", size, got)
			}
		}
	}
	reply, err := g.OpenShell().ListSandboxes(call(t), &openshellv1.ListSandboxesRequest{WorkspaceScope: gatewaytest.Default()})
	if err != nil || len(reply.GetSandboxes()) != 100 || reply.GetNextPageToken() == "" {
		t.Errorf("without a page size: %d sandboxes, token %q, %v", len(reply.GetSandboxes()), reply.GetNextPageToken(), err)
	}
	reply, err = g.OpenShell().ListSandboxes(call(t), &openshellv1.ListSandboxesRequest{PageSize: 101, WorkspaceScope: gatewaytest.Default()})
	if err != nil || reply.GetNextPageToken() != "" {
		t.Errorf("a last page that is full has the token %q, %v", reply.GetNextPageToken(), err)
	}

	// What goes while somebody reads does not make the reader miss what stays.
	gone := map[string]bool{}
	got := listed(t, g, &openshellv1.ListSandboxesRequest{PageSize: 10, WorkspaceScope: gatewaytest.Default()}, func(page []*openshellv1.Sandbox) {
		for _, i := range []int{0, len(page) - 1} {
			if name := page[i].GetMetadata().GetName(); !gone[name] {
				g.MustDelete(t, name)
				gone[name] = true
			}
		}
	})
	if !slices.Equal(got, want) {
		t.Errorf("with deletes between the pages: %v", got)
	}
}

// A page of large sandboxes ends early, so that it fits into the 4 MiB that a gRPC client takes of its own accord.
func TestListPagesFitTheirClients(t *testing.T) {
	g := gatewaytest.Start(t)
	large := map[string]string{} // 0.9 MiB
	for i := range 128 {
		large[fmt.Sprintf("a%d", i)] = strings.Repeat("x", 7200)
	}
	var want []string
	for i := range 6 {
		name := fmt.Sprintf("s%d", i)
		g.MustCreate(t, name, gatewaytest.NoWait(), gatewaytest.Request(func(r *openshellv1.CreateSandboxRequest) { r.Annotations = large }))
		want = append(want, name)
	}
	if got := listed(t, g, &openshellv1.ListSandboxesRequest{WorkspaceScope: gatewaytest.Default()}, nil); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

func TestListByLabel(t *testing.T) {
	g := gatewaytest.Start(t)
	for name, labels := range map[string]map[string]string{"none": nil, "a": {"app": "web", "tier": "x"}, "b": {"app": "web", "tier": ""}} {
		g.MustCreate(t, name, gatewaytest.NoWait(), gatewaytest.Request(func(r *openshellv1.CreateSandboxRequest) { r.Labels = labels }))
	}
	for selector, want := range map[string][]string{
		"app=web": {"a", "b"}, "app=web,tier=x": {"a"}, " app = web , ,tier= ": {"b"}, "app=other": nil, "": {"a", "b", "none"}, ",": {"a", "b", "none"},
	} {
		got := listed(t, g, &openshellv1.ListSandboxesRequest{LabelSelector: selector, WorkspaceScope: gatewaytest.Default(), PageSize: 1}, nil)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("selector %q: %v, want %v", selector, got, want)
		}
	}
	pairs := func(n int) string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf("k%d=v", i)
		}
		return strings.Join(all, ",")
	}
	for selector, good := range map[string]bool{pairs(64): true, pairs(65): false, "app": false, "app!=web": false, "app in (web)": false, "=web": false, "a=b=c": false} {
		_, err := g.OpenShell().ListSandboxes(call(t), &openshellv1.ListSandboxesRequest{LabelSelector: selector, WorkspaceScope: gatewaytest.Default()})
		switch {
		case good && err != nil:
			t.Errorf("selector %q: %v", selector, err)
		case !good:
			wantPlain(t, err, codes.InvalidArgument, "label_selector")
		}
	}
}

func TestListRefusals(t *testing.T) {
	g := gatewaytest.Start(t)
	for i := range 3 {
		g.MustCreate(t, fmt.Sprint("s", i), gatewaytest.NoWait())
	}
	list := func(req *openshellv1.ListSandboxesRequest) (*openshellv1.ListSandboxesResponse, error) {
		return g.OpenShell().ListSandboxes(call(t), req)
	}
	_, err := list(&openshellv1.ListSandboxesRequest{PageSize: -1, WorkspaceScope: gatewaytest.Default()})
	wantPlain(t, err, codes.InvalidArgument, "page_size")
	_, err = list(&openshellv1.ListSandboxesRequest{})
	wantField(t, err, "workspace_scope")
	_, err = list(&openshellv1.ListSandboxesRequest{WorkspaceScope: workspace("nowhere")})
	wantPlain(t, err, codes.NotFound, "workspace 'nowhere' not found")

	first, err := list(&openshellv1.ListSandboxesRequest{PageSize: 1, WorkspaceScope: gatewaytest.Default()})
	if err != nil {
		t.Fatal(err)
	}
	token := first.GetNextPageToken()
	if _, err := base64.RawURLEncoding.DecodeString(token); err != nil {
		t.Errorf("the token is no base64url: %v", err)
	}
	if _, err := list(&openshellv1.ListSandboxesRequest{PageSize: 2, PageToken: token, WorkspaceScope: gatewaytest.Default()}); err != nil {
		t.Errorf("another page size: %v", err)
	}
	raw, _ := base64.RawURLEncoding.DecodeString(token)
	for name, req := range map[string]*openshellv1.ListSandboxesRequest{
		"another scope":    {PageToken: token, WorkspaceScope: allWorkspaces()},
		"another selector": {PageToken: token, WorkspaceScope: gatewaytest.Default(), LabelSelector: "a=b"},
		"no token":         {PageToken: "hello", WorkspaceScope: gatewaytest.Default()},
		"no base64":        {PageToken: "%%%", WorkspaceScope: gatewaytest.Default()},
		"cut":              {PageToken: token[:len(token)/2], WorkspaceScope: gatewaytest.Default()},
		"padded":           {PageToken: token + "=", WorkspaceScope: gatewaytest.Default()},
		"followed by more": {PageToken: base64.RawURLEncoding.EncodeToString(append(raw, "{}"...)), WorkspaceScope: gatewaytest.Default()},
	} {
		_, err := list(req)
		t.Log(name)
		wantPlain(t, err, codes.InvalidArgument, "page_token")
	}
}
