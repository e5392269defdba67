package server_test

import (
	"testing"

	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
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
