package lifecycle

import (
	"context"
	"time"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// A sandbox with this annotation is deleted by the gateway itself once it has finished; both are upstream's.
const (
	retentionAnnotation = "openshell.nvidia.com/retention"
	retentionEphemeral  = "ephemeral"
)

const (
	// retireAfter is how long a finished sandbox stays, so that its exit code can be read.
	retireAfter = 5 * time.Second
	// retireAgain is when to try again after the driver has refused.
	retireAgain = 5 * time.Minute
)

// itself is the gateway in the audit.
var itself = store.Caller{IdentityProvider: "gateway", Subject: "retention"}

func ephemeral(s store.Sandbox) bool { return s.Annotations[retentionAnnotation] == retentionEphemeral }

// retire deletes a sandbox that has finished, by its id. Nobody asked for it, so it is the gateway's own delete in the audit.
func (m *Manager) retire(ctx context.Context, s store.Sandbox) error {
	if left := retireAfter - time.Since(s.Operation.Since); left > 0 { // what was put off is due when the gateway has started anew
		m.reschedule(ctx, s, left)
		return nil
	}
	request := &store.Request{ID: newID(), Caller: itself, Method: "retention"}
	target := store.Target{Workspace: s.Workspace, Name: s.Name, ID: s.ID, Request: request}
	marked, err := m.store.ChangeSandbox(ctx, target, &store.Precondition{ID: s.ID}, during(s.Operation.ID, retired(request)))
	if err != nil || marked.Operation.ID != request.ID {
		return err
	}
	m.log.InfoContext(ctx, "deleting a sandbox that has finished, as its annotation asks",
		"workspace", s.Workspace, "name", s.Name, "sandbox_id", s.ID, "exit_code", s.Status.GetExitCode())
	_, err = m.delete(ctx, marked)
	return err
}

// retired marks a sandbox DELETING whose time has come, unless it is to be kept after all.
func retired(request *store.Request) store.Decide {
	return func(current store.Sandbox, now time.Time) (store.Change, error) {
		if !ephemeral(current) {
			return rewrite(current, func(s *store.Sandbox) { s.Operation = store.Operation{} })
		}
		return deleteAsked(request, &store.Precondition{ID: current.ID}, request.ID)(current, now)
	}
}
