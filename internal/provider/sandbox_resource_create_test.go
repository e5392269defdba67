package provider

import (
	"context"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/client"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

func TestCreateNeverAdopts(t *testing.T) {
	for name, tc := range map[string]struct {
		holder []gatewaytest.CreateOption
		says   []string
	}{
		"a stranger": {nil, []string{"choose another name"}},
		"made by a lost apply": {[]gatewaytest.CreateOption{gatewaytest.Request(func(r *openshellv1.CreateSandboxRequest) {
			r.Annotations = map[string]string{client.AnnotationCreateID: "0b5c6a5e-98a5-4a44-a3a5-6d1b5a6a0001"}
		})}, []string{"this provider's marker", client.AnnotationCreateID + " = 0b5c6a5e-98a5-4a44-a3a5-6d1b5a6a0001"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := gatewaytest.Start(t)
			holder := g.MustCreate(t, "web", tc.holder...)
			s := connected(t, g, nil)
			state, diags := s.change(t.Context(), nil, values{"name": str("web")})
			if state != nil {
				t.Errorf("state %v", state)
			}
			id := holder.GetMetadata().GetId()
			expect(t, "error", diags.errors(), append(tc.says, "ALREADY_EXISTS", id, "in phase ready", "terraform import ADDRESS 'default/web@"+id+"'")...)
			if !diags.at("name") {
				t.Error("not on the attribute")
			}
			if now, ok := g.GetByID(t, id); !ok || now.GetMetadata().GetResourceVersion() != holder.GetMetadata().GetResourceVersion() {
				t.Error("the holder was touched")
			}
		})
	}
}

// A name the user left out is not in the plan, fits the rules, and another one is tried when a stranger has it.
func TestCreateInventsAName(t *testing.T) {
	g := gatewaytest.Start(t)
	s := connected(t, g, nil)
	if _, planned := s.plan(t.Context(), nil, values{}); planned["name"].IsKnown() {
		t.Errorf("planned name %v", planned["name"])
	}
	var first atomic.Value // the name tried first, which a stranger takes
	g.Intercept(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		if r, ok := req.(*openshellv1.CreateSandboxRequest); ok && first.CompareAndSwap("", r.GetName()) {
			g.MustCreate(t, r.GetName())
		}
		return handle(ctx, req)
	})
	for prefix, shape := range map[string]string{
		"": "^sandbox-[a-z0-9]{8}$", "a": "^a[a-z0-9]{8}$", "team-a-agent-": "^team-a-agent-[a-z0-9]{6}$",
	} {
		first.Store("")
		config := values{}
		if prefix != "" {
			config["name_prefix"] = str(prefix)
		}
		state := s.created(config)
		if name := state.text("name"); !regexp.MustCompile(shape).MatchString(name) || name == first.Load() {
			t.Errorf("name %q, first %q", name, first.Load())
		}
		if _, ok := g.Get(t, state.text("name")); !ok {
			t.Error("the state names a sandbox that is not there")
		}
	}
}

// From the gateway's answer on, whatever fails leaves the id in the state, with nothing unknown.
func TestCreateFailuresKeepTheID(t *testing.T) {
	for name, tc := range map[string]struct {
		config values
		says   string
	}{
		"never ready": {values{"driver_config": str(`{"simulated":{"never_ready":true}}`)}, "phase provisioning"},
		"job fails":   {values{"driver_config": str(`{"simulated":{"exit_after":"10ms","exit_code":3}}`), "wait_for": str("completed")}, "The main process ended with exit code 3."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := gatewaytest.Start(t)
			s := connected(t, g, nil)
			tc.config["name"] = str("web")
			tc.config["timeouts"] = full(object(t, s.sandboxType.AttributeTypes["timeouts"]), values{"create": str("5s")})
			state, diags := s.change(t.Context(), nil, tc.config)
			expect(t, "error", diags.errors(), tc.says, state.text("id"), "tainted")
			if sb, ok := g.Get(t, "web"); !ok || sb.GetMetadata().GetId() != state.text("id") || state.text("workspace_id") == "" {
				t.Errorf("state %v", state)
			}
			for attribute, value := range state {
				if !value.IsFullyKnown() {
					t.Errorf("%s is unknown", attribute)
				}
			}
			if left, diags := s.destroy(t.Context(), state); left != nil || len(diags.errors()) > 0 {
				t.Errorf("state %v\n%s", left, diags)
			}
		})
	}
}

func TestCreateWaits(t *testing.T) {
	for name, tc := range map[string]struct {
		config values
		phase  string
	}{
		"ready":                        {values{"driver_config": str(`{"simulated":{"ready_after":"300ms"}}`)}, "ready"},
		"completed":                    {values{"driver_config": str(`{"simulated":{"exit_after":"100ms"}}`), "wait_for": str("completed")}, "completed"},
		"none":                         {values{"driver_config": str(`{"simulated":{"never_ready":true}}`), "wait_for": str("none")}, "provisioning"},
		"stopped":                      {values{"running": boolean(false)}, "stopped"},
		"stopped without waiting":      {values{"running": boolean(false), "wait_for": str("none")}, "stopped"},
		"running needs no call":        {values{"running": boolean(true)}, "ready"},
		"the create blocks for longer": {values{"driver_config": str(`{"simulated":{"create_takes":"400ms"}}`)}, "ready"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := gatewaytest.Start(t)
			s := connected(t, g, values{"request_timeout": str("200ms")}) // it does not bound the create
			tc.config["name"] = str("web")
			state := s.created(tc.config)
			if state.text("phase") != tc.phase {
				t.Errorf("phase %q", state.text("phase"))
			}
			left, diags := s.refresh(t.Context(), state)
			if len(diags) > 0 || !sameState(left, state) {
				t.Errorf("refreshed %v\n%s", left, diags)
			}
			planned, _ := s.plan(t.Context(), left, tc.config)
			if len(planned.RequiresReplace) > 0 || !sameState(s.decode(s.sandboxType, planned.PlannedState), left) {
				t.Errorf("the second plan is not empty: %v", s.decode(s.sandboxType, planned.PlannedState))
			}
		})
	}
}

// A lost reply ends with one sandbox and its id in the state.
func TestCreateLostReply(t *testing.T) {
	for name, config := range map[string]values{"named": {"name": str("web")}, "invented": {}} {
		t.Run(name, func(t *testing.T) {
			g := gatewaytest.Start(t)
			s := connected(t, g, nil)
			g.Intercept(gatewaytest.Lose("/CreateSandbox", nil))
			state := s.created(config)
			if n := len(g.Calls(openshellv1.OpenShell_CreateSandbox_FullMethodName)); n != 1 || idIn(t, g, state.text("name")) != state.text("id") {
				t.Errorf("%d creates, state %v", n, state)
			}
		})
	}
}

// The reply is lost and nothing can be read any more. What is said is about the name that was tried last; one that was
// invented keeps no second sandbox away, so there the advice is to look first.
func TestCreateOutcomeUnknown(t *testing.T) {
	for name, tc := range map[string]struct {
		config values
		says   []string
	}{
		"named":    {values{"name": str("web")}, []string{"apply again. If the sandbox exists by then"}},
		"invented": {values{"name_prefix": str("a-")}, []string{"look for the sandbox before another apply", "openshell_sandboxes", "openshell-iac/managed-by=terraform", "create_id MARK", "terraform import ADDRESS 'default/NAME@ID'", "may yet take effect: look again"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := gatewaytest.Start(t)
			s := connected(t, g, nil)
			var made *openshellv1.CreateSandboxRequest // guarded by the order of calls
			tries := 0
			g.Intercept(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
				r, creates := req.(*openshellv1.CreateSandboxRequest)
				switch {
				case made != nil:
					return nil, status.Error(codes.PermissionDenied, "refused in a test")
				case !creates:
					return handle(ctx, req)
				}
				if tries++; name == "invented" && tries == 1 { // a stranger has the first name
					g.MustCreate(t, r.GetName())
					return handle(ctx, req)
				}
				_, _ = handle(ctx, req)
				made = r
				return nil, status.Error(codes.Unavailable, "lost in a test")
			})
			state, diags := s.change(t.Context(), nil, tc.config)
			if state != nil || made == nil {
				t.Fatalf("state %v, made %v", state, made)
			}
			says := []string{"Whether the sandbox was created is not known", "Sandbox: name \"" + made.GetName() + "\"", client.AnnotationCreateID + " is " + made.GetAnnotations()[client.AnnotationCreateID], "nothing was written"}
			for _, text := range tc.says {
				says = append(says, strings.NewReplacer("NAME", made.GetName(), "MARK", made.GetAnnotations()[client.AnnotationCreateID]).Replace(text))
			}
			expect(t, "error", diags.errors(), says...)
		})
	}
}

func idIn(t *testing.T, g *gatewaytest.Gateway, name string) string {
	t.Helper()
	sb, _ := g.Get(t, name)
	return sb.GetMetadata().GetId()
}

func TestCreateRefused(t *testing.T) {
	t.Run("by the gateway, on an attribute", func(t *testing.T) {
		g := gatewaytest.Start(t)
		s := connected(t, g, nil)
		state, diags := s.change(t.Context(), nil, values{"name": str("web"), "driver_config": str(`{"simulated":{"unheard_of":1}}`)})
		if state != nil || !diags.at("driver_config") {
			t.Errorf("state %v", state)
		}
		expect(t, "error", diags.errors(), "unheard_of", "INVALID_ARGUMENT", `name "web"`)
	})
	t.Run("no such template", func(t *testing.T) {
		g := gatewaytest.Start(t)
		s := connected(t, g, nil)
		state, diags := s.change(t.Context(), nil, values{"name": str("web"), "workload_template": str("missing")})
		if state != nil || !diags.at("workload_template") {
			t.Errorf("state %v", state)
		}
		expect(t, "error", diags.errors(), "'missing' not found", "has this template")
	})
	t.Run("no such workspace", func(t *testing.T) {
		g := gatewaytest.Start(t)
		s := connected(t, g, nil)
		state, diags := s.change(t.Context(), nil, values{"name": str("web"), "workspace": str("elsewhere")})
		if state != nil || len(g.Calls(openshellv1.OpenShell_CreateSandbox_FullMethodName)) > 0 {
			t.Errorf("state %v", state)
		}
		expect(t, "error", diags.errors(), "elsewhere", "NOT_FOUND", "make sure that the workspace exists")
	})
	t.Run("by a gateway that cannot stop it", func(t *testing.T) {
		g := gatewaytest.Start(t, gatewaytest.WithoutConditional())
		s := connected(t, g, nil)
		state, diags := s.change(t.Context(), nil, values{"name": str("web"), "running": boolean(false)})
		if state != nil || len(g.Calls(openshellv1.OpenShell_CreateSandbox_FullMethodName)) > 0 {
			t.Errorf("state %v", state)
		}
		expect(t, "error", diags.errors(), "openshell.conditional.v1", "does not offer", "the create was not sent", "leave running out")
		if !diags.at("running") {
			t.Error("not on the attribute")
		}
	})
	t.Run("0.0 gateway", func(t *testing.T) {
		g := gatewaytest.Start(t, gatewaytest.WithVersion("0.0.111"))
		s := connected(t, g, nil)
		state, diags := s.change(t.Context(), nil, values{"name": str("web")})
		if state != nil || len(g.AllCalls()) != 1 {
			t.Errorf("state %v, calls %v", state, g.AllCalls())
		}
		expect(t, "error", diags.errors(), "0.0.111", "not supported")
	})
}

// The provider's workspace applies to a new sandbox; later the state's does.
func TestWorkspaceIsResolvedOnce(t *testing.T) {
	g := gatewaytest.Start(t)
	s := connected(t, g, nil)
	state := s.created(values{"name": str("web")})
	moved := connected(t, g, values{"workspace": str("elsewhere")})
	planned, after := moved.plan(t.Context(), state, values{"name": str("web")})
	if len(planned.RequiresReplace) > 0 || after.text("workspace") != "default" {
		t.Errorf("replace %v, planned %v", planned.RequiresReplace, after)
	}
	if left, diags := moved.refresh(t.Context(), state); len(diags) > 0 || !sameState(left, state) {
		t.Errorf("%v\n%s", left, diags)
	}
	if _, planned := moved.plan(t.Context(), nil, values{"name": str("web")}); planned.text("workspace") != "elsewhere" {
		t.Errorf("planned %v", planned)
	}
}
