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
