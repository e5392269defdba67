package provider

import (
	"context"
	"maps"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// connected is a provider in front of a gateway.
func connected(t *testing.T, g *gatewaytest.Gateway, more values) *server {
	t.Helper()
	s := newServer(t)
	config := values{"endpoint": str(g.Endpoint())}
	maps.Copy(config, more)
	if diags := s.configure(t.Context(), config); len(diags) > 0 {
		t.Fatal(diags)
	}
	return s
}

// created applies a configuration, which must work without a word.
func (s *server) created(config values) values {
	s.t.Helper()
	state, diags := s.change(s.t.Context(), nil, config)
	if len(diags) > 0 || state == nil {
		s.t.Fatalf("create: %s", diags)
	}
	return state
}

// sameState compares states by meaning.
func sameState(a, b values) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return a.object().Equal(b.object())
}

func (v values) object() tftypes.Value {
	types := map[string]tftypes.Type{}
	for name, value := range v {
		types[name] = value.Type()
	}
	return tftypes.NewValue(tftypes.Object{AttributeTypes: types}, map[string]tftypes.Value(v))
}

// expect checks that a message exists that says everything.
func expect(t *testing.T, what string, diags diagnostics, says ...string) {
	t.Helper()
	for _, d := range diags {
		text := d.Summary + "\n" + d.Detail
		missing := ""
		for _, s := range says {
			if !strings.Contains(text, s) {
				missing = s
			}
		}
		if missing == "" {
			return
		}
	}
	t.Errorf("no %s says all of %q in\n%s", what, says, diags)
}

// Only a proof takes a sandbox out of the state: every other answer is an error that leaves the state as it was.
func TestReadKeepsTheState(t *testing.T) {
	for name, fault := range map[string]grpc.UnaryServerInterceptor{
		"unauthenticated":             gatewaytest.Refuse(codes.Unauthenticated, "/GetSandbox"),
		"no access":                   gatewaytest.Refuse(codes.PermissionDenied, "/GetSandbox"),
		"internal":                    gatewaytest.Refuse(codes.Internal, "/GetSandbox"),
		"unknown method":              gatewaytest.Refuse(codes.Unimplemented, "/GetSandbox"),
		"unavailable":                 gatewaytest.Refuse(codes.Unavailable, "/GetSandbox"),
		"no member, concealed":        gatewaytest.Refuse(codes.NotFound, "/GetSandbox", "/GetWorkspace"),
		"no member, 0.1":              gatewaytest.Chain(gatewaytest.Refuse(codes.NotFound, "/GetSandbox"), gatewaytest.Refuse(codes.PermissionDenied, "/GetWorkspace", "/ListSandboxes")),
		"no workspace":                gatewaytest.Chain(gatewaytest.Refuse(codes.NotFound, "/GetSandbox"), gatewaytest.Refuse(codes.NotFound, "/GetWorkspace")),
		"workspace not readable now":  gatewaytest.Chain(gatewaytest.Refuse(codes.NotFound, "/GetSandbox"), gatewaytest.Refuse(codes.Internal, "/GetWorkspace")),
		"workspace, then no identity": gatewaytest.Chain(gatewaytest.Refuse(codes.NotFound, "/GetSandbox"), gatewaytest.Refuse(codes.Unauthenticated, "/GetWorkspace")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := gatewaytest.Start(t)
			s := connected(t, g, nil)
			state := s.created(values{"name": str("web")})
			g.Intercept(fault)
			left, diags := s.refresh(t.Context(), state)
			if len(diags.errors()) != 1 || !sameState(left, state) {
				t.Errorf("state %v\n%s", left, diags)
			}
			expect(t, "error", diags.errors(), `name "web" in workspace "default", id `+state.text("id"), "kept as it was", "What to do:")
			g.Intercept(nil)
			if left, diags = s.refresh(t.Context(), state); len(diags) > 0 || !sameState(left, state) {
				t.Errorf("after that, state %v\n%s", left, diags)
			}
		})
	}
}

func TestReadRemovesWhatIsGone(t *testing.T) {
	t.Run("absent", func(t *testing.T) {
		g := gatewaytest.Start(t)
		s := connected(t, g, nil)
		state := s.created(values{"name": str("web")})
		g.MustDelete(t, "web")
		left, diags := s.refresh(t.Context(), state)
		if left != nil || len(diags.errors()) > 0 {
			t.Errorf("state %v\n%s", left, diags)
		}
		expect(t, "warning", diags.warnings(), state.text("id"), "is gone")
	})
	t.Run("replaced", func(t *testing.T) {
		g := gatewaytest.Start(t)
		s := connected(t, g, nil)
		state := s.created(values{"name": str("web")})
		stranger := g.Replace(t, "web").GetMetadata().GetId()
		left, diags := s.refresh(t.Context(), state)
		if left != nil || len(diags.errors()) > 0 {
			t.Errorf("state %v\n%s", left, diags)
		}
		expect(t, "warning", diags.warnings(), state.text("id"), stranger)
	})
	t.Run("replaced, to be an error", func(t *testing.T) {
		g := gatewaytest.Start(t)
		s := connected(t, g, values{"on_identity_mismatch": str("error")})
		state := s.created(values{"name": str("web")})
		stranger := g.Replace(t, "web").GetMetadata().GetId()
		left, diags := s.refresh(t.Context(), state)
		if !sameState(left, state) {
			t.Errorf("state %v\n%s", left, diags)
		}
		expect(t, "error", diags.errors(), state.text("id"), stranger, "kept as it was")
		g.MustDelete(t, "web")
		if left, diags = s.refresh(t.Context(), state); left != nil || len(diags.errors()) > 0 {
			t.Errorf("absent is no mismatch: state %v\n%s", left, diags)
		}
	})
	t.Run("without the scope for the workspace", func(t *testing.T) {
		g := gatewaytest.Start(t)
		s := connected(t, g, nil)
		g.Intercept(gatewaytest.Refuse(codes.PermissionDenied, "/GetWorkspace"))
		state := s.created(values{"name": str("web")})
		if state.text("workspace_id") != "" {
			t.Error("a workspace id came from nowhere")
		}
		g.MustDelete(t, "web")
		left, diags := s.refresh(t.Context(), state)
		if left != nil {
			t.Errorf("state %v\n%s", left, diags)
		}
		expect(t, "warning", diags.warnings(), "not certain", "workspace:read")
	})
	t.Run("with the scope only later", func(t *testing.T) {
		g, other := gatewaytest.Start(t), gatewaytest.Start(t)
		s := connected(t, g, nil)
		g.Intercept(gatewaytest.Refuse(codes.PermissionDenied, "/GetWorkspace"))
		state := s.created(values{"name": str("web")})
		g.Intercept(nil)
		moved := connected(t, other, nil)
		for _, look := range []func(context.Context, values) (values, diagnostics){moved.refresh, moved.destroy} {
			left, diags := look(t.Context(), state)
			if !sameState(left, state) {
				t.Errorf("state %v", left)
			}
			expect(t, "error", diags.errors(), state.text("id"), "no id of the workspace was recorded", "kept as it was", "-refresh-only", "terraform state rm")
		}
		left, diags := s.refresh(t.Context(), state)
		if left.text("workspace_id") == "" || len(diags) > 0 {
			t.Errorf("state %v\n%s", left, diags)
		}
		if left, diags := s.destroy(t.Context(), left); left != nil || len(diags) > 0 {
			t.Errorf("state %v\n%s", left, diags)
		}
	})
}

// The endpoint leads to another gateway, whether that has a web or not: an error, and nothing is believed.
func TestReadElsewhere(t *testing.T) {
	for name, has := range map[string]bool{"empty": false, "with a web of its own": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, other := gatewaytest.Start(t), gatewaytest.Start(t)
			state := connected(t, g, nil).created(values{"name": str("web")})
			if has {
				other.MustCreate(t, "web")
			}
			left, diags := connected(t, other, nil).refresh(t.Context(), state)
			if !sameState(left, state) {
				t.Errorf("state %v\n%s", left, diags)
			}
			expect(t, "error", diags.errors(), "another one", state.text("workspace_id"), "endpoint", "terraform state rm")
		})
	}
}

// What can change is read; what is fixed for an id stays as the state has it, whatever the gateway adds.
func TestReadRefreshes(t *testing.T) {
	g := gatewaytest.Start(t)
	s := connected(t, g, nil)
	state := s.created(values{"name": str("web"), "running": boolean(true)})
	for phase, want := range map[openshellv1.SandboxPhase]struct {
		phase   string
		running bool
		warns   string
	}{
		openshellv1.SandboxPhase_SANDBOX_PHASE_PROVISIONING: {"provisioning", true, ""},
		openshellv1.SandboxPhase_SANDBOX_PHASE_READY:        {"ready", true, ""},
		openshellv1.SandboxPhase_SANDBOX_PHASE_STARTING:     {"starting", true, ""},
		openshellv1.SandboxPhase_SANDBOX_PHASE_COMPLETED:    {"completed", true, ""},
		openshellv1.SandboxPhase_SANDBOX_PHASE_STOPPING:     {"stopping", false, ""},
		openshellv1.SandboxPhase_SANDBOX_PHASE_STOPPED:      {"stopped", false, ""},
		openshellv1.SandboxPhase_SANDBOX_PHASE_ERROR:        {"error", true, "not well"},
		openshellv1.SandboxPhase_SANDBOX_PHASE_DELETING:     {"deleting", true, "being deleted"},
		openshellv1.SandboxPhase(42):                        {"unknown", true, ""},
	} {
		g.SetPhase(t, "web", phase)
		g.Annotate(t, "web", "foreign", "note")
		left, diags := s.refresh(t.Context(), state)
		wanted := maps.Clone(state)
		wanted["phase"], wanted["running"] = str(want.phase), boolean(want.running)
		if !sameState(left, wanted) || len(diags.errors()) > 0 {
			t.Errorf("%v: state %v\n%s", phase, left, diags)
		}
		if want.warns == "" && len(diags) > 0 {
			t.Errorf("%v: %s", phase, diags)
		} else if want.warns != "" {
			expect(t, "warning", diags.warnings(), want.warns)
		}
	}
	g.SetPhase(t, "web", openshellv1.SandboxPhase_SANDBOX_PHASE_READY)
}

// A state from before, or from elsewhere, that says too little.
func TestReadWithoutID(t *testing.T) {
	for name, id := range map[string]tftypes.Value{"null": tftypes.NewValue(tftypes.String, nil), "empty": str(""), "the name": str("web")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := gatewaytest.Start(t)
			s := connected(t, g, nil)
			state := s.created(values{"name": str("web")})
			holder := state.text("id")
			state["id"] = id
			left, diags := s.refresh(t.Context(), state)
			if !sameState(left, state) {
				t.Errorf("state %v", left)
			}
			expect(t, "error", diags.errors(), holder, "terraform state rm", "terraform import ADDRESS 'default/web@"+holder+"'")
			left, diags = s.destroy(t.Context(), state)
			if !sameState(left, state) {
				t.Errorf("state %v", left)
			}
			expect(t, "error", diags.errors(), holder, "terraform state rm", "terraform import")
			if calls := deletes(g); len(calls) > 0 {
				t.Errorf("deletes %v", calls)
			}
			g.MustDelete(t, "web")
			if left, diags = s.refresh(t.Context(), state); left != nil || len(diags.errors()) > 0 {
				t.Errorf("state %v\n%s", left, diags)
			}
			if left, diags = s.destroy(t.Context(), state); left != nil || len(diags.errors()) > 0 {
				t.Errorf("state %v\n%s", left, diags)
			}
			g.Intercept(gatewaytest.Refuse(codes.NotFound, "/GetWorkspace"))
			if left, diags = s.destroy(t.Context(), state); !sameState(left, state) || len(diags.errors()) != 1 {
				t.Errorf("not proved, state %v\n%s", left, diags)
			}
		})
	}
}

// deletes are the delete calls of either kind.
func deletes(g *gatewaytest.Gateway) []gatewaytest.Call {
	return append(g.Calls(openshellv1.OpenShell_DeleteSandbox_FullMethodName), g.Calls("/openshell.conditional.v1.ConditionalSandboxes/DeleteSandbox")...)
}
