package server_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/testing/protocmp"

	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// The plain delete, case by case (contract, DeleteSandbox).
func TestPlainDelete(t *testing.T) {
	g := gatewaytest.Start(t)
	del := func(name string, scope *datamodelv1.WorkspaceSelector, allowMissing bool) (*openshellv1.DeleteSandboxResponse, error) {
		return g.OpenShell().DeleteSandbox(call(t), &openshellv1.DeleteSandboxRequest{Name: name, WorkspaceScope: scope, AllowMissing: allowMissing})
	}
	_, err := del("", nil, false)
	wantPlain(t, err, codes.InvalidArgument, "sandbox is required")
	_, err = del("web", nil, true)
	wantField(t, err, "workspace_scope")
	for _, allowMissing := range []bool{false, true} {
		_, err = del("web", workspace("nowhere"), allowMissing)
		wantPlain(t, err, codes.NotFound, "workspace 'nowhere' not found")
	}
	_, err = del("web", gatewaytest.Default(), false)
	wantPlain(t, err, codes.NotFound, "sandbox not found")
	got, err := del("web", gatewaytest.Default(), true)
	wantDeletion(t, got, err, alreadyAbsent, "")

	a := g.MustCreate(t, "web", gatewaytest.Simulated(map[string]any{"delete_after": "1h"}))
	for range 2 {
		got, err = del("web", gatewaytest.Default(), false)
		wantDeletion(t, got, err, accepted, id(a))
	}
	read, err := g.OpenShell().GetSandbox(call(t), &openshellv1.GetSandboxRequest{Name: "web", WorkspaceScope: gatewaytest.Default()})
	if err != nil || read.GetSandbox().GetStatus().GetPhase() != deleting || id(read.GetSandbox()) != id(a) {
		t.Errorf("while it is deleted: %v, %v", read, err)
	}
	_, err = g.OpenShell().CreateSandbox(call(t), createRequest(func(r *openshellv1.CreateSandboxRequest) { r.Name = "web" }))
	wantPlain(t, err, codes.AlreadyExists, "'web'") // the name is taken to the end

	b := g.MustCreate(t, "quick", gatewaytest.Simulated(map[string]any{"delete_after": "0s"}))
	got, err = del("quick", gatewaytest.Default(), false)
	wantDeletion(t, got, err, finished, id(b))

	c := g.MustCreate(t, "stuck", gatewaytest.Simulated(map[string]any{"delete_error": "the volume is busy"}))
	_, err = del("stuck", gatewaytest.Default(), true)
	wantPlain(t, err, codes.Internal, "the volume is busy")
	after, _ := g.GetByID(t, id(c))
	c.Metadata.ResourceVersion = after.GetMetadata().GetResourceVersion()
	if diff := cmp.Diff(c, after, protocmp.Transform()); diff != "" {
		t.Errorf("after a refused delete (-before +after)\n%s", diff)
	}
}

func TestPlainStopAndStart(t *testing.T) {
	g := gatewaytest.Start(t)
	for name, do := range map[string]func(name string, scope *datamodelv1.WorkspaceSelector, requestID string) (*openshellv1.SandboxResponse, error){
		"stop": func(name string, scope *datamodelv1.WorkspaceSelector, requestID string) (*openshellv1.SandboxResponse, error) {
			return g.OpenShell().StopSandbox(call(t), &openshellv1.StopSandboxRequest{Name: name, WorkspaceScope: scope, RequestId: requestID})
		},
		"start": func(name string, scope *datamodelv1.WorkspaceSelector, requestID string) (*openshellv1.SandboxResponse, error) {
			return g.OpenShell().StartSandbox(call(t), &openshellv1.StartSandboxRequest{Name: name, WorkspaceScope: scope, RequestId: requestID})
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := do("", nil, "")
			wantField(t, err, "workspace_scope") // before the name, unlike in a delete
			_, err = do("", gatewaytest.Default(), "")
			wantPlain(t, err, codes.InvalidArgument, "sandbox is required")
			_, err = do("none", gatewaytest.Default(), "")
			wantPlain(t, err, codes.NotFound, "sandbox not found")
			_, err = do("none", workspace("nowhere"), "")
			wantPlain(t, err, codes.NotFound, "sandbox not found")
			_, err = do("none", gatewaytest.Default(), "not-a-uuid")
			wantField(t, err, "request_id")
		})
	}
	a := g.MustCreate(t, "web")
	stop := &openshellv1.StopSandboxRequest{Name: "web", WorkspaceScope: gatewaytest.Default()}
	reply, err := g.OpenShell().StopSandbox(call(t), stop)
	if err != nil || reply.GetSandbox().GetStatus().GetPhase() != stopped || id(reply.GetSandbox()) != id(a) {
		t.Errorf("stop: %v, %v", reply, err)
	}
	start := &openshellv1.StartSandboxRequest{Name: "web", WorkspaceScope: gatewaytest.Default()}
	reply, err = g.OpenShell().StartSandbox(call(t), start)
	if err != nil || reply.GetSandbox().GetStatus().GetPhase() != starting || id(reply.GetSandbox()) != id(a) {
		t.Errorf("start: %v, %v", reply, err)
	}
	g.WaitPhase(t, id(a), ready)
	s := g.SetPhase(t, "web", provisioning)
	_, err = g.OpenShell().StopSandbox(call(t), stop)
	wantPlain(t, err, codes.FailedPrecondition, "PROVISIONING")
	_, err = g.OpenShell().StartSandbox(call(t), start)
	wantPlain(t, err, codes.FailedPrecondition, "PROVISIONING")
	wantUnchanged(t, g, s)
}

func TestHealthUserAndInfo(t *testing.T) {
	g := gatewaytest.Start(t, gatewaytest.WithVersion("0.1.9"))
	health, err := g.OpenShell().Health(call(t), &openshellv1.HealthRequest{})
	if err != nil || health.GetStatus() != openshellv1.ServiceStatus_SERVICE_STATUS_HEALTHY || health.GetVersion() != "0.1.9" {
		t.Errorf("%v, %v", health, err)
	}
	user, err := g.OpenShell().GetCurrentUser(call(t), &openshellv1.GetCurrentUserRequest{})
	if err != nil || user.GetSubject() != "unauthenticated-local-dev" || user.GetIdentityProvider() != "local_dev" ||
		cmp.Diff([]string{"openshell-user", "openshell-admin"}, user.GetRoles())+cmp.Diff([]string{"openshell:all"}, user.GetScopes()) != "" {
		t.Errorf("%v, %v", user, err)
	}
	info, err := g.OpenShell().GetGatewayInfo(call(t), &openshellv1.GetGatewayInfoRequest{})
	if err != nil || info.GetGatewayVersion() != "0.1.9" || len(info.GetComputeDrivers()) != 1 || info.GetComputeDrivers()[0].GetName() != "simulated" {
		t.Errorf("%v, %v", info, err)
	}
}
