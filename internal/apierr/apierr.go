// Package apierr holds the structured errors of the OpenShell API and of the conditional service. A gateway returns
// these types from its handlers, where gRPC turns them into a status by their GRPCStatus method; a client gets them back
// with [From]. Clients decide by type, which stands for ErrorInfo's domain and reason, never by code alone or by text.
package apierr

import (
	"errors"
	"strconv"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
)

// Domains of ErrorInfo.
const (
	// DomainOpenShell is upstream's, the same for all its reasons.
	DomainOpenShell = "openshell.nvidia.com"
	// DomainConditional is that of the conditional service.
	DomainConditional = "openshell.conditional.v1"
)

// Reasons of ErrorInfo.
const (
	ReasonInvalidArgument      = "INVALID_ARGUMENT"          // DomainOpenShell
	ReasonVersionConflict      = "RESOURCE_VERSION_CONFLICT" // DomainOpenShell
	ReasonIdentityMismatch     = "SANDBOX_IDENTITY_MISMATCH" // DomainConditional
	ReasonOperationPending     = "OPERATION_PENDING"         // DomainConditional
	ReasonPreconditionRequired = "PRECONDITION_REQUIRED"     // DomainConditional
	metaWorkspace              = "workspace"
	metaName                   = "name"
	metaExpectedID             = "expected_id"
	metaCurrentID              = "current_id"
	metaMethod                 = "method"
	metaRecovery               = "recovery"
	metaCurrentVersion         = "current_resource_version"
	recoveryRefreshState       = "REFRESH_STATE"
)

// InvalidArgument refuses one field of a request.
type InvalidArgument struct {
	// Field is the wire path of the field, such as spec.command[0].
	Field string
	// Problem says what is wrong with the value, without repeating it where it may be secret.
	Problem string
}

func (e *InvalidArgument) Error() string { return e.Field + ": " + e.Problem }

// GRPCStatus carries ErrorInfo and a BadRequest with one violation (upstream-contract, structured errors).
func (e *InvalidArgument) GRPCStatus() *status.Status {
	return withDetails(codes.InvalidArgument, e.Error(),
		&errdetails.ErrorInfo{Domain: DomainOpenShell, Reason: ReasonInvalidArgument},
		&errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: e.Field, Description: e.Problem}}},
	)
}

// VersionConflict refuses a change because the sandbox is at another resource version than the caller expects.
type VersionConflict struct {
	// Workspace, Name and ID of the sandbox stand in the text alone: upstream's details do not have them, so that they are
	// empty in what a client gets.
	Workspace, Name, ID string
	// Current is the version the object is at; 0 when the gateway did not say.
	Current uint64
}

func (e *VersionConflict) Error() string {
	text := "the sandbox"
	if e.Name != "" {
		text = "sandbox '" + e.Name + "' in workspace '" + e.Workspace + "' (id " + e.ID + ")"
	}
	text += " is not at the expected resource version"
	if e.Current != 0 {
		text += " but at " + strconv.FormatUint(e.Current, 10)
	}
	return text + "; nothing was changed. Read it again"
}

// GRPCStatus is upstream's own conflict: ABORTED with recovery=REFRESH_STATE.
func (e *VersionConflict) GRPCStatus() *status.Status {
	meta := map[string]string{metaRecovery: recoveryRefreshState}
	if e.Current != 0 {
		meta[metaCurrentVersion] = strconv.FormatUint(e.Current, 10)
	}
	return withDetails(codes.Aborted, e.Error(), &errdetails.ErrorInfo{Domain: DomainOpenShell, Reason: ReasonVersionConflict, Metadata: meta})
}

// IdentityMismatch refuses a conditional call because the name belongs to another sandbox than the expected one, which
// is therefore gone. Nothing was changed.
type IdentityMismatch struct {
	Workspace, Name       string
	ExpectedID, CurrentID string
}

func (e *IdentityMismatch) Error() string {
	return "sandbox '" + e.Name + "' in workspace '" + e.Workspace + "' has id " + e.CurrentID + ", not the expected " + e.ExpectedID + "; nothing was changed"
}

// GRPCStatus is FAILED_PRECONDITION with both ids in the metadata.
func (e *IdentityMismatch) GRPCStatus() *status.Status {
	return withDetails(codes.FailedPrecondition, e.Error(), &errdetails.ErrorInfo{
		Domain: DomainConditional, Reason: ReasonIdentityMismatch,
		Metadata: map[string]string{metaWorkspace: e.Workspace, metaName: e.Name, metaExpectedID: e.ExpectedID, metaCurrentID: e.CurrentID},
	})
}

// OperationPending refuses a conditional delete because the compute driver has not answered a create or start of that
// sandbox yet. The same call may be made again later.
type OperationPending struct {
	Workspace, Name, ID string
}

func (e *OperationPending) Error() string {
	return "sandbox '" + e.Name + "' in workspace '" + e.Workspace + "' (id " + e.ID + ") has a driver operation pending; try again when it has settled"
}

// GRPCStatus is FAILED_PRECONDITION.
func (e *OperationPending) GRPCStatus() *status.Status {
	return withDetails(codes.FailedPrecondition, e.Error(), &errdetails.ErrorInfo{
		Domain: DomainConditional, Reason: ReasonOperationPending,
		Metadata: map[string]string{metaWorkspace: e.Workspace, metaName: e.Name, metaCurrentID: e.ID},
	})
}

// PreconditionRequired refuses a plain call on a gateway that takes only the conditional form.
type PreconditionRequired struct {
	// Method is the full name of the conditional method to call instead.
	Method string
}

func (e *PreconditionRequired) Error() string {
	return "this gateway takes the call only with a precondition; use " + e.Method
}

// GRPCStatus is FAILED_PRECONDITION.
func (e *PreconditionRequired) GRPCStatus() *status.Status {
	return withDetails(codes.FailedPrecondition, e.Error(), &errdetails.ErrorInfo{
		Domain: DomainConditional, Reason: ReasonPreconditionRequired, Metadata: map[string]string{metaMethod: e.Method},
	})
}

// From gives back the typed error that a gateway returned, or err itself when it carries none that this package knows.
// A reason counts only under its own domain and code.
func From(err error) error {
	st, ok := status.FromError(err)
	if !ok || st.Code() == codes.OK {
		return err
	}
	var info *errdetails.ErrorInfo
	var violation *errdetails.BadRequest_FieldViolation
	for _, detail := range st.Details() {
		switch d := detail.(type) {
		case *errdetails.ErrorInfo:
			info = d
		case *errdetails.BadRequest:
			if v := d.GetFieldViolations(); len(v) > 0 {
				violation = v[0]
			}
		}
	}
	if typed := fromInfo(st.Code(), info, violation); typed != nil {
		return typed
	}
	return err
}

func fromInfo(code codes.Code, info *errdetails.ErrorInfo, violation *errdetails.BadRequest_FieldViolation) error {
	meta := info.GetMetadata()
	switch [3]string{code.String(), info.GetDomain(), info.GetReason()} {
	case [3]string{codes.InvalidArgument.String(), DomainOpenShell, ReasonInvalidArgument}:
		if violation != nil {
			return &InvalidArgument{Field: violation.GetField(), Problem: violation.GetDescription()}
		}
	case [3]string{codes.Aborted.String(), DomainOpenShell, ReasonVersionConflict}:
		current, _ := strconv.ParseUint(meta[metaCurrentVersion], 10, 64) // absent: 0, as documented
		return &VersionConflict{Current: current}
	case [3]string{codes.FailedPrecondition.String(), DomainConditional, ReasonIdentityMismatch}:
		return &IdentityMismatch{Workspace: meta[metaWorkspace], Name: meta[metaName], ExpectedID: meta[metaExpectedID], CurrentID: meta[metaCurrentID]}
	case [3]string{codes.FailedPrecondition.String(), DomainConditional, ReasonOperationPending}:
		return &OperationPending{Workspace: meta[metaWorkspace], Name: meta[metaName], ID: meta[metaCurrentID]}
	case [3]string{codes.FailedPrecondition.String(), DomainConditional, ReasonPreconditionRequired}:
		return &PreconditionRequired{Method: meta[metaMethod]}
	case [3]string{codes.FailedPrecondition.String(), DomainOpenShell, ReasonRequestReplayUnavailable}:
		return &RequestReplayUnavailable{}
	case [3]string{codes.FailedPrecondition.String(), DomainOpenShell, ReasonRequestPayloadMismatch}:
		return &RequestPayloadMismatch{}
	case [3]string{codes.FailedPrecondition.String(), DomainOpenShell, ReasonRequestOutcomeUncertain}:
		return &RequestOutcomeUncertain{}
	}
	return nil
}

func withDetails(code codes.Code, text string, details ...protoadapt.MessageV1) *status.Status {
	st, err := status.New(code, text).WithDetails(details...)
	if err != nil { // only for code OK or a message that cannot be marshalled
		return status.New(codes.Internal, errors.Join(errors.New("apierr: details"), err).Error())
	}
	return st
}
