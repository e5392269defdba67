package server_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/apierr"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// Phases, for short.
const (
	provisioning = openshellv1.SandboxPhase_SANDBOX_PHASE_PROVISIONING
	ready        = openshellv1.SandboxPhase_SANDBOX_PHASE_READY
	failed       = openshellv1.SandboxPhase_SANDBOX_PHASE_ERROR
	deleting     = openshellv1.SandboxPhase_SANDBOX_PHASE_DELETING
	stopped      = openshellv1.SandboxPhase_SANDBOX_PHASE_STOPPED
	starting     = openshellv1.SandboxPhase_SANDBOX_PHASE_STARTING
)

// anID is nobody's.
const anID = "5b2e6f0a-7c1d-4a53-9f0e-3d9f5f1c2b3a"

func call(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), gatewaytest.Timeout)
	t.Cleanup(cancel)
	return ctx
}

func workspace(name string) *datamodelv1.WorkspaceSelector {
	return &datamodelv1.WorkspaceSelector{Selection: &datamodelv1.WorkspaceSelector_Workspace{Workspace: name}}
}

func allWorkspaces() *datamodelv1.WorkspaceSelector {
	return &datamodelv1.WorkspaceSelector{Selection: &datamodelv1.WorkspaceSelector_AllWorkspaces{AllWorkspaces: &datamodelv1.AllWorkspaces{}}}
}

func id(s *openshellv1.Sandbox) string { return s.GetMetadata().GetId() }

// expect is a precondition on an id, and perhaps on a version.
func expect(id string, version ...uint64) *conditionalv1.SandboxPrecondition {
	p := &conditionalv1.SandboxPrecondition{Id: &id}
	for _, v := range version {
		p.ResourceVersion = &v
	}
	return p
}

// wantStatus holds an error to its code and to a part of its text.
func wantStatus(t *testing.T, err error, code codes.Code, text string) {
	t.Helper()
	if status.Code(err) != code || !strings.Contains(status.Convert(err).Message(), text) {
		t.Errorf("error %v, want %v with %q", err, code, text)
	}
}

// wantPlain is for errors that upstream gives no details.
func wantPlain(t *testing.T, err error, code codes.Code, text string) {
	t.Helper()
	wantStatus(t, err, code, text)
	if details := status.Convert(err).Details(); len(details) != 0 {
		t.Errorf("details %v", details)
	}
}

// wantField is for a refused field.
func wantField(t *testing.T, err error, field string) {
	t.Helper()
	var invalid *apierr.InvalidArgument
	if !errors.As(apierr.From(err), &invalid) || invalid.Field != field {
		t.Errorf("error %v, want one about the field %s", err, field)
	}
}

// wantReason holds an error to its ErrorInfo.
func wantReason(t *testing.T, err error, code codes.Code, domain, reason string, metadata map[string]string) {
	t.Helper()
	wantStatus(t, err, code, "")
	var info *errdetails.ErrorInfo
	for _, d := range status.Convert(err).Details() {
		if i, ok := d.(*errdetails.ErrorInfo); ok {
			info = i
		}
	}
	if info.GetDomain() != domain || info.GetReason() != reason {
		t.Errorf("error %v with %v, want %s of %s", err, info, reason, domain)
	}
	for key, value := range metadata {
		if info.GetMetadata()[key] != value {
			t.Errorf("metadata %v, want %s=%s", info.GetMetadata(), key, value)
		}
	}
}
