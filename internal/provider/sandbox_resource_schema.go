package provider

import (
	"context"
	"math"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/boolplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/objectplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// Values of wait_for.
const (
	waitReady     = "ready"
	waitCompleted = "completed"
	waitNone      = "none"
)

const replaces = " Changing it replaces the sandbox."

func (r *sandboxResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "A sandbox of an OpenShell gateway. The id in the state says which sandbox is meant: a sandbox that somebody else puts under the same name is never read into the state, changed or deleted.",
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{
				Computed: true, PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
				MarkdownDescription: "Id of the sandbox: a UUID that is never used again.",
			},
			"workspace_id": schema.StringAttribute{
				Computed: true, PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
				MarkdownDescription: "Id of the workspace, which no other gateway shares. It tells whether the endpoint still leads to the gateway the sandbox was created on. Null if the caller may not read the workspace (scope `workspace:read`).",
			},
			"name": schema.StringAttribute{
				Optional: true, Computed: true, PlanModifiers: serverFilled(), Validators: []validator.String{objectName{}},
				MarkdownDescription: "Name of the sandbox, unique in its workspace: 1 to 19 characters of `a-z`, `0-9` and single hyphens between them. Left out, a free name is invented when the sandbox is created, with `name_prefix` at its beginning. A name that is taken is an error: an existing sandbox is never adopted." + replaces,
			},
			"name_prefix": schema.StringAttribute{
				Optional: true, PlanModifiers: []planmodifier.String{replaceBetween()}, Validators: []validator.String{namePrefix{}},
				MarkdownDescription: "Beginning of the name that is invented when `name` is left out, up to 13 characters; 6 to 8 random ones follow. Lets `create_before_destroy` work. Changing it to another value replaces the sandbox; adding or removing it does not.",
			},
			"workspace": schema.StringAttribute{
				Optional: true, Computed: true, PlanModifiers: serverFilled(), Validators: []validator.String{objectName{}},
				MarkdownDescription: "Workspace of the sandbox. Default: the provider's `workspace` at the time of creation; a later change of that does not move the sandbox." + replaces,
			},
			"image": schema.StringAttribute{
				Optional: true, Computed: true, PlanModifiers: serverFilled(), Validators: []validator.String{notEmpty{}},
				MarkdownDescription: "Container image. Default: the gateway's." + replaces,
			},
			"command": schema.ListAttribute{
				Optional: true, ElementType: types.StringType, PlanModifiers: []planmodifier.List{replaceList()},
				MarkdownDescription: "Main process and its arguments: at most 256 of 32 KiB each, 256 KiB in all. Left out, the sandbox waits for connections." + replaces,
			},
			"tty": schema.BoolAttribute{
				Optional: true, Computed: true,
				PlanModifiers:       []planmodifier.Bool{boolplanmodifier.UseStateForUnknown(), boolplanmodifier.RequiresReplaceIfConfigured()},
				MarkdownDescription: "Whether the main process gets a terminal. Default: `false` with a `command`, `true` without." + replaces,
			},
			"environment": schema.MapAttribute{
				Optional: true, Sensitive: true, ElementType: types.StringType, PlanModifiers: []planmodifier.Map{replaceEnvironment{}},
				MarkdownDescription: "Environment of the main process: at most 128 variables, names of letters, digits and underscores up to 256 bytes that do not begin with `OPENSHELL_`, values up to 8192 bytes without line ends, 256 KiB in all. The values are kept out of plans, but stand in the state, and everybody who may read the sandbox gets them from the gateway." + replaces,
			},
			"environment_wo": schema.MapAttribute{
				Optional: true, Sensitive: true, WriteOnly: true, ElementType: types.StringType,
				MarkdownDescription: "More of the environment, which neither a plan nor the state holds; the limits of `environment` hold for both together. Terraform cannot see that a value changed: change `environment_wo_version` with it. Everybody who may read the sandbox gets the values from the gateway. Needs Terraform or OpenTofu 1.11.",
			},
			"environment_wo_version": schema.Int64Attribute{
				Optional: true, PlanModifiers: []planmodifier.Int64{int64planmodifier.RequiresReplaceIf(hadValue, versionDescription, versionDescription)},
				MarkdownDescription: "A number of your own to change together with `environment_wo`, whose new values then reach a new sandbox. Changing it replaces the sandbox; adding it to a sandbox that exists does not, nor does it bring variables to it.",
			},
			"labels": schema.MapAttribute{
				Optional: true, ElementType: types.StringType, PlanModifiers: []planmodifier.Map{replaceMap()},
				MarkdownDescription: "Labels to find sandboxes by: keys are a name of up to 63 letters, digits, `-`, `_` and `.` after an optional prefix such as `example.com/`, values up to 63 of the same. The provider adds `openshell-iac/managed-by=terraform`, which is not shown here." + replaces,
			},
			"annotations": schema.MapAttribute{
				Optional: true, ElementType: types.StringType, PlanModifiers: []planmodifier.Map{replaceMap()},
				MarkdownDescription: "Notes on the sandbox: at most 127, or 126 with `environment_wo`, keys as for labels, values of any text up to 8192 bytes. Those that others add later are not shown and cause no change." + replaces,
			},
			"log_level": schema.StringAttribute{
				Optional: true, Validators: []validator.String{notEmpty{}}, PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
				MarkdownDescription: "Log level inside the sandbox, up to 32 bytes, such as `debug`." + replaces,
			},
			"driver_config": schema.StringAttribute{
				Optional: true, Validators: []validator.String{jsonObject{}}, PlanModifiers: []planmodifier.String{keepEqual{sameObject}},
				MarkdownDescription: "Settings for the gateway's compute driver, as the text of a JSON object with a block for each driver; `jsonencode` makes one. Text that means the same is no change." + replaces,
			},
			"restart_policy": schema.StringAttribute{
				Optional: true, Computed: true, PlanModifiers: serverFilled(),
				Validators:          []validator.String{stringvalidator.OneOf(restartPolicies()...)},
				MarkdownDescription: "When the main process is started again after it ended: `never`, `on_failure` or `always`. Default: the gateway's, which is `never`." + replaces,
			},
			"policy": schema.StringAttribute{
				Optional: true, CustomType: policyType{}, PlanModifiers: []planmodifier.String{policyChange{}},
				MarkdownDescription: "What the sandbox may touch: the text of a sandbox policy, in YAML or JSON. It may come from a file (`file`), from `yamlencode` or `jsonencode`, or from the data source [`openshell_policy_document`](../data-sources/policy_document.md). Text that means the same is no change. Network rules and middlewares, and filesystem paths that are added, change in place, bound to the sandbox's id; that needs a gateway that offers such calls (`openshell.conditional.v1`), the scope `config:write` and an administrator of the workspace. Any other change, and removing the policy, replaces the sandbox. Left out, the sandbox gets the policy of its image or the gateway, and Terraform leaves it to others.",
			},
			"providers": schema.SetAttribute{
				Optional: true, ElementType: types.StringType,
				MarkdownDescription: "Names of the credential providers attached to the sandbox, at most 32. They are all of them: others are detached. Left out, Terraform leaves them to others. Changed in place, bound to the sandbox's id; that needs a gateway that offers such calls (`openshell.conditional.v1`). Processes that run already keep the credentials they were started with.",
			},
			"resources": schema.SingleNestedAttribute{
				Optional: true, PlanModifiers: []planmodifier.Object{replaceWhole()},
				MarkdownDescription: "Limits of what the sandbox may use. Another way of writing the same amount is no change." + replaces,
				Attributes: map[string]schema.Attribute{
					"cpu":    amount("CPU time as a Kubernetes quantity, such as `500m` or `2` (processors)."),
					"memory": amount("Memory as a Kubernetes quantity, such as `512Mi` or `2Gi`."),
				},
			},
			"gpu": schema.SingleNestedAttribute{
				Optional: true, PlanModifiers: []planmodifier.Object{objectplanmodifier.RequiresReplace()},
				MarkdownDescription: "Asks for GPUs; `{}` leaves their number to the gateway's compute driver. Left out, the sandbox gets none." + replaces,
				Attributes: map[string]schema.Attribute{
					"count": schema.Int64Attribute{
						Optional: true, Validators: []validator.Int64{int64validator.Between(1, math.MaxUint32)},
						MarkdownDescription: "Number of GPUs, at least 1.",
					},
				},
			},
			"runtime_class_name": schema.StringAttribute{
				Optional: true, Validators: []validator.String{notEmpty{}}, PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
				MarkdownDescription: "Runtime class of the sandbox's pod, for compute drivers on Kubernetes, up to 1024 bytes. Default: the gateway's." + replaces,
			},
			"user_namespaces": schema.BoolAttribute{
				Optional: true, PlanModifiers: []planmodifier.Bool{boolplanmodifier.RequiresReplace()},
				MarkdownDescription: "Whether the sandbox runs in a user namespace of its own, for compute drivers that can do that. Default: the gateway's." + replaces,
			},
			"workload_template": schema.StringAttribute{
				Optional: true, Validators: []validator.String{objectName{}}, PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
				MarkdownDescription: "Name of a workload template in the same workspace, which decides image, environment, resources, GPUs and driver settings when the sandbox is created; what becomes of the template later does not matter. Excludes `image`, `environment`, `environment_wo`, `log_level`, `resources`, `gpu`, `runtime_class_name`, `user_namespaces` and `driver_config`." + replaces,
			},
			"running": schema.BoolAttribute{
				Optional:            true,
				MarkdownDescription: "Whether the sandbox is to run. `false` stops it, also right after it was created; `true` starts it if it is stopped, but does not run a finished job again. Left out, Terraform leaves that to others. Changed in place, bound to the sandbox's id; that needs a gateway that offers such calls (`openshell.conditional.v1`). In front of another one an apply that changes it fails, and one that creates a sandbox with `false` fails before anything is made; a plan does not tell.",
			},
			"wait_for": schema.StringAttribute{
				Optional: true, Computed: true, Default: stringdefault.StaticString(waitReady),
				Validators:          []validator.String{stringvalidator.OneOf(waitReady, waitCompleted, waitNone)},
				MarkdownDescription: "What an apply waits for after it created or started the sandbox: `ready` (default; a job that has already completed counts), `completed` (the main process ended with exit code 0), or `none`. A sandbox that fails instead is an error: a new one stays in the state, tainted; after a start nothing is tainted.",
			},
			"timeouts": timeoutsAttribute(ctx),
			"phase": schema.StringAttribute{
				Computed: true, PlanModifiers: []planmodifier.String{unlessSwitched{}},
				MarkdownDescription: "Phase as last read: `provisioning`, `ready`, `error`, `deleting`, `unknown`, `stopping`, `stopped`, `starting` or `completed`. A change is never a reason to replace the sandbox.",
			},
			"created_time": schema.StringAttribute{
				Computed: true, PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
				MarkdownDescription: "When the sandbox was created, in UTC, as RFC 3339 text.",
			},
			"exit_code": schema.Int64Attribute{
				Computed: true, PlanModifiers: []planmodifier.Int64{unlessSwitched{}},
				MarkdownDescription: "Exit code of the main process as last read, 128+n for signal n. Null until it ended.",
			},
		},
	}
}

// amount is a limit of resources.
func amount(description string) schema.Attribute {
	return schema.StringAttribute{
		Optional: true, Validators: []validator.String{quantity{}}, PlanModifiers: []planmodifier.String{keepEqual{sameQuantity}},
		MarkdownDescription: description,
	}
}

const versionDescription = "A change of a value that was there replaces the sandbox."

func hadValue(_ context.Context, req planmodifier.Int64Request, resp *int64planmodifier.RequiresReplaceIfFuncResponse) {
	resp.RequiresReplace = !req.StateValue.IsNull()
}

// serverFilled is for what a configuration may leave to the gateway: then what it chose stays.
func serverFilled() []planmodifier.String {
	return []planmodifier.String{stringplanmodifier.UseStateForUnknown(), stringplanmodifier.RequiresReplaceIfConfigured()}
}

func timeoutsAttribute(ctx context.Context) schema.Attribute {
	const unit = ", as a duration such as `90s` or `10m`. Default: `"
	attribute := timeouts.Attributes(ctx, timeouts.Opts{Create: true, Read: true, Update: true, Delete: true})
	nested, ok := attribute.(schema.SingleNestedAttribute)
	if !ok {
		return attribute
	}
	nested.MarkdownDescription = "How long operations may take, waits included."
	for name, description := range map[string]string{
		"create": "For creating the sandbox and waiting for it" + unit + shortDuration(defaultCreateTimeout) + "`.",
		"read":   "For reading it during a refresh" + unit + shortDuration(defaultReadTimeout) + "`.",
		"update": "For changing it in place" + unit + shortDuration(defaultUpdateTimeout) + "`.",
		"delete": "For deleting it and waiting until it is gone" + unit + shortDuration(defaultDeleteTimeout) + "`. A destroy uses the value in the state, so apply a change first.",
	} {
		nested.Attributes[name] = schema.StringAttribute{Optional: true, Validators: []validator.String{positiveDuration{}}, MarkdownDescription: description}
	}
	return nested
}

// shortDuration writes whole minutes as 10m, where Go says 10m0s.
func shortDuration(d time.Duration) string {
	if text, whole := strings.CutSuffix(d.String(), "m0s"); whole {
		return text + "m"
	}
	return d.String()
}
