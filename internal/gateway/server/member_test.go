package server_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"google.golang.org/grpc/codes"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

func TestMembers(t *testing.T) {
	g := gatewaytest.Start(t)
	add := func(subject string, role openshellv1.WorkspaceRole) error {
		return addMember(call(t), g, "default", subject, role)
	}
	longest := strings.Repeat("x", 255)
	reply, err := g.OpenShell().AddWorkspaceMember(call(t), &openshellv1.AddWorkspaceMemberRequest{
		WorkspaceScope: gatewaytest.Default(), PrincipalSubject: "auth0|Ann Ä", Role: roleAdmin,
	})
	meta := reply.GetMember().GetMetadata()
	if err != nil || uuid.Validate(meta.GetId()) != nil || meta.GetName() != "auth0|Ann Ä" || meta.GetWorkspace() != "default" || meta.GetResourceVersion() != 1 ||
		meta.GetCreatedTime() == nil || reply.GetMember().GetPrincipalSubject() != "auth0|Ann Ä" || reply.GetMember().GetRole() != roleAdmin {
		t.Errorf("%v, %v", reply, err)
	}
	if err := add(longest, roleUser); err != nil {
		t.Error(err)
	}
	wantPlain(t, add("auth0|Ann Ä", roleUser), codes.AlreadyExists, "already is a member") // whatever the role
	wantField(t, add("", roleUser), "principal_subject")
	wantField(t, add(longest+"x", roleUser), "principal_subject")
	wantField(t, add("a\x00", roleUser), "principal_subject")
	wantField(t, add("bob", 0), "role")
	wantField(t, add("bob", 3), "role")
	wantPlain(t, addMember(call(t), g, "nowhere", "bob", roleUser), codes.NotFound, "workspace 'nowhere' not found")
	wantPlain(t, addMember(call(t), g, "", "bob", roleUser), codes.InvalidArgument, "workspace name")
	_, err = g.OpenShell().AddWorkspaceMember(call(t), &openshellv1.AddWorkspaceMemberRequest{PrincipalSubject: "bob", Role: roleUser})
	wantField(t, err, "workspace_scope")
	_, err = g.OpenShell().AddWorkspaceMember(call(t), &openshellv1.AddWorkspaceMemberRequest{PrincipalSubject: "bob", Role: roleUser, WorkspaceScope: allWorkspaces()})
	wantField(t, err, "workspace_scope")

	remove := func(subject string, allowMissing bool) (openshellv1.DeletionOutcome, error) {
		reply, err := g.OpenShell().RemoveWorkspaceMember(call(t), &openshellv1.RemoveWorkspaceMemberRequest{
			WorkspaceScope: gatewaytest.Default(), PrincipalSubject: subject, AllowMissing: allowMissing,
		})
		return reply.GetOutcome(), err
	}
	_, err = remove("bob", false)
	wantPlain(t, err, codes.NotFound, "no member")
	_, err = remove("", true)
	wantField(t, err, "principal_subject")
	for _, tc := range []struct {
		subject string
		want    openshellv1.DeletionOutcome
	}{{"bob", alreadyAbsent}, {longest, finished}, {longest, alreadyAbsent}} {
		if outcome, err := remove(tc.subject, true); err != nil || outcome != tc.want {
			t.Errorf("%s: %v, %v", tc.subject, outcome, err)
		}
	}
	list, err := g.OpenShell().ListWorkspaceMembers(call(t), &openshellv1.ListWorkspaceMembersRequest{WorkspaceScope: gatewaytest.Default()})
	if err != nil || len(list.GetMembers()) != 1 || list.GetMembers()[0].GetRole() != roleAdmin || list.GetMembers()[0].GetPrincipalSubject() != "auth0|Ann Ä" {
		t.Errorf("%v, %v", list, err)
	}
	_, err = g.OpenShell().ListWorkspaceMembers(call(t), &openshellv1.ListWorkspaceMembersRequest{WorkspaceScope: workspace("nowhere")})
	wantPlain(t, err, codes.NotFound, "workspace 'nowhere' not found")
}

// The limit is held however the members come, and one more fits when one has gone.
func TestMemberLimit(t *testing.T) {
	const limit = 1000
	g := gatewaytest.Start(t)
	subjects := make(chan string, limit)
	for i := range limit {
		subjects <- fmt.Sprintf("subject-%d", i)
	}
	close(subjects)
	var adding sync.WaitGroup
	for range 16 {
		adding.Go(func() {
			for subject := range subjects {
				if err := addMember(call(t), g, "default", subject, roleUser); err != nil {
					t.Error(err)
				}
			}
		})
	}
	adding.Wait()
	wantPlain(t, addMember(call(t), g, "default", "one-more", roleUser), codes.ResourceExhausted, "limit")
	wantPlain(t, addMember(call(t), g, "default", "subject-1", roleUser), codes.AlreadyExists, "")
	reply, err := g.OpenShell().ListWorkspaceMembers(call(t), &openshellv1.ListWorkspaceMembersRequest{WorkspaceScope: gatewaytest.Default(), PageSize: 5000})
	if err != nil || len(reply.GetMembers()) != limit || reply.GetNextPageToken() != "" {
		t.Errorf("%d members, %v", len(reply.GetMembers()), err)
	}
	if _, err := g.OpenShell().RemoveWorkspaceMember(call(t), &openshellv1.RemoveWorkspaceMemberRequest{WorkspaceScope: gatewaytest.Default(), PrincipalSubject: "subject-1"}); err != nil {
		t.Fatal(err)
	}
	if err := addMember(call(t), g, "default", "one-more", roleUser); err != nil {
		t.Error(err)
	}
}
