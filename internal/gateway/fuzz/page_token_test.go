package fuzz

import (
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// FuzzPageToken reads no token of another list, and its own as they were.
func FuzzPageToken(f *testing.F) {
	f.Add("", int64(0), "web", "default", "id")
	f.Add("e30", int64(1), "a\"b", "", "")
	f.Add("eyJiIjpudWxsfXt9", int64(-1), "\u2028", "w", "<&>")
	m := newMemory()
	g := newGateway(f, m)
	list := func(t *testing.T, token string) (*openshellv1.ListSandboxesResponse, *store.Cursor, error) {
		reply, err := g.call(t, openshellv1.OpenShell_ListSandboxes_FullMethodName, &openshellv1.ListSandboxesRequest{WorkspaceScope: home, PageSize: 1, PageToken: token})
		wantShown(t, err)
		page, ok := reply.(*openshellv1.ListSandboxesResponse)
		if !ok {
			return nil, nil, err
		}
		return page, m.list.After, err
	}
	elsewhere := map[string]func(token string) proto.Message{
		openshellv1.OpenShell_ListProviders_FullMethodName: func(token string) proto.Message {
			return &openshellv1.ListProvidersRequest{WorkspaceScope: home, PageToken: token}
		},
		openshellv1.OpenShell_ListSandboxes_FullMethodName: func(token string) proto.Message {
			return &openshellv1.ListSandboxesRequest{WorkspaceScope: home, PageToken: token, LabelSelector: "a=b"}
		},
	}
	f.Fuzz(func(t *testing.T, token string, created int64, name, workspace, id string) {
		for _, text := range []string{token, name, workspace, id} {
			if !utf8.ValidString(text) { // neither requests nor the store have any
				return
			}
		}
		last := store.Cursor{CreatedAt: time.UnixMicro(created), Name: name, Workspace: workspace, ID: id}
		m.sandboxes = map[string]store.Sandbox{
			"first": {ID: id, Name: name, Workspace: workspace, CreatedAt: last.CreatedAt}, "second": {CreatedAt: last.CreatedAt.Add(time.Microsecond)},
		}
		reply, _, err := list(t, "")
		if err != nil || reply.GetNextPageToken() == "" {
			t.Fatalf("%v, %v", reply, err)
		}
		if _, after, err := list(t, reply.GetNextPageToken()); err != nil || !cmp.Equal(&last, after) {
			t.Errorf("%v\n%s", err, cmp.Diff(&last, after))
		}
		// A token of anybody's making is either no token, or one that this list could have returned.
		if _, after, err := list(t, token); status.Code(err) == codes.InvalidArgument || token == "" {
			token = reply.GetNextPageToken()
		} else if err != nil || after == nil {
			t.Errorf("%q is of no list: %v", token, err)
		}
		for method, request := range elsewhere {
			if _, err := g.call(t, method, request(token)); status.Code(err) != codes.InvalidArgument {
				t.Errorf("%s takes the token of another list: %v", method, err)
			}
		}
	})
}
