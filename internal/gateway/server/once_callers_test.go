package server_test

import (
	"sync"
	"testing"

	"github.com/google/uuid"
	"google.golang.org/grpc/codes"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// A request_id is its caller's own: another's use of it is neither a replay nor in the way.
func TestRequestIDsOfTwoCallers(t *testing.T) {
	g, callers := startWithOIDC(t)
	for _, subject := range []string{"ann", "eve"} {
		if err := addMember(callers.as("root"), g, "default", subject, roleUser); err != nil {
			t.Fatal(err)
		}
	}
	requestID := uuid.NewString()
	reply, err := creates(nil)(callers.as("ann"), g, requestID)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := g.Get(t, "web")
	wantSandbox(t, reply, err, id(a), provisioning)
	_, err = creates(nil)(callers.as("eve"), g, requestID)
	wantPlain(t, err, codes.AlreadyExists, "'web'")
	g.WaitPhase(t, id(a), ready)
	for _, subject := range []string{"ann", "eve"} {
		_, err := stops(nil)(callers.as(subject), g, requestID)
		if err != nil {
			t.Errorf("%s: %v", subject, err)
		}
	}
	reply, err = creates(nil)(callers.as("ann"), g, requestID)
	wantSandbox(t, reply, err, id(a), stopped)
}

// Each caller has so many request ids and no more. Calls without one, those that come again, and those of others go on.
func TestRequestIDLimit(t *testing.T) {
	const limit = 1000
	g, callers := startWithOIDC(t)
	if err := addMember(callers.as("root"), g, "default", "eve", roleAdmin); err != nil {
		t.Fatal(err)
	}
	remove := func(subject, requestID string) error {
		_, err := g.OpenShell().RemoveWorkspaceMember(callers.as(subject), &openshellv1.RemoveWorkspaceMemberRequest{
			PrincipalSubject: "nobody", AllowMissing: true, WorkspaceScope: gatewaytest.Default(), RequestId: requestID,
		})
		return err
	}
	ids := make(chan string, limit)
	ids <- anID
	for range limit - 1 {
		ids <- uuid.NewString()
	}
	close(ids)
	var removing sync.WaitGroup
	for range 16 {
		removing.Go(func() {
			for requestID := range ids {
				if err := remove("root", requestID); err != nil {
					t.Error(err)
				}
			}
		})
	}
	removing.Wait()
	wantPlain(t, remove("root", uuid.NewString()), codes.ResourceExhausted, "1000 request ids")
	wantPlain(t, remove("root", anID), codes.OK, "") // again
	wantPlain(t, remove("root", ""), codes.OK, "")
	wantPlain(t, remove("eve", uuid.NewString()), codes.OK, "")
}
