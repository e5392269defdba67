package provider

import (
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"google.golang.org/grpc/codes"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

func textSetOf(values ...string) tftypes.Value {
	elements := make([]tftypes.Value, 0, len(values))
	for _, value := range values {
		elements = append(elements, str(value))
	}
	return tftypes.NewValue(tftypes.Set{ElementType: tftypes.String}, elements)
}

// managed is a sandbox with the providers that a configuration names; nil leaves them to others.
func managed(names []string) values {
	config := values{"name": str("web")}
	if names != nil {
		config["providers"] = textSetOf(names...)
	}
	return config
}

func attached(t *testing.T, g *gatewaytest.Gateway) []string {
	t.Helper()
	sb, _ := g.Get(t, "web")
	return slices.Sorted(slices.Values(sb.GetSpec().GetProviders()))
}

func attachments(g *gatewaytest.Gateway) int {
	const service = "/openshell.conditional.v1.ConditionalSandboxes/"
	return len(g.Calls(service+"AttachSandboxProvider")) + len(g.Calls(service+"DetachSandboxProvider"))
}

// Providers change in place, by id, and the plan after each change is empty.
func TestUpdateProviders(t *testing.T) {
	g := gatewaytest.Start(t)
	g.MustProvider(t, "a", "TOKEN")
	g.MustProvider(t, "b", "TOKEN") // excludes a
	g.MustProvider(t, "c")
	s := connected(t, g, nil)
	state := s.created(managed([]string{"a"}))
	id := state.text("id")
	for _, step := range []struct {
		want, attached []string
		calls          int
	}{
		{[]string{"a", "c"}, []string{"a", "c"}, 1},
		{[]string{"b", "c"}, []string{"b", "c"}, 2},
		{nil, []string{"b", "c"}, 0},
		{[]string{"c"}, []string{"c"}, 1},
		{[]string{}, nil, 1},
		{nil, nil, 0},
		{[]string{}, nil, 0},
	} {
		g.ResetCalls()
		planned, after := s.plan(t.Context(), state, managed(step.want))
		if len(planned.RequiresReplace) > 0 || after.text("id") != id || after.text("phase") != "ready" {
			t.Fatalf("plan %v", after)
		}
		var diags diagnostics
		if state, diags = s.change(t.Context(), state, managed(step.want)); len(diags) > 0 {
			t.Fatal(diags)
		}
		if got := attached(t, g); !slices.Equal(got, step.attached) || idIn(t, g, "web") != id || attachments(g) != step.calls {
			t.Errorf("providers = %v: attached %v with %d calls", step.want, got, attachments(g))
		}
		left, diags := s.refresh(t.Context(), state)
		if len(diags) > 0 || !sameState(left, state) {
			t.Errorf("refreshed %v\n%s", left, diags)
		}
	}
}

// What others attach or detach shows, if it is managed, and is put right by the next apply.
func TestProvidersDrift(t *testing.T) {
	g := gatewaytest.Start(t)
	for _, name := range []string{"a", "b"} {
		g.MustProvider(t, name)
	}
	s := connected(t, g, nil)
	state := s.created(managed([]string{"a"}))
	g.Attach(t, "web", "b")
	g.Detach(t, "web", "a")
	state, diags := s.refresh(t.Context(), state)
	if len(diags) > 0 || !state["providers"].Equal(textSetOf("b")) {
		t.Fatalf("state %v\n%s", state, diags)
	}
	if _, diags = s.change(t.Context(), state, managed([]string{"a"})); len(diags) > 0 || !slices.Equal(attached(t, g), []string{"a"}) {
		t.Errorf("attached %v\n%s", attached(t, g), diags)
	}
}

// A failure in the middle leaves what is true in the state; the next apply does the rest.
func TestUpdateProvidersHalf(t *testing.T) {
	g := gatewaytest.Start(t)
	for _, name := range []string{"a", "b"} {
		g.MustProvider(t, name)
	}
	s := connected(t, g, nil)
	state := s.created(managed([]string{"a"}))
	want := managed([]string{"b", "missing"})
	want["running"], want["wait_for"] = boolean(false), str("none")
	left, diags := s.change(t.Context(), state, want)
	expect(t, "error", diags.errors(), `"missing" was not attached`, "FAILED_PRECONDITION", state.text("id"), "does what is left")
	if !diags.at("providers") || !left["providers"].Equal(textSetOf("b")) || !slices.Equal(attached(t, g), []string{"b"}) {
		t.Errorf("state %v, attached %v", left, attached(t, g))
	}
	if stops, _, _ := switches(g); stops != 0 || !left["running"].IsNull() || left.text("wait_for") != "ready" {
		t.Errorf("%d stops, state %v", stops, left)
	}
	g.MustProvider(t, "missing")
	if left, diags = s.change(t.Context(), left, want); len(diags) > 0 || left.text("phase") != "stopped" || !slices.Equal(attached(t, g), []string{"b", "missing"}) {
		t.Errorf("state %v, attached %v\n%s", left, attached(t, g), diags)
	}
}

// Nothing is attached to a stranger, and a provider that does not exist makes no sandbox.
func TestProvidersRefused(t *testing.T) {
	t.Run("replaced", func(t *testing.T) {
		g := gatewaytest.Start(t)
		g.MustProvider(t, "a")
		s := connected(t, g, nil)
		state := s.created(managed([]string{}))
		stranger := g.Replace(t, "web").GetMetadata().GetId()
		left, diags := s.change(t.Context(), state, managed([]string{"a"}))
		expect(t, "error", diags.errors(), state.text("id"), stranger, "kept as it was")
		if !sameState(left, state) || attachments(g) > 0 {
			t.Errorf("state %v, %d calls", left, attachments(g))
		}
	})
	t.Run("missing provider", func(t *testing.T) {
		g := gatewaytest.Start(t)
		s := connected(t, g, nil)
		state, diags := s.change(t.Context(), nil, managed([]string{"missing"}))
		if _, made := g.Get(t, "web"); made || state != nil {
			t.Errorf("state %v", state)
		}
		expect(t, "error", diags.errors(), "missing", "FAILED_PRECONDITION", "was not created")
	})
	t.Run("no access any more", func(t *testing.T) {
		g := gatewaytest.Start(t)
		g.MustProvider(t, "a")
		s := connected(t, g, nil)
		state := s.created(managed([]string{}))
		g.Intercept(gatewaytest.Refuse(codes.NotFound, "/GetSandbox", "/GetWorkspace"))
		left, diags := s.change(t.Context(), state, managed([]string{"a"}))
		expect(t, "error", diags.errors(), "proves nothing", "kept as it was")
		if !sameState(left, state) || attachments(g) > 0 {
			t.Errorf("state %v, %d calls", left, attachments(g))
		}
	})
}
