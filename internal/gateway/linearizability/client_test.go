package linearizability

import (
	"errors"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/apierr"
)

func TestErrorsAreReadForWhatTheyPromise(t *testing.T) {
	get, creating := Call{Kind: Get}, Call{Kind: Create}
	plain, guarded := Call{Kind: Delete}, Call{Kind: Delete, ExpectID: "A"}
	stop := Call{Kind: Stop}
	mismatch := (&apierr.IdentityMismatch{ExpectedID: "A", CurrentID: "B"}).GRPCStatus().Err()
	pending := (&apierr.OperationPending{ID: "A"}).GRPCStatus().Err()
	conflict := (&apierr.VersionConflict{Current: 4}).GRPCStatus().Err()
	for name, c := range map[string]struct {
		call Call
		err  error
		want Outcome
	}{
		"no answer in time":             {guarded, status.Error(codes.DeadlineExceeded, ""), Unknown},
		"given up":                      {creating, status.Error(codes.Canceled, ""), Unknown},
		"connection lost":               {plain, status.Error(codes.Unavailable, ""), Unknown},
		"absent":                        {get, status.Error(codes.NotFound, ""), NotFound},
		"absent to a create":            {creating, status.Error(codes.NotFound, ""), Unexpected},
		"taken":                         {creating, status.Error(codes.AlreadyExists, ""), AlreadyExists},
		"taken, to a delete":            {plain, status.Error(codes.AlreadyExists, ""), Unexpected},
		"mismatch":                      {guarded, mismatch, Mismatch},
		"mismatch of another id":        {Call{Kind: Delete, ExpectID: "C"}, mismatch, Unexpected},
		"mismatch of a plain call":      {plain, mismatch, Unexpected},
		"conflict":                      {guarded, conflict, VersionConflict},
		"conflict without details":      {guarded, status.Error(codes.Aborted, ""), Unexpected},
		"pending":                       {guarded, pending, Pending},
		"pending, to a plain delete":    {plain, status.Error(codes.FailedPrecondition, ""), Pending},
		"precondition without details":  {guarded, status.Error(codes.FailedPrecondition, ""), Unexpected},
		"wrong phase":                   {stop, status.Error(codes.FailedPrecondition, ""), WrongPhase},
		"the driver refused the delete": {guarded, status.Error(codes.Internal, "… "+refusalText), DriverRefused},
		"the gateway failed":            {guarded, status.Error(codes.Internal, "…"), Internal},
		"no gRPC at all":                {get, errors.New("boom"), Unexpected},
	} {
		if got := refusal(c.call, c.err).Outcome; got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestAnswersMustBeAboutOurSandboxes(t *testing.T) {
	ours := &openshellv1.Sandbox{Metadata: &datamodelv1.ObjectMeta{Id: "A", ResourceVersion: 3, Annotations: map[string]string{numberKey: "7"}}}
	if got := showing(ours); got.Outcome != OK || got.Sandbox.ID != "A" || got.Sandbox.Version != 3 || got.Sandbox.CreatedBy != 7 {
		t.Errorf("read %+v", got)
	}
	if got := showing(&openshellv1.Sandbox{}); got.Outcome != Unexpected {
		t.Errorf("a sandbox that none of our creates made reads as %s", got.Outcome)
	}
	if got := deleted(&openshellv1.DeleteSandboxResponse{}); got.Outcome != Unexpected {
		t.Errorf("a delete without an outcome reads as %s", got.Outcome)
	}
}
