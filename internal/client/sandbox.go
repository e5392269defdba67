package client

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"
	"google.golang.org/grpc/codes"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

// Ref is what is remembered of a sandbox: where it is, and which one it is.
type Ref struct {
	Workspace string
	// WorkspaceID tells the gateway's database from others; empty when it could not be read at the time.
	WorkspaceID string
	Name        string
	ID          string
}

// IDOf is the sandbox's id.
func IDOf(sb *openshellv1.Sandbox) string { return sb.GetMetadata().GetId() }

// Phase is the sandbox's phase in lower case, such as ready; unknown for one this program does not know.
func Phase(sb *openshellv1.Sandbox) string {
	name, ok := openshellv1.SandboxPhase_name[int32(sb.GetStatus().GetPhase())]
	if !ok || sb.GetStatus().GetPhase() == openshellv1.SandboxPhase_SANDBOX_PHASE_UNSPECIFIED {
		return "unknown"
	}
	return strings.ToLower(strings.TrimPrefix(name, "SANDBOX_PHASE_"))
}

// Observed picks what a message tells about a sandbox, free of secrets.
func (c *Client) Observed(ctx context.Context, sb *openshellv1.Sandbox) Observed {
	o := Observed{Phase: Phase(sb), ExitCode: sb.GetStatus().ExitCode}
	for _, condition := range sb.GetStatus().GetConditions() {
		if condition.GetType() == "Ready" && condition.GetStatus() != "True" {
			o.Reason, o.Message = condition.GetReason(), c.ConditionMessage(ctx, sb, condition)
		}
	}
	return o
}

// ConditionMessage is the text of one of a sandbox's conditions, free of secrets. The sandbox's own environment is among
// them: a refresh need not know what was written once and kept in no state.
func (c *Client) ConditionMessage(ctx context.Context, sb *openshellv1.Sandbox, condition *openshellv1.SandboxCondition) string {
	return c.Scrub(withEnvironment(ctx, sb), condition.GetMessage())
}

// withEnvironment keeps a sandbox's environment out of what a gateway says about it.
func withEnvironment(ctx context.Context, sb *openshellv1.Sandbox) context.Context {
	secrets := slices.Collect(maps.Values(sb.GetSpec().GetEnvironment()))
	return WithSecrets(ctx, slices.AppendSeq(secrets, maps.Values(sb.GetSpec().GetTemplate().GetEnvironment()))...)
}

// IsUUID tells whether an id has the shape of those that gateways give.
func IsUUID(id string) bool {
	return len(id) == 36 && uuid.Validate(id) == nil
}

// sameID compares ids; upstream writes them in lower case, and either case is accepted.
func sameID(a, b string) bool { return a != "" && strings.EqualFold(a, b) }

func scope(workspace string) *datamodelv1.WorkspaceSelector {
	return &datamodelv1.WorkspaceSelector{Selection: &datamodelv1.WorkspaceSelector_Workspace{Workspace: workspace}}
}

func precondition(ref Ref) *conditionalv1.SandboxPrecondition {
	return &conditionalv1.SandboxPrecondition{Id: &ref.ID}
}

// Sandbox reads the sandbox that holds a name now.
func (c *Client) Sandbox(ctx context.Context, workspace, name string) (*openshellv1.Sandbox, error) {
	reply, err := read(ctx, c, "GetSandbox", c.openshell.GetSandbox, &openshellv1.GetSandboxRequest{Name: name, WorkspaceScope: scope(workspace)})
	if err != nil {
		return nil, err
	}
	if !IsUUID(IDOf(reply.GetSandbox())) {
		return nil, &BrokenReplyError{Call: "GetSandbox", Problem: "a sandbox without an id"}
	}
	return reply.GetSandbox(), nil
}

// isNotFound holds for a missing sandbox, a missing workspace and a lack of access alike.
func isNotFound(err error) bool {
	var call *CallError
	return errors.As(err, &call) && call.Code() == codes.NotFound
}

func isCallError(err error) bool {
	var call *CallError
	return errors.As(err, &call)
}
