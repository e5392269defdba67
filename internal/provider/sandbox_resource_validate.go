package provider

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"google.golang.org/protobuf/proto"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/rules"
)

// ownSize is room in a request for what the provider adds: marks, workspace and an invented name.
const ownSize = 1024

// ValidateConfig finds what the gateway would refuse, by the same rules. What is not known yet is left for the apply.
func (r *sandboxResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var m sandboxModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	request := m.request(texts(m.EnvironmentWO))
	for _, v := range m.violations(request.GetSpec()) {
		resp.Diagnostics.AddAttributeError(wirePath(v.Field), "The value is not valid", fmt.Sprintf("%s %s.", wirePath(v.Field), v.Problem))
	}
	if size := proto.Size(request) + ownSize; size > rules.MaxMessage {
		resp.Diagnostics.AddError("The sandbox is too large", fmt.Sprintf("Its arguments take %d bytes together, and a gateway takes a request of at most %d. Make the longest shorter, such as annotations, environment, command or policy.", size, rules.MaxMessage))
	}
	m.validateMaps(&resp.Diagnostics)
	m.validateEnvironment(&resp.Diagnostics)
	m.validateProviders(&resp.Diagnostics)
	m.validateChoices(&resp.Diagnostics)
	if m.TTY.Equal(types.BoolValue(false)) && !m.Command.IsUnknown() && len(m.Command.Elements()) == 0 {
		resp.Diagnostics.AddAttributeError(path.Root("tty"), "A sandbox without a command always has a terminal",
			"tty = false needs a command: without one the gateway sets tty to true. Leave tty out, or give a command.")
	}
	if m.RestartPolicy.ValueString() == "always" && m.WaitFor.ValueString() == waitCompleted {
		resp.Diagnostics.AddAttributeError(path.Root("wait_for"), "A sandbox that always starts again does not complete",
			"restart_policy = \"always\" and wait_for = \"completed\" contradict each other: leave one of them out.")
	}
	if m.Running.Equal(types.BoolValue(false)) && m.WaitFor.ValueString() == waitCompleted {
		resp.Diagnostics.AddAttributeError(path.Root("running"), "A stopped sandbox does not complete",
			"running = false and wait_for = \"completed\" contradict each other: leave one of them out.")
	}
}

// validateProviders checks each name, and how many there are.
func (m sandboxModel) validateProviders(diags *diag.Diagnostics) {
	at := path.Root("providers")
	for _, name := range m.Providers.Elements() {
		problem := ""
		switch text, _ := name.(types.String); {
		case text.IsNull():
			problem = "must not be null"
		case given(text):
			problem = rules.ProviderName(text.ValueString())
		}
		if problem != "" {
			diags.AddAttributeError(at, "The name of a provider is not valid", fmt.Sprintf("providers: a name %s.", problem))
		}
	}
	if n := len(m.Providers.Elements()); n > rules.MaxProviders {
		diags.AddAttributeError(at, "There are too many providers", fmt.Sprintf("providers must have at most %d names, not %d.", rules.MaxProviders, n))
	}
}

// validateChoices refuses attributes that exclude each other.
func (m sandboxModel) validateChoices(diags *diag.Diagnostics) {
	if given(m.Name) && given(m.NamePrefix) {
		diags.AddAttributeError(path.Root("name_prefix"), "The sandbox has a name", "name_prefix is the beginning of a name that is invented, so it has no effect beside name. Leave one of them out.")
	}
	if !given(m.WorkloadTemplate) {
		return
	}
	for name, set := range map[string]bool{
		"image": given(m.Image), "log_level": given(m.LogLevel), "driver_config": given(m.DriverConfig), "environment": len(m.Environment.Elements()) > 0, "environment_wo": len(m.EnvironmentWO.Elements()) > 0,
		"resources": !isEmpty(m.Resources), "gpu": given(m.GPU), "runtime_class_name": given(m.RuntimeClassName), "user_namespaces": given(m.UserNamespaces),
	} {
		if set {
			diags.AddAttributeError(path.Root(name), "The workload template decides this", fmt.Sprintf("%s cannot be given beside workload_template, which decides it. Leave one of them out.", name))
		}
	}
}

// given tells that a configuration has a value. One that is not known yet may turn out to be null.
func given(v attr.Value) bool { return !v.IsNull() && !v.IsUnknown() }

// violations checks each part of the spec by itself, so that all are found.
func (m sandboxModel) violations(spec *openshellv1.SandboxSpec) []*rules.Violation {
	for i, element := range m.Command.Elements() {
		if element.IsUnknown() {
			spec.Command[i] = "unknown"
		}
	}
	var found []*rules.Violation
	for _, part := range []*openshellv1.SandboxSpec{
		{LogLevel: spec.GetLogLevel()},
		{Command: spec.GetCommand()},
		{Environment: texts(m.Environment)},
		{Policy: spec.GetPolicy()},
		{Template: &openshellv1.SandboxTemplate{Image: spec.GetTemplate().GetImage()}},
		{Template: &openshellv1.SandboxTemplate{RuntimeClassName: spec.GetTemplate().GetRuntimeClassName()}},
		{Template: &openshellv1.SandboxTemplate{DriverConfig: spec.GetTemplate().GetDriverConfig()}},
	} {
		if v := rules.Spec("spec", part); v != nil {
			found = append(found, v)
		}
	}
	if v := rules.Environment("environment_wo", texts(m.EnvironmentWO)); v != nil {
		found = append(found, v)
	}
	annotations, most := texts(m.Annotations), rules.MaxEntries-1 // the provider adds one
	if len(m.EnvironmentWO.Elements()) > 0 {
		most-- // and another one
	}
	if len(annotations) > most {
		found = append(found, &rules.Violation{Field: "annotations", Problem: fmt.Sprintf("must have at most %d entries", most)})
	} else if v := rules.Annotations("annotations", annotations); v != nil {
		found = append(found, v)
	}
	if problem := rules.Labels(texts(m.Labels)); problem != "" {
		found = append(found, &rules.Violation{Field: "labels", Problem: "are not valid: " + problem})
	}
	return found
}

// validateMaps refuses values that are null and keys that belong to the provider or the gateway.
func (m sandboxModel) validateMaps(diags *diag.Diagnostics) {
	for name, values := range map[string]types.Map{"environment": m.Environment, "environment_wo": m.EnvironmentWO, "labels": m.Labels, "annotations": m.Annotations} {
		for key, value := range values.Elements() {
			at := path.Root(name).AtMapKey(key)
			if value.IsNull() {
				diags.AddAttributeError(at, "The value is null", fmt.Sprintf("%s must be a text. Leave the key out if there is no value.", at))
			}
			if !strings.HasPrefix(name, "environment") && (strings.HasPrefix(key, ownPrefix) || strings.HasPrefix(key, gatewayPrefix)) {
				diags.AddAttributeError(at, "The key is reserved", fmt.Sprintf("%s: keys that begin with %s or %s belong to the provider and the gateway. Choose another one.", at, ownPrefix, gatewayPrefix))
			}
		}
	}
	if slices.ContainsFunc(m.Command.Elements(), attr.Value.IsNull) {
		diags.AddAttributeError(path.Root("command"), "An argument is null", "command must not have null among its arguments. Leave it out.")
	}
}

// wirePath gives the attribute that a field of the API stands for, such as spec.template.image for image. Fields
// without an attribute give the empty path.
func wirePath(field string) path.Path {
	name := strings.TrimPrefix(field, "spec.")
	name = strings.TrimPrefix(name, "template.")
	name, key := cutKey(name)
	switch name {
	case "name", "labels", "annotations", "command", "environment", "environment_wo", "image", "log_level", "policy", "restart_policy", "runtime_class_name", "tty", "user_namespaces", "workload_template":
	case "workspace_scope":
		return path.Root("workspace")
	case "providers": // whose elements have no index
		return path.Root(name)
	case "resource_requirements.gpu.count":
		return path.Root("gpu").AtName("count")
	default:
		for _, whole := range []string{"driver_config", "resources"} {
			if strings.HasPrefix(name, whole) {
				return path.Root(whole)
			}
		}
		return path.Empty()
	}
	at := path.Root(name)
	if key == "" {
		return at
	}
	if index, err := strconv.Atoi(key); err == nil && name == "command" {
		return at.AtListIndex(index)
	}
	return at.AtMapKey(key)
}

// cutKey splits environment[KEY].
func cutKey(field string) (name, key string) {
	name, rest, found := strings.Cut(field, "[")
	if !found || !strings.HasSuffix(rest, "]") {
		return field, ""
	}
	return name, strings.TrimSuffix(rest, "]")
}
