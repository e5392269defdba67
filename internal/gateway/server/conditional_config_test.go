package server_test

import (
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/policy"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// conditionalUpdate is about the sandbox "web".
func conditionalUpdate(p *conditionalv1.SandboxPrecondition, req *openshellv1.UpdateConfigRequest) *conditionalv1.ConditionalUpdateSandboxConfigRequest {
	full, _ := proto.Clone(req).(*openshellv1.UpdateConfigRequest)
	full.Sandbox, full.WorkspaceScope = "web", gatewaytest.Default()
	return &conditionalv1.ConditionalUpdateSandboxConfigRequest{Precondition: p, Request: full}
}

func TestConditionalUpdate(t *testing.T) {
	g := gatewaytest.Start(t)
	web := g.MustCreate(t, "web", withPolicy(reaching("a.example.com")))
	update := func(p *conditionalv1.SandboxPrecondition, req *openshellv1.UpdateConfigRequest) *openshellv1.UpdateConfigResponse {
		t.Helper()
		reply, err := g.Conditional().UpdateSandboxConfig(call(t), conditionalUpdate(p, req))
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	b := reaching("b.example.com")
	reply := update(expect(id(web), version(web)), &openshellv1.UpdateConfigRequest{Policy: b})
	wantReply(t, reply, nil, &openshellv1.UpdateConfigResponse{Version: 2, PolicyHash: policy.Hash(b)})
	now, _ := g.Get(t, "web")
	if version(now) != version(web)+1 {
		t.Errorf("from version %d to %d", version(web), version(now))
	}
	both := reaching("b.example.com", "c.example.com") // the version is given in the plain request, instead
	reply = update(expect(id(web)), &openshellv1.UpdateConfigRequest{MergeOperations: addRule("c.example.com"), ExpectedResourceVersion: version(now)})
	wantReply(t, reply, nil, &openshellv1.UpdateConfigResponse{Version: 3, PolicyHash: policy.Hash(both)})
	now, _ = g.Get(t, "web")
	for _, p := range []*conditionalv1.SandboxPrecondition{expect(id(web)), expect(id(web), version(now))} {
		wantReply(t, update(p, &openshellv1.UpdateConfigRequest{Policy: both}), nil, reply) // which is no change
	}
	wantReply(t, update(expect(id(web)), setting("ocsf_json_enabled", truth(true))), nil, &openshellv1.UpdateConfigResponse{SettingsRevision: 1})
	wantUnchanged(t, g, now)
}

// The id and then the version come before all that the plain call refuses, and count also where it does nothing.
func TestConditionalUpdateGuards(t *testing.T) {
	g := gatewaytest.Start(t)
	a := g.MustCreate(t, "web")
	b := g.Replace(t, "web", withPolicy(reaching("a.example.com")))
	fixed := reaching()
	fixed.Process.RunAsUser = "1000"
	requests := map[string]*openshellv1.UpdateConfigRequest{
		"a change":          {Policy: reaching("b.example.com")},
		"no change":         {Policy: reaching("a.example.com")},
		"a fixed part":      {Policy: fixed},
		"a merge":           {MergeOperations: addRule("b.example.com")},
		"an empty merge":    {MergeOperations: addRule("a.example.com")},
		"nothing":           {},
		"two changes":       {Policy: reaching(), SettingKey: "ocsf_json_enabled"},
		"a bad annotation":  {Policy: reaching(), Annotations: map[string]string{"-": ""}},
		"a setting":         setting("ocsf_json_enabled", truth(true)),
		"an unset one":      unsetting("ocsf_json_enabled"),
		"an unknown one":    setting("none", truth(true)),
		"a setting's value": setting("ocsf_json_enabled", text("x")),
	}
	for name, req := range requests {
		t.Run(name, func(t *testing.T) {
			try := func(expected uint64, p *conditionalv1.SandboxPrecondition) error {
				full := conditionalUpdate(p, req)
				full.Request.ExpectedResourceVersion = expected
				_, err := g.Conditional().UpdateSandboxConfig(call(t), full)
				return err
			}
			for _, p := range []*conditionalv1.SandboxPrecondition{expect(id(a)), expect(id(a), version(b)), expect(anID, 1)} {
				wantReason(t, try(0, p), codes.FailedPrecondition, "openshell.conditional.v1", "SANDBOX_IDENTITY_MISMATCH", map[string]string{
					"workspace": "default", "name": "web", "expected_id": p.GetId(), "current_id": id(b),
				})
			}
			for _, other := range []uint64{1, version(b) + 1} {
				for _, err := range []error{try(0, expect(id(b), other)), try(other, expect(id(b)))} {
					wantReason(t, err, codes.Aborted, "openshell.nvidia.com", "RESOURCE_VERSION_CONFLICT", map[string]string{
						"recovery": "REFRESH_STATE", "current_resource_version": fmt.Sprint(version(b)),
					})
				}
			}
			wantField(t, try(version(b), expect(id(b), version(b))), "expected_resource_version") // even the same
		})
	}
	wantUnchanged(t, g, b)
	wantRevision(t, g, 0, reaching("a.example.com"), 1, loaded)
	if reply := mustUpdate(t, g, unsetting("ocsf_json_enabled")); reply.GetSettingsRevision() != 0 {
		t.Errorf("settings were changed: %v", reply)
	}
	_, err := g.Conditional().UpdateSandboxConfig(call(t), nil)
	wantPlain(t, err, codes.InvalidArgument, "sandbox is required")
}

// A precondition is about one sandbox, so there is none on the whole gateway.
func TestConditionalUpdateIsNotGlobal(t *testing.T) {
	g := gatewaytest.Start(t)
	web := g.MustCreate(t, "web")
	for _, change := range []*openshellv1.UpdateConfigRequest{{Policy: reaching()}, setting("ocsf_json_enabled", truth(true))} {
		req := conditionalUpdate(expect(id(web)), change)
		req.Request.Global = true
		_, err := g.Conditional().UpdateSandboxConfig(call(t), req)
		wantField(t, err, "global")
	}
	wantUnchanged(t, g, web)
	reply, err := g.OpenShell().GetGatewayConfig(call(t), &sandboxv1.GetGatewayConfigRequest{})
	if err != nil || reply.GetSettingsRevision() != 0 {
		t.Errorf("the gateway: %v, %v", reply, err)
	}
}
