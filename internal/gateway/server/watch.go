package server

import (
	"context"
	"errors"
	"regexp"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/apierr"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// watchEvery is how often a watched sandbox is looked at when this process has not changed it: any of the gateways of the
// database may have.
const watchEvery = 500 * time.Millisecond

// WatchSandbox sends a sandbox as it is, and again when it has changed, until it is gone. What changed in between two looks
// is one change. There are no logs or events of a simulated sandbox.
func (s *Server) WatchSandbox(req *openshellv1.WatchSandboxRequest, stream grpc.ServerStreamingServer[openshellv1.SandboxStreamEvent]) error {
	ctx := stream.Context()
	workspace, err := s.addressed(ctx, req.GetSandbox(), req.GetWorkspaceScope())
	if err != nil {
		return err
	}
	sandbox, err := s.Store.Sandbox(ctx, workspace, req.GetSandbox())
	if err != nil {
		return err
	}
	if err := checkWatch(req); err != nil {
		return err
	}
	if s.watches.Add(1) > int64(s.Watches) {
		s.watches.Add(-1)
		return status.Errorf(codes.ResourceExhausted, "the gateway serves %d watches, which is the limit; read the sandbox from time to time instead, or try again", s.Watches)
	}
	defer s.watches.Add(-1)
	changed, end := s.Changes.Of(sandbox.ID)
	defer end()
	for {
		if err := stream.Send(&openshellv1.SandboxStreamEvent{Payload: &openshellv1.SandboxStreamEvent_Sandbox{Sandbox: ToProto(sandbox)}}); err != nil {
			return err
		}
		if req.GetStopOnTerminal() && endsWatch(sandbox.Phase()) {
			return nil
		}
		sandbox, err = s.awaitChange(ctx, sandbox, changed, req.GetFollowStatus())
		gone := errors.Is(err, store.ErrNotFound)
		if err != nil && !gone {
			return err
		}
		// Whoever may not see it any more is not told either that it is gone.
		if err := auth.Recheck(ctx, workspace, auth.Sandbox); err != nil || gone {
			return err
		}
	}
}

// awaitChange returns a sandbox, by its id, once it is at another version, or [store.ErrNotFound] once it is gone. When no
// change is of interest it waits for that.
func (s *Server) awaitChange(ctx context.Context, seen store.Sandbox, changed <-chan struct{}, interested bool) (store.Sandbox, error) {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for {
		select {
		case <-changed:
		case <-ticker.C:
		case <-ctx.Done():
			return store.Sandbox{}, ctx.Err()
		}
		now, err := s.Store.SandboxByID(ctx, seen.ID)
		if err != nil || interested && now.ResourceVersion != seen.ResourceVersion {
			return now, err
		}
	}
}

// endsWatch is what a watch can stop at.
func endsWatch(phase openshellv1.SandboxPhase) bool {
	switch phase {
	case openshellv1.SandboxPhase_SANDBOX_PHASE_READY, openshellv1.SandboxPhase_SANDBOX_PHASE_COMPLETED,
		openshellv1.SandboxPhase_SANDBOX_PHASE_STOPPED, openshellv1.SandboxPhase_SANDBOX_PHASE_ERROR:
		return true
	}
	return false
}

// cursor has the form of what stock gateways give out. This one gives out none, since it has nothing that could be resumed.
var cursor = regexp.MustCompile(`^v1:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}:[0-9]{20}$`)

func checkWatch(req *openshellv1.WatchSandboxRequest) error {
	if since := req.GetSinceTime(); since != nil && !since.IsValid() {
		return &apierr.InvalidArgument{Field: "since_time", Problem: "is no valid time"}
	}
	switch after := req.GetResumeAfterCursor(); {
	case after == "":
		return nil
	case cursor.MatchString(after):
		return status.Error(codes.OutOfRange, "resume_after_cursor is of no stream of this gateway; watch from the beginning")
	default:
		return &apierr.InvalidArgument{Field: "resume_after_cursor", Problem: "is no cursor"}
	}
}
