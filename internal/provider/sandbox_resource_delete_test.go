package provider

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

func plainDeletes(g *gatewaytest.Gateway) int {
	return len(g.Calls(openshellv1.OpenShell_DeleteSandbox_FullMethodName))
}

func TestDelete(t *testing.T) {
	t.Run("ours", func(t *testing.T) {
		g := gatewaytest.Start(t, gatewaytest.RequirePrecondition())
		s := connected(t, g, nil)
		state := s.created(values{"name": str("web")})
		if left, diags := s.destroy(t.Context(), state); left != nil || len(diags) > 0 {
			t.Errorf("state %v\n%s", left, diags)
		}
		if _, ok := g.GetByID(t, state.text("id")); ok || plainDeletes(g) > 0 {
			t.Errorf("still there: %v; calls %v", ok, g.AllCalls())
		}
	})
	t.Run("replaced", func(t *testing.T) {
		g := gatewaytest.Start(t)
		s := connected(t, g, values{"allow_unconditional_delete": boolean(true)})
		state := s.created(values{"name": str("web")})
		stranger := g.Replace(t, "web").GetMetadata().GetId()
		left, diags := s.destroy(t.Context(), state)
		if left != nil || len(diags.errors()) > 0 {
			t.Errorf("state %v\n%s", left, diags)
		}
		expect(t, "warning", diags.warnings(), state.text("id"), stranger, "leaves alone")
		if _, ok := g.GetByID(t, stranger); !ok || plainDeletes(g) > 0 {
			t.Error("the stranger was touched")
		}
	})
	t.Run("replaced, to be an error", func(t *testing.T) {
		g := gatewaytest.Start(t)
		s := connected(t, g, values{"on_identity_mismatch": str("error")})
		state := s.created(values{"name": str("web")})
		stranger := g.Replace(t, "web").GetMetadata().GetId()
		left, diags := s.destroy(t.Context(), state)
		if !sameState(left, state) {
			t.Errorf("state %v", left)
		}
		expect(t, "error", diags.errors(), state.text("id"), stranger, "kept as it was")
	})
	for name, unaware := range map[string]bool{"lost, then replaced, to be an error": false, "lost by name, then replaced, to be an error": true} {
		t.Run(name, func(t *testing.T) {
			var options []gatewaytest.Option
			method, said := "ConditionalSandboxes/DeleteSandbox", "may have deleted it"
			if unaware {
				options = append(options, gatewaytest.WithoutConditional())
				method, said = "OpenShell/DeleteSandbox", "whether the call hit it"
			}
			g := gatewaytest.Start(t, options...)
			s := connected(t, g, values{"on_identity_mismatch": str("error"), "allow_unconditional_delete": boolean(true)})
			state := s.created(values{"name": str("web")})
			stranger := ""
			g.Intercept(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
				if stranger == "" && strings.HasSuffix(info.FullMethod, method) {
					stranger = g.Replace(t, "web").GetMetadata().GetId()
					return nil, status.Error(codes.Unavailable, "lost on the way")
				}
				return handle(ctx, req)
			})
			left, diags := s.destroy(t.Context(), state)
			if !sameState(left, state) {
				t.Errorf("state %v", left)
			}
			expect(t, "error", diags.errors(), state.text("id"), stranger, "kept as it was", said)
			if _, ok := g.GetByID(t, stranger); !ok {
				t.Error("the stranger was touched")
			}
		})
	}
	t.Run("elsewhere", func(t *testing.T) {
		g, other := gatewaytest.Start(t), gatewaytest.Start(t)
		state := connected(t, g, nil).created(values{"name": str("web")})
		stranger := other.MustCreate(t, "web").GetMetadata().GetId()
		left, diags := connected(t, other, values{"allow_unconditional_delete": boolean(true)}).destroy(t.Context(), state)
		if !sameState(left, state) {
			t.Errorf("state %v", left)
		}
		expect(t, "error", diags.errors(), "another one", "terraform state rm")
		if _, ok := other.GetByID(t, stranger); !ok {
			t.Error("the stranger was touched")
		}
	})
	t.Run("refused by the driver", func(t *testing.T) {
		g := gatewaytest.Start(t)
		s := connected(t, g, nil)
		state := s.created(values{"name": str("web"), "driver_config": str(`{"simulated":{"delete_error":"volume is busy"}}`)})
		left, diags := s.destroy(t.Context(), state)
		if !sameState(left, state) {
			t.Errorf("state %v", left)
		}
		expect(t, "error", diags.errors(), "INTERNAL", "kept as it was")
		g.SetPhase(t, "web", openshellv1.SandboxPhase_SANDBOX_PHASE_READY)
	})
	t.Run("times out", func(t *testing.T) {
		t.Parallel()
		g := gatewaytest.Start(t)
		s := connected(t, g, nil)
		timeouts := full(object(t, s.sandboxType.AttributeTypes["timeouts"]), values{"delete": str("5s")})
		state := s.created(values{"name": str("web"), "driver_config": str(`{"simulated":{"delete_after":"1h"}}`), "timeouts": timeouts})
		left, diags := s.destroy(t.Context(), state)
		if !sameState(left, state) {
			t.Errorf("state %v", left)
		}
		expect(t, "error", diags.errors(), "phase deleting", "still being deleted", `timeouts = { delete = "…" }`)
	})
}

// Without the service nothing is deleted, unless the user opted in.
func TestDeleteUnaware(t *testing.T) {
	t.Run("refused", func(t *testing.T) {
		g := gatewaytest.Start(t, gatewaytest.WithoutConditional())
		s := connected(t, g, nil)
		state := s.created(values{"name": str("web")})
		left, diags := s.destroy(t.Context(), state)
		if !sameState(left, state) || plainDeletes(g) > 0 {
			t.Errorf("state %v, calls %v", left, g.AllCalls())
		}
		expect(t, "error", diags.errors(), "allow_unconditional_delete = true", "terraform state rm", "kept as it was", state.text("id"))
	})
	t.Run("opted in, one of a mixed fleet", func(t *testing.T) {
		t.Parallel()
		g := gatewaytest.Start(t)
		s := connected(t, g, values{"allow_unconditional_delete": boolean(true)})
		state := s.created(values{"name": str("web")})
		g.Intercept(gatewaytest.Refuse(codes.Unimplemented, "ConditionalSandboxes/DeleteSandbox"))
		left, diags := s.destroy(t.Context(), state)
		if !sameState(left, state) || plainDeletes(g) > 0 {
			t.Errorf("state %v, calls %v", left, g.AllCalls())
		}
		expect(t, "error", diags.errors(), "SERVING", "8 times", "nothing was changed", "replica", "allow_unconditional_delete is not used here", state.text("id"))
	})
	t.Run("opted in", func(t *testing.T) {
		g := gatewaytest.Start(t, gatewaytest.WithoutConditional())
		s := connected(t, g, values{"allow_unconditional_delete": boolean(true)})
		state := s.created(values{"name": str("web")})
		left, diags := s.destroy(t.Context(), state)
		if left != nil || len(diags.errors()) > 0 || plainDeletes(g) != 1 {
			t.Errorf("state %v, calls %v\n%s", left, g.AllCalls(), diags)
		}
		expect(t, "warning", diags.warnings(), "deleted by name", state.text("id"))
	})
	t.Run("opted in, hits another one", func(t *testing.T) {
		g := gatewaytest.Start(t, gatewaytest.WithoutConditional())
		s := connected(t, g, values{"allow_unconditional_delete": boolean(true)})
		state := s.created(values{"name": str("web")})
		var stranger string
		g.Intercept(gatewaytest.Before("OpenShell/DeleteSandbox", func() error {
			stranger = g.Replace(t, "web").GetMetadata().GetId()
			return nil
		}))
		left, diags := s.destroy(t.Context(), state)
		if !sameState(left, state) {
			t.Errorf("state %v", left)
		}
		expect(t, "error", diags.errors(), "ANOTHER", stranger, state.text("id"))
	})
	t.Run("opted in, is not answered while another one is being deleted", func(t *testing.T) {
		g := gatewaytest.Start(t, gatewaytest.WithoutConditional())
		s := connected(t, g, values{"allow_unconditional_delete": boolean(true)})
		state := s.created(values{"name": str("web")})
		stranger := ""
		g.Intercept(gatewaytest.Before("OpenShell/DeleteSandbox", func() error {
			stranger = g.Replace(t, "web").GetMetadata().GetId()
			g.SetPhase(t, "web", openshellv1.SandboxPhase_SANDBOX_PHASE_DELETING)
			return status.Error(codes.Unavailable, "lost in a test")
		}))
		left, diags := s.destroy(t.Context(), state)
		if left != nil {
			t.Errorf("state %v", left)
		}
		expect(t, "warning", diags.warnings(), "not answered", stranger+" (phase deleting)", "may be what the call hit")
	})
	t.Run("opted in, hits another one and is not answered", func(t *testing.T) {
		g := gatewaytest.Start(t, gatewaytest.WithoutConditional())
		s := connected(t, g, values{"allow_unconditional_delete": boolean(true)})
		state := s.created(values{"name": str("web")})
		g.Intercept(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			if !strings.HasSuffix(info.FullMethod, "OpenShell/DeleteSandbox") {
				return handle(ctx, req)
			}
			stranger := g.Replace(t, "web").GetMetadata().GetId()
			_, _ = handle(ctx, req)
			g.WaitGone(t, stranger)
			return nil, status.Error(codes.Unavailable, "lost in a test")
		})
		left, diags := s.destroy(t.Context(), state)
		if left != nil || len(diags.errors()) > 0 || plainDeletes(g) != 1 {
			t.Errorf("state %v, calls %v\n%s", left, g.AllCalls(), diags)
		}
		expect(t, "warning", diags.warnings(), "not answered", "whether the call hit it", "is not known", state.text("id"))
		if text := diags.String(); strings.Contains(text, "named our sandbox") {
			t.Error(text)
		}
	})
	t.Run("opted in, does not arrive", func(t *testing.T) {
		g := gatewaytest.Start(t, gatewaytest.WithoutConditional())
		s := connected(t, g, values{"allow_unconditional_delete": boolean(true)})
		state := s.created(values{"name": str("web")})
		g.Intercept(gatewaytest.Refuse(codes.Unavailable, "OpenShell/DeleteSandbox"))
		left, diags := s.destroy(t.Context(), state)
		if !sameState(left, state) || plainDeletes(g) != 1 {
			t.Errorf("state %v, calls %v", left, g.AllCalls())
		}
		expect(t, "error", diags.errors(), "not answered", "still there", "phase ready", "kept as it was", "destroy again", state.text("id"))
	})
}

// A secret of the sandbox that the gateway repeats is in no message.
func TestSecretsStayOutOfMessages(t *testing.T) {
	g := gatewaytest.Start(t)
	s := connected(t, g, values{"token": str("token-" + canary)})
	state := s.created(values{"name": str("web"), "environment": textMap(map[string]string{"A": canary})})
	g.Intercept(func(context.Context, any, *grpc.UnaryServerInfo, grpc.UnaryHandler) (any, error) {
		return nil, status.Error(codes.Internal, "environment is A="+canary+", token is token-"+canary)
	})
	_, read := s.refresh(t.Context(), state)
	_, destroyed := s.destroy(t.Context(), state)
	_, created := s.change(t.Context(), nil, values{"name": str("web2"), "environment": textMap(map[string]string{"A": canary})})
	for _, diags := range []diagnostics{read, destroyed, created} {
		if text := diags.String(); len(diags.errors()) != 1 || len(text) < 20 || strings.Contains(text, canary) {
			t.Errorf("message:\n%s", text)
		}
	}
}
