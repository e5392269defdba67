package server

import (
	"github.com/google/uuid"

	"github.com/openshell-iac/terraform-provider-openshell/internal/apierr"
)

// checkRequestID checks the shape (upstream-contract, request_id).
func checkRequestID(requestID string) error {
	if !isUUID(requestID) || requestID == uuid.Nil.String() {
		return &apierr.InvalidArgument{Field: "request_id", Problem: "must be a UUID of 36 characters that is not nil"}
	}
	return nil
}

// admit is where the request_id of a call is looked at that is not one of [once]: no record is kept of those, and the
// gateway says so as upstream does where it cannot, rather than pass over the wish.
func admit(requestID string) error {
	if requestID == "" {
		return nil
	}
	if err := checkRequestID(requestID); err != nil {
		return err
	}
	return &apierr.RequestReplayUnavailable{}
}
