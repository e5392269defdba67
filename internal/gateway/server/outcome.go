package server

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/grpc"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/apierr"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/lifecycle"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/telemetry"
)

// ObservePreconditions is a [grpc.UnaryServerInterceptor] that tells the telemetry what came of the precondition of a
// conditional call. It must be innermost, since only here a sandbox that is not there still differs from one that is
// concealed.
func ObservePreconditions(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	reply, err := handler(ctx, req)
	if strings.HasPrefix(info.FullMethod, "/"+conditionalv1.ConditionalSandboxes_ServiceDesc.ServiceName+"/") {
		if outcome := outcomeOf(reply, err); outcome != "" {
			telemetry.Precondition(ctx, outcome)
		}
	}
	return reply, err
}

// outcomeOf is empty for a call that failed before its precondition was looked at, or nobody knows when.
func outcomeOf(reply any, err error) telemetry.Outcome {
	var (
		mismatch *apierr.IdentityMismatch
		conflict *apierr.VersionConflict
		pending  *apierr.OperationPending
		phase    *lifecycle.PhaseError
		refused  *lifecycle.DriverError
	)
	deleted, _ := reply.(*openshellv1.DeleteSandboxResponse)
	switch known := knownStatus(err); {
	case err == nil && deleted.GetOutcome() == openshellv1.DeletionOutcome_DELETION_OUTCOME_ALREADY_ABSENT:
		return telemetry.Absent
	case errors.Is(err, store.ErrNotFound):
		return telemetry.Absent
	case errors.As(known, &mismatch):
		return telemetry.IdentityMismatch
	case errors.As(known, &conflict):
		return telemetry.VersionConflict
	case errors.As(known, &pending):
		return telemetry.Pending
	case err == nil, errors.As(err, &phase), errors.As(err, &refused):
		return telemetry.Matched
	}
	return ""
}
