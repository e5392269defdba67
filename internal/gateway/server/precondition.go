package server

import (
	"strings"

	"github.com/google/uuid"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/apierr"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// precondition checks the shape of a precondition. Whether it holds is decided in the transaction that changes the row:
// for delete, stop and start in [store.Store.ChangeSandbox], for the others in [store.Tx.Sandbox] and
// [store.Precondition.CheckVersion].
func precondition(p *conditionalv1.SandboxPrecondition) (*store.Precondition, error) {
	switch {
	case p == nil:
		return nil, &apierr.InvalidArgument{Field: "precondition", Problem: "is required; the call without one is that of openshell.v1.OpenShell"}
	case p.Id == nil:
		return nil, &apierr.InvalidArgument{Field: "precondition.id", Problem: "is required; a resource version alone does not tell a sandbox from its successor"}
	case !isUUID(p.GetId()):
		return nil, &apierr.InvalidArgument{Field: "precondition.id", Problem: "must be a UUID of 36 characters, as metadata.id has it"}
	case p.ResourceVersion != nil && p.GetResourceVersion() == 0:
		return nil, &apierr.InvalidArgument{Field: "precondition.resource_version", Problem: "must not be 0; leave it out to accept any version"}
	}
	return &store.Precondition{ID: strings.ToLower(p.GetId()), ResourceVersion: p.GetResourceVersion()}, nil
}

// checkExpected compares the version that a request of upstream's can expect, 0 for any. Under a precondition it has been
// compared as a part of that already.
func checkExpected(version uint64, current store.Sandbox) error {
	return (&store.Precondition{ID: current.ID, ResourceVersion: version}).CheckVersion(current)
}

// isUUID takes the form with hyphens only, in either case.
func isUUID(s string) bool {
	_, err := uuid.Parse(s)
	return err == nil && len(s) == 36
}
