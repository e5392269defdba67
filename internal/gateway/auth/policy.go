package auth

import (
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// policy is what roles and scopes mean. It is empty without an OIDC issuer: everybody may do everything then.
type policy struct {
	adminRole, userRole string
	scopes              bool
}

func (p policy) allows(caller Identity, r rule) error {
	if !r.forUsers() {
		return status.Error(codes.PermissionDenied, "this method is not for users; only sandboxes and gateways call it")
	}
	switch {
	case p.adminRole == "": // no roles configured
	case r.globalRole != "" && !p.platformAdmin(caller):
		return status.Errorf(codes.PermissionDenied, "role %q is required for this call", p.adminRole)
	case r.workspaceRole != "" && !caller.hasRole(p.userRole) && !p.platformAdmin(caller):
		return status.Errorf(codes.PermissionDenied, "role %q is required for this call", p.userRole)
	}
	if p.scopes && r.scope != "" && !slices.Contains(caller.Scopes, r.scope) && !slices.Contains(caller.Scopes, scopeAll) {
		return status.Errorf(codes.PermissionDenied, "scope %q is required for this call", r.scope)
	}
	return nil
}

// platformAdmin tells whether the caller may do everything in every workspace. With no role configured for that,
// everybody may (upstream-contract, workspaces and members).
func (p policy) platformAdmin(caller Identity) bool {
	return p.adminRole == "" || caller.hasRole(p.adminRole)
}
