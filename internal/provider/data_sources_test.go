package provider_test

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

func TestSandboxDataSource(t *testing.T) {
	t.Parallel()
	const data = "data.openshell_sandbox.this"
	g := gatewaytest.Start(t)
	sb := g.MustCreate(t, "web", gatewaytest.Request(func(r *openshellv1.CreateSandboxRequest) {
		r.Labels = map[string]string{"team": "a", "openshell-iac/managed-by": "terraform"}
		r.Annotations = map[string]string{"openshell-iac/create-id": "0b5c6a5e-98a5-4a44-a3a5-6d1b5a6a0001"}
		r.Spec.Environment = map[string]string{"SECRET": "environment-canary"}
		r.Spec.Command = []string{"sleep", "1"}
		r.Spec.Policy = &sandboxv1.SandboxPolicy{Version: 1, NetworkPolicies: map[string]*sandboxv1.NetworkPolicyRule{"web": {
			Name: "web", Endpoints: []*sandboxv1.NetworkEndpoint{{Host: "example.com", Port: 443}}, Binaries: []*sandboxv1.NetworkBinary{{Path: "/usr/bin/curl"}},
		}}}
		r.Spec.Template = &openshellv1.SandboxTemplate{RuntimeClassName: "gvisor", UserNamespaces: proto.Bool(true), Resources: &structpb.Struct{
			Fields: map[string]*structpb.Value{"limits": structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{"cpu": structpb.NewStringValue("2")}})},
		}}
		r.Spec.ResourceRequirements = &openshellv1.ResourceRequirements{Gpu: &openshellv1.GpuResourceRequirements{}}
	}))
	id := sb.GetMetadata().GetId()
	is := func(attribute string, check knownvalue.Check) statecheck.StateCheck {
		return statecheck.ExpectKnownValue(data, tfjsonpath.New(attribute), check)
	}
	config := func(more string) string {
		return with(g, "data \"openshell_sandbox\" \"this\" {\n  name = \"web\"\n  "+more+"\n}\n")
	}
	unit(t, g,
		resource.TestStep{Config: config(""), ConfigStateChecks: []statecheck.StateCheck{
			is("id", text(id)), is("workspace", text("default")), is("workspace_id", knownvalue.StringFunc(isUUID)), is("phase", text("ready")),
			is("labels", knownvalue.MapExact(map[string]knownvalue.Check{"team": text("a")})), is("annotations", knownvalue.Null()),
			is("command", knownvalue.ListExact([]knownvalue.Check{text("sleep"), text("1")})), is("tty", knownvalue.Bool(false)),
			is("restart_policy", text("never")), is("image", knownvalue.NotNull()), is("created_time", knownvalue.NotNull()), is("exit_code", knownvalue.Null()),
			is("resources", knownvalue.ObjectExact(map[string]knownvalue.Check{"cpu": text("2"), "memory": knownvalue.Null()})),
			is("gpu", knownvalue.ObjectExact(map[string]knownvalue.Check{"count": knownvalue.Null()})), is("workload_template", knownvalue.Null()),
			is("policy", knownvalue.StringRegexp(regexp.MustCompile(`(?s)network_policies:.*host: "?example\.com`))), is("providers", knownvalue.SetSizeExact(0)),
			is("runtime_class_name", text("gvisor")), is("user_namespaces", knownvalue.Bool(true)),
			is("create_id", text("0b5c6a5e-98a5-4a44-a3a5-6d1b5a6a0001")), is("resource_version", knownvalue.NotNull()), is("conditions", knownvalue.NotNull()),
		}},
		resource.TestStep{Config: config(fmt.Sprintf("id = %q", id)), PlanOnly: true},
		resource.TestStep{Config: config(`id = "0b5c6a5e-98a5-4a44-a3a5-6d1b5a6a0009"`), ExpectError: regexp.MustCompile(`belongs to another sandbox`)},
		resource.TestStep{Config: config(`id = "web"`), ExpectError: regexp.MustCompile(`must be a UUID`)},
		resource.TestStep{Config: config(`workspace = "elsewhere"`), ExpectError: regexp.MustCompile(`could not be read`)},
	)
}

// Lists take a workspace or all, and labels; what this provider made is found by its label.
func TestSandboxesDataSource(t *testing.T) {
	t.Parallel()
	g := gatewaytest.Start(t)
	if _, err := g.OpenShell().CreateWorkspace(t.Context(), &openshellv1.CreateWorkspaceRequest{Name: "elsewhere"}); err != nil {
		t.Fatal(err)
	}
	g.MustCreate(t, "stranger", gatewaytest.Request(func(r *openshellv1.CreateSandboxRequest) {
		r.Labels, r.Spec.Environment = map[string]string{"team": "b"}, map[string]string{"SECRET": "environment-canary"}
	}))
	made := labelled("ours", `name = "ours"`, `labels = { team = "a" }`) + labelled("far", `name = "far"`, `workspace = "elsewhere"`)
	list := func(arguments string) string {
		return with(g, made+"data \"openshell_sandboxes\" \"this\" {\n  "+arguments+"\n  depends_on = [openshell_sandbox.ours, openshell_sandbox.far]\n}\n"+
			"output \"names\" {\n  value = data.openshell_sandboxes.this.sandboxes[*].name\n}\n")
	}
	names := func(want ...string) []statecheck.StateCheck {
		var checks []knownvalue.Check
		for _, name := range want {
			checks = append(checks, text(name))
		}
		return []statecheck.StateCheck{statecheck.ExpectKnownOutputValue("names", knownvalue.ListExact(checks))}
	}
	one := statecheck.ExpectKnownValue("data.openshell_sandboxes.this", tfjsonpath.New("sandboxes"), knownvalue.ListExact([]knownvalue.Check{
		knownvalue.ObjectExact(map[string]knownvalue.Check{
			"id": knownvalue.StringFunc(isUUID), "name": text("ours"), "workspace": text("default"), "image": knownvalue.NotNull(), "phase": text("ready"),
			"labels": knownvalue.MapExact(map[string]knownvalue.Check{"team": text("a")}), "created_time": knownvalue.NotNull(), "exit_code": knownvalue.Null(),
			"create_id": knownvalue.StringFunc(isUUID),
		}),
	}))
	unit(t, g,
		resource.TestStep{Config: list(""), ConfigStateChecks: names("stranger", "ours")},
		resource.TestStep{Config: list(`label_selector = "openshell-iac/managed-by=terraform"`), ConfigStateChecks: append(names("ours"), one)},
		resource.TestStep{Config: list(`label_selector = "team=c"`), ConfigStateChecks: names()},
		resource.TestStep{Config: list(`workspace = "elsewhere"`), ConfigStateChecks: names("far")},
		resource.TestStep{Config: list("all_workspaces = true\n  label_selector = \"openshell-iac/managed-by=terraform\""), ConfigStateChecks: []statecheck.StateCheck{
			statecheck.ExpectKnownOutputValue("names", knownvalue.SetExact([]knownvalue.Check{text("ours"), text("far")})),
		}},
		resource.TestStep{Config: list(`label_selector = "team"`), ExpectError: regexp.MustCompile(`label_selector has "team" where`)},
		resource.TestStep{Config: list("all_workspaces = true\n  workspace = \"default\""), ExpectError: regexp.MustCompile(`(?s)all_workspaces.*workspace|workspace.*all_workspaces`)},
		resource.TestStep{Config: list(`workspace = "nowhere"`), ExpectError: regexp.MustCompile(`(?s)could not be listed.*nowhere`)},
	)
}

func TestCurrentUserDataSource(t *testing.T) {
	t.Parallel()
	g := gatewaytest.Start(t)
	is := func(attribute string, check knownvalue.Check) statecheck.StateCheck {
		return statecheck.ExpectKnownValue("data.openshell_current_user.this", tfjsonpath.New(attribute), check)
	}
	unit(t, g, resource.TestStep{Config: with(g, "data \"openshell_current_user\" \"this\" {}\n"), ConfigStateChecks: []statecheck.StateCheck{
		is("subject", text("unauthenticated-local-dev")), is("display_name", knownvalue.NotNull()), is("identity_provider", text("local_dev")),
		is("scopes", knownvalue.ListExact([]knownvalue.Check{text("openshell:all")})), is("roles", knownvalue.ListSizeExact(2)),
	}})
}

func TestGatewayDataSource(t *testing.T) {
	t.Parallel()
	const data = "data.openshell_gateway.this"
	for name, tc := range map[string]struct {
		options   []gatewaytest.Option
		supported bool
	}{
		"aware":   {[]gatewaytest.Option{gatewaytest.WithVersion("0.1.7")}, true},
		"unaware": {[]gatewaytest.Option{gatewaytest.WithVersion("0.1.7"), gatewaytest.WithoutConditional()}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := gatewaytest.Start(t, tc.options...)
			user := func(attribute string, check knownvalue.Check) statecheck.StateCheck {
				return statecheck.ExpectKnownValue(data, tfjsonpath.New("current_user").AtMapKey(attribute), check)
			}
			unit(t, g, resource.TestStep{Config: with(g, "data \"openshell_gateway\" \"this\" {}\n"), ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue(data, tfjsonpath.New("endpoint"), text(g.Endpoint())),
				statecheck.ExpectKnownValue(data, tfjsonpath.New("version"), text("0.1.7")),
				statecheck.ExpectKnownValue(data, tfjsonpath.New("conditional_delete"), knownvalue.Bool(tc.supported)),
				user("subject", text("unauthenticated-local-dev")), user("identity_provider", text("local_dev")),
				user("scopes", knownvalue.ListExact([]knownvalue.Check{text("openshell:all")})), user("roles", knownvalue.ListSizeExact(2)),
			}})
		})
	}
}

func TestUnsupportedGateway(t *testing.T) {
	t.Parallel()
	g := gatewaytest.Start(t, gatewaytest.WithVersion("0.0.111"))
	unit(t, g, resource.TestStep{Config: with(g, "data \"openshell_gateway\" \"this\" {}\n"), ExpectError: regexp.MustCompile(`is version 0\.0\.111`)})
}
