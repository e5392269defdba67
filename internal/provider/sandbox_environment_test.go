package provider

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// secretive is a sandbox with a plain and a write-only variable.
func secretive(version int64) values {
	config := values{
		"name": str("web"), "environment": textMap(map[string]string{"PLAIN": "text"}),
		"environment_wo": textMap(map[string]string{"SECRET": canary}),
	}
	if version > 0 {
		config["environment_wo_version"] = number(version)
	}
	return config
}

func noCanary(t *testing.T, s *server, state values) {
	t.Helper()
	if raw := s.dynamic(s.sandboxType, full(s.sandboxType, state)); bytes.Contains(raw.MsgPack, []byte(canary)) || bytes.Contains(raw.JSON, []byte(canary)) {
		t.Errorf("a secret is in the state %v", state)
	}
}

// Write-only variables reach the gateway and nothing else; their version tells when they change.
func TestWriteOnlyEnvironment(t *testing.T) {
	g := gatewaytest.Start(t)
	s := connected(t, g, nil)
	state := s.created(secretive(1))
	sb, _ := g.Get(t, "web")
	if !maps.Equal(sb.GetSpec().GetEnvironment(), map[string]string{"PLAIN": "text", "SECRET": canary}) {
		t.Errorf("environment %v", sb.GetSpec().GetEnvironment())
	}
	noCanary(t, s, state)
	if planned, after := s.plan(t.Context(), state, secretive(1)); len(planned.RequiresReplace) > 0 || !sameState(after, state) {
		t.Errorf("the second plan is not empty: %v", after)
	}
	for _, version := range []int64{0, 2} {
		if planned, _ := s.plan(t.Context(), state, secretive(version)); len(planned.RequiresReplace) != 1 {
			t.Errorf("version %d replaces for %v", version, planned.RequiresReplace)
		}
	}
	plain := secretive(1)
	plain["environment"] = textMap(map[string]string{"PLAIN": "text", "SECRET": "shown"})
	if planned, _ := s.plan(t.Context(), state, plain); len(planned.RequiresReplace) != 1 {
		t.Errorf("a variable that comes replaces for %v", planned.RequiresReplace)
	}
}

// A version that only now appears does not replace, and says that it brings no variables.
func TestWriteOnlyVersionAppears(t *testing.T) {
	g := gatewaytest.Start(t)
	s := connected(t, g, nil)
	state := s.created(secretive(0))
	g.ResetCalls()
	planned, _ := s.plan(t.Context(), state, secretive(1))
	expect(t, "warning", diagnostics(planned.Diagnostics).warnings(), "not sent", state.text("id"), "-replace")
	state, diags := s.change(t.Context(), state, secretive(1))
	if len(diags) > 0 || !state["environment_wo_version"].Equal(number(1)) || len(g.AllCalls()) > 0 {
		t.Errorf("state %v, calls %v\n%s", state, g.AllCalls(), diags)
	}
	if planned, after := s.plan(t.Context(), state, secretive(1)); len(planned.Diagnostics) > 0 || !sameState(after, state) {
		t.Errorf("planned %v", after)
	}
}

// An import leaves out what was given as write-only. Of a sandbox made elsewhere it shows all, and the plan takes out of the
// state what the configuration gives as write-only; neither replaces.
func TestWriteOnlyImport(t *testing.T) {
	for name, make := range map[string]func(*gatewaytest.Gateway, *server){
		"made here": func(_ *gatewaytest.Gateway, s *server) { s.created(secretive(1)) },
		"made elsewhere": func(g *gatewaytest.Gateway, s *server) {
			g.MustCreate(s.t, "web", gatewaytest.Request(func(r *openshellv1.CreateSandboxRequest) {
				r.Spec.Environment = map[string]string{"PLAIN": "text", "SECRET": canary}
			}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := gatewaytest.Start(t)
			s := connected(t, g, nil)
			make(g, s)
			state, diags := s.importState(t.Context(), "web", nil)
			if len(diags) > 0 || !state["annotations"].IsNull() {
				t.Fatalf("state %v\n%s", state, diags)
			}
			if name == "made here" {
				noCanary(t, s, state)
			}
			unknown := secretive(1)
			unknown["environment_wo"] = tftypes.NewValue(tftypes.Map{ElementType: tftypes.String}, tftypes.UnknownValue)
			if planned, _ := s.plan(t.Context(), state, unknown); len(planned.RequiresReplace) > 0 {
				t.Errorf("unknown variables replace for %v", planned.RequiresReplace)
			}
			if planned, _ := s.plan(t.Context(), state, secretive(1)); len(planned.RequiresReplace) > 0 {
				t.Errorf("replaces for %v", planned.RequiresReplace)
			}
			g.ResetCalls()
			state, diags = s.change(t.Context(), state, secretive(1))
			if len(diags) > 0 || len(g.AllCalls()) > 0 {
				t.Errorf("calls %v\n%s", g.AllCalls(), diags)
			}
			noCanary(t, s, state)
			if planned, after := s.plan(t.Context(), state, secretive(1)); len(planned.RequiresReplace) > 0 || !sameState(after, state) {
				t.Errorf("planned %v", after)
			}
		})
	}
}

// Whatever fails, no secret is told or kept, and the sandbox is in the state.
func TestWriteOnlyFailure(t *testing.T) {
	t.Parallel()
	g := gatewaytest.Start(t)
	s := connected(t, g, nil)
	config := secretive(1)
	config["driver_config"] = str(fmt.Sprintf(`{"simulated":{"create_error":%q}}`, "cannot run with SECRET="+canary))
	state, diags := s.change(t.Context(), nil, config)
	if state != nil || len(diags.errors()) != 1 || bytes.Contains([]byte(diags.String()), []byte(canary)) {
		t.Errorf("state %v\n%s", state, diags)
	}
	config["driver_config"] = str(`{"simulated":{"never_ready":true}}`)
	config["timeouts"] = full(object(t, s.sandboxType.AttributeTypes["timeouts"]), values{"create": str("5s")})
	state, diags = s.change(t.Context(), nil, config)
	if state.text("id") == "" || idIn(t, g, "web") != state.text("id") || len(diags.errors()) != 1 {
		t.Errorf("state %v\n%s", state, diags)
	}
	noCanary(t, s, state)
	if left, diags := s.destroy(t.Context(), state); left != nil || len(diags) > 0 {
		t.Errorf("state %v\n%s", left, diags)
	}
}

// A refusal of a later call may repeat what no state knows.
func TestWriteOnlyRefusals(t *testing.T) {
	g := gatewaytest.Start(t)
	g.MustProvider(t, "a")
	s := connected(t, g, nil)
	state := s.created(secretive(1))
	refusal := func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		if strings.Contains(info.FullMethod, "ConditionalSandboxes") {
			return nil, status.Error(codes.Internal, "the driver failed with SECRET="+canary)
		}
		return handle(ctx, req)
	}
	g.Intercept(refusal)
	attach := secretive(1)
	attach["providers"] = textSetOf("a")
	stop := secretive(1)
	stop["running"] = boolean(false)
	for name, refused := range map[string]func() (values, diagnostics){
		"attach": func() (values, diagnostics) { return s.change(t.Context(), state, attach) },
		"stop":   func() (values, diagnostics) { return s.change(t.Context(), state, stop) },
		"delete": func() (values, diagnostics) { return s.destroy(t.Context(), state) },
	} {
		_, diags := refused()
		expect(t, "error", diags.errors(), "INTERNAL", "the driver failed with SECRET=(sensitive value)", state.text("id"))
		if strings.Contains(diags.String(), canary) {
			t.Errorf("%s: %s", name, diags)
		}
	}
	for name, unseen := range map[string]codes.Code{"not readable": codes.PermissionDenied, "gone": codes.NotFound} {
		g.Intercept(gatewaytest.Chain(refusal, gatewaytest.Refuse(unseen, "/GetSandbox")))
		left, diags := s.destroy(t.Context(), state)
		expect(t, "error", diags.errors(), "INTERNAL", "withheld", state.text("id"))
		if strings.Contains(diags.String(), canary) || !sameState(left, state) {
			t.Errorf("%s: state %v\n%s", name, left, diags)
		}
	}
}
