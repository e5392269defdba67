package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

var _ datasource.DataSourceWithConfigure = (*currentUserDataSource)(nil)

// currentUserDataSource is the data source openshell_current_user.
type currentUserDataSource struct{ data *providerData }

func newCurrentUserDataSource() datasource.DataSource { return &currentUserDataSource{} }

func (d *currentUserDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_current_user"
}

func (d *currentUserDataSource) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	d.data = dataFrom(req.ProviderData, &resp.Diagnostics)
}

type userModel struct {
	Subject          types.String `tfsdk:"subject"`
	DisplayName      types.String `tfsdk:"display_name"`
	Roles            []string     `tfsdk:"roles"`
	Scopes           []string     `tfsdk:"scopes"`
	IdentityProvider types.String `tfsdk:"identity_provider"`
}

func newUserModel(user *openshellv1.GetCurrentUserResponse) userModel {
	return userModel{
		Subject: textOrNull(user.GetSubject()), DisplayName: textOrNull(user.GetDisplayName()), IdentityProvider: textOrNull(user.GetIdentityProvider()),
		Roles: append([]string{}, user.GetRoles()...), Scopes: append([]string{}, user.GetScopes()...),
	}
}

func userAttributes() map[string]schema.Attribute {
	texts := func(description string) schema.Attribute {
		return schema.ListAttribute{Computed: true, ElementType: types.StringType, MarkdownDescription: description}
	}
	return map[string]schema.Attribute{
		"subject":           schema.StringAttribute{Computed: true, MarkdownDescription: "Unique name of the caller."},
		"display_name":      schema.StringAttribute{Computed: true, MarkdownDescription: "Name to show. Null if there is none."},
		"roles":             texts("Roles."),
		"scopes":            texts("Scopes of the credential."),
		"identity_provider": schema.StringAttribute{Computed: true, MarkdownDescription: "How the caller was identified: `oidc`, `mtls`, `cloudflare_access` or `local_dev`."},
	}
}

func (d *currentUserDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Whom the gateway takes the provider for.",
		Attributes:          userAttributes(),
	}
}

func (d *currentUserDataSource) Read(ctx context.Context, _ datasource.ReadRequest, resp *datasource.ReadResponse) {
	c := d.data.connection(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, defaultReadTimeout)
	defer cancel()
	user, err := c.CurrentUser(ctx)
	if err != nil {
		report{title: "The current user could not be read", what: sentence(err) + " Gateway: " + c.Endpoint() + ".", todo: advice(err, "")}.asError(&resp.Diagnostics)
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, newUserModel(user))...)
}
