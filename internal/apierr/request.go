package apierr

import (
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ReasonRequestReplayUnavailable is under DomainOpenShell.
const ReasonRequestReplayUnavailable = "REQUEST_REPLAY_UNAVAILABLE"

// RequestReplayUnavailable refuses a request_id on a gateway that cannot tell a repeated call from a new one. Nothing was
// changed.
type RequestReplayUnavailable struct{}

func (e *RequestReplayUnavailable) Error() string {
	return "this gateway keeps no record of request ids; make the call without request_id"
}

// GRPCStatus is FAILED_PRECONDITION (upstream-contract, request_id).
func (e *RequestReplayUnavailable) GRPCStatus() *status.Status {
	return withDetails(codes.FailedPrecondition, e.Error(),
		&errdetails.ErrorInfo{Domain: DomainOpenShell, Reason: ReasonRequestReplayUnavailable})
}
