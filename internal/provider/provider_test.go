package provider_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/openshell-iac/terraform-provider-openshell/internal/acceptance/cli"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
	"github.com/openshell-iac/terraform-provider-openshell/internal/provider"
)

func TestMain(m *testing.M) {
	for _, variable := range []string{"OPENSHELL_GATEWAY_ENDPOINT", "OPENSHELL_GATEWAY", "OPENSHELL_WORKSPACE", "OPENSHELL_TOKEN", "OPENSHELL_TOKEN_FILE", "OPENSHELL_OIDC_CLIENT_SECRET", "OPENSHELL_GATEWAY_INSECURE"} {
		_ = os.Unsetenv(variable)
	}
	os.Exit(cli.Main(m))
}

func factories() map[string]func() (tfprotov6.ProviderServer, error) {
	return map[string]func() (tfprotov6.ProviderServer, error){
		"openshell": func() (tfprotov6.ProviderServer, error) { return provider.NewServer("test")(), nil },
	}
}

// with is a configuration for a gateway.
func with(g *gatewaytest.Gateway, body string) string {
	return fmt.Sprintf("provider \"openshell\" {\n  endpoint = %q\n}\n", g.Endpoint()) + body
}

// sandbox is a resource labelled web with the given arguments.
func sandbox(arguments ...string) string { return labelled("web", arguments...) }

func labelled(label string, arguments ...string) string {
	return fmt.Sprintf("resource \"openshell_sandbox\" %q {\n  %s\n}\n", label, strings.Join(arguments, "\n  "))
}

const named = `name = "web"`

// unit runs steps in front of a gateway, which must be empty in the end.
func unit(t *testing.T, g *gatewaytest.Gateway, steps ...resource.TestStep) {
	t.Helper()
	resource.UnitTest(t, resource.TestCase{
		ProtoV6ProviderFactories: factories(),
		Steps:                    steps,
		CheckDestroy:             destroyed(g),
	})
}

// destroyed asks the gateway by id: by name it would believe a replacement's absence, or fall for one.
func destroyed(g *gatewaytest.Gateway) resource.TestCheckFunc {
	return func(s *terraform.State) error {
		list, err := g.OpenShell().ListSandboxes(context.Background(), &openshellv1.ListSandboxesRequest{WorkspaceScope: gatewaytest.Default()})
		if err != nil {
			return err
		}
		for address, rs := range s.RootModule().Resources {
			for _, sb := range list.GetSandboxes() {
				if strings.HasPrefix(address, "openshell_sandbox.") && rs.Primary.ID == sb.GetMetadata().GetId() {
					return fmt.Errorf("sandbox %s is still there: %v", rs.Primary.ID, sb)
				}
			}
		}
		return nil
	}
}

// idOf is the id of the sandbox that has a name.
func idOf(t *testing.T, g *gatewaytest.Gateway, name string) string {
	t.Helper()
	sb, ok := g.Get(t, name)
	if !ok {
		t.Fatalf("there is no sandbox %s", name)
	}
	return sb.GetMetadata().GetId()
}

// importID gives an import id that is known only once the sandbox is.
func importID(id func() string) resource.ImportStateIdFunc {
	return func(*terraform.State) (string, error) { return id(), nil }
}
