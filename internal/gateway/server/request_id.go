package server

import (
	"github.com/google/uuid"

	"github.com/openshell-iac/terraform-provider-openshell/internal/apierr"
)

// admit is where the request_id of a call is looked at: after access is settled and before anything is changed. This
// gateway keeps no record of requests, and says so as upstream does where it cannot, rather than pass over the wish.
func admit(requestID string) error {
	if requestID == "" {
		return nil
	}
	if id, err := uuid.Parse(requestID); err != nil || len(requestID) != 36 || id == uuid.Nil {
		return &apierr.InvalidArgument{Field: "request_id", Problem: "must be a UUID of 36 characters that is not nil"}
	}
	return &apierr.RequestReplayUnavailable{}
}
