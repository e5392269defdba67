package server

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"

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
		if errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrOutcomeUnknown) {
			log.WarnContext(ctx, "the database did not serve a call", "request_id", telemetry.RequestID(ctx), "error", err)
		}
		return fitting(known)
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
	case err == nil:
		return nil
	case errors.As(err, &refused): // before what it wraps, perhaps a status or a time limit of the driver's own
		return driverStatus(refused)
	case errors.As(err, &withStatus):
		return err
	// The store's come first: what they wrap, perhaps a time limit of its own, is not for clients.
	case errors.Is(err, store.ErrUnavailable):
		return status.Error(codes.Unavailable, "the gateway cannot serve the call now; try again")
	case errors.Is(err, store.ErrOutcomeUnknown):
		return status.Error(codes.Unavailable,
			"the gateway lost its database in the middle of the call and cannot tell whether the change was made; read how things are before you make it again")
	case errors.Is(err, store.ErrTooManyAdmissions):
		return status.Errorf(codes.ResourceExhausted, "the caller has used %d request ids within a day, which is as many as are remembered; make the call without one, or later", store.MaxAdmissions)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return status.FromContextError(err).Err()
	case errors.As(err, &mismatch):
		return &apierr.IdentityMismatch{
			Workspace: mismatch.Workspace, Name: mismatch.Name, ExpectedID: mismatch.ExpectedID, CurrentID: mismatch.CurrentID,
		}
	case errors.As(err, &conflict):
		return &apierr.VersionConflict{
			Workspace: conflict.Workspace, Name: conflict.Name, ID: conflict.ID, Current: conflict.Current,
		}
	case errors.As(err, &pending):
		return &apierr.OperationPending{Workspace: pending.Sandbox.Workspace, Name: pending.Sandbox.Name, ID: pending.Sandbox.ID}
	case errors.As(err, &phase):
		return status.Error(codes.FailedPrecondition, phase.Error())
	case errors.As(err, &missing):
		return missingProvider(missing.Key.Name, missing.Key.Workspace)
	case errors.Is(err, store.ErrNotFound):
		return status.Error(codes.NotFound, "sandbox not found")
	}
	return nil
}

// maxText bounds each text of an error, which may repeat what the client has sent: clients take 8 KiB of metadata, where a
// message stands twice, once with up to three bytes for one, and the two texts of a refused field beside it.
const maxText = 1024

// fitting shortens the texts of an error, in its details too, as far as its client needs.
func fitting(err error) error {
	st := status.Convert(err)
	if proto.Size(st.Proto()) <= maxText {
		return err
	}
	details := make([]protoadapt.MessageV1, 0, len(st.Details()))
	for _, detail := range st.Details() {
		switch d := detail.(type) {
		case *errdetails.ErrorInfo:
			for key, value := range d.GetMetadata() {
				d.Metadata[key] = clip(value)
			}
			details = append(details, d)
		case *errdetails.BadRequest:
			for _, v := range d.GetFieldViolations() {
				v.Field, v.Description = clip(v.GetField()), clip(v.GetDescription())
			}
			details = append(details, d)
		}
	}
	short := status.New(st.Code(), clip(st.Message()))
	if detailed, err := short.WithDetails(details...); err == nil { // not so only for OK
		short = detailed
	}
	return short.Err()
}

// clip leaves out the middle of a text that is too long: what went wrong stands at one of its ends.
func clip(text string) string {
	const head, tail = maxText * 3 / 4, maxText / 4
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:head], "") + "…" + strings.ToValidUTF8(text[len(text)-tail:], "")
}

// mergeStatus is the answer to a refused merge.
func mergeStatus(err error) error {
	var refused *policy.MergeError
	if !errors.As(err, &refused) {
		return err
	}
	switch refused.Code {
	case policy.MergeConflict:
		return status.Error(codes.FailedPrecondition, refused.Error())
	case policy.MergeNotFound:
		return status.Error(codes.NotFound, refused.Error())
	default:
		field, problem, _ := strings.Cut(refused.Error(), ": ")
		return &apierr.InvalidArgument{Field: field, Problem: problem}
	}
}

// driverStatus shows a refusal of the compute driver, and hides its other troubles. Of a delete the kind is not told: the
// codes of the kinds stand for answers of the gateway there.
func driverStatus(refused *lifecycle.DriverError) error {
	var refusal *driver.Refusal
	switch {
	case !errors.As(refused, &refusal):
		return nil
	case refused.Action == "delete":
		return status.Error(codes.Internal, refused.Error())
	case errors.Is(refusal, driver.ErrAlreadyExists):
		return status.Error(codes.AlreadyExists, refused.Error())
	case errors.Is(refusal, driver.ErrFailedPrecondition):
		return status.Error(codes.FailedPrecondition, refused.Error())
	}
	return status.Error(codes.Internal, refused.Error())
}
