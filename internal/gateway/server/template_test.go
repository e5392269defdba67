package server_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// templateRequest asks for a workload template in the workspace "default" that has everything.
func templateRequest(name string, edit func(*openshellv1.SandboxWorkloadTemplate)) *openshellv1.CreateSandboxTemplateRequest {
	template := &openshellv1.SandboxWorkloadTemplate{
		Metadata: &datamodelv1.ObjectMeta{Name: name, Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"note": "any\ntext"}},
		Spec: &openshellv1.SandboxWorkloadTemplateSpec{
			Workload: &openshellv1.SandboxWorkloadConfig{
				Image: "busybox", Environment: map[string]string{"A": "1"},
				Resources: &openshellv1.SandboxResources{Cpu: "500m", Memory: "1Gi", Gpu: &openshellv1.GpuResourceRequirements{Count: new(uint32(1))}},
			},
			DriverConfig:        gatewaytest.DriverConfig(map[string]any{"ready_after": "1ms"}),
			DesiredServiceLevel: &openshellv1.SandboxServiceLevel{Startup: &openshellv1.SandboxStartup{ReadyWithin: durationpb.New(time.Second), MaxBurst: 3}},
		},
	}
	if edit != nil {
		edit(template)
	}
	return &openshellv1.CreateSandboxTemplateRequest{Template: template, WorkspaceScope: gatewaytest.Default()}
}

func mustCreateTemplate(t *testing.T, g *gatewaytest.Gateway, name string, edit func(*openshellv1.SandboxWorkloadTemplate)) *openshellv1.SandboxWorkloadTemplate {
	t.Helper()
	reply, err := g.OpenShell().CreateSandboxTemplate(call(t), templateRequest(name, edit))
	if err != nil {
		t.Fatal(err)
	}
	return reply.GetTemplate()
}

func deleteTemplate(t *testing.T, g *gatewaytest.Gateway, name string, allowMissing bool) (openshellv1.DeletionOutcome, error) {
	t.Helper()
	reply, err := g.OpenShell().DeleteSandboxTemplate(call(t), &openshellv1.DeleteSandboxTemplateRequest{
		Name: name, WorkspaceScope: gatewaytest.Default(), AllowMissing: allowMissing,
	})
	return reply.GetOutcome(), err
}

func TestSandboxTemplates(t *testing.T) {
	g := gatewaytest.Start(t)
	before := time.Now().Add(-time.Minute)
	first := mustCreateTemplate(t, g, "small", func(tpl *openshellv1.SandboxWorkloadTemplate) {
		tpl.Metadata.Id, tpl.Metadata.ResourceVersion, tpl.Metadata.Workspace = anID, 9, "default"
	})
	want := templateRequest("small", nil).GetTemplate()
	want.Metadata.Workspace, want.Metadata.ResourceVersion = "default", 1
	want.Metadata.Id, want.Metadata.CreatedTime = first.GetMetadata().GetId(), first.GetMetadata().GetCreatedTime()
	if diff := cmp.Diff(want, first, protocmp.Transform()); diff != "" || uuid.Validate(first.GetMetadata().GetId()) != nil || first.GetMetadata().GetId() == anID ||
		first.GetMetadata().GetCreatedTime().AsTime().Before(before) {
		t.Errorf("(-want +got)\n%s", diff)
	}
	get := func(name string) (*openshellv1.SandboxWorkloadTemplate, error) {
		reply, err := g.OpenShell().GetSandboxTemplate(call(t), &openshellv1.GetSandboxTemplateRequest{Name: name, WorkspaceScope: gatewaytest.Default()})
		return reply.GetTemplate(), err
	}
	read, err := get("small")
	if diff := cmp.Diff(first, read, protocmp.Transform()); diff != "" || err != nil {
		t.Errorf("read: %v (-created +read)\n%s", err, diff)
	}
	_, err = get("none")
	wantPlain(t, err, codes.NotFound, "sandbox template 'none' not found in workspace 'default'")
	_, err = get("")
	wantPlain(t, err, codes.InvalidArgument, "name is required")
	_, err = g.OpenShell().CreateSandboxTemplate(call(t), templateRequest("small", nil))
	wantPlain(t, err, codes.AlreadyExists, "'small' already exists")

	_, err = deleteTemplate(t, g, "none", false)
	wantPlain(t, err, codes.NotFound, "'none' not found")
	_, err = deleteTemplate(t, g, "", true)
	wantPlain(t, err, codes.InvalidArgument, "name is required")
	for _, outcome := range []openshellv1.DeletionOutcome{finished, alreadyAbsent} {
		if got, err := deleteTemplate(t, g, "small", true); err != nil || got != outcome {
			t.Errorf("delete: %v, %v, want %v", got, err, outcome)
		}
	}
	if again := mustCreateTemplate(t, g, "small", nil); again.GetMetadata().GetId() == first.GetMetadata().GetId() {
		t.Error("the id was used again")
	}
}

func TestSandboxTemplateRefusals(t *testing.T) {
	g := gatewaytest.Start(t)
	x := strings.Repeat
	for field, edits := range map[string][]func(*openshellv1.SandboxWorkloadTemplate){
		"template.metadata.name": {
			func(tpl *openshellv1.SandboxWorkloadTemplate) { tpl.Metadata = nil },
			func(tpl *openshellv1.SandboxWorkloadTemplate) { tpl.Metadata.Name = "" },
			func(tpl *openshellv1.SandboxWorkloadTemplate) { tpl.Metadata.Name = "A" },
			func(tpl *openshellv1.SandboxWorkloadTemplate) { tpl.Metadata.Name = x("a", 20) },
		},
		"template.metadata.workspace": {func(tpl *openshellv1.SandboxWorkloadTemplate) { tpl.Metadata.Workspace = "other" }},
		"template.metadata.annotations": {
			func(tpl *openshellv1.SandboxWorkloadTemplate) { tpl.Metadata.Annotations = entries(129, "") },
		},
		"template.spec":                {func(tpl *openshellv1.SandboxWorkloadTemplate) { tpl.Spec = nil }},
		"template.spec.workload":       {func(tpl *openshellv1.SandboxWorkloadTemplate) { tpl.Spec.Workload = nil }},
		"template.spec.workload.image": {func(tpl *openshellv1.SandboxWorkloadTemplate) { tpl.Spec.Workload.Image = x("a", 1025) }},
		"template.spec.workload.environment": {
			func(tpl *openshellv1.SandboxWorkloadTemplate) { tpl.Spec.Workload.Environment = entries(129, "") },
			func(tpl *openshellv1.SandboxWorkloadTemplate) {
				tpl.Spec.Workload.Environment = map[string]string{"OPENSHELL_A": ""}
			},
		},
		"template.spec.workload.resources": {func(tpl *openshellv1.SandboxWorkloadTemplate) {
			tpl.Spec.Workload.Resources.Memory = x("1", 65536)
		}},
		"template.spec.workload.resources.gpu.count": {func(tpl *openshellv1.SandboxWorkloadTemplate) {
			tpl.Spec.Workload.Resources.Gpu.Count = new(uint32(0))
		}},
		"template.spec.driver_config": {func(tpl *openshellv1.SandboxWorkloadTemplate) { tpl.Spec.DriverConfig = sized(65537) }},
		"template.spec.driver_config.simulated.ready_afer": {func(tpl *openshellv1.SandboxWorkloadTemplate) {
			tpl.Spec.DriverConfig = gatewaytest.DriverConfig(map[string]any{"ready_afer": "1s"})
		}},
		"template.spec.driver_config.simulated.rootfs_tar_path": {func(tpl *openshellv1.SandboxWorkloadTemplate) {
			tpl.Spec.DriverConfig = gatewaytest.DriverConfig(map[string]any{"rootfs_tar_path": "/etc/shadow"})
		}},
		"template.spec.desired_service_level.startup.ready_within": {
			within(0, 0), within(-1, 0), within(0, -1), within(1, -1), within(0, 1_000_000_000), within(315_576_000_001, 0),
		},
	} {
		for _, edit := range edits {
			_, err := g.OpenShell().CreateSandboxTemplate(call(t), templateRequest("small", edit))
			wantField(t, err, field)
		}
	}
	create := func(req *openshellv1.CreateSandboxTemplateRequest) error {
		_, err := g.OpenShell().CreateSandboxTemplate(call(t), req)
		return err
	}
	wantPlain(t, create(&openshellv1.CreateSandboxTemplateRequest{WorkspaceScope: gatewaytest.Default()}), codes.InvalidArgument, "template is required")
	wantPlain(t, create(templateRequest("small", func(tpl *openshellv1.SandboxWorkloadTemplate) { tpl.Metadata.Labels = map[string]string{"-": ""} })), codes.InvalidArgument, "label")
	req := templateRequest("small", nil)
	req.WorkspaceScope = workspace("nowhere")
	wantPlain(t, create(req), codes.NotFound, "workspace 'nowhere' not found")
	req.WorkspaceScope = allWorkspaces()
	wantField(t, create(req), "workspace_scope")
	req.WorkspaceScope = nil
	wantField(t, create(req), "workspace_scope")

	// What is just within the limits is taken.
	mustCreateTemplate(t, g, x("a", 19), func(tpl *openshellv1.SandboxWorkloadTemplate) {
		tpl.Metadata.Annotations = entries(128, "")
		tpl.Spec.Workload.Image, tpl.Spec.Workload.Environment = x("a", 1024), entries(128, "")
		tpl.Spec.DriverConfig = sized(65536)
		within(0, 1)(tpl)
	})
	mustCreateTemplate(t, g, "least", func(tpl *openshellv1.SandboxWorkloadTemplate) {
		tpl.Spec = &openshellv1.SandboxWorkloadTemplateSpec{Workload: &openshellv1.SandboxWorkloadConfig{}}
	})
}

func within(seconds int64, nanos int32) func(*openshellv1.SandboxWorkloadTemplate) {
	return func(tpl *openshellv1.SandboxWorkloadTemplate) {
		tpl.Spec.DesiredServiceLevel.Startup.ReadyWithin = &durationpb.Duration{Seconds: seconds, Nanos: nanos}
	}
}

func TestListSandboxTemplates(t *testing.T) {
	g := gatewaytest.Start(t)
	mustCreateTeam(t, g)
	for _, name := range []string{"c", "a", "b"} {
		mustCreateTemplate(t, g, name, func(tpl *openshellv1.SandboxWorkloadTemplate) { tpl.Metadata.Labels = map[string]string{"is": name} })
	}
	other := templateRequest("a", nil)
	other.WorkspaceScope = workspace("team")
	if _, err := g.OpenShell().CreateSandboxTemplate(call(t), other); err != nil {
		t.Fatal(err)
	}
	list := func(req *openshellv1.ListSandboxTemplatesRequest) (names string) {
		t.Helper()
		for {
			reply, err := g.OpenShell().ListSandboxTemplates(call(t), req)
			if err != nil {
				t.Fatal(err)
			}
			for _, template := range reply.GetTemplates() {
				names += template.GetMetadata().GetWorkspace() + "/" + template.GetMetadata().GetName() + " "
			}
			if req.PageToken = reply.GetNextPageToken(); req.GetPageToken() == "" {
				return names
			}
		}
	}
	for _, size := range []int32{0, 1, 2} {
		for _, tc := range []struct {
			req  *openshellv1.ListSandboxTemplatesRequest
			want string
		}{
			{&openshellv1.ListSandboxTemplatesRequest{WorkspaceScope: gatewaytest.Default()}, "default/c default/a default/b "},
			{&openshellv1.ListSandboxTemplatesRequest{WorkspaceScope: allWorkspaces()}, "default/c default/a default/b team/a "},
			{&openshellv1.ListSandboxTemplatesRequest{WorkspaceScope: allWorkspaces(), LabelSelector: "is=a"}, "default/a "},
		} {
			tc.req.PageSize = size
			if got := list(tc.req); got != tc.want {
				t.Errorf("pages of %d: %s, want %s", size, got, tc.want)
			}
		}
	}
	_, err := g.OpenShell().ListSandboxTemplates(call(t), &openshellv1.ListSandboxTemplatesRequest{WorkspaceScope: workspace("nowhere")})
	wantPlain(t, err, codes.NotFound, "workspace 'nowhere' not found")
	_, err = g.OpenShell().ListSandboxTemplates(call(t), &openshellv1.ListSandboxTemplatesRequest{WorkspaceScope: gatewaytest.Default(), LabelSelector: "a"})
	wantPlain(t, err, codes.InvalidArgument, "label_selector")
}

// A sandbox gets from its template what that decides, and the rest from the request. What becomes of the template then
// does not matter to it.
func TestCreateFromTemplate(t *testing.T) {
	g := gatewaytest.Start(t)
	mustCreateTemplate(t, g, "small", nil)
	reply, err := g.OpenShell().CreateSandbox(call(t), &openshellv1.CreateSandboxRequest{
		Name: "web", WorkloadTemplate: "small", WorkspaceScope: gatewaytest.Default(),
		Spec: &openshellv1.SandboxSpec{Command: []string{"sleep", "1"}, RestartPolicy: openshellv1.SandboxRestartPolicy_SANDBOX_RESTART_POLICY_ALWAYS},
	})
	if err != nil {
		t.Fatal(err)
	}
	limits, err := structpb.NewStruct(map[string]any{"limits": map[string]any{"cpu": "500m", "memory": "1Gi"}})
	if err != nil {
		t.Fatal(err)
	}
	want := &openshellv1.SandboxSpec{
		Command: []string{"sleep", "1"}, RestartPolicy: openshellv1.SandboxRestartPolicy_SANDBOX_RESTART_POLICY_ALWAYS,
		Environment: map[string]string{"A": "1"},
		Template: &openshellv1.SandboxTemplate{
			Image: "busybox", Resources: limits, DriverConfig: gatewaytest.DriverConfig(map[string]any{"ready_after": "1ms"}),
		},
		ResourceRequirements:    &openshellv1.ResourceRequirements{Gpu: &openshellv1.GpuResourceRequirements{Count: new(uint32(1))}},
		ProviderAttachmentEpoch: reply.GetSandbox().GetSpec().GetProviderAttachmentEpoch(),
	}
	if diff := cmp.Diff(want, reply.GetSandbox().GetSpec(), protocmp.Transform()); diff != "" {
		t.Errorf("spec (-want +got)\n%s", diff)
	}
	if outcome, err := deleteTemplate(t, g, "small", false); err != nil || outcome != finished {
		t.Errorf("delete of the template: %v, %v", outcome, err)
	}
	s := g.WaitPhase(t, id(reply.GetSandbox()), ready)
	origin := &openshellv1.SandboxWorkloadTemplateProvenance{Name: "small", ResourceVersion: "1"}
	if diff := cmp.Diff(origin, s.GetCreatedFromWorkloadTemplate(), protocmp.Transform()); diff != "" {
		t.Errorf("provenance (-want +got)\n%s", diff)
	}
	for name, scope := range map[string]*datamodelv1.WorkspaceSelector{"one": gatewaytest.Default(), "all": allWorkspaces()} {
		list, err := g.OpenShell().ListSandboxes(call(t), &openshellv1.ListSandboxesRequest{WorkspaceScope: scope})
		if err != nil || len(list.GetSandboxes()) != 1 || list.GetSandboxes()[0].GetCreatedFromWorkloadTemplate().GetName() != "small" {
			t.Errorf("%s: %v, %v", name, list, err)
		}
	}
}

// A template that leaves something out leaves it to the gateway, and the request may have no spec.
func TestCreateFromTheLeastTemplate(t *testing.T) {
	g := gatewaytest.Start(t)
	mustCreateTemplate(t, g, "least", func(tpl *openshellv1.SandboxWorkloadTemplate) {
		tpl.Spec = &openshellv1.SandboxWorkloadTemplateSpec{Workload: &openshellv1.SandboxWorkloadConfig{}}
	})
	reply, err := g.OpenShell().CreateSandbox(call(t), &openshellv1.CreateSandboxRequest{WorkloadTemplate: "least", WorkspaceScope: gatewaytest.Default()})
	spec := reply.GetSandbox().GetSpec()
	if err != nil || spec.GetTemplate().GetImage() != "nvcr.io/nvidia/base/ubuntu:24.04" || spec.GetTemplate().GetResources() != nil || !spec.GetTty() ||
		spec.GetResourceRequirements() != nil {
		t.Errorf("%v, %v", reply, err)
	}
}

func TestCreateFromTemplateRefusals(t *testing.T) {
	g := gatewaytest.Start(t)
	mustCreateTemplate(t, g, "small", nil)
	create := func(template string, spec *openshellv1.SandboxSpec) error {
		_, err := g.OpenShell().CreateSandbox(call(t), &openshellv1.CreateSandboxRequest{WorkloadTemplate: template, Spec: spec, WorkspaceScope: gatewaytest.Default()})
		return err
	}
	wantPlain(t, create("none", nil), codes.NotFound, "sandbox template 'none' not found in workspace 'default'")
	for field, spec := range map[string]*openshellv1.SandboxSpec{
		"spec.log_level":             {LogLevel: "debug"},
		"spec.environment":           {Environment: map[string]string{"A": "2"}},
		"spec.template":              {Template: &openshellv1.SandboxTemplate{}},
		"spec.resource_requirements": {ResourceRequirements: &openshellv1.ResourceRequirements{}},
	} {
		wantField(t, create("small", spec), field)
	}
	list, err := g.OpenShell().ListSandboxes(call(t), &openshellv1.ListSandboxesRequest{WorkspaceScope: gatewaytest.Default()})
	if err != nil || len(list.GetSandboxes()) != 0 {
		t.Errorf("%v, %v", list, err)
	}
}

func TestTemplateLimit(t *testing.T) {
	const limit = 1000
	g := gatewaytest.Start(t)
	names := make(chan string, limit)
	for i := range limit {
		names <- fmt.Sprintf("t-%d", i)
	}
	close(names)
	var creating sync.WaitGroup
	for range 16 {
		creating.Go(func() {
			for name := range names {
				if _, err := g.OpenShell().CreateSandboxTemplate(call(t), templateRequest(name, nil)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	creating.Wait()
	_, err := g.OpenShell().CreateSandboxTemplate(call(t), templateRequest("one-more", nil))
	wantPlain(t, err, codes.ResourceExhausted, "limit")
	if _, err := deleteTemplate(t, g, "t-1", false); err != nil {
		t.Fatal(err)
	}
	mustCreateTemplate(t, g, "one-more", nil)
}
