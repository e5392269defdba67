package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/listplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/mapplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/objectplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/openshell-iac/terraform-provider-openshell/internal/api/rules"
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

// replaceBetween replaces when one value gives way to another. A value that only now appears, as after an import, or that
// goes, does not say that anything about the sandbox is to change.
func replaceBetween() planmodifier.String {
	const description = "A change from one value to another replaces the sandbox."
	return stringplanmodifier.RequiresReplaceIf(func(_ context.Context, req planmodifier.StringRequest, resp *stringplanmodifier.RequiresReplaceIfFuncResponse) {
		resp.RequiresReplace = !req.StateValue.IsNull() && !req.PlanValue.IsNull()
	}, description, description)
}

// replaceWhole replaces when an object with something in it comes or goes. What is in it has modifiers of its own.
func replaceWhole() planmodifier.Object {
	return objectplanmodifier.RequiresReplaceIf(func(_ context.Context, req planmodifier.ObjectRequest, resp *objectplanmodifier.RequiresReplaceIfFuncResponse) {
		before, after := req.StateValue, req.PlanValue
		resp.RequiresReplace = after.IsUnknown() || before.IsNull() && !isEmpty(after) || after.IsNull() && !isEmpty(before)
	}, replaceDescription, replaceDescription)
}

func isEmpty(o types.Object) bool {
	for _, value := range o.Attributes() {
		if !value.IsNull() {
			return false
		}
	}
	return true
}

// keepEqual keeps the state's text while the new one means the same, and replaces the sandbox when it does not.
type keepEqual struct {
	same func(a, b types.String) bool
}

func (keepEqual) Description(context.Context) string {
	return "A change of meaning replaces the sandbox; other text for the same is kept as it was."
}

func (m keepEqual) MarkdownDescription(ctx context.Context) string { return m.Description(ctx) }

func (m keepEqual) PlanModifyString(_ context.Context, req planmodifier.StringRequest, resp *planmodifier.StringResponse) {
	if req.State.Raw.IsNull() || req.Plan.Raw.IsNull() || req.PlanValue.Equal(req.StateValue) {
		return
	}
	if !m.same(req.StateValue, req.PlanValue) {
		resp.RequiresReplace = true
		return
	}
	// Terraform lets a provider keep the state's value only in place of another value, not in place of nothing.
	if !req.StateValue.IsNull() && !req.PlanValue.IsNull() {
		resp.PlanValue = req.StateValue
	}
}

// sameQuantity tells whether two quantities are the same amount.
func sameQuantity(a, b types.String) bool {
	one, other := rules.ParseQuantity(a.ValueString()), rules.ParseQuantity(b.ValueString())
	return one != nil && other != nil && one.Cmp(other) == 0
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
	return !before.Equal(after) && !after.IsNull(), diags
}
