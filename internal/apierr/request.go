package apierr

import (
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Reasons about a request_id, under DomainOpenShell (upstream-contract, request_id).
const (
	ReasonRequestReplayUnavailable  = "REQUEST_REPLAY_UNAVAILABLE"
	ReasonRequestPayloadMismatch    = "REQUEST_ID_PAYLOAD_MISMATCH"
	ReasonRequestOutcomeUncertain   = "REQUEST_OUTCOME_UNCERTAIN"
	ReplayedHeader                  = "openshell-replayed" // metadata of a response that repeats an earlier one: "true"
	requestReplayUnavailableMessage = "the gateway cannot repeat its answer: it keeps no record of such calls, or what the call made is gone by now; " +
		"nothing was changed. Read how things are, and make the call without request_id or with a new one"
	requestPayloadMismatchMessage  = "the request_id was used for a call of the same method that asked for something else; nothing was changed. Use a new one for each wish"
	requestOutcomeUncertainMessage = "an earlier call with this request_id has not come to an outcome: it is still going on, was broken off, or was overtaken; " +
		"nothing was changed by this one. Read how things are, and make the call again later or with a new request_id"
)

// RequestReplayUnavailable refuses a request_id whose call cannot be answered as it was, or on a gateway that cannot tell a
// repeated call from a new one. Nothing was changed.
type RequestReplayUnavailable struct{}

func (e *RequestReplayUnavailable) Error() string { return requestReplayUnavailableMessage }

// GRPCStatus is FAILED_PRECONDITION.
func (e *RequestReplayUnavailable) GRPCStatus() *status.Status {
	return requestStatus(e, ReasonRequestReplayUnavailable)
}

// RequestPayloadMismatch refuses a request_id that was used for another request. Nothing was changed.
type RequestPayloadMismatch struct{}

func (e *RequestPayloadMismatch) Error() string { return requestPayloadMismatchMessage }

// GRPCStatus is FAILED_PRECONDITION.
func (e *RequestPayloadMismatch) GRPCStatus() *status.Status {
	return requestStatus(e, ReasonRequestPayloadMismatch)
}

// RequestOutcomeUncertain refuses a request_id whose earlier call has no outcome, or not yet. Nothing was changed by this one.
type RequestOutcomeUncertain struct{}

func (e *RequestOutcomeUncertain) Error() string { return requestOutcomeUncertainMessage }

// GRPCStatus is FAILED_PRECONDITION.
func (e *RequestOutcomeUncertain) GRPCStatus() *status.Status {
	return requestStatus(e, ReasonRequestOutcomeUncertain)
}

func requestStatus(err error, reason string) *status.Status {
	return withDetails(codes.FailedPrecondition, err.Error(), &errdetails.ErrorInfo{Domain: DomainOpenShell, Reason: reason})
}
