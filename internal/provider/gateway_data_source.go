package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/openshell-iac/terraform-provider-openshell/internal/client"
)

var _ datasource.DataSourceWithConfigure = (*gatewayDataSource)(nil)

// gatewayDataSource is the data source openshell_gateway.
type gatewayDataSource struct{ data *providerData }

func newGatewayDataSource() datasource.DataSource { return &gatewayDataSource{} }

func (d *gatewayDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_gateway"
}

func (d *gatewayDataSource) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	d.data = dataFrom(req.ProviderData, &resp.Diagnostics)
}

type gatewayModel struct {
	Endpoint          types.String `tfsdk:"endpoint"`
	Version           types.String `tfsdk:"version"`
	ConditionalDelete types.Bool   `tfsdk:"conditional_delete"`
	CurrentUser       *userModel   `tfsdk:"current_user"`
}

func (d *gatewayDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "The gateway that the provider talks to, what it offers, and whom it takes the provider for.",
		Attributes: map[string]schema.Attribute{
			"endpoint": schema.StringAttribute{Computed: true, MarkdownDescription: "URL of the gateway, wherever the provider has it from."},
			"version":  schema.StringAttribute{Computed: true, MarkdownDescription: "Version of the gateway."},
			"conditional_delete": schema.BoolAttribute{
				Computed:            true,
				MarkdownDescription: "Whether the gateway offers changes bound to a sandbox's id (`openshell.conditional.v1`). Without them, destroy refuses unless the provider has `allow_unconditional_delete = true`. This is what the gateway says of itself; no delete relies on it.",
			},
			"current_user": schema.SingleNestedAttribute{
				Computed: true, MarkdownDescription: "The caller, as the gateway sees it.",
				Attributes: userAttributes(),
			},
		},
	}
}

func (d *gatewayDataSource) Read(ctx context.Context, _ datasource.ReadRequest, resp *datasource.ReadResponse) {
	c := d.data.connection(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, defaultReadTimeout)
	defer cancel()
	m, err := readGateway(ctx, c)
	if err != nil {
		report{title: "The gateway could not be read", what: sentence(err) + " Gateway: " + c.Endpoint() + ".", todo: advice(err, "")}.asError(&resp.Diagnostics)
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
}

func readGateway(ctx context.Context, c *client.Client) (gatewayModel, error) {
	m := gatewayModel{Endpoint: types.StringValue(c.Endpoint())}
	user, err := c.CurrentUser(ctx) // first, since it refuses gateways that are not supported
	if err != nil {
		return m, err
	}
	version, err := c.Version(ctx)
	if err != nil {
		return m, err
	}
	supported, _, err := c.ConditionalSupport(ctx)
	m.Version, m.ConditionalDelete = textOrNull(version), types.BoolValue(supported)
	m.CurrentUser = new(newUserModel(user))
	return m, err
}
