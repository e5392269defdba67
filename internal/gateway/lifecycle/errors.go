package lifecycle

import (
	"fmt"
	"strings"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// PhaseError says that a sandbox is in no phase for what was asked. Nothing was changed.
type PhaseError struct {
	// Action is start or stop.
	Action  string
	Sandbox store.Sandbox
}

func (e *PhaseError) Error() string {
	return fmt.Sprintf("cannot %s sandbox '%s' in workspace '%s' (id %s): its phase is %s",
		e.Action, e.Sandbox.Name, e.Sandbox.Workspace, e.Sandbox.ID, strings.TrimPrefix(e.Sandbox.Phase().String(), "SANDBOX_PHASE_"))
}

// OperationPendingError says that a sandbox cannot be deleted before the driver has answered a create or start of it.
// Nothing was changed.
type OperationPendingError struct {
	Sandbox store.Sandbox
}

func (e *OperationPendingError) Error() string {
	return fmt.Sprintf("cannot delete sandbox '%s' in workspace '%s' (id %s): a driver operation is pending",
		e.Sandbox.Name, e.Sandbox.Workspace, e.Sandbox.ID)
}

// DriverError says that the compute driver refused. A sandbox to be created is not there; any other is as it was.
type DriverError struct {
	// Action is create, start, stop or delete.
	Action  string
	Sandbox store.Sandbox
	Err     error
}

func (e *DriverError) Error() string {
	return fmt.Sprintf("the compute driver did not %s sandbox '%s' in workspace '%s' (id %s): %v",
		e.Action, e.Sandbox.Name, e.Sandbox.Workspace, e.Sandbox.ID, e.Err)
}

func (e *DriverError) Unwrap() error { return e.Err }
