package client

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

// Version asks the gateway for its version.
func (c *Client) Version(ctx context.Context) (string, error) {
	reply, err := readAnyVersion(ctx, c, "Health", c.openshell.Health, &openshellv1.HealthRequest{})
	return reply.GetVersion(), err
}

// checkVersion refuses a 0.0.x gateway before it gets to misread a request (upstream-contract 7). It asks once a
// connection; Health needs no credential on any gateway, so a refusal means that this is none.
func (c *Client) checkVersion(ctx context.Context) error {
	return c.once(ctx, c.version, func() error {
		version, err := c.Version(ctx)
		if err == nil && strings.HasPrefix(strings.TrimPrefix(version, "v"), "0.0.") {
			return &UnsupportedGatewayError{Endpoint: c.endpoint.url, Version: version}
		}
		return err
	})
}

// checkAccess makes sure before the first change of a connection that the gateway can be reached and takes the
// credentials, so that trouble with them is found while nothing has been done yet. GetCurrentUser asks for no role or
// scope; a gateway that answers it with anything but UNAUTHENTICATED knows the caller.
func (c *Client) checkAccess(ctx context.Context) error {
	if err := c.checkVersion(ctx); err != nil {
		return err
	}
	return c.once(ctx, c.access, func() error {
		_, err := c.CurrentUser(ctx)
		if isCallError(err) && !passing(err) && status.Code(err) != codes.Unauthenticated {
			return nil
		}
		return err
	})
}

// sentNothing tells that a change was not sent because checkAccess failed.
func sentNothing(err error) bool {
	call, ok := errors.AsType[*CallError](err)
	return ok && (call.Call == "Health" || call.Call == "GetCurrentUser")
}

// once is something to be done until it has succeeded, by one caller at a time.
type once struct {
	turn chan struct{} // holds the caller whose turn it is
	done bool          // guarded by turn
}

func newOnce() *once { return &once{turn: make(chan struct{}, 1)} }

func (c *Client) once(ctx context.Context, o *once, do func() error) error {
	select {
	case o.turn <- struct{}{}:
		defer func() { <-o.turn }()
	case <-ctx.Done():
		return c.fail("Health", status.FromContextError(ctx.Err()).Err())
	}
	if o.done {
		return nil
	}
	err := do()
	o.done = err == nil
	return err
}

// CurrentUser asks the gateway who the caller is.
func (c *Client) CurrentUser(ctx context.Context) (*openshellv1.GetCurrentUserResponse, error) {
	return read(ctx, c, "GetCurrentUser", c.openshell.GetCurrentUser, &openshellv1.GetCurrentUserRequest{})
}

// Workspace reads a workspace.
func (c *Client) Workspace(ctx context.Context, name string) (*datamodelv1.Workspace, error) {
	reply, err := read(ctx, c, "GetWorkspace", c.openshell.GetWorkspace, &openshellv1.GetWorkspaceRequest{Name: name})
	if err != nil {
		return nil, err
	}
	if reply.GetWorkspace().GetMetadata().GetId() == "" {
		return nil, &BrokenReplyError{Call: "GetWorkspace", Problem: "a workspace without an id"}
	}
	return reply.GetWorkspace(), nil
}

// ConditionalSupport asks whether the gateway offers the conditional service. Supported means SERVING and nothing else;
// said is the status, or the code of the refusal. Only passing trouble is an error.
//
// It serves messages and the choice of the opt-in, never safety: in a fleet the next call may reach another process.
func (c *Client) ConditionalSupport(ctx context.Context) (supported bool, said string, err error) {
	reply, err := read(ctx, c, "Check", c.health.Check, &healthv1.HealthCheckRequest{Service: conditionalv1.ConditionalSandboxes_ServiceDesc.ServiceName})
	switch {
	case err == nil:
		return reply.GetStatus() == healthv1.HealthCheckResponse_SERVING, reply.GetStatus().String(), nil
	case passing(err), !isCallError(err):
		return false, "", err
	default:
		return false, CodeName(err), nil
	}
}

// unsupported judges a refused conditional call. It returns a NotSupportedError if the refusal is how a gateway without
// the service answers; mixed is true if the gateway says that it has the service and yet does not know the method, as
// happens in a fleet that is being upgraded or behind a proxy.
func (c *Client) unsupported(ctx context.Context, refusal error) (mixed bool, err error) {
	code := status.Code(refusal)
	// Stock gateways that enforce scopes ask for openshell:all on a method they do not know.
	if code != codes.Unimplemented && code != codes.PermissionDenied {
		return false, refusal
	}
	supported, said, err := c.ConditionalSupport(ctx)
	switch {
	case err != nil:
		return false, err
	case !supported:
		return false, &NotSupportedError{Endpoint: c.endpoint.url, Health: said, Refusal: refusal}
	default:
		return code == codes.Unimplemented, refusal
	}
}
