package auth

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

// Addressee is what a call names, which decides how a refusal reads.
type Addressee int

// What a call names.
const (
	// Other is a workspace, or anything in it that is no sandbox. Who has no access gets PERMISSION_DENIED, member or not.
	Other Addressee = iota
	// Sandbox is a sandbox, or something that belongs to one. Who is no member of its workspace gets the NOT_FOUND of a
	// sandbox that is not there, so that nobody can find out which names exist. It must be the answer with allow_missing
	// too. A member, who may read every sandbox there, is told which role is missing.
	Sandbox
)

// AuthorizeWorkspace checks that the caller has, in the workspace, the role that the rule of the method asks for. A
// handler calls it after its checks of names and shapes and before anything it looks up, be it whether the workspace
// exists. An error of [Members] is returned as it is.
func AuthorizeWorkspace(ctx context.Context, workspace string, about Addressee) error {
	c, ok := callFrom(ctx)
	if !ok {
		return unadmitted()
	}
	if !c.gate.policy.platformAdmin(c.identity) {
		role, err := c.gate.members.Role(ctx, workspace, c.identity.Subject)
		if err != nil {
			return err
		}
		if err := c.refuse(role, workspace, about); err != nil {
			return err
		}
	}
	c.authorized.Store(true)
	return nil
}

// Recheck is [AuthorizeWorkspace] in the middle of a long call: the credential must still be valid too.
func Recheck(ctx context.Context, workspace string, about Addressee) error {
	c, ok := callFrom(ctx)
	if !ok {
		return unadmitted()
	}
	if _, err := c.gate.authenticate(ctx); err != nil {
		return err
	}
	return AuthorizeWorkspace(ctx, workspace, about)
}

func (c *call) refuse(role openshellv1.WorkspaceRole, workspace string, about Addressee) error {
	member := role == openshellv1.WorkspaceRole_WORKSPACE_ROLE_USER || role == openshellv1.WorkspaceRole_WORKSPACE_ROLE_ADMIN
	switch {
	case role == openshellv1.WorkspaceRole_WORKSPACE_ROLE_ADMIN, member && c.rule.workspaceRole == roleUser:
		return nil
	case about == Sandbox && !member:
		return status.Error(codes.NotFound, "sandbox not found")
	case !member:
		return status.Errorf(codes.PermissionDenied,
			"not a member of workspace '%s'; a platform administrator can add the subject %q to it", workspace, c.identity.Subject)
	default:
		return status.Errorf(codes.PermissionDenied,
			"role 'admin' in workspace '%s' is required for this call; the subject %q has the role 'user' there", workspace, c.identity.Subject)
	}
}

// RequirePlatformAdmin checks that the caller administers the whole gateway: for all_workspaces, for global settings, for
// what is in no workspace, and for making somebody else an administrator of a workspace.
func RequirePlatformAdmin(ctx context.Context) error {
	c, ok := callFrom(ctx)
	if !ok {
		return unadmitted()
	}
	if !c.gate.policy.platformAdmin(c.identity) {
		return status.Errorf(codes.PermissionDenied, "role %q is required for what is not limited to one workspace", c.gate.policy.adminRole)
	}
	c.authorized.Store(true)
	return nil
}

// Memberships says which workspaces the caller may see: all of them, or those that subject is a member of.
func Memberships(ctx context.Context) (subject string, all bool) {
	c, ok := callFrom(ctx)
	if !ok {
		return "", false
	}
	c.authorized.Store(true)
	return c.identity.Subject, c.gate.policy.platformAdmin(c.identity)
}

// NoWorkspace says that a call, although its method is about a workspace, turned out to be about none: the session to be
// revoked, say, does not exist.
func NoWorkspace(ctx context.Context) {
	if c, ok := callFrom(ctx); ok {
		c.authorized.Store(true)
	}
}

func unadmitted() error {
	return status.Error(codes.Unauthenticated, "the call has not been authenticated")
}

// settled keeps a handler's answer back when the handler has forgotten to ask whether the caller may have it.
func (c *call) settled() error {
	if c.rule.workspaceRole == "" || c.authorized.Load() {
		return nil
	}
	c.gate.logger.Error("a handler answered without having authorized its caller", "method", c.method)
	return status.Error(codes.Internal, "the gateway did not check whether you may do this, so it keeps the answer back")
}

// admittedStream carries the call in its context, and sends nothing before the caller is authorized.
type admittedStream struct {
	grpc.ServerStream
	call *call
}

func (s *admittedStream) Context() context.Context {
	return context.WithValue(s.ServerStream.Context(), callKey{}, s.call)
}

func (s *admittedStream) SendMsg(m any) error {
	if err := s.call.settled(); err != nil {
		return err
	}
	return s.ServerStream.SendMsg(m)
}
