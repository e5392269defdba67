package server_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"

	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

func createRequest(edit func(*openshellv1.CreateSandboxRequest)) *openshellv1.CreateSandboxRequest {
	req := &openshellv1.CreateSandboxRequest{
		WorkspaceScope: gatewaytest.Default(), Spec: &openshellv1.SandboxSpec{Template: &openshellv1.SandboxTemplate{}},
	}
	if edit != nil {
		edit(req)
	}
	return req
}

// What a request leaves out is filled in, and nothing else is touched (contract, CreateSandbox).
func TestCreateDefaults(t *testing.T) {
	g := gatewaytest.Start(t)
	reply, err := g.OpenShell().CreateSandbox(call(t), &openshellv1.CreateSandboxRequest{
		WorkspaceScope: gatewaytest.Default(), Spec: &openshellv1.SandboxSpec{ProviderAttachmentEpoch: "mine", LogLevel: "debug"},
		AwaitMainProcessAttachment: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	s := reply.GetSandbox()
	meta := s.GetMetadata()
	if u, err := uuid.Parse(meta.GetId()); err != nil || u.Version() != 4 || meta.GetId() != strings.ToLower(meta.GetId()) {
		t.Errorf("id %s", meta.GetId())
	}
	if !regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`).MatchString(meta.GetName()) || len(meta.GetName()) > 19 {
		t.Errorf("name %q", meta.GetName())
	}
	if meta.GetWorkspace() != "default" || meta.GetCreatedTime() == nil || meta.GetResourceVersion() == 0 || meta.GetDeletionTime() != nil {
		t.Errorf("metadata %v", meta)
	}
	epoch := s.GetSpec().GetProviderAttachmentEpoch()
	if uuid.Validate(epoch) != nil {
		t.Errorf("epoch %q", epoch)
	}
	want := &openshellv1.SandboxSpec{
		LogLevel: "debug", Template: &openshellv1.SandboxTemplate{Image: "nvcr.io/nvidia/base/ubuntu:24.04"},
		Tty: true, RestartPolicy: openshellv1.SandboxRestartPolicy_SANDBOX_RESTART_POLICY_NEVER, ProviderAttachmentEpoch: epoch,
	}
	if diff := cmp.Diff(want, s.GetSpec(), protocmp.Transform()); diff != "" {
		t.Errorf("spec (-want +got)\n%s", diff)
	}
	if st := s.GetStatus(); st.GetPhase() != provisioning || st.GetConfigurationAdmission().GetState() != openshellv1.ConfigurationAdmissionState_CONFIGURATION_ADMISSION_STATE_PENDING ||
		st.ConfigurationActivated == nil || st.GetConfigurationActivated() || st.GetProvisioning() == nil {
		t.Errorf("status %v", st)
	}
}

func TestCreateKeepsWhatIsGiven(t *testing.T) {
	g := gatewaytest.Start(t)
	req := createRequest(func(r *openshellv1.CreateSandboxRequest) {
		r.Name = "web"
		r.Labels = map[string]string{"example.com/a": "b"}
		r.Annotations = map[string]string{"note": "any\ntext"}
		r.Spec = &openshellv1.SandboxSpec{
			LogLevel: "info", Environment: map[string]string{"A": "1"}, Command: []string{"sleep", ""}, RestartPolicy: 3,
			Template: &openshellv1.SandboxTemplate{
				Image: "img", RuntimeClassName: "rc", AgentSocket: "s", Labels: map[string]string{"l": "m"}, Environment: map[string]string{"B": "2"},
				UserNamespaces: new(false), DriverConfig: gatewaytest.DriverConfig(map[string]any{"ready_after": "1h"}),
			},
			Policy:               &sandboxv1.SandboxPolicy{Version: 1},
			ResourceRequirements: &openshellv1.ResourceRequirements{Gpu: &openshellv1.GpuResourceRequirements{Count: new(uint32(1))}},
		}
	})
	reply, err := g.OpenShell().CreateSandbox(call(t), req)
	if err != nil {
		t.Fatal(err)
	}
	req.Spec.ProviderAttachmentEpoch = reply.GetSandbox().GetSpec().GetProviderAttachmentEpoch()
	if diff := cmp.Diff(req.GetSpec(), reply.GetSandbox().GetSpec(), protocmp.Transform()); diff != "" {
		t.Errorf("spec (-want +got)\n%s", diff)
	}
	meta := reply.GetSandbox().GetMetadata()
	if diff := cmp.Diff(req.GetLabels(), meta.GetLabels()) + cmp.Diff(req.GetAnnotations(), meta.GetAnnotations()); diff != "" || meta.GetName() != "web" {
		t.Error(meta, diff)
	}
	read, err := g.OpenShell().GetSandbox(call(t), &openshellv1.GetSandboxRequest{Name: "web", WorkspaceScope: gatewaytest.Default()})
	if diff := cmp.Diff(reply, read, protocmp.Transform()); err != nil || diff != "" {
		t.Errorf("read: %v\n%s", err, diff)
	}
}

func TestCreateNeverAdopts(t *testing.T) {
	g := gatewaytest.Start(t)
	holder := g.MustCreate(t, "web")
	_, err := g.OpenShell().CreateSandbox(call(t), createRequest(func(r *openshellv1.CreateSandboxRequest) { r.Name = "web" }))
	wantPlain(t, err, codes.AlreadyExists, "sandbox 'web' already exists")
	wantUnchanged(t, g, holder)
}

func TestCreateRefusedByTheDriver(t *testing.T) {
	g := gatewaytest.Start(t)
	steer := func(keys map[string]any) *openshellv1.CreateSandboxRequest {
		return createRequest(func(r *openshellv1.CreateSandboxRequest) {
			r.Name = "web"
			r.Spec.Template.DriverConfig = gatewaytest.DriverConfig(keys)
		})
	}
	_, err := g.OpenShell().CreateSandbox(call(t), steer(map[string]any{"create_error": "no such image"}))
	wantPlain(t, err, codes.Internal, "no such image")
	if s, ok := g.Get(t, "web"); ok {
		t.Errorf("it is there: %v", s)
	}
	_, err = g.OpenShell().CreateSandbox(call(t), steer(map[string]any{"ready_afer": "1s"}))
	wantField(t, err, "spec.template.driver_config.simulated.ready_afer")
}

// What a request refers to must be there.
func TestCreateReferences(t *testing.T) {
	g := gatewaytest.Start(t)
	create := func(edit func(*openshellv1.CreateSandboxRequest)) error {
		_, err := g.OpenShell().CreateSandbox(call(t), createRequest(edit))
		return err
	}
	wantPlain(t, create(func(r *openshellv1.CreateSandboxRequest) { r.WorkspaceScope = workspace("nowhere") }), codes.NotFound, "workspace 'nowhere' not found")
	wantPlain(t, create(func(r *openshellv1.CreateSandboxRequest) { r.Spec, r.WorkloadTemplate = nil, "none" }), codes.NotFound, "'none'")
	wantPlain(t, create(func(r *openshellv1.CreateSandboxRequest) { r.Spec.Providers = []string{"gh"} }), codes.FailedPrecondition, "'gh'")
	list, err := g.OpenShell().ListSandboxes(call(t), &openshellv1.ListSandboxesRequest{WorkspaceScope: gatewaytest.Default()})
	if err != nil || len(list.GetSandboxes()) != 0 {
		t.Errorf("%v, %v", list, err)
	}
}

// entries makes a map of n entries.
func entries(n int, value string) map[string]string {
	m := map[string]string{}
	for i := range n {
		m[fmt.Sprintf("k%03d", i)] = value
	}
	return m
}

func strs(n int, s string) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = s
	}
	return all
}

// exactly makes a message of n bytes encoded, from a text that it carries.
func exactly[M proto.Message](n int, message func(text string) M) M {
	m := message(strings.Repeat("x", n))
	m = message(strings.Repeat("x", 2*n-proto.Size(m)))
	if proto.Size(m) != n {
		panic(fmt.Sprintf("%d bytes, not %d", proto.Size(m), n))
	}
	return m
}

func sized(n int) *structpb.Struct {
	return exactly(n, func(text string) *structpb.Struct {
		return &structpb.Struct{Fields: map[string]*structpb.Value{"k": structpb.NewStringValue(text)}}
	})
}

func policySized(n int) *sandboxv1.SandboxPolicy {
	return exactly(n, func(text string) *sandboxv1.SandboxPolicy {
		return &sandboxv1.SandboxPolicy{Version: 1, NetworkPolicies: map[string]*sandboxv1.NetworkPolicyRule{"r": {Name: text}}}
	})
}

// Every limit at its edge: the first is taken, the second is one too many (contract, limits).
func TestCreateLimits(t *testing.T) {
	type edit = func(*openshellv1.CreateSandboxRequest)
	x := strings.Repeat
	g := gatewaytest.Start(t)
	n := 0
	for name, tc := range map[string]struct {
		field          string // "" for errors without details
		within, beyond edit
	}{
		"spec":           {"", nil, func(r *openshellv1.CreateSandboxRequest) { r.Spec = nil }},
		"name":           {"name", func(r *openshellv1.CreateSandboxRequest) { r.Name = x("a", 19) }, func(r *openshellv1.CreateSandboxRequest) { r.Name = x("a", 20) }},
		"name's letters": {"name", func(r *openshellv1.CreateSandboxRequest) { r.Name = "0-a" }, func(r *openshellv1.CreateSandboxRequest) { r.Name = "A" }},
		"name's hyphens": {"name", nil, func(r *openshellv1.CreateSandboxRequest) { r.Name = "a--b" }},
		"name's end":     {"name", nil, func(r *openshellv1.CreateSandboxRequest) { r.Name = "a-" }},
		"label key":      {"", func(r *openshellv1.CreateSandboxRequest) { r.Labels = map[string]string{x("a", 63): ""} }, func(r *openshellv1.CreateSandboxRequest) { r.Labels = map[string]string{x("a", 64): ""} }},
		"label key's size": {"", func(r *openshellv1.CreateSandboxRequest) {
			r.Labels = map[string]string{x("a", 189) + "/" + x("b", 63): ""}
		}, func(r *openshellv1.CreateSandboxRequest) {
			r.Labels = map[string]string{x("a", 190) + "/" + x("b", 63): ""}
		}},
		"label value":      {"", func(r *openshellv1.CreateSandboxRequest) { r.Labels = map[string]string{"a": x("a", 63)} }, func(r *openshellv1.CreateSandboxRequest) { r.Labels = map[string]string{"a": x("a", 64)} }},
		"annotations":      {"annotations", func(r *openshellv1.CreateSandboxRequest) { r.Annotations = entries(128, "") }, func(r *openshellv1.CreateSandboxRequest) { r.Annotations = entries(129, "") }},
		"annotation":       {"annotations[a]", func(r *openshellv1.CreateSandboxRequest) { r.Annotations = map[string]string{"a": x("\n", 8192)} }, func(r *openshellv1.CreateSandboxRequest) { r.Annotations = map[string]string{"a": x("x", 8193)} }},
		"log level":        {"spec.log_level", func(r *openshellv1.CreateSandboxRequest) { r.Spec.LogLevel = x("a", 32) }, func(r *openshellv1.CreateSandboxRequest) { r.Spec.LogLevel = x("a", 33) }},
		"environment":      {"spec.environment", func(r *openshellv1.CreateSandboxRequest) { r.Spec.Environment = entries(128, "v") }, func(r *openshellv1.CreateSandboxRequest) { r.Spec.Environment = entries(129, "v") }},
		"variable's key":   {"spec.environment", func(r *openshellv1.CreateSandboxRequest) { r.Spec.Environment = map[string]string{x("K", 256): ""} }, func(r *openshellv1.CreateSandboxRequest) { r.Spec.Environment = map[string]string{x("K", 257): ""} }},
		"variable's name":  {"spec.environment", nil, func(r *openshellv1.CreateSandboxRequest) { r.Spec.Environment = map[string]string{"1A": ""} }},
		"reserved":         {"spec.environment", func(r *openshellv1.CreateSandboxRequest) { r.Spec.Environment = map[string]string{"OPENSHELL": ""} }, func(r *openshellv1.CreateSandboxRequest) { r.Spec.Environment = map[string]string{"OPENSHELL_X": ""} }},
		"variable":         {"spec.environment[A]", func(r *openshellv1.CreateSandboxRequest) { r.Spec.Environment = map[string]string{"A": x("v", 8192)} }, func(r *openshellv1.CreateSandboxRequest) { r.Spec.Environment = map[string]string{"A": x("v", 8193)} }},
		"variable's lines": {"spec.environment[A]", func(r *openshellv1.CreateSandboxRequest) { r.Spec.Environment = map[string]string{"A": "\t"} }, func(r *openshellv1.CreateSandboxRequest) { r.Spec.Environment = map[string]string{"A": "secret\n"} }},
		"environment's size": { // 32 entries of 4-byte keys
			"spec.environment", func(r *openshellv1.CreateSandboxRequest) { r.Spec.Environment = entries(32, x("v", 8188)) },
			func(r *openshellv1.CreateSandboxRequest) {
				r.Spec.Environment = entries(32, x("v", 8188))
				r.Spec.Environment["k000"] += "v"
			},
		},
		"image":                {"spec.template.image", func(r *openshellv1.CreateSandboxRequest) { r.Spec.Template.Image = x("i", 1024) }, func(r *openshellv1.CreateSandboxRequest) { r.Spec.Template.Image = x("i", 1025) }},
		"runtime class":        {"spec.template.runtime_class_name", func(r *openshellv1.CreateSandboxRequest) { r.Spec.Template.RuntimeClassName = x("i", 1024) }, func(r *openshellv1.CreateSandboxRequest) { r.Spec.Template.RuntimeClassName = x("i", 1025) }},
		"agent socket":         {"spec.template.agent_socket", func(r *openshellv1.CreateSandboxRequest) { r.Spec.Template.AgentSocket = x("i", 1024) }, func(r *openshellv1.CreateSandboxRequest) { r.Spec.Template.AgentSocket = x("i", 1025) }},
		"template labels":      {"spec.template.labels", func(r *openshellv1.CreateSandboxRequest) { r.Spec.Template.Labels = entries(128, "any text") }, func(r *openshellv1.CreateSandboxRequest) { r.Spec.Template.Labels = entries(129, "") }},
		"template label's key": {"spec.template.labels", func(r *openshellv1.CreateSandboxRequest) { r.Spec.Template.Labels = map[string]string{x("k", 256): ""} }, func(r *openshellv1.CreateSandboxRequest) { r.Spec.Template.Labels = map[string]string{x("k", 257): ""} }},
		"template annotations": {"spec.template.annotations[a]", func(r *openshellv1.CreateSandboxRequest) {
			r.Spec.Template.Annotations = map[string]string{"a": x("v", 8192)}
		}, func(r *openshellv1.CreateSandboxRequest) {
			r.Spec.Template.Annotations = map[string]string{"a": x("v", 8193)}
		}},
		"template environment": {"spec.template.environment", func(r *openshellv1.CreateSandboxRequest) { r.Spec.Template.Environment = entries(128, "") }, func(r *openshellv1.CreateSandboxRequest) { r.Spec.Template.Environment = map[string]string{"A-B": ""} }},
		"resources":            {"spec.template.resources", func(r *openshellv1.CreateSandboxRequest) { r.Spec.Template.Resources = sized(65536) }, func(r *openshellv1.CreateSandboxRequest) { r.Spec.Template.Resources = sized(65537) }},
		"driver config":        {"spec.template.driver_config", func(r *openshellv1.CreateSandboxRequest) { r.Spec.Template.DriverConfig = sized(65536) }, func(r *openshellv1.CreateSandboxRequest) { r.Spec.Template.DriverConfig = sized(65537) }},
		"reserved driver key": {"spec.template.driver_config.other.rootfs_tar_path", nil, func(r *openshellv1.CreateSandboxRequest) {
			r.Spec.Template.DriverConfig, _ = structpb.NewStruct(map[string]any{"other": map[string]any{"rootfs_tar_path": "/etc"}})
		}},
		"policy":    {"spec.policy", func(r *openshellv1.CreateSandboxRequest) { r.Spec.Policy = policySized(262144) }, func(r *openshellv1.CreateSandboxRequest) { r.Spec.Policy = policySized(262145) }},
		"providers": {"spec.providers", nil, func(r *openshellv1.CreateSandboxRequest) { r.Spec.Providers = strs(33, "p") }},
		"gpu": {
			"spec.resource_requirements.gpu.count",
			func(r *openshellv1.CreateSandboxRequest) {
				r.Spec.ResourceRequirements = &openshellv1.ResourceRequirements{Gpu: &openshellv1.GpuResourceRequirements{Count: new(uint32(1))}}
			},
			func(r *openshellv1.CreateSandboxRequest) {
				r.Spec.ResourceRequirements = &openshellv1.ResourceRequirements{Gpu: &openshellv1.GpuResourceRequirements{Count: new(uint32)}}
			},
		},
		"arguments":          {"spec.command", func(r *openshellv1.CreateSandboxRequest) { r.Spec.Command = strs(256, "a") }, func(r *openshellv1.CreateSandboxRequest) { r.Spec.Command = strs(257, "a") }},
		"argument":           {"spec.command[1]", func(r *openshellv1.CreateSandboxRequest) { r.Spec.Command = []string{"a", x("b", 32768)} }, func(r *openshellv1.CreateSandboxRequest) { r.Spec.Command = []string{"a", x("b", 32769)} }},
		"command":            {"spec.command", func(r *openshellv1.CreateSandboxRequest) { r.Spec.Command = strs(8, x("b", 32768)) }, func(r *openshellv1.CreateSandboxRequest) { r.Spec.Command = append(strs(8, x("b", 32768)), "b") }},
		"NUL in an argument": {"spec.command[1]", nil, func(r *openshellv1.CreateSandboxRequest) { r.Spec.Command = []string{"a", "\x00"} }},
		"empty program":      {"spec.command[0]", func(r *openshellv1.CreateSandboxRequest) { r.Spec.Command = []string{"a", ""} }, func(r *openshellv1.CreateSandboxRequest) { r.Spec.Command = []string{"", "a"} }},
		"restart policy":     {"spec.restart_policy", func(r *openshellv1.CreateSandboxRequest) { r.Spec.RestartPolicy = 3 }, func(r *openshellv1.CreateSandboxRequest) { r.Spec.RestartPolicy = 4 }},
		"workspace scope":    {"workspace_scope", nil, func(r *openshellv1.CreateSandboxRequest) { r.WorkspaceScope = nil }},
		"all workspaces":     {"workspace_scope", nil, func(r *openshellv1.CreateSandboxRequest) { r.WorkspaceScope = allWorkspaces() }},
		"empty workspace":    {"", nil, func(r *openshellv1.CreateSandboxRequest) { r.WorkspaceScope = workspace("") }},
		"long workspace":     {"", nil, func(r *openshellv1.CreateSandboxRequest) { r.WorkspaceScope = workspace(x("w", 20)) }},
		"request id":         {"request_id", nil, func(r *openshellv1.CreateSandboxRequest) { r.RequestId = "one" }},
	} {
		t.Run(name, func(t *testing.T) {
			within := createRequest(tc.within)
			if within.GetName() == "" { // those that are made up may meet each other
				within.Name = fmt.Sprintf("s%d", n)
			}
			n++
			if _, err := g.OpenShell().CreateSandbox(call(t), within); err != nil {
				t.Errorf("within the limit: %v", err)
			}
			_, err := g.OpenShell().CreateSandbox(call(t), createRequest(tc.beyond))
			if tc.field == "" {
				wantPlain(t, err, codes.InvalidArgument, "")
			} else {
				wantField(t, err, tc.field)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the error repeats a value: %v", err)
			}
		})
	}
}

// Of several mistakes the first in the order of checks is told: shapes, then the workspace, then what is referred to.
func TestCreateOrderOfChecks(t *testing.T) {
	g := gatewaytest.Start(t)
	for _, tc := range []struct {
		edit func(*openshellv1.CreateSandboxRequest)
		code codes.Code
		text string
	}{
		{func(r *openshellv1.CreateSandboxRequest) { r.Name, r.WorkspaceScope = "A", nil }, codes.InvalidArgument, "name"},
		{func(r *openshellv1.CreateSandboxRequest) { r.WorkspaceScope, r.Spec.Providers = nil, []string{"p"} }, codes.InvalidArgument, "workspace_scope"},
		{func(r *openshellv1.CreateSandboxRequest) {
			r.WorkspaceScope, r.Spec.Providers = workspace("no"), []string{"p"}
		}, codes.NotFound, "workspace"},
		{func(r *openshellv1.CreateSandboxRequest) {
			r.Spec.Providers, r.Spec.Template.DriverConfig = []string{"p"}, gatewaytest.DriverConfig(map[string]any{"x": 1})
		}, codes.FailedPrecondition, "provider"},
	} {
		_, err := g.OpenShell().CreateSandbox(call(t), createRequest(tc.edit))
		wantStatus(t, err, tc.code, tc.text)
	}
}
