package provider

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/client"
)

// sandboxModel is a sandbox in the state, the plan or the configuration.
type sandboxModel struct {
	ID                   types.String   `tfsdk:"id"`
	WorkspaceID          types.String   `tfsdk:"workspace_id"`
	Name                 types.String   `tfsdk:"name"`
	NamePrefix           types.String   `tfsdk:"name_prefix"`
	Workspace            types.String   `tfsdk:"workspace"`
	Image                types.String   `tfsdk:"image"`
	Command              types.List     `tfsdk:"command"`
	TTY                  types.Bool     `tfsdk:"tty"`
	Environment          types.Map      `tfsdk:"environment"`
	EnvironmentWO        types.Map      `tfsdk:"environment_wo"`
	EnvironmentWOVersion types.Int64    `tfsdk:"environment_wo_version"`
	Labels               types.Map      `tfsdk:"labels"`
	Annotations          types.Map      `tfsdk:"annotations"`
	LogLevel             types.String   `tfsdk:"log_level"`
	DriverConfig         types.String   `tfsdk:"driver_config"`
	RestartPolicy        types.String   `tfsdk:"restart_policy"`
	Policy               policyValue    `tfsdk:"policy"`
	Providers            types.Set      `tfsdk:"providers"`
	Resources            types.Object   `tfsdk:"resources"`
	GPU                  types.Object   `tfsdk:"gpu"`
	RuntimeClassName     types.String   `tfsdk:"runtime_class_name"`
	UserNamespaces       types.Bool     `tfsdk:"user_namespaces"`
	WorkloadTemplate     types.String   `tfsdk:"workload_template"`
	Running              types.Bool     `tfsdk:"running"`
	WaitFor              types.String   `tfsdk:"wait_for"`
	Timeouts             timeouts.Value `tfsdk:"timeouts"`
	Phase                types.String   `tfsdk:"phase"`
	CreatedTime          types.String   `tfsdk:"created_time"`
	ExitCode             types.Int64    `tfsdk:"exit_code"`
}

// Default time limits of the operations.
const (
	defaultCreateTimeout = 10 * time.Minute
	defaultReadTimeout   = time.Minute
	defaultUpdateTimeout = 10 * time.Minute
	defaultDeleteTimeout = 10 * time.Minute
)

// Keys that are not the user's: ours, and the gateway's bookkeeping (upstream-contract 3.2).
const (
	ownPrefix     = "openshell-iac/"
	gatewayPrefix = "internal.openshell.ai/"
)

// ref is what the state remembers of the sandbox.
func (m sandboxModel) ref() client.Ref {
	return client.Ref{
		Workspace: m.Workspace.ValueString(), WorkspaceID: m.WorkspaceID.ValueString(),
		Name: m.Name.ValueString(), ID: m.ID.ValueString(),
	}
}

func isSandboxID(id string) bool { return client.IsUUID(id) }

// withSecrets keeps the sandbox's secrets out of what a gateway writes.
func (m sandboxModel) withSecrets(ctx context.Context) context.Context {
	return client.WithSecrets(ctx, slices.Collect(maps.Values(texts(m.Environment)))...)
}

// adopt fills in what a new sandbox was given by the gateway; what the plan says stays. Nothing unknown is left.
func (m *sandboxModel) adopt(sb *openshellv1.Sandbox) {
	m.ID = types.StringValue(client.IDOf(sb))
	m.Name = types.StringValue(sb.GetMetadata().GetName())
	if m.Image.IsUnknown() {
		m.Image = textOrNull(sb.GetSpec().GetTemplate().GetImage())
	}
	if m.TTY.IsUnknown() {
		m.TTY = types.BoolValue(sb.GetSpec().GetTty())
	}
	if m.RestartPolicy.IsUnknown() {
		m.RestartPolicy = restartPolicy(sb)
	}
	m.CreatedTime = createdTime(sb)
	m.observe(sb)
}

// observe takes over what the gateway decides during a sandbox's life.
func (m *sandboxModel) observe(sb *openshellv1.Sandbox) {
	m.Phase = types.StringValue(client.Phase(sb))
	m.ExitCode = types.Int64Null()
	if status := sb.GetStatus(); status != nil && status.ExitCode != nil {
		m.ExitCode = types.Int64Value(int64(status.GetExitCode()))
	}
}

// follow takes over what others may have changed of what the configuration manages.
func (m *sandboxModel) follow(sb *openshellv1.Sandbox) {
	m.observe(sb)
	if !m.Providers.IsNull() {
		m.Providers = textSet(sb.GetSpec().GetProviders())
	}
	if m.Running.IsNull() {
		return
	}
	switch sb.GetStatus().GetPhase() {
	case openshellv1.SandboxPhase_SANDBOX_PHASE_STOPPED, openshellv1.SandboxPhase_SANDBOX_PHASE_STOPPING:
		m.Running = types.BoolValue(false)
	case openshellv1.SandboxPhase_SANDBOX_PHASE_COMPLETED, openshellv1.SandboxPhase_SANDBOX_PHASE_ERROR:
		// It has ended by itself. Neither a stop nor a start would do anything, so neither value asks for one.
	default:
		m.Running = types.BoolValue(true)
	}
}

func createdTime(sb *openshellv1.Sandbox) types.String {
	created := sb.GetMetadata().GetCreatedTime()
	if created == nil {
		return types.StringNull()
	}
	return types.StringValue(created.AsTime().UTC().Format(time.RFC3339Nano))
}

// texts gives the known elements of a map.
func texts(m types.Map) map[string]string {
	if len(m.Elements()) == 0 {
		return nil
	}
	out := map[string]string{}
	for key, element := range m.Elements() {
		if text, ok := element.(types.String); ok && !text.IsUnknown() {
			out[key] = text.ValueString()
		}
	}
	return out
}

// union is a new map with the entries of two.
func union(a, b map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, a)
	maps.Copy(all, b)
	return all
}

// userMap is a map from the gateway without the keys that are not the user's; null when none is left.
func userMap(m map[string]string) types.Map {
	elements := map[string]attr.Value{}
	for key, value := range m {
		if !strings.HasPrefix(key, ownPrefix) && !strings.HasPrefix(key, gatewayPrefix) {
			elements[key] = types.StringValue(value)
		}
	}
	if len(elements) == 0 {
		return types.MapNull(types.StringType)
	}
	return types.MapValueMust(types.StringType, elements)
}

func textList(values []string) types.List {
	if len(values) == 0 {
		return types.ListNull(types.StringType)
	}
	return types.ListValueMust(types.StringType, textValues(values))
}

// textSet is empty, not null, when there are no values.
func textSet(values []string) types.Set {
	return types.SetValueMust(types.StringType, textValues(values))
}

func textValues(values []string) []attr.Value {
	elements := make([]attr.Value, 0, len(values))
	for _, value := range values {
		elements = append(elements, types.StringValue(value))
	}
	return elements
}

// sorted gives the known elements of a set; nil for null.
func sorted(set types.Set) []string {
	if set.IsNull() {
		return nil
	}
	values := []string{}
	for _, element := range set.Elements() {
		if text, ok := element.(types.String); ok && given(text) {
			values = append(values, text.ValueString())
		}
	}
	slices.Sort(values)
	return values
}

func textOrNull(text string) types.String {
	if text == "" {
		return types.StringNull()
	}
	return types.StringValue(text)
}
