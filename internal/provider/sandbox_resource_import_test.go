package provider

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/client"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// rich is a sandbox with everything set, made by somebody else.
func rich(r *openshellv1.CreateSandboxRequest) {
	r.Labels = map[string]string{"team": "a", client.LabelManagedBy: client.ManagedByTerraform}
	r.Annotations = map[string]string{"note": "x", client.AnnotationCreateID: "0b5c6a5e-98a5-4a44-a3a5-6d1b5a6a0001"}
	r.Spec = &openshellv1.SandboxSpec{
		Providers: []string{"b", "a"},
		LogLevel:  "debug", Environment: map[string]string{"A": "b"}, Command: []string{"sleep", "1"},
		RestartPolicy: openshellv1.SandboxRestartPolicy_SANDBOX_RESTART_POLICY_ALWAYS,
		Template: &openshellv1.SandboxTemplate{
			Image: "example.com/a:1", DriverConfig: gatewaytest.DriverConfig(map[string]any{"ready_after": "10ms"}),
			RuntimeClassName: "gvisor", UserNamespaces: proto.Bool(false),
			Resources: &structpb.Struct{Fields: map[string]*structpb.Value{
				"limits": structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{"cpu": structpb.NewNumberValue(0.5), "memory": structpb.NewStringValue("1Gi")}}),
			}},
		},
		ResourceRequirements: &openshellv1.ResourceRequirements{Gpu: &openshellv1.GpuResourceRequirements{Count: proto.Uint32(2)}},
	}
}

// Each form gives the same state, of which a plan with the same configuration changes nothing.
func TestImport(t *testing.T) {
	g := gatewaytest.Start(t)
	g.MustProvider(t, "a")
	g.MustProvider(t, "b")
	sb := g.MustCreate(t, "web", gatewaytest.Request(rich))
	g.Annotate(t, "web", "internal.openshell.ai/auth-epoch", "7")
	id := sb.GetMetadata().GetId()
	s := connected(t, g, nil)
	config := values{
		"name": str("web"), "image": str("example.com/a:1"), "command": textsOf("sleep", "1"), "environment": textMap(map[string]string{"A": "b"}),
		"labels": textMap(map[string]string{"team": "a"}), "annotations": textMap(map[string]string{"note": "x"}), "log_level": str("debug"),
		"restart_policy": str("always"), "driver_config": str(` { "simulated" : { "ready_after" : "10ms" } } `), "runtime_class_name": str("gvisor"), "user_namespaces": boolean(false), "providers": textSetOf("a", "b"),
		"resources": full(object(t, s.sandboxType.AttributeTypes["resources"]), values{"cpu": str("500m"), "memory": str("1024Mi")}),
		"gpu":       full(object(t, s.sandboxType.AttributeTypes["gpu"]), values{"count": number(2)}),
	}
	for name, form := range map[string]struct {
		id       string
		identity values
	}{
		"name":                    {"web", nil},
		"workspace and name":      {"default/web", nil},
		"all three":               {"default/web@" + id, nil},
		"name and id":             {"web@" + id, nil},
		"identity":                {"", values{"workspace": str("default"), "name": str("web"), "id": str(id)}},
		"identity without id":     {"", values{"workspace": str("default"), "name": str("web")}},
		"identity, the name only": {"", values{"name": str("web")}},
	} {
		t.Run(name, func(t *testing.T) {
			state, diags := s.importState(t.Context(), form.id, form.identity)
			if len(diags) > 0 {
				t.Fatal(diags)
			}
			if state.text("id") != id || state.text("workspace_id") == "" || state.text("wait_for") != "ready" || !state["running"].IsNull() || !state["timeouts"].IsNull() {
				t.Errorf("state %v", state)
			}
			left, diags := s.refresh(t.Context(), state)
			if len(diags) > 0 || !sameState(left, state) {
				t.Errorf("refreshed %v\n%s", left, diags)
			}
			planned, after := s.plan(t.Context(), left, config)
			if len(planned.RequiresReplace) > 0 || !sameState(after, left) {
				t.Errorf("replaces %v, planned %v", planned.RequiresReplace, after)
			}
		})
	}
}

// What is not set is null, and a minimal configuration changes nothing.
func TestImportMinimal(t *testing.T) {
	g := gatewaytest.Start(t)
	g.MustCreate(t, "web")
	s := connected(t, g, nil)
	state, diags := s.importState(t.Context(), "web", nil)
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	for _, attribute := range []string{"command", "environment", "labels", "annotations", "log_level", "driver_config", "exit_code", "resources", "gpu", "runtime_class_name", "user_namespaces", "workload_template", "name_prefix", "providers"} {
		if !state[attribute].IsNull() {
			t.Errorf("%s is %v", attribute, state[attribute])
		}
	}
	planned, after := s.plan(t.Context(), state, values{"name": str("web")})
	if len(planned.RequiresReplace) > 0 || !sameState(after, state) {
		t.Errorf("replaces %v, planned %v", planned.RequiresReplace, after)
	}
}

func TestImportRefused(t *testing.T) {
	const other = "0b5c6a5e-98a5-4a44-a3a5-6d1b5a6a0009"
	g := gatewaytest.Start(t)
	id := g.MustCreate(t, "web").GetMetadata().GetId()
	s := connected(t, g, nil)
	for name, tc := range map[string]struct {
		id       string
		identity values
		says     []string
	}{
		"another id":             {"default/web@" + other, nil, []string{id, other}},
		"another id by identity": {"", values{"name": str("web"), "id": str(other)}, []string{id, other}},
		"missing":                {"default/nope", nil, []string{"no such sandbox"}},
		"missing workspace":      {"nowhere/web", nil, []string{"workspace"}},
		"no id after @":          {"default/web@", nil, []string{"UUID"}},
		"an id that is none":     {"default/web@web", nil, []string{"UUID", "WORKSPACE/NAME@ID"}},
		"an id alone":            {id, nil, []string{"NAME, NAME@ID, WORKSPACE/NAME"}},
		"too many parts":         {"a/b/c", nil, []string{"WORKSPACE/NAME"}},
		"no name":                {"default/", nil, []string{"must not be empty"}},
		"nothing":                {"", nil, []string{"must not be empty", "NAME@ID, WORKSPACE/NAME"}},
	} {
		t.Run(name, func(t *testing.T) {
			state, diags := s.importState(t.Context(), tc.id, tc.identity)
			if state != nil {
				t.Errorf("state %v", state)
			}
			expect(t, "error", diags.errors(), tc.says...)
		})
	}
	g.Intercept(gatewaytest.Refuse(codes.Unauthenticated, "/GetSandbox"))
	if state, diags := s.importState(t.Context(), "web", nil); state != nil || len(diags.errors()) != 1 {
		t.Errorf("state %v\n%s", state, diags)
	}
}
