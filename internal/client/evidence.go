package client

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

// An endpoint is one setting away from another gateway, where the same name is absent or means somebody else, and a
// gateway gives the same NOT_FOUND for a missing sandbox, a missing workspace and a caller without access. So no answer
// counts as "ours is gone" before prove has confirmed that it came from the gateway the sandbox was recorded in.

// Evidence says how well an absence is confirmed.
type Evidence int

const (
	// Proved means that the workspace, read after the answer, has the recorded id.
	Proved Evidence = iota
	// StoodIn means that the caller may not read the workspace; listing its sandboxes, which shows that the workspace
	// exists and the caller has access, stood in. It does not tell one gateway from another.
	StoodIn
	// NotRecorded means that the workspace can be read, but no id was recorded to compare with. It is enough for a record
	// without a sandbox's id alone, see [Client.ProveAbsent]: such a one stands for nothing that could be forgotten.
	NotRecorded
)

// Gone is a confirmed absence.
type Gone struct {
	// CurrentID is the id of the sandbox that holds the name now; empty when nobody does.
	CurrentID string
	// CurrentPhase is its phase as in [Phase]; empty when it was not read.
	CurrentPhase string
	Evidence     Evidence
}

// Holder names the sandbox that holds the name now.
func (g Gone) Holder() string {
	text := "another sandbox, with id " + g.CurrentID
	if g.CurrentPhase != "" {
		text += " (phase " + g.CurrentPhase + ")"
	}
	return text
}

// Observe reads a sandbox by its name and compares the id. It returns the sandbox if it is the one meant, or the
// proof that it is gone. Every other outcome is an error and says nothing about the sandbox.
func (c *Client) Observe(ctx context.Context, ref Ref) (*openshellv1.Sandbox, *Gone, error) {
	sb, err := c.Sandbox(ctx, ref.Workspace, ref.Name)
	switch {
	case err == nil && sameID(IDOf(sb), ref.ID):
		return sb, nil, nil
	case err == nil:
		gone, err := c.prove(ctx, ref, Gone{CurrentID: IDOf(sb), CurrentPhase: Phase(sb)})
		return nil, gone, err
	case isNotFound(err):
		gone, err := c.prove(ctx, ref, Gone{})
		return nil, gone, err
	default:
		return nil, nil, err
	}
}

// prove confirms that an answer which shows ref's sandbox gone, as seen says, came from the gateway that ref was recorded in. It must be called after the answer, since the endpoint may lead elsewhere from one call to
// the next. Without confirmation it returns an OtherGatewayError or an UnprovenError.
func (c *Client) prove(ctx context.Context, ref Ref, seen Gone) (*Gone, error) {
	gone := &seen
	workspace, err := c.Workspace(ctx, ref.Workspace)
	switch {
	case status.Code(err) == codes.PermissionDenied:
		// Either the scope workspace:read is missing, or the membership: only the former still lets the caller list.
		if err := c.probeList(ctx, ref.Workspace); err != nil {
			return nil, &UnprovenError{Ref: ref, Seen: seen, Err: err}
		}
		gone.Evidence = StoodIn
	case err != nil:
		return nil, &UnprovenError{Ref: ref, Seen: seen, Err: err}
	case ref.WorkspaceID == "" && ref.ID != "":
		return nil, &UnprovenError{Ref: ref, Seen: seen}
	case ref.WorkspaceID == "":
		gone.Evidence = NotRecorded
	case !sameID(workspace.GetMetadata().GetId(), ref.WorkspaceID):
		return nil, &OtherGatewayError{Endpoint: c.endpoint.url, Ref: ref, Seen: seen, FoundWorkspaceID: workspace.GetMetadata().GetId()}
	}
	return gone, nil
}

// located gives a ref without a workspace id the one of the gateway that shows the ref's sandbox now, if the caller may read
// it. Once the sandbox is gone, nothing tells that gateway from others any more.
func (c *Client) located(ctx context.Context, ref Ref) Ref {
	if ref.WorkspaceID == "" {
		if sb, _, _ := c.Observe(ctx, ref); sb != nil {
			ref.WorkspaceID = c.WorkspaceID(ctx, ref.Workspace)
		}
	}
	return ref
}

// WorkspaceID reads the id of a workspace; empty if it cannot be read.
func (c *Client) WorkspaceID(ctx context.Context, name string) string {
	workspace, err := c.Workspace(ctx, name)
	if err != nil {
		return ""
	}
	return workspace.GetMetadata().GetId()
}

func (c *Client) probeList(ctx context.Context, workspace string) error {
	_, err := read(ctx, c, "ListSandboxes", c.openshell.ListSandboxes, &openshellv1.ListSandboxesRequest{PageSize: 1, WorkspaceScope: scope(workspace)})
	return err
}

// ProveAbsent confirms that no sandbox holds the name, for a record without an id. It returns the holder if there is one.
func (c *Client) ProveAbsent(ctx context.Context, ref Ref) (holder *openshellv1.Sandbox, gone *Gone, err error) {
	ref.ID = ""
	holder, err = c.Sandbox(ctx, ref.Workspace, ref.Name)
	if isNotFound(err) {
		gone, err = c.prove(ctx, ref, Gone{})
		return nil, gone, err
	}
	return holder, nil, err
}
