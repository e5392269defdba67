package provider_test

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	"github.com/hashicorp/terraform-plugin-testing/tfversion"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// A sandbox that Terraform made imports to the state it had.
func TestSandboxImport(t *testing.T) {
	t.Parallel()
	g := gatewaytest.Start(t)
	config := with(g, sandbox(arguments(everything, map[string]string{"name": `"web"`})...))
	id := func() string { return "default/web@" + idOf(t, g, "web") }
	unit(t, g,
		resource.TestStep{Config: config},
		resource.TestStep{ResourceName: web, ImportState: true, ImportStateId: "web", ImportStateVerify: true},
		resource.TestStep{ResourceName: web, ImportState: true, ImportStateId: "default/web", ImportStateVerify: true},
		resource.TestStep{
			ResourceName: web, ImportState: true, ImportStateVerify: true,
			ImportStateIdFunc: importID(id),
		},
		resource.TestStep{
			Config: config, ResourceName: web, ImportState: true, ImportStateKind: resource.ImportBlockWithID,
			ImportStateIdFunc: importID(id),
			ImportPlanChecks:  resource.ImportPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
		},
	)
}

// The identity is there after a create, and imports.
func TestSandboxIdentity(t *testing.T) {
	t.Parallel()
	g := gatewaytest.Start(t)
	config := with(g, sandbox(named))
	resource.UnitTest(t, resource.TestCase{
		TerraformVersionChecks:   []tfversion.TerraformVersionCheck{tfversion.SkipBelow(tfversion.Version1_12_0)},
		ProtoV6ProviderFactories: factories(),
		CheckDestroy:             destroyed(g),
		Steps: []resource.TestStep{
			{Config: config, ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectIdentity(web, map[string]knownvalue.Check{
					"workspace": text("default"), "name": text("web"), "id": knownvalue.StringFunc(isUUID),
				}),
				statecheck.ExpectIdentityValueMatchesState(web, tfjsonpath.New("id")),
			}},
			{
				Config: config, ResourceName: web, ImportState: true, ImportStateKind: resource.ImportBlockWithResourceIdentity,
				ImportPlanChecks: resource.ImportPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
			},
		},
	})
}
