package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"google.golang.org/grpc/codes"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/policy"
	"github.com/openshell-iac/terraform-provider-openshell/internal/client"
)

var _ datasource.DataSourceWithConfigure = (*sandboxDataSource)(nil)

// sandboxDataSource is the data source openshell_sandbox.
type sandboxDataSource struct{ data *providerData }

func newSandboxDataSource() datasource.DataSource { return &sandboxDataSource{} }

func (d *sandboxDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_sandbox"
}

func (d *sandboxDataSource) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	d.data = dataFrom(req.ProviderData, &resp.Diagnostics)
}

type sandboxDataModel struct {
	Name             types.String     `tfsdk:"name"`
	Workspace        types.String     `tfsdk:"workspace"`
	ID               types.String     `tfsdk:"id"`
	WorkspaceID      types.String     `tfsdk:"workspace_id"`
	Image            types.String     `tfsdk:"image"`
	Command          types.List       `tfsdk:"command"`
	TTY              types.Bool       `tfsdk:"tty"`
	Labels           types.Map        `tfsdk:"labels"`
	Annotations      types.Map        `tfsdk:"annotations"`
	LogLevel         types.String     `tfsdk:"log_level"`
	DriverConfig     types.String     `tfsdk:"driver_config"`
	RestartPolicy    types.String     `tfsdk:"restart_policy"`
	Policy           types.String     `tfsdk:"policy"`
	Providers        types.Set        `tfsdk:"providers"`
	Resources        types.Object     `tfsdk:"resources"`
	GPU              types.Object     `tfsdk:"gpu"`
	RuntimeClassName types.String     `tfsdk:"runtime_class_name"`
	UserNamespaces   types.Bool       `tfsdk:"user_namespaces"`
	WorkloadTemplate types.String     `tfsdk:"workload_template"`
	Phase            types.String     `tfsdk:"phase"`
	CreatedTime      types.String     `tfsdk:"created_time"`
	ExitCode         types.Int64      `tfsdk:"exit_code"`
	CreateID         types.String     `tfsdk:"create_id"`
	ResourceVersion  types.Int64      `tfsdk:"resource_version"`
	Conditions       []conditionModel `tfsdk:"conditions"`
}

type conditionModel struct {
	Type    types.String `tfsdk:"type"`
	Status  types.String `tfsdk:"status"`
	Reason  types.String `tfsdk:"reason"`
	Message types.String `tfsdk:"message"`
}

const createIDDescription = "Mark of the create that made the sandbox, if this provider did (annotation `" + client.AnnotationCreateID + "`): the error of an apply that did not see its sandbox tells it. Null without one."

// createIDOf is the mark of the create that made a sandbox; empty if none of this provider did.
func createIDOf(sb *openshellv1.Sandbox) string {
	return sb.GetMetadata().GetAnnotations()[client.AnnotationCreateID]
}

func (d *sandboxDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	text := func(description string) schema.Attribute {
		return schema.StringAttribute{Computed: true, MarkdownDescription: description}
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "Reads the sandbox that has a name now, whoever made it. Its environment is not read, since it may hold secrets.",
		Attributes: map[string]schema.Attribute{
			"name": schema.StringAttribute{Required: true, Validators: []validator.String{objectName{}}, MarkdownDescription: "Name of the sandbox."},
			"workspace": schema.StringAttribute{
				Optional: true, Computed: true, Validators: []validator.String{objectName{}},
				MarkdownDescription: "Workspace of the sandbox. Default: the provider's.",
			},
			"id": schema.StringAttribute{
				Optional: true, Computed: true, Validators: []validator.String{sandboxID{}},
				MarkdownDescription: "Id of the sandbox. When given, it is an error if the name belongs to a sandbox with another id.",
			},
			"workspace_id":   text("Id of the workspace, which no other gateway shares. Null if the caller may not read the workspace."),
			"image":          text("Container image."),
			"command":        schema.ListAttribute{Computed: true, ElementType: types.StringType, MarkdownDescription: "Main process and its arguments. Null if it has none."},
			"tty":            schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether the main process has a terminal."},
			"labels":         schema.MapAttribute{Computed: true, ElementType: types.StringType, MarkdownDescription: "Labels, without those of this provider. Null if there are none."},
			"annotations":    schema.MapAttribute{Computed: true, ElementType: types.StringType, MarkdownDescription: "Annotations, without those of this provider and of the gateway. Null if there are none."},
			"log_level":      text("Log level inside the sandbox. Null if none was set."),
			"driver_config":  text("Settings for the gateway's compute driver, as the text of a JSON object. Null if there are none."),
			"restart_policy": text("When the main process is started again after it ended: `never`, `on_failure` or `always`."),
			"policy":         text("Newest policy that was written to the sandbox, as YAML. Null if there is none, or if the caller may not read it."),
			"providers":      schema.SetAttribute{Computed: true, ElementType: types.StringType, MarkdownDescription: "Names of the attached credential providers."},
			"resources": schema.SingleNestedAttribute{
				Computed: true, MarkdownDescription: "Limits of what the sandbox may use. Null if there are none.",
				Attributes: map[string]schema.Attribute{
					"cpu":    text("CPU time as a Kubernetes quantity. Null if it is not limited."),
					"memory": text("Memory as a Kubernetes quantity. Null if it is not limited."),
				},
			},
			"gpu": schema.SingleNestedAttribute{
				Computed: true, MarkdownDescription: "GPUs that were asked for. Null if none were.",
				Attributes: map[string]schema.Attribute{
					"count": schema.Int64Attribute{Computed: true, MarkdownDescription: "Number of GPUs. Null if it was left to the compute driver."},
				},
			},
			"runtime_class_name": text("Runtime class of the sandbox's pod. Null if none was set."),
			"user_namespaces":    schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether the sandbox runs in a user namespace of its own. Null if that was left to the gateway."},
			"workload_template":  text("Name of the workload template that the sandbox was made from. Null if it was not made from one."),
			"phase":              text("Phase: `provisioning`, `ready`, `error`, `deleting`, `unknown`, `stopping`, `stopped`, `starting` or `completed`."),
			"created_time":       text("When the sandbox was created, in UTC, as RFC 3339 text."),
			"exit_code":          schema.Int64Attribute{Computed: true, MarkdownDescription: "Exit code of the main process, 128+n for signal n. Null until it ended."},
			"create_id":          text(createIDDescription),
			"resource_version": schema.Int64Attribute{
				Computed: true, MarkdownDescription: "Version of the sandbox: every write, the gateway's own included, raises it.",
			},
			"conditions": schema.ListNestedAttribute{
				Computed: true, MarkdownDescription: "What the gateway observed; the type `Ready` says why a sandbox is not ready.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"type":    text("What it is about."),
					"status":  text("`True`, `False` or `Unknown`."),
					"reason":  text("Reason, for programs."),
					"message": text("Reason, for people."),
				}},
			},
		},
	}
}

func (d *sandboxDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m sandboxDataModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	c := d.data.connection(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	if m.Workspace.IsNull() {
		m.Workspace = types.StringValue(d.data.workspace)
	}
	ctx, cancel := context.WithTimeout(ctx, defaultReadTimeout)
	defer cancel()
	ref := client.Ref{Workspace: m.Workspace.ValueString(), Name: m.Name.ValueString(), ID: m.ID.ValueString()}
	sb, err := c.Sandbox(ctx, ref.Workspace, ref.Name)
	if err == nil && ref.ID != "" && !strings.EqualFold(ref.ID, client.IDOf(sb)) {
		report{title: "The name belongs to another sandbox", what: fmt.Sprintf("The configuration asks for id %s, but the name belongs to the sandbox with id %s.", ref.ID, client.IDOf(sb)), ref: ref,
			todo: "correct the id, or leave it out to take whichever sandbox has the name."}.asError(&resp.Diagnostics)
		return
	}
	if err == nil {
		err = m.fill(ctx, c, sb)
	}
	if err != nil {
		failure(notRead, ref, "", "", err).asError(&resp.Diagnostics)
		return
	}
	ref.ID = client.IDOf(sb)
	if m.Policy, err = newestPolicy(ctx, c, ref); err != nil {
		failure(notRead, ref, "", "", err).asError(&resp.Diagnostics)
		return
	}
	if workspace, err := c.Workspace(ctx, ref.Workspace); err == nil {
		m.WorkspaceID = textOrNull(workspace.GetMetadata().GetId())
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
}

// newestPolicy is the newest policy of a sandbox, or that of its creation.
func newestPolicy(ctx context.Context, c *client.Client, ref client.Ref) (types.String, error) {
	newest, sb, gone, err := c.ObservePolicy(ctx, ref, 0)
	if call, ok := errors.AsType[*client.CallError](err); ok && call.Code() == codes.PermissionDenied {
		return types.StringNull(), nil
	}
	if gone != nil {
		err = &client.GoneError{Ref: ref, Gone: *gone}
	}
	if err != nil {
		return types.StringNull(), err
	}
	p := sb.GetSpec().GetPolicy()
	if newest != nil {
		p = newest.GetPolicy()
	}
	if p == nil {
		return types.StringNull(), nil
	}
	text, err := policy.Format(p)
	return types.StringValue(text), err
}

// fill takes over everything that is shown.
func (m *sandboxDataModel) fill(ctx context.Context, c *client.Client, sb *openshellv1.Sandbox) error {
	from, err := imported(client.Ref{Workspace: m.Workspace.ValueString(), Name: m.Name.ValueString()}, sb)
	m.ID, m.Image, m.Command, m.TTY = from.ID, from.Image, from.Command, from.TTY
	m.Labels, m.Annotations, m.LogLevel = from.Labels, from.Annotations, from.LogLevel
	m.DriverConfig, m.RestartPolicy = from.DriverConfig, from.RestartPolicy
	m.Providers = textSet(sb.GetSpec().GetProviders())
	m.Resources, m.GPU, m.WorkloadTemplate = from.Resources, from.GPU, from.WorkloadTemplate
	m.RuntimeClassName, m.UserNamespaces = from.RuntimeClassName, from.UserNamespaces
	m.Phase, m.CreatedTime, m.ExitCode = from.Phase, from.CreatedTime, from.ExitCode
	m.CreateID = textOrNull(createIDOf(sb))
	m.ResourceVersion = types.Int64Value(int64(sb.GetMetadata().GetResourceVersion())) //nolint:gosec // counts from 1
	m.Conditions = []conditionModel{}
	for _, condition := range sb.GetStatus().GetConditions() {
		m.Conditions = append(m.Conditions, conditionModel{
			Type: textOrNull(condition.GetType()), Status: textOrNull(condition.GetStatus()),
			Reason: textOrNull(condition.GetReason()), Message: textOrNull(c.ConditionMessage(ctx, sb, condition)),
		})
	}
	return err
}
