// Package auth says who is calling the gateway, and what they may do.
//
// A [Gate] is two gRPC interceptors. They authenticate the caller, hold the call against the rule of its method, and put
// the caller in the context. The rules are the openshell.options.v1.authorization options beside the methods in the proto
// sources; a method without one keeps the gateway from starting. What the rule says about the workspace a call is about,
// the handler asks for with [AuthorizeWorkspace], because that check has its place after those of names and shapes.
//
// Callers are users. Methods for sandboxes and for other gateways are refused to them, and the tokens that a stock gateway
// makes for its sandboxes are not those of the issuer, so they are refused too.
//
// Nothing here logs a credential or puts one in an error.
package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

// Members knows who belongs to which workspace.
type Members interface {
	// Role returns the role of a subject in a workspace, or WORKSPACE_ROLE_UNSPECIFIED when it has none there, be it that
	// the workspace does not exist.
	Role(ctx context.Context, workspace, subject string) (openshellv1.WorkspaceRole, error)
}

// Unauthenticated says from where callers without a credential are let in, as the local development identity.
type Unauthenticated int

// From where callers without a credential are let in.
const (
	// FromNowhere lets nobody in without a credential.
	FromNowhere Unauthenticated = iota
	// FromLoopback lets in whoever connects in plaintext from this machine.
	FromLoopback
	// FromAnywhere lets everybody in.
	FromAnywhere
)

// Config says how callers are recognised. A bearer token counts before a client certificate, and a credential that is
// there but not valid is never passed over for the next one.
type Config struct {
	// Services are those the server registers, apart from health and reflection. Methods of any other are unknown.
	Services []*grpc.ServiceDesc
	// OIDC takes bearer tokens; nil ignores them.
	OIDC *OIDCConfig
	// ClientCertificates takes client certificates that the TLS layer has verified.
	ClientCertificates bool
	// Unauthenticated takes callers who show neither.
	Unauthenticated Unauthenticated
	// Members decides about workspaces, for callers who are no platform administrators.
	Members Members
	// Observe, when set, is told who is calling as soon as that is known, for the log of calls.
	Observe func(ctx context.Context, caller Identity)
	// Logger takes trouble with the issuer; nil means slog.Default().
	Logger *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Gate authenticates and authorizes calls before their handlers run.
type Gate struct {
	table          table
	policy         policy
	authenticators []authenticator
	accepted       string
	members        Members
	close          func()
	observe        func(context.Context, Identity)
	logger         *slog.Logger
}

// New builds a gate. It fails when the configuration lets nobody in or contradicts itself, when a method has no rule, and
// when the issuer answers but is not the one that was configured. An issuer that does not answer is asked again later,
// whenever a token needs it; until then callers with a token get UNAVAILABLE. ctx bounds the first attempt.
func New(ctx context.Context, cfg Config) (*Gate, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	rules, err := newTable(cfg.Services)
	if err != nil {
		return nil, err
	}
	gate := &Gate{table: rules, members: cfg.Members, close: func() {}, observe: cfg.Observe, logger: cfg.Logger}
	if gate.observe == nil {
		gate.observe = func(context.Context, Identity) {}
	}
	if cfg.OIDC != nil {
		tokens, err := newTokens(ctx, *cfg.OIDC, cfg.Now, cfg.Logger)
		if err != nil {
			return nil, err
		}
		gate.authenticators, gate.close = append(gate.authenticators, tokens.authenticate), tokens.keys.close
		gate.policy = policy{adminRole: cfg.OIDC.AdminRole, userRole: cfg.OIDC.UserRole, scopes: cfg.OIDC.ScopesClaim != ""}
		gate.accepted = "a bearer token of " + tokens.issuer + " for the audience " + cfg.OIDC.Audience
	}
	if cfg.ClientCertificates {
		gate.authenticators = append(gate.authenticators, certificates{now: cfg.Now}.authenticate)
		gate.accepted = either(gate.accepted, "a client certificate")
	}
	if cfg.Unauthenticated != FromNowhere {
		gate.authenticators = append(gate.authenticators, anybody{from: cfg.Unauthenticated}.authenticate)
		if cfg.Unauthenticated == FromLoopback {
			gate.accepted = either(gate.accepted, "a plaintext connection from its own machine")
		}
	}
	if len(gate.authenticators) == 0 {
		return nil, errors.New("auth: nobody could call this gateway: configure an OIDC issuer, a client CA, or local development access")
	}
	if cfg.Unauthenticated == FromLoopback && len(gate.authenticators) > 1 {
		return nil, errors.New("auth: local development access makes everybody on this machine an administrator, so it does not go together with OIDC or client certificates")
	}
	if gate.members == nil && gate.policy.adminRole != "" {
		return nil, errors.New("auth: members of workspaces are needed as soon as not every caller is a platform administrator")
	}
	return gate, nil
}

func either(first, second string) string {
	if first == "" {
		return second
	}
	return first + " or " + second
}

// Close ends what goes on beside the calls, of which there must be no more.
func (g *Gate) Close() { g.close() }

// CheckServer fails when a server has registered a method that the gate has no rule for. Call it before Serve, with
// [grpc.Server.GetServiceInfo]. The gate would refuse such a method as unknown.
func (g *Gate) CheckServer(services map[string]grpc.ServiceInfo) error {
	var missing []string
	for service, info := range services {
		for _, method := range info.Methods {
			name := "/" + service + "/" + method.Name
			if _, known := g.table[name]; !known && !withoutCredential(name) {
				missing = append(missing, name)
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	return fmt.Errorf("auth: registered, but without a rule who may call them: %s", strings.Join(missing, ", "))
}

// UnaryInterceptor is a [grpc.UnaryServerInterceptor].
func (g *Gate) UnaryInterceptor(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	c, err := g.admit(ctx, info.FullMethod)
	if err != nil {
		return nil, err
	}
	if c == nil {
		return handler(ctx, req)
	}
	resp, err := handler(context.WithValue(ctx, callKey{}, c), req)
	if err != nil {
		return nil, err
	}
	if err := c.settled(); err != nil {
		return nil, err
	}
	return resp, nil
}

// StreamInterceptor is a [grpc.StreamServerInterceptor]. With [Gate.UnknownService] registered, methods that the server
// does not know come through here too.
func (g *Gate) StreamInterceptor(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	c, err := g.admit(stream.Context(), info.FullMethod)
	if err != nil {
		return err
	}
	if c == nil {
		return handler(srv, stream)
	}
	if err := handler(srv, &admittedStream{ServerStream: stream, call: c}); err != nil {
		return err
	}
	return c.settled()
}

// UnknownService is to be registered with [grpc.UnknownServiceHandler]. Without it gRPC refuses unknown methods by
// itself, before the caller is authenticated.
func (g *Gate) UnknownService(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	return unknownMethod(method)
}

func unknownMethod(method string) error {
	return status.Errorf(codes.Unimplemented, "this gateway has no method %q", method)
}

// admit runs the checks that come before those of the handler. It returns nil for calls that need no credential.
func (g *Gate) admit(ctx context.Context, method string) (*call, error) {
	rule, known := g.table[method]
	if withoutCredential(method) || rule.mode == modeUnauthenticated {
		return nil, nil
	}
	caller, err := g.authenticate(ctx)
	if err != nil {
		return nil, err
	}
	g.observe(ctx, caller)
	if !known {
		// As a stock gateway has it: what it does not know takes a user and every scope, and only then is unknown.
		rule.mode, rule.workspaceRole, rule.scope = modeBearer, roleUser, scopeAll
	}
	if err := g.policy.allows(caller, rule); err != nil {
		return nil, err
	}
	if !known {
		return nil, unknownMethod(method)
	}
	return &call{gate: g, method: method, rule: rule, identity: caller}, nil
}
