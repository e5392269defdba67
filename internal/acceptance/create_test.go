package acceptance_test

import (
	"testing"
	"time"

	"github.com/openshell-iac/terraform-provider-openshell/internal/acceptance/cli"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/client"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// ACCEPTED is not gone. A replacement under the same name deletes for sixteen seconds and creates then, in one apply.
func TestT22O6SlowDeleteThenCreate(t *testing.T) {
	t.Parallel()
	g := gatewaytest.Start(t)
	s := set(t, cli.Require(t), g, `driver_config = jsonencode({ simulated = { delete_after = "16s" } })`)
	ours := s.up()
	s.sandbox(`name = "web"`)
	start := time.Now()
	if again := s.up(); again == ours {
		t.Error("it was not replaced")
	}
	if took := time.Since(start); took < 16*time.Second {
		t.Errorf("took %v", took)
	}
	if _, ok := g.GetByID(t, ours); ok || len(sandboxes(t, g)) != 1 {
		t.Error("the first one is still there")
	}
	s.empty()
}

// A sandbox that never becomes ready is in the state, tainted: however often the apply is repeated there is one, and in
// the end the right one.
func TestT16NeverReady(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, c cli.CLI) {
		g := gatewaytest.Start(t)
		never := []string{`name = "web"`, `driver_config = jsonencode({ simulated = { never_ready = true } })`, `timeouts = { create = "3s" }`}
		s := set(t, c, g)
		s.sandbox(never...)
		var last string
		for range 2 {
			r := s.Apply(t.Context(), "")
			id := s.id()
			s.expect(r, 1, cli.Error, id, "phase provisioning", "tainted")
			if id == "" || id == last || !s.resource().Tainted {
				t.Fatalf("id %q after %q, state\n%s", id, last, s.raw())
			}
			if all := sandboxes(t, g); len(all) != 1 || all[0].GetMetadata().GetId() != id {
				t.Fatalf("the gateway has %v", all)
			}
			last = id
		}
		s.sandbox(`name = "web"`)
		good := s.up()
		if all := sandboxes(t, g); len(all) != 1 || all[0].GetMetadata().GetId() != good || good == last {
			t.Errorf("the gateway has %v", all)
		}
		s.must(s.Destroy(t.Context()))
		if n := len(sandboxes(t, g)); n != 0 {
			t.Errorf("%d sandboxes are left", n)
		}
	})
}

// An existing sandbox is never taken over, and what it is and the ways out are told.
func TestT2T21TakenName(t *testing.T) {
	t.Parallel()
	g := gatewaytest.Start(t)
	holder := g.MustCreate(t, "web")
	s := set(t, cli.Require(t), g)
	r := s.Apply(t.Context(), "")
	s.expect(r, 1, cli.Error, "ALREADY_EXISTS", holder.GetMetadata().GetId(), "in phase ready", "choose another name", "terraform import")
	if s.id() != "" {
		t.Error("it is in the state")
	}
	unchanged(t, g, holder)
	for _, d := range r.Errors() {
		if d.Attribute != "name" || d.Address != web {
			t.Errorf("the error is at %s, %s", d.Address, d.Attribute)
		}
	}
	if n := len(g.Calls(openshellv1.OpenShell_CreateSandbox_FullMethodName)); n != 1 { // waiting helps nobody
		t.Errorf("%d creates", n)
	}
	s.must(s.Destroy(t.Context()))
	unchanged(t, g, holder)
}

// Two resources with one name are two sandboxes that want it: one of them fails, and none is shared.
func TestT2TwoResourcesWithOneName(t *testing.T) {
	t.Parallel()
	g := gatewaytest.Start(t)
	s := set(t, cli.Require(t), g)
	s.write("again.tf", "resource \"openshell_sandbox\" \"again\" {\n  name = \"web\"\n}\n")
	s.expect(s.Apply(t.Context(), ""), 1, cli.Error, "ALREADY_EXISTS", "this provider's marker", "another resource of the same name", "terraform import")
	state, err := s.State(t.Context())
	if all := sandboxes(t, g); err != nil || len(all) != 1 || len(state.Values.RootModule.Resources) != 1 {
		t.Errorf("%v: the gateway has %v, the state is\n%s", err, all, s.raw())
	}
	s.must(s.Destroy(t.Context()))
	if n := len(sandboxes(t, g)); n != 0 {
		t.Errorf("%d sandboxes are left", n)
	}
}

// A replacement that is created first cannot have the name of what it replaces. The old one stays as it is.
func TestT23CreateBeforeDestroyWithAFixedName(t *testing.T) {
	t.Parallel()
	g := gatewaytest.Start(t)
	s := set(t, cli.Require(t), g)
	ours := s.up()
	mine, _ := g.GetByID(t, ours)
	s.sandbox(`name = "web"`, `image = "example.com/agent:2"`, `lifecycle {`, `  create_before_destroy = true`, `}`)
	s.expect(s.Apply(t.Context(), ""), 1, cli.Error, "ALREADY_EXISTS", ours, "leave the name out, or create_before_destroy")
	unchanged(t, g, mine)
	if s.id() != ours {
		t.Errorf("the state has %q", s.id())
	}
}

// What cannot be in the state after a hard kill can be found by its label.
func TestO31LabelFindsOrphans(t *testing.T) {
	t.Parallel()
	g := gatewaytest.Start(t)
	g.MustCreate(t, "other")
	s := set(t, cli.Require(t), g)
	ours := s.up()
	reply, err := g.OpenShell().ListSandboxes(t.Context(), &openshellv1.ListSandboxesRequest{
		WorkspaceScope: gatewaytest.Default(), LabelSelector: client.LabelManagedBy + "=" + client.ManagedByTerraform,
	})
	if err != nil || len(reply.GetSandboxes()) != 1 || reply.GetSandboxes()[0].GetMetadata().GetId() != ours {
		t.Errorf("%v, %v", reply, err)
	}
}

// With a prefix, or without a name at all, the new sandbox is made before the old one goes.
func TestT23CreateBeforeDestroyWithInventedNames(t *testing.T) {
	t.Parallel()
	for name, arguments := range map[string][]string{"prefix": {`name_prefix = "team-a-web-"`}, "nothing": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := gatewaytest.Start(t)
			s := set(t, cli.Require(t), g)
			first := append(arguments[:len(arguments):len(arguments)], `lifecycle {`, `  create_before_destroy = true`, `}`)
			s.sandbox(first...)
			before := s.up()
			s.empty()
			s.sandbox(append(first, `image = "example.com/agent:2"`)...)
			g.ResetCalls()
			after := s.up()
			if all := sandboxes(t, g); after == before || len(all) != 1 || all[0].GetMetadata().GetId() != after {
				t.Errorf("%s after %s, gateway %v", after, before, all)
			}
			order := ""
			for _, call := range g.AllCalls() {
				switch call.Method {
				case conditional:
					order += "delete "
				case "/openshell.v1.OpenShell/CreateSandbox":
					order += "create "
				}
			}
			if order != "create delete " {
				t.Errorf("calls in the order %s", order)
			}
			s.empty()
		})
	}
}
