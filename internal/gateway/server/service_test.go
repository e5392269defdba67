package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/testing/protocmp"

	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// Modes, for short.
const (
	strip       = openshellv1.ServiceAuthorizationMode_SERVICE_AUTHORIZATION_MODE_STRIP
	passthrough = openshellv1.ServiceAuthorizationMode_SERVICE_AUTHORIZATION_MODE_BEARER_PASSTHROUGH
)

func exposeRequest(sandbox, name string, port uint32) *openshellv1.ExposeServiceRequest {
	return &openshellv1.ExposeServiceRequest{Sandbox: sandbox, Name: name, TargetPort: port, WorkspaceScope: gatewaytest.Default()}
}

func mustExpose(t *testing.T, g *gatewaytest.Gateway, req *openshellv1.ExposeServiceRequest) *openshellv1.ServiceEndpointResponse {
	t.Helper()
	reply, err := g.OpenShell().ExposeService(call(t), req)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

func getService(t *testing.T, g *gatewaytest.Gateway, sandbox, name string) (*openshellv1.ServiceEndpointResponse, error) {
	t.Helper()
	return g.OpenShell().GetService(call(t), &openshellv1.GetServiceRequest{Sandbox: sandbox, Name: name, WorkspaceScope: gatewaytest.Default()})
}

func deleteService(t *testing.T, g *gatewaytest.Gateway, sandbox, name string, allowMissing bool) (openshellv1.DeletionOutcome, error) {
	t.Helper()
	reply, err := g.OpenShell().DeleteService(call(t), &openshellv1.DeleteServiceRequest{
		Sandbox: sandbox, Name: name, WorkspaceScope: gatewaytest.Default(), AllowMissing: allowMissing,
	})
	return reply.GetOutcome(), err
}

func TestExposeService(t *testing.T) {
	g := gatewaytest.Start(t)
	web := g.MustCreate(t, "web", gatewaytest.NoWait()) // any phase will do
	_, port, _ := strings.Cut(g.Address(), ":")
	for name, metadataName := range map[string]string{"api": "web--api", "": "web"} {
		first := mustExpose(t, g, exposeRequest("web", name, 80))
		meta := first.GetEndpoint().GetMetadata()
		want := &openshellv1.ServiceEndpointResponse{
			Endpoint: &openshellv1.ServiceEndpoint{
				Metadata: &datamodelv1.ObjectMeta{
					Id: meta.GetId(), Name: metadataName, Workspace: "default", Labels: map[string]string{"sandbox": "web"},
					ResourceVersion: 1, CreatedTime: meta.GetCreatedTime(),
				},
				SandboxId: id(web), Sandbox: "web", Name: name, TargetPort: 80, Domain: true, AuthorizationMode: strip,
			},
			Url: "http://default--" + metadataName + ".openshell.localhost:" + port + "/",
		}
		if diff := cmp.Diff(want, first, protocmp.Transform()); diff != "" || uuid.Validate(meta.GetId()) != nil || meta.GetCreatedTime() == nil {
			t.Errorf("%q (-want +got)\n%s", name, diff)
		}
		change := exposeRequest("web", name, 65535)
		change.AuthorizationMode = passthrough
		want.Endpoint.TargetPort, want.Endpoint.AuthorizationMode, want.Endpoint.Metadata.ResourceVersion = 65535, passthrough, 2
		if diff := cmp.Diff(want, mustExpose(t, g, change), protocmp.Transform()); diff != "" {
			t.Errorf("%q changed (-want +got)\n%s", name, diff)
		}
		read, err := getService(t, g, "web", name)
		if diff := cmp.Diff(want, read, protocmp.Transform()); err != nil || diff != "" {
			t.Errorf("%q read: %v (-want +got)\n%s", name, err, diff)
		}
	}
}

func TestServiceRefusals(t *testing.T) {
	g := gatewaytest.Start(t)
	g.MustCreate(t, "web")
	expose := func(req *openshellv1.ExposeServiceRequest) error {
		_, err := g.OpenShell().ExposeService(call(t), req)
		return err
	}
	longest := strings.Repeat("s", 19)
	wantStatus(t, expose(exposeRequest("web", longest, 1)), codes.OK, "")
	for _, name := range []string{longest + "s", "A", "-a", "a-", "a--b"} {
		wantField(t, expose(exposeRequest("web", name, 80)), "name")
		_, err := getService(t, g, "web", name)
		wantField(t, err, "name")
		_, err = deleteService(t, g, "web", name, true)
		wantField(t, err, "name")
	}
	wantField(t, expose(exposeRequest("web", "a", 0)), "target_port")
	wantStatus(t, expose(exposeRequest("web", "a", 65535)), codes.OK, "")
	wantField(t, expose(exposeRequest("web", "a", 65536)), "target_port")
	unknown := exposeRequest("web", "a", 80)
	unknown.AuthorizationMode = 3
	wantField(t, expose(unknown), "authorization_mode")

	wantPlain(t, expose(exposeRequest("", "a", 80)), codes.InvalidArgument, "sandbox is required")
	wantPlain(t, expose(exposeRequest("none", "a", 80)), codes.NotFound, "sandbox not found")
	elsewhere := exposeRequest("web", "a", 80)
	elsewhere.WorkspaceScope = workspace("nowhere")
	wantPlain(t, expose(elsewhere), codes.NotFound, "sandbox not found")
	elsewhere.RequestId = "one" // of a sandbox that is not there nothing else is wrong
	wantPlain(t, expose(elsewhere), codes.NotFound, "sandbox not found")
	_, err := g.OpenShell().DeleteService(call(t), &openshellv1.DeleteServiceRequest{Sandbox: "web", Name: "a", WorkspaceScope: workspace("nowhere"), RequestId: "one"})
	wantPlain(t, err, codes.NotFound, "sandbox not found")
	elsewhere.WorkspaceScope = allWorkspaces()
	wantField(t, expose(elsewhere), "workspace_scope")

	_, err = getService(t, g, "none", longest)
	wantPlain(t, err, codes.NotFound, "sandbox not found")
	_, err = getService(t, g, "web", "none")
	wantPlain(t, err, codes.NotFound, "service 'none' of sandbox 'web'")
	_, err = getService(t, g, "web", "")
	wantPlain(t, err, codes.NotFound, "the unnamed service of sandbox 'web'")
	_, err = deleteService(t, g, "none", longest, true)
	wantPlain(t, err, codes.NotFound, "sandbox not found")
	_, err = deleteService(t, g, "web", "none", false)
	wantPlain(t, err, codes.NotFound, "service 'none' of sandbox 'web'")
	for _, want := range []openshellv1.DeletionOutcome{finished, alreadyAbsent} {
		if outcome, err := deleteService(t, g, "web", longest, true); err != nil || outcome != want {
			t.Errorf("delete: %v, %v, want %v", outcome, err, want)
		}
	}
}

// Services are those of one sandbox, by its id: a successor of its name has none of them.
func TestServicesGoWithTheirSandbox(t *testing.T) {
	g := gatewaytest.Start(t)
	a := g.MustCreate(t, "web")
	before := mustExpose(t, g, exposeRequest("web", "api", 80)).GetEndpoint()
	b := g.Replace(t, "web")
	_, err := getService(t, g, "web", "api")
	wantPlain(t, err, codes.NotFound, "(id "+id(b)+")")
	after := mustExpose(t, g, exposeRequest("web", "api", 81)).GetEndpoint()
	if before.GetSandboxId() != id(a) || after.GetSandboxId() != id(b) || after.GetMetadata().GetId() == before.GetMetadata().GetId() || after.GetMetadata().GetResourceVersion() != 1 {
		t.Errorf("before %v, after %v", before, after)
	}
	list, err := g.OpenShell().ListServices(call(t), &openshellv1.ListServicesRequest{WorkspaceScope: gatewaytest.Default()})
	if err != nil || len(list.GetServices()) != 1 {
		t.Errorf("%v, %v", list, err)
	}
}

func TestListServices(t *testing.T) {
	g := gatewaytest.Start(t)
	mustCreateTeam(t, g)
	for _, scope := range []*datamodelv1.WorkspaceSelector{gatewaytest.Default(), workspace("team")} {
		for _, name := range []string{"web", "db"} {
			g.MustCreate(t, name, gatewaytest.NoWait(), gatewaytest.Request(func(r *openshellv1.CreateSandboxRequest) { r.WorkspaceScope = scope }))
			for _, service := range []string{"b", "", "a"} {
				req := exposeRequest(name, service, 80)
				req.WorkspaceScope = scope
				mustExpose(t, g, req)
			}
		}
	}
	list := func(req *openshellv1.ListServicesRequest) (names string) {
		t.Helper()
		for {
			reply, err := g.OpenShell().ListServices(call(t), req)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range reply.GetServices() {
				host, _, _ := strings.Cut(strings.TrimPrefix(s.GetUrl(), "http://"), ".")
				names += host + " "
			}
			if req.PageToken = reply.GetNextPageToken(); req.GetPageToken() == "" {
				return names
			}
		}
	}
	const web, db = "default--web--b default--web default--web--a ", "default--db--b default--db default--db--a "
	for _, size := range []int32{0, 1, 2, 3} {
		for _, tc := range []struct {
			req  *openshellv1.ListServicesRequest
			want string
		}{
			{&openshellv1.ListServicesRequest{Sandbox: "db", WorkspaceScope: gatewaytest.Default()}, db},
			{&openshellv1.ListServicesRequest{WorkspaceScope: gatewaytest.Default()}, web + db},
			{&openshellv1.ListServicesRequest{WorkspaceScope: allWorkspaces()}, web + db + strings.ReplaceAll(web+db, "default", "team")},
		} {
			tc.req.PageSize = size
			if got := list(tc.req); got != tc.want {
				t.Errorf("pages of %d: %s, want %s", size, got, tc.want)
			}
		}
	}
	refused := func(req *openshellv1.ListServicesRequest) error {
		_, err := g.OpenShell().ListServices(call(t), req)
		return err
	}
	wantPlain(t, refused(&openshellv1.ListServicesRequest{Sandbox: "none", WorkspaceScope: gatewaytest.Default()}), codes.NotFound, "sandbox not found")
	wantField(t, refused(&openshellv1.ListServicesRequest{Sandbox: "web", WorkspaceScope: allWorkspaces()}), "workspace_scope")
	wantPlain(t, refused(&openshellv1.ListServicesRequest{WorkspaceScope: workspace("nowhere")}), codes.NotFound, "workspace 'nowhere' not found")
	wantPlain(t, refused(&openshellv1.ListServicesRequest{PageSize: -1, WorkspaceScope: gatewaytest.Default()}), codes.InvalidArgument, "page_size")
	page, err := g.OpenShell().ListServices(call(t), &openshellv1.ListServicesRequest{Sandbox: "web", PageSize: 1, WorkspaceScope: gatewaytest.Default()})
	if err != nil {
		t.Fatal(err)
	}
	wantPlain(t, refused(&openshellv1.ListServicesRequest{Sandbox: "db", PageToken: page.GetNextPageToken(), WorkspaceScope: gatewaytest.Default()}), codes.InvalidArgument, "page_token")
}

// The services that a create asks for come into being with the sandbox, or not at all.
func TestCreateWithServices(t *testing.T) {
	g := gatewaytest.Start(t)
	create := func(steer map[string]any, exposures ...*openshellv1.SandboxServiceExposure) (*openshellv1.SandboxResponse, error) {
		return g.OpenShell().CreateSandbox(call(t), &openshellv1.CreateSandboxRequest{
			Name: "web", WorkspaceScope: gatewaytest.Default(), ServiceExposures: exposures,
			Spec: &openshellv1.SandboxSpec{Template: &openshellv1.SandboxTemplate{DriverConfig: gatewaytest.DriverConfig(steer)}},
		})
	}
	most := make([]*openshellv1.SandboxServiceExposure, 33)
	for i := range most {
		most[i] = &openshellv1.SandboxServiceExposure{Service: fmt.Sprintf("s%d", i), TargetPort: 80}
	}
	for field, exposures := range map[string][]*openshellv1.SandboxServiceExposure{
		"service_exposures":                       most,
		"service_exposures[1].service":            {{Service: "a", TargetPort: 80}, {Service: "a", TargetPort: 81}},
		"service_exposures[0].service":            {{Service: "A", TargetPort: 80}},
		"service_exposures[0].target_port":        {{Service: "a"}},
		"service_exposures[0].authorization_mode": {{Service: "a", TargetPort: 80, AuthorizationMode: 3}},
	} {
		_, err := create(nil, exposures...)
		wantField(t, err, field)
	}
	_, err := create(map[string]any{"create_error": "no such image"}, most[0])
	wantPlain(t, err, codes.Internal, "no such image")

	exposures := append(most[:31:31], &openshellv1.SandboxServiceExposure{TargetPort: 8080, AuthorizationMode: passthrough})
	reply, err := create(nil, exposures...)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range exposures {
		s, err := getService(t, g, "web", e.GetService())
		if err != nil || s.GetUrl() == "" || s.GetUrl() != reply.GetServiceUrls()[e.GetService()] || s.GetEndpoint().GetTargetPort() != e.GetTargetPort() ||
			s.GetEndpoint().GetSandboxId() != id(reply.GetSandbox()) {
			t.Errorf("%v: %v, %v", e, s, err)
		}
	}
	read, err := g.OpenShell().GetSandbox(call(t), &openshellv1.GetSandboxRequest{Name: "web", WorkspaceScope: gatewaytest.Default()})
	if err != nil || len(read.GetServiceUrls()) != 0 || len(reply.GetServiceUrls()) != len(exposures) {
		t.Errorf("%v, %v; at first %v", read, err, reply.GetServiceUrls())
	}
	services, err := g.OpenShell().ListServices(call(t), &openshellv1.ListServicesRequest{WorkspaceScope: gatewaytest.Default()})
	if err != nil || len(services.GetServices()) != len(exposures) {
		t.Errorf("%d services, %v", len(services.GetServices()), err)
	}
}
