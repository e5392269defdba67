package server

import (
	"context"
	"log/slog"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors"
	grpclogging "github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/logging"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
)

// logging writes one line a call: which, about what, and how it came out. Of a request it takes the names only, so that
// no environment and no credential can reach the log.
func logging(log *slog.Logger) (grpc.UnaryServerInterceptor, grpc.StreamServerInterceptor) {
	logger := grpclogging.LoggerFunc(func(ctx context.Context, level grpclogging.Level, msg string, fields ...any) {
		log.Log(ctx, slog.Level(level), msg, fields...)
	})
	options := []grpclogging.Option{
		grpclogging.WithLogOnEvents(grpclogging.FinishCall),
		grpclogging.WithFieldsFromContextAndCallMeta(callFields),
		grpclogging.WithErrorFields(errorFields),
		grpclogging.WithLevels(level),
	}
	return grpclogging.UnaryServerInterceptor(logger, options...), grpclogging.StreamServerInterceptor(logger, options...)
}

func callFields(ctx context.Context, call interceptors.CallMeta) grpclogging.Fields {
	fields := grpclogging.Fields{"request_id", requestID(ctx)}
	add := func(key, value string) {
		if value != "" {
			fields = append(fields, key, value)
		}
	}
	workspace, name := About(call.ReqOrNil)
	add("workspace", workspace)
	add("name", name)
	if r, ok := call.ReqOrNil.(interface {
		GetPrecondition() *conditionalv1.SandboxPrecondition
	}); ok {
		add("expected_id", r.GetPrecondition().GetId())
	}
	return fields
}

// About tells what a request is about: the workspace and the name that it gives, if any.
func About(req any) (workspace, name string) {
	if plain := inner(req); plain != nil {
		req = plain
	}
	if r, ok := req.(interface {
		GetWorkspaceScope() *datamodelv1.WorkspaceSelector
	}); ok {
		workspace = r.GetWorkspaceScope().GetWorkspace()
	}
	switch r := req.(type) {
	case interface{ GetName() string }:
		name = r.GetName()
	case interface{ GetSandbox() string }:
		name = r.GetSandbox()
	}
	return workspace, name
}

// inner is the plain request in a conditional one, nil for any other.
func inner(conditional any) any {
	switch r := conditional.(type) {
	case *conditionalv1.ConditionalDeleteSandboxRequest:
		return r.GetRequest()
	case *conditionalv1.ConditionalStopSandboxRequest:
		return r.GetRequest()
	case *conditionalv1.ConditionalStartSandboxRequest:
		return r.GetRequest()
	case *conditionalv1.ConditionalAttachSandboxProviderRequest:
		return r.GetRequest()
	case *conditionalv1.ConditionalDetachSandboxProviderRequest:
		return r.GetRequest()
	case *conditionalv1.ConditionalUpdateSandboxConfigRequest:
		return r.GetRequest()
	}
	return nil
}

func errorFields(err error) grpclogging.Fields {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			return grpclogging.Fields{"reason", info.GetReason()}
		}
	}
	return nil
}

// level keeps errors for what the gateway's operator should look into.
func level(code codes.Code) grpclogging.Level {
	switch code {
	case codes.Internal, codes.Unknown, codes.DataLoss:
		return grpclogging.LevelError
	case codes.Unavailable, codes.ResourceExhausted:
		return grpclogging.LevelWarn
	default:
		return grpclogging.LevelInfo
	}
}
