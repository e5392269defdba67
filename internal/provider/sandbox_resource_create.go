package provider

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"google.golang.org/grpc/codes"

	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/rules"
	"github.com/openshell-iac/terraform-provider-openshell/internal/apierr"
	"github.com/openshell-iac/terraform-provider-openshell/internal/client"
)

const notCreated = "The sandbox was not created"

// Create makes the sandbox, writes it to the state as soon as the gateway has answered, and then waits. From there on
// every failure leaves the id in the state.
func (r *sandboxResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var m sandboxModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	var writeOnly types.Map // the plan and, with it, the state have none of it
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("environment_wo"), &writeOnly)...)
	c := r.data.connection(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	limit, diags := m.Timeouts.Create(ctx, defaultCreateTimeout)
	resp.Diagnostics.Append(diags...)
	ctx, cancel := context.WithTimeout(client.WithSecrets(m.withSecrets(ctx), slices.Collect(maps.Values(texts(writeOnly)))...), limit)
	defer cancel()
	if m.Workspace.IsUnknown() {
		m.Workspace = types.StringValue(r.data.workspace)
	}
	invent := m.inventName()

	workspaceID, ok := r.prepare(ctx, c, m, &resp.Diagnostics)
	if !ok {
		return
	}
	m.WorkspaceID = workspaceID
	sb, err := c.Create(ctx, m.request(texts(writeOnly)), invent)
	if err != nil {
		m.createFailure(err, invent != nil).asError(&resp.Diagnostics)
		return
	}
	m.adopt(sb)
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
	resp.Diagnostics.Append(setIdentity(ctx, resp.Identity, m)...)

	sb, err = settle(ctx, c, m.ref(), m.WaitFor, m.Running, sb)
	if err != nil {
		r.data.failure("The sandbox was created, but did not become what it should", m.ref(), stateTainted, "create", err).asError(&resp.Diagnostics)
		return
	}
	m.observe(sb)
	m.recordPolicy(ctx, c, resp.Private, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
}

// prepare asks for what must be known before anything is made: the workspace's id, and whether the gateway can stop.
func (r *sandboxResource) prepare(ctx context.Context, c *client.Client, m sandboxModel, diags *diag.Diagnostics) (workspaceID types.String, ok bool) {
	workspaceID = types.StringNull()
	workspace, err := c.Workspace(ctx, m.Workspace.ValueString())
	call, isCall := errors.AsType[*client.CallError](err)
	switch {
	case err == nil:
		workspaceID = types.StringValue(workspace.GetMetadata().GetId())
	case isCall && call.Code() == codes.PermissionDenied: // no scope for it, which creating does not need
	default:
		failure(notCreated, m.ref(), stateNothing, "create", err).asError(diags)
		return workspaceID, false
	}
	if m.Running.Equal(types.BoolValue(false)) {
		supported, said, err := c.ConditionalSupport(ctx)
		switch {
		case err != nil:
			failure(notCreated, m.ref(), stateNothing, "create", err).asError(diags)
			return workspaceID, false
		case !supported:
			report{title: notCreated, what: fmt.Sprintf("running = false takes a stop bound to the sandbox's id (openshell.conditional.v1), which the gateway at %s does not offer: its health check says %s. So the create was not sent.", c.Endpoint(), said), ref: m.ref(), state: stateNothing,
				todo: "leave running out, or use a gateway that offers openshell.conditional.v1.", at: path.Root("running")}.asError(diags)
			return workspaceID, false
		}
	}
	return workspaceID, true
}

// settle waits for what wait_for says, and stops the sandbox if it is not to run.
func settle(ctx context.Context, c *client.Client, ref client.Ref, waitFor types.String, running types.Bool, sb *openshellv1.Sandbox) (*openshellv1.Sandbox, error) {
	if goal, wait := goalOf(waitFor); wait {
		var err error
		if sb, err = c.WaitFor(ctx, ref, goal); err != nil {
			return nil, err
		}
	}
	if running.Equal(types.BoolValue(false)) {
		return c.Stop(ctx, ref)
	}
	return sb, nil
}

func goalOf(waitFor types.String) (goal client.Goal, wait bool) {
	switch waitFor.ValueString() {
	case waitNone:
		return "", false
	case waitCompleted:
		return client.Completed, true
	default:
		return client.Ready, true
	}
}

// request is the create itself, with the variables that are in the configuration alone.
func (m sandboxModel) request(writeOnly map[string]string) *openshellv1.CreateSandboxRequest {
	spec, annotations := m.spec(), texts(m.Annotations)
	if len(writeOnly) > 0 {
		spec.Environment = union(spec.GetEnvironment(), writeOnly)
		annotations = union(annotations, map[string]string{annotationWriteOnly: writeOnlyMark(writeOnly)})
	}
	return &openshellv1.CreateSandboxRequest{
		Spec: spec, Name: m.Name.ValueString(), Labels: texts(m.Labels), Annotations: annotations,
		WorkloadTemplate: m.WorkloadTemplate.ValueString(),
		WorkspaceScope:   &datamodelv1.WorkspaceSelector{Selection: &datamodelv1.WorkspaceSelector_Workspace{Workspace: m.Workspace.ValueString()}},
	}
}

// Parts of an invented name.
const (
	defaultNamePrefix = "sandbox-"
	fewestRandom      = 6
	mostRandom        = 8
	maxNamePrefix     = rules.MaxName - fewestRandom
)

// inventName names the sandbox if the user did not, and returns how to give it another name; nil if the user did. The model
// has the name that was tried last.
func (m *sandboxModel) inventName() func() string {
	if !m.Name.IsUnknown() {
		return nil
	}
	prefix := defaultNamePrefix
	if m.NamePrefix.ValueString() != "" {
		prefix = m.NamePrefix.ValueString()
	}
	length := min(mostRandom, rules.MaxName-len(prefix))
	invent := func() string {
		m.Name = types.StringValue(prefix + strings.ToLower(rand.Text()[:length]))
		return m.Name.ValueString()
	}
	invent()
	return invent
}

func (m sandboxModel) createFailure(err error, invented bool) report {
	if taken, ok := errors.AsType[*client.NameTakenError](err); ok {
		return report{title: "The sandbox's name is taken (ALREADY_EXISTS)", what: sentence(taken) + " Terraform does not take over what it did not make.", ref: m.ref(), state: stateNothing, todo: takenAdvice(taken), at: wirePath("name")}
	}
	if unknown, ok := errors.AsType[*client.OutcomeUnknownError](err); ok {
		what := fmt.Sprintf("%s If it was, its annotation %s is %s.", sentence(unknown), client.AnnotationCreateID, unknown.CreateID)
		return report{title: "Whether the sandbox was created is not known", what: what, ref: m.ref(), state: stateNothing, todo: unknownAdvice(unknown, invented)}
	}
	r := failure(notCreated, m.ref(), stateNothing, "create", err)
	if invalid, ok := errors.AsType[*apierr.InvalidArgument](err); ok {
		r.at = wirePath(invalid.Field)
	}
	call, ok := errors.AsType[*client.CallError](err)
	if ok && call.Call == "CreateSandbox" && call.Code() == codes.NotFound && given(m.WorkloadTemplate) { // the workspace was read before
		r.at, r.todo = path.Root("workload_template"), "make sure that the workspace has this template, then run this again."
	}
	return r
}

// unknownAdvice says how to find out. A name of the user's holds a second sandbox off; an invented one does not.
func unknownAdvice(e *client.OutcomeUnknownError, invented bool) string {
	if !invented {
		return "apply again. If the sandbox exists by then, the error tells its marker, its id and how to import it."
	}
	return fmt.Sprintf("look for the sandbox before another apply, which would make one more, under another name: the data source openshell_sandboxes lists it with label_selector = \"%s=%s\" and create_id %s. If it is there, import it by the ID that it has: terraform import ADDRESS '%s/%s@ID' (the address stands with this message). If it is not, the create may yet take effect: look again after some minutes, then apply again.", client.LabelManagedBy, client.ManagedByTerraform, e.CreateID, e.Workspace, e.Name)
}

// takenAdvice names the ways out of a taken name.
func takenAdvice(e *client.NameTakenError) string {
	if e.Holder == nil {
		return "choose another name, or find out who holds this one. If it has just been freed, apply again."
	}
	imports := fmt.Sprintf("terraform import ADDRESS '%s/%s@%s'", e.Workspace, e.Name, client.IDOf(e.Holder))
	if client.Phase(e.Holder) == "deleting" {
		return "it is being deleted: wait until it is gone and apply again, or choose another name."
	}
	if marker := createIDOf(e.Holder); marker != "" {
		return "it carries this provider's marker (annotation " + client.AnnotationCreateID + " = " + marker + "), so Terraform seems to have made it: in an apply whose result was lost, for another resource of the same name, or in another configuration. If it is yours and no state has it, import it: " + imports + " (the address stands with this message). With create_before_destroy it may be the very sandbox that is to be replaced: leave the name out, or create_before_destroy. Otherwise choose another name, or have its owner delete it."
	}
	return "choose another name, or have its owner delete it. If it is meant to be managed here, import it: " + imports + " (the address stands with this message)."
}
