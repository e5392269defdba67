package linearizability

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/apierr"
)

// numberKey is the annotation that carries the number of a create.
const numberKey = "linearizability/create"

// client makes calls over one connection.
type client struct {
	plain       openshellv1.OpenShellClient
	conditional conditionalv1.ConditionalSandboxesClient
	workspace   *datamodelv1.WorkspaceSelector
}

func newClient(conn grpc.ClientConnInterface, workspace string) *client {
	return &client{
		plain:       openshellv1.NewOpenShellClient(conn),
		conditional: conditionalv1.NewConditionalSandboxesClient(conn),
		workspace:   &datamodelv1.WorkspaceSelector{Selection: &datamodelv1.WorkspaceSelector_Workspace{Workspace: workspace}},
	}
}

// refusalText is the driver's when it was asked to refuse deletes. INTERNAL says no more.
const refusalText = "asked to refuse"

// pace is how long the simulated driver takes for a new sandbox.
type pace struct{ create, ready, remove time.Duration }

// do makes a call and says what came of it.
func (c *client) do(ctx context.Context, name string, call Call, p pace) Answer {
	var sandbox *openshellv1.SandboxResponse
	var deletion *openshellv1.DeleteSandboxResponse
	var err error
	switch call.Kind {
	case Create:
		sandbox, err = c.plain.CreateSandbox(ctx, c.create(name, call, p))
	case Get:
		sandbox, err = c.plain.GetSandbox(ctx, &openshellv1.GetSandboxRequest{Name: name, WorkspaceScope: c.workspace})
	case Delete:
		request := &openshellv1.DeleteSandboxRequest{Name: name, WorkspaceScope: c.workspace, AllowMissing: call.AllowMissing}
		if call.ExpectID == "" {
			deletion, err = c.plain.DeleteSandbox(ctx, request)
		} else {
			deletion, err = c.conditional.DeleteSandbox(ctx, &conditionalv1.ConditionalDeleteSandboxRequest{Precondition: expect(call), Request: request})
		}
	case Stop:
		request := &openshellv1.StopSandboxRequest{Name: name, WorkspaceScope: c.workspace}
		if call.ExpectID == "" {
			sandbox, err = c.plain.StopSandbox(ctx, request)
		} else {
			sandbox, err = c.conditional.StopSandbox(ctx, &conditionalv1.ConditionalStopSandboxRequest{Precondition: expect(call), Request: request})
		}
	case Start:
		request := &openshellv1.StartSandboxRequest{Name: name, WorkspaceScope: c.workspace}
		if call.ExpectID == "" {
			sandbox, err = c.plain.StartSandbox(ctx, request)
		} else {
			sandbox, err = c.conditional.StartSandbox(ctx, &conditionalv1.ConditionalStartSandboxRequest{Precondition: expect(call), Request: request})
		}
	}
	switch {
	case err != nil:
		return refusal(call, err)
	case call.Kind == Delete:
		return deleted(deletion)
	}
	return showing(sandbox.GetSandbox())
}

func (c *client) create(name string, call Call, p pace) *openshellv1.CreateSandboxRequest {
	steer := map[string]*structpb.Value{
		"create_takes": structpb.NewStringValue(p.create.String()),
		"ready_after":  structpb.NewStringValue(p.ready.String()),
		"delete_after": structpb.NewStringValue(p.remove.String()),
	}
	if call.RefusesDelete {
		steer["delete_error"] = structpb.NewStringValue(refusalText)
	}
	block := structpb.NewStructValue(&structpb.Struct{Fields: steer})
	return &openshellv1.CreateSandboxRequest{
		Name: name, WorkspaceScope: c.workspace,
		Annotations: map[string]string{numberKey: strconv.Itoa(call.Number)},
		Spec: &openshellv1.SandboxSpec{Template: &openshellv1.SandboxTemplate{
			DriverConfig: &structpb.Struct{Fields: map[string]*structpb.Value{"simulated": block}},
		}},
	}
}

func expect(call Call) *conditionalv1.SandboxPrecondition {
	p := &conditionalv1.SandboxPrecondition{Id: &call.ExpectID}
	if call.ExpectVersion != 0 {
		p.ResourceVersion = &call.ExpectVersion
	}
	return p
}

// showing is an answer that shows a sandbox.
func showing(s *openshellv1.Sandbox) Answer {
	number, err := strconv.Atoi(s.GetMetadata().GetAnnotations()[numberKey])
	if err != nil {
		return Answer{Outcome: Unexpected, Text: "an answer without the sandbox of one of our creates: " + s.String()}
	}
	content, err := proto.MarshalOptions{Deterministic: true}.Marshal(s)
	if err != nil {
		return Answer{Outcome: Unexpected, Text: err.Error()}
	}
	digest := sha256.Sum256(content)
	return Answer{Outcome: OK, Sandbox: &Sandbox{
		ID: s.GetMetadata().GetId(), Version: s.GetMetadata().GetResourceVersion(), Phase: s.GetStatus().GetPhase(),
		Pending: s.GetStatus().GetProvisioning().GetDriverOperationPending(), CreatedBy: number, Digest: hex.EncodeToString(digest[:8]),
	}}
}

func deleted(d *openshellv1.DeleteSandboxResponse) Answer {
	outcome, ok := map[openshellv1.DeletionOutcome]Outcome{
		openshellv1.DeletionOutcome_DELETION_OUTCOME_COMPLETED:      Completed,
		openshellv1.DeletionOutcome_DELETION_OUTCOME_ACCEPTED:       Accepted,
		openshellv1.DeletionOutcome_DELETION_OUTCOME_ALREADY_ABSENT: AlreadyAbsent,
	}[d.GetOutcome()]
	if !ok {
		return Answer{Outcome: Unexpected, Text: "delete answered " + d.String()}
	}
	return Answer{Outcome: outcome, ID: d.GetSandboxId()}
}

// refusal reads an error.
func refusal(call Call, err error) Answer {
	answer := Answer{Outcome: Unexpected, Text: err.Error()}
	var mismatch *apierr.IdentityMismatch
	var conflict *apierr.VersionConflict
	var pending *apierr.OperationPending
	switch typed := apierr.From(err); {
	case errors.As(typed, &mismatch):
		if mismatch.ExpectedID == call.ExpectID {
			answer.Outcome, answer.ID = Mismatch, mismatch.CurrentID
		}
	case errors.As(typed, &conflict):
		answer.Outcome, answer.Version = VersionConflict, conflict.Current
	case errors.As(typed, &pending):
		answer.Outcome = Pending
	default:
		answer.Outcome = plainRefusal(call, status.Convert(err))
	}
	return answer
}

// plainRefusal reads an error without details that we know.
func plainRefusal(call Call, s *status.Status) Outcome {
	switch code := s.Code(); {
	case code == codes.DeadlineExceeded || code == codes.Canceled || code == codes.Unavailable:
		return Unknown
	case code == codes.NotFound && call.Kind != Create:
		return NotFound
	case code == codes.AlreadyExists && call.Kind == Create:
		return AlreadyExists
	case code == codes.FailedPrecondition && call.Kind == Delete && call.ExpectID == "":
		return Pending
	case code == codes.FailedPrecondition && (call.Kind == Stop || call.Kind == Start):
		return WrongPhase
	case code == codes.Internal && call.Kind == Delete && strings.Contains(s.Message(), refusalText):
		return DriverRefused
	case code == codes.Internal:
		return Internal
	}
	return Unexpected
}
