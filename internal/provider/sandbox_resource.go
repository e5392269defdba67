package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

var (
	_ resource.ResourceWithConfigure      = (*sandboxResource)(nil)
	_ resource.ResourceWithIdentity       = (*sandboxResource)(nil)
	_ resource.ResourceWithImportState    = (*sandboxResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*sandboxResource)(nil)
	_ resource.ResourceWithValidateConfig = (*sandboxResource)(nil)
)

// sandboxResource is openshell_sandbox.
type sandboxResource struct{ data *providerData }

func newSandboxResource() resource.Resource { return &sandboxResource{} }

func (r *sandboxResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_sandbox"
}

func (r *sandboxResource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.data = dataFrom(req.ProviderData, &resp.Diagnostics)
}

// sandboxIdentity is the resource's identity. It cannot change: another id is another sandbox.
type sandboxIdentity struct {
	Workspace types.String `tfsdk:"workspace"`
	Name      types.String `tfsdk:"name"`
	ID        types.String `tfsdk:"id"`
}

func (r *sandboxResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identityschema.Schema{
		Attributes: map[string]identityschema.Attribute{
			"workspace": identityschema.StringAttribute{OptionalForImport: true, Description: "Workspace of the sandbox. Default: the provider's workspace."},
			"name":      identityschema.StringAttribute{RequiredForImport: true, Description: "Name of the sandbox."},
			"id":        identityschema.StringAttribute{OptionalForImport: true, Description: "Id of the sandbox. When given, the import is refused if the name means another one."},
		},
	}
}

// setIdentity records which sandbox a state is about. Command lines that know no identity ignore it.
func setIdentity(ctx context.Context, to *tfsdk.ResourceIdentity, m sandboxModel) diag.Diagnostics {
	return to.Set(ctx, sandboxIdentity{Workspace: m.Workspace, Name: m.Name, ID: m.ID})
}

// ModifyPlan shows the workspace of a new sandbox where the provider's is known.
func (r *sandboxResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() {
		return
	}
	if !req.State.Raw.IsNull() {
		warnOfEnvironment(ctx, req, &resp.Diagnostics)
		return
	}
	if r.data == nil || r.data.workspace == "" {
		return
	}
	var workspace types.String
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("workspace"), &workspace)...)
	if workspace.IsNull() {
		resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root("workspace"), r.data.workspace)...)
	}
}
