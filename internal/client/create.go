package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

// Marks that every sandbox created here carries.
const (
	// AnnotationCreateID is the key of the marker: a UUID of its own for every create, the same over its retries. It tells
	// a sandbox whose reply was lost from somebody else's.
	AnnotationCreateID = "openshell-iac/create-id"
	// LabelManagedBy makes sandboxes that no state knows of findable.
	LabelManagedBy = "openshell-iac/managed-by"
	// ManagedByTerraform is the value of LabelManagedBy.
	ManagedByTerraform = "terraform"
)

const (
	// createTries bounds how often a create is sent whose outcome stayed unknown.
	createTries = 4
	// nameTries bounds how many invented names are tried against strangers that hold them.
	nameTries = 5
	// graceAfterEnd is how long a sandbox is looked for once the caller's context has ended.
	graceAfterEnd = 15 * time.Second
)

// Create creates a sandbox and returns it as soon as the gateway has taken it on. Name and workspace must be set in the
// request; invent, if not nil, gives another name when a stranger holds the one in the request.
//
// It never adopts: a taken name is a NameTakenError. A create whose reply was lost is found again by its marker, and sent
// again if it left no trace. If the context ends, the sandbox is looked for a little longer. An OutcomeUnknownError means
// that nothing could be found out.
func (c *Client) Create(ctx context.Context, request *openshellv1.CreateSandboxRequest, invent func() string) (*openshellv1.Sandbox, error) {
	request = proto.CloneOf(request)
	createID := uuid.NewString()
	request.Annotations = with(request.GetAnnotations(), AnnotationCreateID, createID)
	request.Labels = with(request.GetLabels(), LabelManagedBy, ManagedByTerraform)
	cr := &creation{c: c, request: request, createID: createID, invent: invent}
	return cr.run(ctx)
}

type creation struct {
	c        *Client
	request  *openshellv1.CreateSandboxRequest
	createID string
	invent   func() string
	names    int
	lost     bool // an attempt ended without an answer
}

func (cr *creation) run(ctx context.Context) (*openshellv1.Sandbox, error) {
	for try := 1; ctx.Err() == nil; try++ {
		// No limit but the context's: the call lasts as long as the compute driver needs, image pull included.
		reply, err := change(ctx, cr.c, "CreateSandbox", 0, cr.c.openshell.CreateSandbox, cr.request)
		if err == nil {
			return cr.created(ctx, reply)
		}
		r := cr.judge(err)
		if r == refusal && !cr.lost { // else an earlier attempt may have made it
			return nil, err
		}
		sb, lookup := cr.find(ctx, patience[r])
		switch {
		case sb != nil:
			return sb, nil
		case isNameTaken(lookup) && cr.rename():
			try = 0
		case r == silence && isNotFound(lookup) && ctx.Err() == nil && try < createTries:
		default:
			return nil, cr.unresolved(r, err, lookup)
		}
	}
	return nil, newWait(Ref{Workspace: cr.workspace(), Name: cr.request.GetName()}, "created").ended(ctx)
}

// result is what a failed create may have left behind.
type result int

const (
	refusal result = iota // nothing: refused before anything was made
	taken                 // nothing of this attempt, but the name is held: by an earlier one, or by a stranger
	failure               // an error after something may have been made
	silence               // no answer, and the call may still be under way
)

// patience is how long a sandbox may take to appear, by result.
var patience = map[result]time.Duration{failure: time.Second, silence: 10 * time.Second}

func (cr *creation) judge(err error) result {
	if !isCallError(err) || sentNothing(err) {
		return refusal
	}
	switch status.Code(err) {
	case codes.AlreadyExists:
		return taken
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		cr.lost = true
		return silence
	case codes.Internal, codes.Unknown, codes.Aborted, codes.DataLoss:
		return failure
	default:
		return refusal
	}
}

// unresolved is the report on a create that ended with err, and whose sandbox was not found.
func (cr *creation) unresolved(r result, err, lookup error) error {
	switch {
	case isNameTaken(lookup):
		return lookup
	case r == taken && !cr.lost:
		return cr.taken(nil, lookup)
	case r == failure && !cr.lost && isNotFound(lookup):
		return err
	default:
		return &OutcomeUnknownError{Workspace: cr.workspace(), Name: cr.request.GetName(), CreateID: cr.createID, Err: err, Lookup: lookup}
	}
}

// created checks that the sandbox in a reply is one that this create made. If it is not, ours may be there all the same.
func (cr *creation) created(ctx context.Context, reply *openshellv1.SandboxResponse) (*openshellv1.Sandbox, error) {
	if sb := reply.GetSandbox(); !cr.ours(sb) {
		if sb, _ := cr.find(ctx, patience[failure]); sb != nil {
			return sb, nil
		}
		return nil, &BrokenReplyError{Call: "CreateSandbox", Problem: fmt.Sprintf("success for the sandbox %q with id %q, which this create did not make", sb.GetMetadata().GetName(), IDOf(sb))}
	}
	return reply.GetSandbox(), nil
}

// find looks for the sandbox of a create without a reply. A missing one may still appear, so NOT_FOUND is believed only
// after the given patience. When the context ends, it goes on for a while in one of its own: whoever interrupts an apply
// wants the sandbox in the state most of all.
func (cr *creation) find(ctx context.Context, patience time.Duration) (*openshellv1.Sandbox, error) {
	grace := ctx
	var last error // what was answered last, which tells more than that the time was up
	w := newWait(Ref{Workspace: cr.workspace(), Name: cr.request.GetName()}, "found")
	for {
		if ctx.Err() != nil && grace == ctx {
			var cancel context.CancelFunc
			grace, cancel = context.WithTimeout(context.WithoutCancel(ctx), graceAfterEnd)
			defer cancel()
		}
		sb, err := cr.c.Sandbox(grace, cr.workspace(), cr.request.GetName())
		switch {
		case err == nil && cr.ours(sb):
			return sb, nil
		case err == nil:
			return nil, cr.taken(sb, nil)
		case isNotFound(err) && time.Since(w.started) >= patience, !isNotFound(err) && !passing(err):
			return nil, err
		}
		if grace.Err() == nil || last == nil || isNotFound(last) { // an absence before a look that was cut off proves nothing
			last = err
		}
		if w.again(grace) != nil && (grace != ctx) {
			return nil, last
		}
	}
}

func (cr *creation) taken(holder *openshellv1.Sandbox, err error) error {
	return &NameTakenError{Workspace: cr.workspace(), Name: cr.request.GetName(), Holder: holder, Err: err}
}

// ours tells a sandbox that this create made from every other one.
func (cr *creation) ours(sb *openshellv1.Sandbox) bool {
	return IsUUID(IDOf(sb)) && sb.GetMetadata().GetAnnotations()[AnnotationCreateID] == cr.createID
}

func (cr *creation) rename() bool {
	if cr.names++; cr.invent == nil || cr.names >= nameTries {
		return false
	}
	cr.request.Name = cr.invent()
	return true
}

func (cr *creation) workspace() string { return cr.request.GetWorkspaceScope().GetWorkspace() }

func with(m map[string]string, key, value string) map[string]string {
	out := maps.Clone(m)
	if out == nil {
		out = map[string]string{}
	}
	out[key] = value
	return out
}

func isNameTaken(err error) bool {
	_, ok := errors.AsType[*NameTakenError](err)
	return ok
}
