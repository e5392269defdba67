package provider

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"

	"github.com/openshell-iac/terraform-provider-openshell/internal/api/policy"
	"github.com/openshell-iac/terraform-provider-openshell/internal/client"
)

// policyChange plans a change of a sandbox's policy by what it means: nothing, an update in place, or another sandbox.
type policyChange struct{}

func (policyChange) Description(context.Context) string {
	return "A change of what is fixed at the start replaces the sandbox; text that means the same is kept as it was."
}

func (m policyChange) MarkdownDescription(ctx context.Context) string { return m.Description(ctx) }

func (policyChange) PlanModifyString(ctx context.Context, req planmodifier.StringRequest, resp *planmodifier.StringResponse) {
	if req.State.Raw.IsNull() || req.Plan.Raw.IsNull() || req.PlanValue.Equal(req.StateValue) {
		return
	}
	if req.PlanValue.IsUnknown() {
		planReport(ctx, req.State, report{
			title: "The policy is not known yet",
			what:  "The policy comes from something that is only known after it has been applied. Whether the sandbox can keep running under it, or must be replaced, cannot be told before.",
			state: stateKept, at: req.Path,
			todo: "apply what the policy depends on first, with \"terraform apply -target=ADDRESS\", then plan again; or make the policy from values that are known when planning, such as variables, locals and files.",
		}).asError(&resp.Diagnostics)
		return
	}
	record := readRecord(ctx, req.Private, &resp.Diagnostics)
	if resp.Diagnostics.HasError() || record.Imported && req.PlanValue.IsNull() {
		return // an imported policy that is not to be managed stays with the sandbox
	}
	before, after := policyValue{req.StateValue}.policy(), policyValue{req.PlanValue}.policy()
	if record.Imported { // the gateway's own paths are in it
		after = merged(after, before)
	}
	switch change := policy.Compare(before, after); change.Kind {
	case policy.Unchanged:
		resp.PlanValue = req.StateValue
	case policy.Replace:
		resp.RequiresReplace = true
		planReport(ctx, req.State, report{
			title: "The change of the policy replaces the sandbox",
			what:  "A running sandbox can take other network rules and middlewares, and more filesystem paths. The rest of a policy is fixed when it starts, and this changes:\n" + reasons(change),
			at:    req.Path,
			todo:  "nothing, if the sandbox and what is in it may go. Otherwise take these changes back.",
		}).asWarning(&resp.Diagnostics)
	default:
	}
}

// planReport adds the sandbox that a plan is about.
func planReport(ctx context.Context, state tfsdk.State, r report) report {
	var m struct{ workspace, name, id string }
	for name, to := range map[string]*string{"workspace": &m.workspace, "name": &m.name, "id": &m.id} {
		state.GetAttribute(ctx, path.Root(name), to)
	}
	r.ref = client.Ref{Workspace: m.workspace, Name: m.name, ID: m.id}
	return r
}

// reasons lists what a change is about.
func reasons(change policy.Change) string {
	const most = 10
	var lines []string
	for i, reason := range change.Reasons {
		if i == most {
			lines = append(lines, fmt.Sprintf("  and %d more", len(change.Reasons)-most))
			break
		}
		lines = append(lines, "  "+reason.String())
	}
	return strings.Join(lines, "\n")
}
