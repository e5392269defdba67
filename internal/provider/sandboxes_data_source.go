package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-validators/datasourcevalidator"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/rules"
	"github.com/openshell-iac/terraform-provider-openshell/internal/client"
)

var (
	_ datasource.DataSourceWithConfigure        = (*sandboxesDataSource)(nil)
	_ datasource.DataSourceWithConfigValidators = (*sandboxesDataSource)(nil)
)

// sandboxesDataSource is the data source openshell_sandboxes.
type sandboxesDataSource struct{ data *providerData }

func newSandboxesDataSource() datasource.DataSource { return &sandboxesDataSource{} }

func (d *sandboxesDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_sandboxes"
}

func (d *sandboxesDataSource) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	d.data = dataFrom(req.ProviderData, &resp.Diagnostics)
}

type sandboxesModel struct {
	Workspace     types.String         `tfsdk:"workspace"`
	AllWorkspaces types.Bool           `tfsdk:"all_workspaces"`
	LabelSelector types.String         `tfsdk:"label_selector"`
	Sandboxes     []listedSandboxModel `tfsdk:"sandboxes"`
}

type listedSandboxModel struct {
	ID          types.String `tfsdk:"id"`
	Name        types.String `tfsdk:"name"`
	Workspace   types.String `tfsdk:"workspace"`
	Image       types.String `tfsdk:"image"`
	Labels      types.Map    `tfsdk:"labels"`
	Phase       types.String `tfsdk:"phase"`
	CreatedTime types.String `tfsdk:"created_time"`
	ExitCode    types.Int64  `tfsdk:"exit_code"`
	CreateID    types.String `tfsdk:"create_id"`
}

func (d *sandboxesDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	text := func(description string) schema.Attribute {
		return schema.StringAttribute{Computed: true, MarkdownDescription: description}
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "Lists sandboxes, whoever made them. What this provider made carries the label `" + client.LabelManagedBy + "=" + client.ManagedByTerraform + "`, so that a sandbox of which no state knows, since an apply was killed, can be found.",
		Attributes: map[string]schema.Attribute{
			"workspace": schema.StringAttribute{
				Optional: true, Computed: true, Validators: []validator.String{objectName{}},
				MarkdownDescription: "Workspace whose sandboxes are listed. Default: the provider's. Null with `all_workspaces`.",
			},
			"all_workspaces": schema.BoolAttribute{
				Optional: true, MarkdownDescription: "Whether the sandboxes of all workspaces are listed. That takes a platform administrator.",
			},
			"label_selector": schema.StringAttribute{
				Optional: true, Validators: []validator.String{labelSelector{}},
				MarkdownDescription: "Labels that the sandboxes must carry, such as `team=a,stage=test`: up to 64 pairs, all of which must hold.",
			},
			"sandboxes": schema.ListNestedAttribute{
				Computed: true, MarkdownDescription: "The sandboxes, the oldest first.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"id":           text("Id of the sandbox."),
					"name":         text("Name of the sandbox."),
					"workspace":    text("Workspace of the sandbox."),
					"image":        text("Container image."),
					"labels":       schema.MapAttribute{Computed: true, ElementType: types.StringType, MarkdownDescription: "Labels, without those of this provider. Null if there are none."},
					"phase":        text("Phase, as in the data source `openshell_sandbox`."),
					"created_time": text("When the sandbox was created, in UTC, as RFC 3339 text."),
					"exit_code":    schema.Int64Attribute{Computed: true, MarkdownDescription: "Exit code of the main process, 128+n for signal n. Null until it ended."},
					"create_id":    text(createIDDescription),
				}},
			},
		},
	}
}

func (d *sandboxesDataSource) ConfigValidators(context.Context) []datasource.ConfigValidator {
	return []datasource.ConfigValidator{datasourcevalidator.Conflicting(path.MatchRoot("workspace"), path.MatchRoot("all_workspaces"))}
}

func (d *sandboxesDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m sandboxesModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	c := d.data.connection(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	where := "all workspaces"
	if !m.AllWorkspaces.ValueBool() {
		if m.Workspace.IsNull() {
			m.Workspace = types.StringValue(d.data.workspace)
		}
		where = fmt.Sprintf("workspace %q", m.Workspace.ValueString())
	}
	ctx, cancel := context.WithTimeout(ctx, defaultReadTimeout)
	defer cancel()
	all, err := c.Sandboxes(ctx, m.Workspace.ValueString(), m.LabelSelector.ValueString())
	if err != nil {
		report{title: "The sandboxes could not be listed", what: sentence(err) + " They were asked for in " + where + ".", todo: advice(err, "")}.asError(&resp.Diagnostics)
		return
	}
	m.Sandboxes = make([]listedSandboxModel, 0, len(all))
	for _, sb := range all {
		m.Sandboxes = append(m.Sandboxes, listed(sb))
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
}

func listed(sb *openshellv1.Sandbox) listedSandboxModel {
	var now sandboxModel
	now.observe(sb)
	return listedSandboxModel{
		ID: textOrNull(client.IDOf(sb)), Name: textOrNull(sb.GetMetadata().GetName()), Workspace: textOrNull(sb.GetMetadata().GetWorkspace()),
		Image: textOrNull(sb.GetSpec().GetTemplate().GetImage()), Labels: userMap(sb.GetMetadata().GetLabels()),
		Phase: now.Phase, ExitCode: now.ExitCode, CreatedTime: createdTime(sb), CreateID: textOrNull(createIDOf(sb)),
	}
}

// labelSelector checks a selector.
type labelSelector struct{}

func (labelSelector) Description(context.Context) string {
	return "must be pairs key=value with commas between"
}

func (v labelSelector) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (labelSelector) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if !given(req.ConfigValue) {
		return
	}
	if _, problem := rules.LabelSelector(req.ConfigValue.ValueString()); problem != "" {
		resp.Diagnostics.AddAttributeError(req.Path, "The label selector is not valid", fmt.Sprintf("%s %s.", req.Path, problem))
	}
}
