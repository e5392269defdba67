package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"google.golang.org/grpc/codes"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/rules"
	"github.com/openshell-iac/terraform-provider-openshell/internal/client"
)

const notImported = "The sandbox was not imported"

// ImportState resolves the name once and fills the whole state from the gateway. From then on the id counts.
func (r *sandboxResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	c := r.data.connection(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	ref := r.importRef(ctx, req, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, defaultReadTimeout)
	defer cancel()
	sb, err := c.Sandbox(ctx, ref.Workspace, ref.Name)
	if call, ok := errors.AsType[*client.CallError](err); ok && call.Code() == codes.NotFound {
		report{title: notImported, what: "The gateway shows no such sandbox. It gives the same answer when the workspace does not exist and when the caller has no access to it.", ref: ref, state: stateNothing,
			todo: "check name, workspace, endpoint and credentials."}.asError(&resp.Diagnostics)
		return
	}
	if err != nil {
		failure(notImported, ref, stateNothing, "", err).asError(&resp.Diagnostics)
		return
	}
	if ref.ID != "" && !strings.EqualFold(ref.ID, client.IDOf(sb)) {
		report{title: "The name belongs to another sandbox", what: fmt.Sprintf("The import is for id %s, but the name belongs to the sandbox with id %s.", ref.ID, client.IDOf(sb)), ref: ref, state: stateNothing,
			todo: "if the sandbox that has the name now is the one to import, use its id or leave the id out."}.asError(&resp.Diagnostics)
		return
	}
	m, err := imported(ref, sb)
	if err != nil {
		failure(notImported, ref, stateNothing, "", err).asError(&resp.Diagnostics)
		return
	}
	workspace, err := c.Workspace(ctx, ref.Workspace)
	if call, ok := errors.AsType[*client.CallError](err); err != nil && (!ok || call.Code() != codes.PermissionDenied) {
		failure(notImported, ref, stateNothing, "", err).asError(&resp.Diagnostics)
		return
	}
	m.WorkspaceID = textOrNull(workspace.GetMetadata().GetId())
	m.leaveToTemplate()
	if err := m.importPolicy(ctx, c, resp.Private, &resp.Diagnostics); err != nil {
		failure(notImported, m.ref(), stateNothing, "", err).asError(&resp.Diagnostics)
		return
	}
	if !m.Environment.IsNull() {
		resp.Diagnostics.Append(resp.Private.SetKey(ctx, importedEnvironmentKey, []byte("true"))...)
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
	resp.Diagnostics.Append(setIdentity(ctx, resp.Identity, m)...)
}

// importRef reads name, workspace/name, either with @id, or the identity.
func (r *sandboxResource) importRef(ctx context.Context, req resource.ImportStateRequest, diags *diag.Diagnostics) client.Ref {
	ref := client.Ref{Workspace: r.data.workspace}
	if req.ID == "" && req.Identity != nil && !req.Identity.Raw.IsNull() {
		var identity sandboxIdentity
		diags.Append(req.Identity.Get(ctx, &identity)...)
		ref.Name, ref.ID = identity.Name.ValueString(), identity.ID.ValueString()
		if !identity.Workspace.IsNull() {
			ref.Workspace = identity.Workspace.ValueString()
		}
	} else {
		rest, id, hasID := strings.Cut(req.ID, "@")
		workspace, name, hasWorkspace := strings.Cut(rest, "/")
		if ref.Name, ref.ID = rest, id; hasWorkspace {
			ref.Workspace, ref.Name = workspace, name
		}
		if hasID && id == "" {
			ref.ID = "@" // refused below
		}
	}
	problem := ""
	switch {
	case rules.Name(ref.Name) != "":
		problem = "The name " + rules.Name(ref.Name) + "."
	case rules.Name(ref.Workspace) != "":
		problem = "The workspace " + rules.Name(ref.Workspace) + "."
	case ref.ID != "" && !isSandboxID(ref.ID):
		problem = "The id must be a UUID, as the gateway gave it."
	}
	if problem != "" {
		diags.AddError("The import id is not valid", problem+" An import id has one of the forms NAME, NAME@ID, WORKSPACE/NAME and WORKSPACE/NAME@ID.")
	}
	return ref
}

// leaveToTemplate takes out what a workload template decided, which a configuration that names the template does not say.
func (m *sandboxModel) leaveToTemplate() {
	if m.WorkloadTemplate.IsNull() {
		return
	}
	m.Environment = types.MapNull(types.StringType)
	m.Resources, m.GPU = types.ObjectNull(resourcesType), types.ObjectNull(gpuType)
	m.LogLevel, m.DriverConfig, m.RuntimeClassName, m.UserNamespaces = types.StringNull(), types.StringNull(), types.StringNull(), types.BoolNull()
}

// imported is the whole state of a sandbox that Terraform did not make.
func imported(ref client.Ref, sb *openshellv1.Sandbox) (sandboxModel, error) {
	spec := sb.GetSpec()
	driverConfig, err := objectText(spec.GetTemplate().GetDriverConfig())
	timeoutTypes := map[string]attr.Type{"create": types.StringType, "read": types.StringType, "update": types.StringType, "delete": types.StringType}
	m := sandboxModel{
		ID:               types.StringValue(client.IDOf(sb)),
		Name:             types.StringValue(ref.Name),
		Workspace:        types.StringValue(ref.Workspace),
		Image:            textOrNull(spec.GetTemplate().GetImage()),
		Command:          textList(spec.GetCommand()),
		TTY:              types.BoolValue(spec.GetTty()),
		Environment:      environmentFrom(sb),
		EnvironmentWO:    types.MapNull(types.StringType),
		Labels:           userMap(sb.GetMetadata().GetLabels()),
		Annotations:      userMap(sb.GetMetadata().GetAnnotations()),
		LogLevel:         textOrNull(spec.GetLogLevel()),
		DriverConfig:     driverConfig,
		RestartPolicy:    restartPolicy(sb),
		Providers:        types.SetNull(types.StringType),
		Resources:        resourcesFrom(sb),
		GPU:              gpuFrom(sb),
		RuntimeClassName: textOrNull(spec.GetTemplate().GetRuntimeClassName()),
		UserNamespaces:   types.BoolPointerValue(spec.GetTemplate().UserNamespaces),
		WorkloadTemplate: textOrNull(sb.GetCreatedFromWorkloadTemplate().GetName()),
		Running:          types.BoolNull(),
		WaitFor:          types.StringValue(waitReady),
		Timeouts:         timeouts.Value{Object: types.ObjectNull(timeoutTypes)},
		CreatedTime:      createdTime(sb),
	}
	if providers := spec.GetProviders(); len(providers) > 0 {
		m.Providers = textSet(providers)
	}
	m.observe(sb)
	return m, err
}
