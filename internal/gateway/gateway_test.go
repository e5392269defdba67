package gateway_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/apierr"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func call(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), gatewaytest.Timeout)
	t.Cleanup(cancel)
	return ctx
}

// dial connects in plaintext, unless told otherwise.
func dial(t *testing.T, address string, transport ...credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()
	transport = append(transport, insecure.NewCredentials())
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(transport[0]))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func wantCode(t *testing.T, err error, code codes.Code) {
	t.Helper()
	if status.Code(err) != code {
		t.Errorf("error %v, want %v", err, code)
	}
}

func inWorkspace(name string) *datamodelv1.WorkspaceSelector {
	return &datamodelv1.WorkspaceSelector{Selection: &datamodelv1.WorkspaceSelector_Workspace{Workspace: name}}
}

func plainDelete(name string) *openshellv1.DeleteSandboxRequest {
	return &openshellv1.DeleteSandboxRequest{Name: name, WorkspaceScope: gatewaytest.Default()}
}

func conditionalDelete(id string) *conditionalv1.ConditionalDeleteSandboxRequest {
	return &conditionalv1.ConditionalDeleteSandboxRequest{
		Precondition: &conditionalv1.SandboxPrecondition{Id: &id}, Request: plainDelete("web"),
	}
}

func TestHealthAndReflection(t *testing.T) {
	g := gatewaytest.Start(t)
	conn := dial(t, g.Address())
	for _, service := range []string{"", "openshell.v1.OpenShell", "openshell.conditional.v1.ConditionalSandboxes"} {
		reply, err := healthv1.NewHealthClient(conn).Check(call(t), &healthv1.HealthCheckRequest{Service: service})
		if err != nil || reply.GetStatus() != healthv1.HealthCheckResponse_SERVING {
			t.Errorf("health of %q: %v, %v", service, reply, err)
		}
	}
	_, err := healthv1.NewHealthClient(conn).Check(call(t), &healthv1.HealthCheckRequest{Service: "openshell.v1.Other"})
	wantCode(t, err, codes.NotFound)

	stream, err := reflectionv1.NewServerReflectionClient(conn).ServerReflectionInfo(call(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}}); err != nil {
		t.Fatal(err)
	}
	reply, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	var services []string
	for _, s := range reply.GetListServicesResponse().GetService() {
		services = append(services, s.GetName())
	}
	for _, want := range []string{"openshell.v1.OpenShell", "openshell.conditional.v1.ConditionalSandboxes"} {
		if !slices.Contains(services, want) {
			t.Errorf("reflection does not show %s but %v", want, services)
		}
	}
}

// The conditional service is SERVING when all six of its methods are there, and only then.
func TestServingMeansAllSix(t *testing.T) {
	g := gatewaytest.Start(t)
	conn := dial(t, g.Address())
	var names []string
	for _, m := range everyMethod(t) {
		if string(m.descriptor.Parent().FullName()) != conditionalv1.ConditionalSandboxes_ServiceDesc.ServiceName {
			continue
		}
		names = append(names, m.short())
		if err := invoke(t, conn, m, ""); status.Code(err) == codes.Unimplemented {
			t.Errorf("%s: %v", m.name, err)
		}
	}
	slices.Sort(names)
	if want := []string{
		"AttachSandboxProvider", "DeleteSandbox", "DetachSandboxProvider", "StartSandbox", "StopSandbox", "UpdateSandboxConfig",
	}; !slices.Equal(names, want) {
		t.Errorf("the service has %v", names)
	}
	reply, err := healthv1.NewHealthClient(conn).Check(call(t), &healthv1.HealthCheckRequest{Service: conditionalv1.ConditionalSandboxes_ServiceDesc.ServiceName})
	if err != nil || reply.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		t.Errorf("%v, %v", reply, err)
	}
}

// A stock gateway knows nothing of the conditional service, of health and of reflection, and nothing happens.
func TestWithoutConditional(t *testing.T) {
	g := gatewaytest.Start(t, gatewaytest.WithoutConditional())
	a := g.MustCreate(t, "web")
	conn := dial(t, g.Address())
	_, err := conditionalv1.NewConditionalSandboxesClient(conn).DeleteSandbox(call(t), conditionalDelete(a.GetMetadata().GetId()))
	wantCode(t, err, codes.Unimplemented)
	for _, service := range []string{"", "openshell.conditional.v1.ConditionalSandboxes"} {
		_, err = healthv1.NewHealthClient(conn).Check(call(t), &healthv1.HealthCheckRequest{Service: service})
		wantCode(t, err, codes.Unimplemented)
	}
	stream, err := reflectionv1.NewServerReflectionClient(conn).ServerReflectionInfo(call(t))
	if err == nil {
		_, err = stream.Recv()
	}
	wantCode(t, err, codes.Unimplemented)
	if s, ok := g.GetByID(t, a.GetMetadata().GetId()); !ok || s.GetStatus().GetPhase() != openshellv1.SandboxPhase_SANDBOX_PHASE_READY {
		t.Errorf("after the refused delete: %v", s)
	}
	calls := g.Calls(conditionalv1.ConditionalSandboxes_DeleteSandbox_FullMethodName)
	if len(calls) != 1 || calls[0].Code != codes.Unimplemented {
		t.Errorf("recorded %+v", calls)
	}
	if _, err := g.OpenShell().DeleteSandbox(call(t), plainDelete("web")); err != nil {
		t.Error(err)
	}
}

func TestRequirePrecondition(t *testing.T) {
	g := gatewaytest.Start(t, gatewaytest.RequirePrecondition())
	a := g.MustCreate(t, "web")
	for method, do := range map[string]func(where, name string) error{
		conditionalv1.ConditionalSandboxes_DeleteSandbox_FullMethodName: func(where, name string) error {
			_, err := g.OpenShell().DeleteSandbox(call(t), &openshellv1.DeleteSandboxRequest{Name: name, WorkspaceScope: inWorkspace(where)})
			return err
		},
		conditionalv1.ConditionalSandboxes_StopSandbox_FullMethodName: func(where, name string) error {
			_, err := g.OpenShell().StopSandbox(call(t), &openshellv1.StopSandboxRequest{Name: name, WorkspaceScope: inWorkspace(where)})
			return err
		},
		conditionalv1.ConditionalSandboxes_StartSandbox_FullMethodName: func(where, name string) error {
			_, err := g.OpenShell().StartSandbox(call(t), &openshellv1.StartSandboxRequest{Name: name, WorkspaceScope: inWorkspace(where)})
			return err
		},
	} {
		for _, about := range [][2]string{{"default", "web"}, {"default", "none"}, {"nowhere", "web"}} { // whatever is there
			err := do(about[0], about[1])
			var required *apierr.PreconditionRequired
			if wantCode(t, err, codes.FailedPrecondition); !errors.As(apierr.From(err), &required) || required.Method != method {
				t.Errorf("%s of %v: %v", method, about, err)
			}
		}
		wantCode(t, do("default", ""), codes.InvalidArgument)
	}
	if s, ok := g.GetByID(t, a.GetMetadata().GetId()); !ok || s.GetMetadata().GetResourceVersion() != a.GetMetadata().GetResourceVersion() {
		t.Errorf("after the refusals: %v", s)
	}
	if _, err := g.Conditional().DeleteSandbox(call(t), conditionalDelete(a.GetMetadata().GetId())); err != nil {
		t.Errorf("with a precondition: %v", err)
	}
}

func TestTLS(t *testing.T) {
	g := gatewaytest.Start(t, gatewaytest.WithTLS())
	if !strings.HasPrefix(g.Endpoint(), "https://") {
		t.Error(g.Endpoint())
	}
	g.MustCreate(t, "web")
	_, err := openshellv1.NewOpenShellClient(dial(t, g.Address())).Health(call(t), &openshellv1.HealthRequest{})
	wantCode(t, err, codes.Unavailable) // plaintext
}

func TestClientCertificates(t *testing.T) {
	g := gatewaytest.Start(t, gatewaytest.WithClientCertificate())
	g.MustCreate(t, "web")
	user, err := g.OpenShell().GetCurrentUser(call(t), &openshellv1.GetCurrentUserRequest{})
	if err != nil || user.GetSubject() != "tester" || user.GetIdentityProvider() != "mtls" || !slices.Equal(user.GetRoles(), []string{"openshell-admin"}) {
		t.Errorf("%v, %v", user, err)
	}
	transport, err := credentials.NewClientTLSFromFile(g.TLS().CACert, "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = openshellv1.NewOpenShellClient(dial(t, g.Address(), transport)).GetCurrentUser(call(t), &openshellv1.GetCurrentUserRequest{})
	wantCode(t, err, codes.Unauthenticated) // without a certificate
}

// Every answer names its request, also an error, also of a method that is not there.
func TestRequestIDHeader(t *testing.T) {
	g := gatewaytest.Start(t)
	conn := dial(t, g.Address())
	for _, given := range []string{"", "my-request-7", strings.Repeat("x", 257)} {
		ctx := call(t)
		if given != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, "x-request-id", given)
		}
		for _, method := range []string{
			openshellv1.OpenShell_Health_FullMethodName, openshellv1.OpenShell_GetSandbox_FullMethodName,
			openshellv1.OpenShell_CreateProvider_FullMethodName, "/openshell.v1.OpenShell/Nothing", "/no.such.Service/Nothing",
		} {
			var header, trailer metadata.MD
			_ = conn.Invoke(ctx, method, &openshellv1.HealthRequest{}, &openshellv1.HealthResponse{}, grpc.Header(&header), grpc.Trailer(&trailer))
			got := append(header.Get("x-request-id"), trailer.Get("x-request-id")...)
			if len(got) != 1 || got[0] == "" || given == "my-request-7" && got[0] != given || len(got[0]) > 256 {
				t.Errorf("%s with %q: x-request-id %q", method, given, got)
			}
		}
	}
}

func TestUnknownMethods(t *testing.T) {
	g := gatewaytest.Start(t)
	conn := dial(t, g.Address())
	for _, method := range []string{"/openshell.v1.OpenShell/Nothing", "/openshell.v9.OpenShell/Health"} {
		wantCode(t, conn.Invoke(call(t), method, &openshellv1.HealthRequest{}, &openshellv1.HealthResponse{}), codes.Unimplemented)
	}
}

func TestMessageLimit(t *testing.T) {
	g := gatewaytest.Start(t)
	ask := func(size int) error {
		req := &openshellv1.GetSandboxRequest{WorkspaceScope: gatewaytest.Default()}
		req.Name = strings.Repeat("x", size)
		req.Name = strings.Repeat("x", 2*size-proto.Size(req))
		if proto.Size(req) != size {
			t.Fatalf("%d bytes, not %d", proto.Size(req), size)
		}
		_, err := g.OpenShell().GetSandbox(call(t), req)
		return err
	}
	wantCode(t, ask(1<<20), codes.NotFound)
	wantCode(t, ask(1<<20+1), codes.ResourceExhausted)
}
