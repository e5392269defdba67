package provider

import (
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

// This file is the way of the attributes that are fixed for a sandbox, from the configuration to the gateway and back.

const (
	restartPrefix = "SANDBOX_RESTART_POLICY_"
	limits        = "limits" // the block of template.resources that resources stands for
)

var (
	resourcesType = map[string]attr.Type{"cpu": types.StringType, "memory": types.StringType}
	gpuType       = map[string]attr.Type{"count": types.Int64Type}
)

// spec is what the gateway is asked for. Values that are not known are left out.
func (m sandboxModel) spec() *openshellv1.SandboxSpec {
	spec := &openshellv1.SandboxSpec{
		LogLevel:             m.LogLevel.ValueString(),
		Environment:          texts(m.Environment),
		Template:             m.template(),
		ResourceRequirements: m.requirements(),
		Providers:            sorted(m.Providers),
		Policy:               m.Policy.policy(),
		Tty:                  m.TTY.ValueBool(),
		RestartPolicy:        openshellv1.SandboxRestartPolicy(openshellv1.SandboxRestartPolicy_value[restartPrefix+strings.ToUpper(m.RestartPolicy.ValueString())]),
	}
	for _, element := range m.Command.Elements() {
		argument, _ := element.(types.String)
		spec.Command = append(spec.Command, argument.ValueString())
	}
	return spec
}

// template is nil when there is nothing in it.
func (m sandboxModel) template() *openshellv1.SandboxTemplate {
	template := &openshellv1.SandboxTemplate{
		Image:            m.Image.ValueString(),
		RuntimeClassName: m.RuntimeClassName.ValueString(),
		Resources:        limitsOf(m.Resources),
		DriverConfig:     m.driverConfig(),
	}
	if !m.UserNamespaces.IsUnknown() {
		template.UserNamespaces = m.UserNamespaces.ValueBoolPointer()
	}
	if proto.Size(template) == 0 {
		return nil
	}
	return template
}

// driverConfig is nil when there is none, or none that is valid: a validator reports that.
func (m sandboxModel) driverConfig() *structpb.Struct {
	if m.DriverConfig.ValueString() == "" {
		return nil
	}
	object, err := parseObject(m.DriverConfig.ValueString())
	if err != nil {
		return nil
	}
	return object
}

// limitsOf is nil when there is no limit.
func limitsOf(resources types.Object) *structpb.Struct {
	amounts := map[string]*structpb.Value{}
	for name, value := range resources.Attributes() {
		if amount, _ := value.(types.String); amount.ValueString() != "" {
			amounts[name] = structpb.NewStringValue(amount.ValueString())
		}
	}
	if len(amounts) == 0 {
		return nil
	}
	return &structpb.Struct{Fields: map[string]*structpb.Value{limits: structpb.NewStructValue(&structpb.Struct{Fields: amounts})}}
}

// requirements is nil when no GPU is asked for. A GPU without a count is the gateway's default selection.
func (m sandboxModel) requirements() *openshellv1.ResourceRequirements {
	if !given(m.GPU) {
		return nil
	}
	gpu := &openshellv1.GpuResourceRequirements{}
	if count, _ := m.GPU.Attributes()["count"].(types.Int64); given(count) {
		gpu.Count = proto.Uint32(uint32(count.ValueInt64())) //nolint:gosec // a validator keeps it in range
	}
	return &openshellv1.ResourceRequirements{Gpu: gpu}
}

// resourcesFrom is the other direction; null when there is no limit that has an attribute.
func resourcesFrom(sb *openshellv1.Sandbox) types.Object {
	amounts := sb.GetSpec().GetTemplate().GetResources().GetFields()[limits].GetStructValue().GetFields()
	found := map[string]attr.Value{}
	for name := range resourcesType {
		switch amount := amounts[name].GetKind().(type) {
		case *structpb.Value_StringValue:
			found[name] = textOrNull(amount.StringValue)
		case *structpb.Value_NumberValue: // a client may write 2 for "2"
			found[name] = types.StringValue(strconv.FormatFloat(amount.NumberValue, 'f', -1, 64))
		default:
			found[name] = types.StringNull()
		}
	}
	if found["cpu"].IsNull() && found["memory"].IsNull() {
		return types.ObjectNull(resourcesType)
	}
	return types.ObjectValueMust(resourcesType, found)
}

func gpuFrom(sb *openshellv1.Sandbox) types.Object {
	gpu := sb.GetSpec().GetResourceRequirements().GetGpu()
	if gpu == nil {
		return types.ObjectNull(gpuType)
	}
	count := types.Int64Null()
	if gpu.Count != nil {
		count = types.Int64Value(int64(gpu.GetCount()))
	}
	return types.ObjectValueMust(gpuType, map[string]attr.Value{"count": count})
}

// restartPolicies are the values of restart_policy.
func restartPolicies() []string {
	var names []string
	for number, name := range openshellv1.SandboxRestartPolicy_name {
		if number != 0 {
			names = append(names, strings.ToLower(strings.TrimPrefix(name, restartPrefix)))
		}
	}
	slices.Sort(names)
	return names
}

func restartPolicy(sb *openshellv1.Sandbox) types.String {
	policy := sb.GetSpec().GetRestartPolicy()
	if policy == openshellv1.SandboxRestartPolicy_SANDBOX_RESTART_POLICY_UNSPECIFIED {
		return types.StringNull()
	}
	return types.StringValue(strings.ToLower(strings.TrimPrefix(policy.String(), restartPrefix)))
}
