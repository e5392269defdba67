package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/listplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/mapplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

const replaceDescription = "A change replaces the sandbox; empty and null are the same."

// replaceList replaces on a change that means something.
func replaceList() planmodifier.List {
	return listplanmodifier.RequiresReplaceIf(func(_ context.Context, req planmodifier.ListRequest, resp *listplanmodifier.RequiresReplaceIfFuncResponse) {
		resp.RequiresReplace = req.PlanValue.IsUnknown() || len(req.PlanValue.Elements()) > 0 || len(req.StateValue.Elements()) > 0
	}, replaceDescription, replaceDescription)
}

// replaceMap replaces on a change that means something.
func replaceMap() planmodifier.Map {
	return mapplanmodifier.RequiresReplaceIf(func(_ context.Context, req planmodifier.MapRequest, resp *mapplanmodifier.RequiresReplaceIfFuncResponse) {
		resp.RequiresReplace = req.PlanValue.IsUnknown() || len(req.PlanValue.Elements()) > 0 || len(req.StateValue.Elements()) > 0
	}, replaceDescription, replaceDescription)
}

// unlessSwitched keeps the value of the state unless the sandbox is to be stopped or started, which moves it.
type unlessSwitched struct{}

func (unlessSwitched) Description(context.Context) string {
	return "Stays as last read unless the sandbox is stopped or started."
}

func (m unlessSwitched) MarkdownDescription(ctx context.Context) string { return m.Description(ctx) }

func (unlessSwitched) PlanModifyString(ctx context.Context, req planmodifier.StringRequest, resp *planmodifier.StringResponse) {
	if switched, diags := isSwitched(ctx, req.State, req.Plan); !switched {
		resp.Diagnostics.Append(diags...)
		resp.PlanValue = req.StateValue
	}
}

func (unlessSwitched) PlanModifyInt64(ctx context.Context, req planmodifier.Int64Request, resp *planmodifier.Int64Response) {
	if switched, diags := isSwitched(ctx, req.State, req.Plan); !switched {
		resp.Diagnostics.Append(diags...)
		resp.PlanValue = req.StateValue
	}
}

func isSwitched(ctx context.Context, state tfsdk.State, plan tfsdk.Plan) (bool, diag.Diagnostics) {
	if state.Raw.IsNull() {
		return true, nil // a new sandbox
	}
	var before, after types.Bool
	diags := state.GetAttribute(ctx, path.Root("running"), &before)
	diags.Append(plan.GetAttribute(ctx, path.Root("running"), &after)...)
	return !before.Equal(after), diags
}
