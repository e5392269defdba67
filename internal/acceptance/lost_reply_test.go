package acceptance_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/openshell-iac/terraform-provider-openshell/internal/acceptance/cli"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// The answer to a create that took effect is lost. One apply ends with one sandbox and its id in the state, also when the
// name was invented and so nothing keeps a second one from being made.
func TestT17T20LostReplyOfACreate(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, c cli.CLI) {
		for name, arguments := range map[string][]string{"named": {`name = "web"`}, "invented name": nil} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				g := gatewaytest.Start(t)
				s := set(t, c, g)
				s.sandbox(arguments...)
				g.Intercept(gatewaytest.Lose("/CreateSandbox", nil))
				ours := s.up()
				if all := sandboxes(t, g); len(all) != 1 || all[0].GetMetadata().GetId() != ours {
					t.Errorf("state %s, gateway %v", ours, all)
				}
				s.must(s.Destroy(t.Context()))
				s.gone(ours)
			})
		}
	})
}

// A create fails without an answer, and somebody else's sandbox has the name: it is not ours, neither to keep nor to delete.
func TestT17StrangerAfterALostCreate(t *testing.T) {
	t.Parallel()
	g := gatewaytest.Start(t)
	s := set(t, cli.Require(t), g)
	var stranger *openshellv1.Sandbox
	g.Intercept(gatewaytest.Before("/CreateSandbox", func() error {
		stranger = g.MustCreate(t, "web")
		return status.Error(codes.Unavailable, "lost in a test")
	}))
	s.expect(s.Apply(t.Context(), ""), 1, cli.Error, "ALREADY_EXISTS", stranger.GetMetadata().GetId(), "have its owner delete it")
	s.must(s.Destroy(t.Context()))
	unchanged(t, g, stranger)
	if s.id() != "" {
		t.Errorf("the state has %s", s.id())
	}
}

// The answer is lost and nothing can be read any more. The error says so, and the next apply how to take over what was made.
func TestT17OutcomeUnknown(t *testing.T) {
	t.Parallel()
	g := gatewaytest.Start(t)
	s := set(t, cli.Require(t), g)
	var lost atomic.Bool
	g.Intercept(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		if lost.Load() {
			return nil, status.Error(codes.PermissionDenied, "refused in a test")
		}
		reply, err := handle(ctx, req)
		if strings.HasSuffix(info.FullMethod, "/CreateSandbox") && err == nil {
			lost.Store(true)
			return nil, status.Error(codes.Unavailable, "lost in a test")
		}
		return reply, err
	})
	s.expect(s.Apply(t.Context(), ""), 1, cli.Error, "is unknown", `name "web"`, "openshell-iac/create-id is ")
	g.Intercept(nil)
	sb, _ := g.Get(t, "web")
	line := "default/web@" + sb.GetMetadata().GetId()
	s.expect(s.Apply(t.Context(), ""), 1, cli.Error, "ALREADY_EXISTS", "this provider's marker", "terraform import ADDRESS '"+line+"'")
	s.must(s.Import(t.Context(), web, line))
	s.empty()
	s.must(s.Destroy(t.Context()))
	if n := len(sandboxes(t, g)); n != 0 {
		t.Errorf("%d sandboxes are left", n)
	}
}
