package provider

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// What to do must be possible: on_identity_mismatch = "error" makes the refresh fail that would else clear a state.
func TestAdviceOnReplacement(t *testing.T) {
	strict := values{"on_identity_mismatch": str("error"), "allow_unconditional_delete": boolean(true)}
	check := func(t *testing.T, diags diagnostics, says ...string) {
		t.Helper()
		expect(t, "error", diags.errors(), append(says, "terraform state rm", "on_identity_mismatch")...)
		if text := diags.String(); strings.Contains(text, "run terraform plan") {
			t.Error(text)
		}
	}
	t.Run("update", func(t *testing.T) {
		g := gatewaytest.Start(t)
		s := connected(t, g, strict)
		state := s.created(values{"name": str("web"), "running": boolean(true)})
		stranger := g.Replace(t, "web").GetMetadata().GetId()
		_, diags := s.change(t.Context(), state, values{"name": str("web"), "running": boolean(false)})
		check(t, diags, "was not stopped", stranger)
	})
	t.Run("create", func(t *testing.T) {
		g := gatewaytest.Start(t)
		s := connected(t, g, strict)
		var stranger string // guarded by the order of calls
		g.Intercept(gatewaytest.Before("/GetSandbox", func() error {
			if stranger == "" {
				stranger = g.Replace(t, "web").GetMetadata().GetId()
			}
			return nil
		}))
		_, diags := s.change(t.Context(), nil, values{"name": str("web")})
		check(t, diags, "did not become what it should", stranger)
	})
	t.Run("delete by name that hit another one", func(t *testing.T) {
		g := gatewaytest.Start(t, gatewaytest.WithoutConditional())
		s := connected(t, g, strict)
		state := s.created(values{"name": str("web")})
		g.Intercept(gatewaytest.Before("OpenShell/DeleteSandbox", func() error {
			g.Replace(t, "web")
			return nil
		}))
		_, diags := s.destroy(t.Context(), state)
		check(t, diags, "ANOTHER", "once no sandbox has the name")
	})
}

// Whoever interrupts is not told that the next run goes on where it would not.
func TestAdviceOnInterruption(t *testing.T) {
	interrupt := func(g *gatewaytest.Gateway, method string, call int) context.Context {
		ctx, cancel := context.WithCancel(t.Context())
		calls := 0 // guarded by the order of calls
		g.Intercept(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			if !strings.HasSuffix(info.FullMethod, method) {
				return handle(ctx, req)
			}
			if calls++; calls < call {
				return handle(ctx, req)
			}
			cancel()
			<-ctx.Done()
			return nil, ctx.Err()
		})
		return ctx
	}
	t.Run("create", func(t *testing.T) {
		g := gatewaytest.Start(t)
		s := connected(t, g, nil)
		_, diags := s.change(interrupt(g, "/GetSandbox", 2), nil, values{"name": str("web"), "driver_config": str(`{"simulated":{"never_ready":true}}`)})
		expect(t, "error", diags.errors(), "tainted", "What to do: apply again.")
	})
	t.Run("delete", func(t *testing.T) {
		g := gatewaytest.Start(t)
		s := connected(t, g, nil)
		state := s.created(values{"name": str("web"), "driver_config": str(`{"simulated":{"delete_after":"1h"}}`)})
		left, diags := s.destroy(interrupt(g, "/GetSandbox", 3), state)
		expect(t, "error", diags.errors(), "still being deleted", "The gateway goes on with it", "run this again; it goes on from where things stand")
		if !sameState(left, state) {
			t.Errorf("state %v", left)
		}
	})
	t.Run("delete that is on its way", func(t *testing.T) {
		g := gatewaytest.Start(t)
		s := connected(t, g, nil)
		state := s.created(values{"name": str("web")})
		_, diags := s.destroy(interrupt(g, "ConditionalSandboxes/DeleteSandbox", 1), state)
		expect(t, "error", diags.errors(), "not seen to its end", "kept as it was")
	})
	t.Run("delete by name that is on its way", func(t *testing.T) {
		g := gatewaytest.Start(t, gatewaytest.WithoutConditional())
		s := connected(t, g, values{"allow_unconditional_delete": boolean(true)})
		state := s.created(values{"name": str("web")})
		_, diags := s.destroy(interrupt(g, "OpenShell/DeleteSandbox", 1), state)
		expect(t, "error", diags.errors(), "is not known", "may yet take effect, on whatever has the name then", "one more delete by name", "kept as it was")
	})
}

// A delete by name without an answer may be carried out late, however the look for its outcome ends.
func TestAdviceOnUnansweredDelete(t *testing.T) {
	for name, tc := range map[string]struct {
		look codes.Code
		says string
	}{
		"the look ends with the time": {codes.Unavailable, "one more delete by name"},
		"the look is refused":         {codes.PermissionDenied, "Then give the caller access"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := gatewaytest.Start(t, gatewaytest.WithoutConditional())
			s := connected(t, g, values{"allow_unconditional_delete": boolean(true)})
			timeouts := full(object(t, s.sandboxType.AttributeTypes["timeouts"]), values{"delete": str("3s")})
			state := s.created(values{"name": str("web"), "timeouts": timeouts})
			g.Intercept(gatewaytest.Chain(
				gatewaytest.Before("OpenShell/DeleteSandbox", func() error {
					g.Intercept(gatewaytest.Refuse(tc.look, "/GetSandbox"))
					return nil
				}),
				gatewaytest.Refuse(codes.Unavailable, "OpenShell/DeleteSandbox"),
			))
			left, diags := s.destroy(t.Context(), state)
			if !sameState(left, state) || plainDeletes(g) != 1 {
				t.Errorf("state %v, calls %v", left, g.AllCalls())
			}
			expect(t, "error", diags.errors(), "is not known", "may yet take effect, on whatever has the name then", tc.says)
		})
	}
}

// A gateway that cannot bind a call to an id: the advice must not lead to a stranger's end, nor to a replacement.
func TestAdviceWithoutConditional(t *testing.T) {
	t.Run("delete", func(t *testing.T) {
		g := gatewaytest.Start(t, gatewaytest.WithoutConditional())
		s := connected(t, g, nil)
		state := s.created(values{"name": str("web")})
		g.Replace(t, "web")
		_, diags := s.destroy(t.Context(), state)
		expect(t, "error", diags.errors(), "look whether the name still has the id "+state.text("id"), "may mean another sandbox by now", "terraform state rm")
	})
	t.Run("policy", func(t *testing.T) {
		g := gatewaytest.Start(t, gatewaytest.WithoutConditional())
		s := connected(t, g, nil)
		config := func(host string) values {
			return values{"name": str("web"), "policy": str("version: 1\nnetwork_policies: {a: {endpoints: [{host: " + host + ", port: 443}], binaries: [{path: /usr/bin/curl}]}}\n")}
		}
		_, diags := s.change(t.Context(), s.created(config("example.com")), config("example.org"))
		expect(t, "error", diags.errors(), "policy was not changed", "set policy back to what it was")
		if text := diags.String(); strings.Contains(text, "leave out what needs them") {
			t.Error(text)
		}
	})
}
