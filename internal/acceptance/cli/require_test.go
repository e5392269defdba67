package cli

import (
	"context"
	"os"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	plugintest "github.com/hashicorp/terraform-plugin-testing/helper/resource"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

// TestPluginTestingRunsOnEither does not run in parallel: it sets the environment.
func TestPluginTestingRunsOnEither(t *testing.T) {
	ForEach(t, func(t *testing.T, c CLI) {
		UseForPluginTesting(t, c)
		plugintest.UnitTest(t, plugintest.TestCase{
			ProtoV6ProviderFactories: map[string]func() (tfprotov6.ProviderServer, error){
				"empty": providerserver.NewProtocol6WithError(empty{}),
			},
			Steps: []plugintest.TestStep{{Config: "provider empty {}\n" + data}},
		})
	})
}

func TestRequireIdentity(t *testing.T) {
	if c := RequireIdentity(t); c.Version.LessThan(identity) {
		t.Errorf("%s does not know resource identity", c)
	}
}

// empty is a provider of nothing.
type empty struct{}

func (empty) Metadata(_ context.Context, _ provider.MetadataRequest, r *provider.MetadataResponse) {
	r.TypeName = "empty"
}

func (empty) Schema(context.Context, provider.SchemaRequest, *provider.SchemaResponse) {}

func (empty) Configure(context.Context, provider.ConfigureRequest, *provider.ConfigureResponse) {}

func (empty) DataSources(context.Context) []func() datasource.DataSource { return nil }

func (empty) Resources(context.Context) []func() resource.Resource { return nil }
