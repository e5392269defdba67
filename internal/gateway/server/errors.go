package server

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/openshell-iac/terraform-provider-openshell/internal/api/policy"
	"github.com/openshell-iac/terraform-provider-openshell/internal/apierr"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/driver"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/lifecycle"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/telemetry"
)

// toStatus turns an error of any layer into one with a status. What is not known to be for clients is logged and hidden.
func toStatus(ctx context.Context, log *slog.Logger, err error) error {
	if known := knownStatus(err); known != nil {
		return known
	}
	log.ErrorContext(ctx, "a call failed for a reason that its caller is not told", "request_id", telemetry.RequestID(ctx), "error", err)
	return status.Error(codes.Internal, "the gateway failed to serve the call; its log has the cause under request id "+telemetry.RequestID(ctx))
}

func knownStatus(err error) error {
	var (
		withStatus interface{ GRPCStatus() *status.Status }
		mismatch   *store.IdentityMismatchError
		conflict   *store.VersionConflictError
		pending    *lifecycle.OperationPendingError
		phase      *lifecycle.PhaseError
		refused    *lifecycle.DriverError
		missing    *store.MissingError
	)
	switch {
	case err == nil, errors.As(err, &withStatus):
		return err
	// The store's come first: what they wrap, perhaps a time limit of its own, is not for clients.
	case errors.Is(err, store.ErrUnavailable):
		return status.Error(codes.Unavailable, "the gateway cannot serve the call now; try again")
	case errors.Is(err, store.ErrOutcomeUnknown):
		return status.Error(codes.Unavailable,
			"the gateway lost its database in the middle of the call and cannot tell whether the change was made; read the sandbox to see")
	case errors.Is(err, store.ErrTooManyAdmissions):
		return status.Errorf(codes.ResourceExhausted, "the caller has used %d request ids within a day, which is as many as are remembered; make the call without one, or later", store.MaxAdmissions)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return status.FromContextError(err).Err()
	case errors.As(err, &mismatch):
		return &apierr.IdentityMismatch{
			Workspace: mismatch.Workspace, Name: mismatch.Name, ExpectedID: mismatch.ExpectedID, CurrentID: mismatch.CurrentID,
		}
	case errors.As(err, &conflict):
		return &apierr.VersionConflict{Current: conflict.Current}
	case errors.As(err, &pending):
		return &apierr.OperationPending{Workspace: pending.Sandbox.Workspace, Name: pending.Sandbox.Name, ID: pending.Sandbox.ID}
	case errors.As(err, &phase):
		return status.Error(codes.FailedPrecondition, phase.Error())
	case errors.As(err, &refused):
		return driverStatus(refused)
	case errors.As(err, &missing):
		return missingProvider(missing.Key.Name, missing.Key.Workspace)
	case errors.Is(err, store.ErrNotFound):
		return status.Error(codes.NotFound, "sandbox not found")
	}
	return nil
}

// maxProblem bounds what is said about a policy: clients take 8 KiB of metadata, where a status stands three times, once with
// three bytes for one.
const maxProblem = 1024

// problemIn is what is wrong with a policy, the first of it if that is long.
func problemIn(err error) string {
	text := err.Error()
	if len(text) > maxProblem {
		text = strings.ToValidUTF8(text[:maxProblem], "") + "…"
	}
	return text
}

// mergeStatus is the answer to a refused merge.
func mergeStatus(err error) error {
	var refused *policy.MergeError
	if !errors.As(err, &refused) {
		return err
	}
	switch refused.Code {
	case policy.MergeConflict:
		return status.Error(codes.FailedPrecondition, problemIn(refused))
	case policy.MergeNotFound:
		return status.Error(codes.NotFound, problemIn(refused))
	default:
		field, problem, _ := strings.Cut(problemIn(refused), ": ")
		return &apierr.InvalidArgument{Field: field, Problem: problem}
	}
}

// driverStatus shows a refusal of the compute driver, and hides its other troubles.
func driverStatus(refused *lifecycle.DriverError) error {
	var refusal *driver.Refusal
	switch {
	case errors.Is(refused, driver.ErrAlreadyExists):
		return status.Error(codes.AlreadyExists, refused.Error())
	case errors.Is(refused, driver.ErrFailedPrecondition):
		return status.Error(codes.FailedPrecondition, refused.Error())
	case errors.As(refused, &refusal):
		return status.Error(codes.Internal, refused.Error())
	}
	return nil
}
