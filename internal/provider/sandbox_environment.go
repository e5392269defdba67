package provider

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/rules"
)

// A gateway knows one environment; environment and environment_wo are two ways into it. The values of the latter are in the
// configuration alone: no plan and no state has them, and the sandbox's annotation says which variables they are.

// annotationWriteOnly holds the names of the variables that came from environment_wo, so that an import leaves them out.
const annotationWriteOnly = ownPrefix + "environment-wo"

// allVariables stands in the annotation for names that are too long for it.
const allVariables = "*"

// writeOnlyMark is the annotation's value; empty when there is no such variable.
func writeOnlyMark(writeOnly map[string]string) string {
	mark := strings.Join(slices.Sorted(maps.Keys(writeOnly)), ",")
	if len(mark) > rules.MaxValue {
		return allVariables
	}
	return mark
}

// environmentFrom is the environment of a sandbox without what was given as write-only.
func environmentFrom(sb *openshellv1.Sandbox) types.Map {
	mark := sb.GetMetadata().GetAnnotations()[annotationWriteOnly]
	environment := maps.Clone(sb.GetSpec().GetEnvironment())
	for _, name := range strings.Split(mark, ",") {
		delete(environment, name)
	}
	if mark == allVariables {
		environment = nil
	}
	return userMap(environment)
}

// validateEnvironment checks what the two environments are together, once each of them is fine.
func (m sandboxModel) validateEnvironment(diags *diag.Diagnostics) {
	at := path.Root("environment_wo")
	for _, name := range slices.Sorted(maps.Keys(m.Environment.Elements())) {
		if _, twice := m.EnvironmentWO.Elements()[name]; twice {
			diags.AddAttributeError(at.AtMapKey(name), "The variable is given twice", fmt.Sprintf("%s is in environment, too. Leave it out of one of them.", at.AtMapKey(name)))
			return
		}
	}
	one, other := texts(m.Environment), texts(m.EnvironmentWO)
	if v := rules.Environment("", union(one, other)); v != nil && rules.Environment("", one) == nil && rules.Environment("", other) == nil {
		diags.AddAttributeError(at, "The environment is too large", fmt.Sprintf("environment_wo together with environment %s.", v.Problem))
	}
}

// importedEnvironmentKey is there in the private state while the environment is as an import read it.
const importedEnvironmentKey = "imported_environment"

// replaceEnvironment replaces on a change that means something. A variable that the configuration now gives as write-only
// is none: a sandbox made elsewhere and imported shows every variable. Nor is it one when the configuration has no word about
// what an import read: the configuration that Terraform generates leaves it out, since it is sensitive.
type replaceEnvironment struct{}

func (replaceEnvironment) Description(context.Context) string { return replaceDescription }

func (m replaceEnvironment) MarkdownDescription(ctx context.Context) string {
	return m.Description(ctx)
}

func (replaceEnvironment) PlanModifyMap(ctx context.Context, req planmodifier.MapRequest, resp *planmodifier.MapResponse) {
	if req.State.Raw.IsNull() || req.Plan.Raw.IsNull() {
		return
	}
	var writeOnly types.Map
	var version types.Int64
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("environment_wo"), &writeOnly)...)
	resp.Diagnostics.Append(req.State.GetAttribute(ctx, path.Root("environment_wo_version"), &version)...)
	before, after := req.StateValue.Elements(), req.PlanValue.Elements()
	imported, diags := req.Private.GetKey(ctx, importedEnvironmentKey)
	resp.Diagnostics.Append(diags...)
	if len(imported) > 0 && len(before) > 0 && req.PlanValue.IsNull() && writeOnly.IsNull() {
		planReport(ctx, req.State, report{
			title: "The imported environment is left to the sandbox",
			what:  "The sandbox was imported with an environment, and the configuration has none. A configuration that Terraform generates never has it, since it is sensitive. The sandbox keeps its variables.",
			at:    req.Path, state: "the apply takes the environment out of it.",
			todo: "nothing, if that is meant. To have Terraform manage the variables, give them in environment or environment_wo before the apply; to be rid of them, replace the sandbox: terraform apply -replace=ADDRESS.",
		}).asWarning(&resp.Diagnostics)
		return
	}
	for name, value := range before {
		_, hidden := writeOnly.Elements()[name]
		if _, stays := after[name]; !stays && (hidden || writeOnly.IsUnknown() && version.IsNull()) {
			continue
		}
		if now, stays := after[name]; !stays || !now.Equal(value) {
			resp.RequiresReplace = true
		}
	}
	for name := range after {
		if _, had := before[name]; !had {
			resp.RequiresReplace = true
		}
	}
	resp.RequiresReplace = resp.RequiresReplace || req.PlanValue.IsUnknown()
}

// warnOfEnvironment says that a version which only now appears brings no variables to a sandbox that exists.
func warnOfEnvironment(ctx context.Context, req resource.ModifyPlanRequest, diags *diag.Diagnostics) {
	var state sandboxModel
	var version types.Int64
	diags.Append(req.State.Get(ctx, &state)...)
	diags.Append(req.Plan.GetAttribute(ctx, path.Root("environment_wo_version"), &version)...)
	if state.EnvironmentWOVersion.IsNull() && !version.IsNull() {
		report{title: "environment_wo is not sent to a sandbox that exists", what: "The state has no environment_wo_version yet, as after an import. The version is recorded, but the sandbox keeps the environment it was created with, unless something else replaces it.", ref: state.ref(), state: "gets the version with the apply.",
			todo: "nothing, if the sandbox was created with these variables. If it was not, replace it: terraform apply -replace=ADDRESS."}.asWarning(diags)
	}
}
