package client

import (
	"context"
	"errors"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/apierr"
)

// refused decides whether a refused delete, guarded or by name, may be made again.
func (d *deletion) refused(ctx context.Context, err error) (step, error) {
	switch code := status.Code(err); {
	case ctx.Err() != nil:
		return done, err
	case code == codes.FailedPrecondition:
		return d.pending(ctx, err)
	case isVersionConflict(err): // a status write got in between; the request named no version
		d.last = err
		return repeat, nil
	case code == codes.Unavailable, code == codes.DeadlineExceeded, code == codes.Canceled:
		d.lost = d.lost || mayHaveActed(err)
		d.last = err
		return repeat, nil
	default:
		return done, err
	}
}

// pending goes on while the compute driver has not answered a create or start; only that passes by itself. Stock
// gateways say it without a reason, so there the sandbox is asked.
func (d *deletion) pending(ctx context.Context, refusal error) (step, error) {
	if _, ok := errors.AsType[*apierr.OperationPending](refusal); ok {
		d.last = refusal
		return repeat, nil
	}
	sb, gone, err := d.look(ctx)
	if gone != nil || err != nil {
		return d.gone(ctx, gone, err)
	}
	if sb.GetStatus().GetProvisioning().GetDriverOperationPending() {
		d.last = refusal
		return repeat, nil
	}
	return done, refusal
}

// refusedAsUnknown handles a gateway that does not know the guarded delete, or says so.
func (d *deletion) refusedAsUnknown(ctx context.Context, refusal error) (step, error) {
	mixed, err := d.c.unsupported(ctx, refusal)
	if mixed {
		if d.mixed++; d.mixed >= mixedFleetTries {
			return done, &MixedFleetError{Endpoint: d.c.endpoint.url, Refusal: err}
		}
		d.last = err
		return repeat, nil
	}
	if _, ok := errors.AsType[*NotSupportedError](err); ok && d.allowByName {
		return d.byName(ctx)
	}
	if status.Code(err) == codes.PermissionDenied {
		return done, err
	}
	return repeat, d.judge(ctx, err)
}

// byName is the opt-in for gateways without the service: read, compare, delete whatever has the name then.
func (d *deletion) byName(ctx context.Context) (step, error) {
	if _, err := d.c.Version(ctx); err != nil { // not a proxy's or some other server's "unknown method"
		return repeat, d.judge(ctx, err)
	}
	sb, gone, err := d.look(ctx)
	if gone != nil || err != nil {
		return d.gone(ctx, gone, err)
	}
	if sb.GetStatus().GetPhase() == openshellv1.SandboxPhase_SANDBOX_PHASE_DELETING {
		return watch, nil
	}
	reply, err := change(ctx, d.c, "DeleteSandbox", d.c.requestTimeout, d.c.openshell.DeleteSandbox, &openshellv1.DeleteSandboxRequest{
		Name: d.ref.Name, WorkspaceScope: scope(d.ref.Workspace), AllowMissing: true,
	})
	switch {
	case err == nil && IsUUID(reply.GetSandboxId()) && !sameID(reply.GetSandboxId(), d.ref.ID):
		return done, &DeletedAnotherError{Ref: d.ref, DeletedID: reply.GetSandboxId()}
	case err == nil:
		d.result.ByName = d.result.ByName || sameID(reply.GetSandboxId(), d.ref.ID)
		return d.accepted("DeleteSandbox", reply)
	case status.Code(err) == codes.NotFound:
		d.answer = CodeName(err)
		return watch, nil
	case mayHaveActed(err):
		d.lost, d.answer, d.unanswered = true, "", err
		return watch, nil
	default:
		return d.refused(ctx, err)
	}
}

// mayHaveActed tells that a delete ended without an answer, and may have taken effect all the same.
func mayHaveActed(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return !sentNothing(err) && !isLockTimeout(err)
	default:
		return false
	}
}

// isLockTimeout tells that the gateway gave up before it did anything (upstream-contract, structured errors).
func isLockTimeout(err error) bool {
	st, _ := status.FromError(err)
	for _, detail := range st.Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok && info.GetDomain() == apierr.DomainOpenShell && info.GetReason() == "MUTATION_LOCK_TIMEOUT" {
			return true
		}
	}
	return false
}

func isVersionConflict(err error) bool {
	_, ok := errors.AsType[*apierr.VersionConflict](err)
	return ok
}
