package server_test

import (
	"fmt"
	"slices"
	"testing"

	"google.golang.org/grpc/codes"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// attachments are the conditional calls on attachments, of a provider and with an expected version in the plain request.
var attachments = map[string]func(t *testing.T, g *gatewaytest.Gateway, sandbox, provider string, expected uint64, p *conditionalv1.SandboxPrecondition) (*openshellv1.Sandbox, bool, error){
	"attach": func(t *testing.T, g *gatewaytest.Gateway, sandbox, provider string, expected uint64, p *conditionalv1.SandboxPrecondition) (*openshellv1.Sandbox, bool, error) {
		req := conditionalAttach(sandbox, provider, p)
		req.Request.ExpectedResourceVersion = expected
		reply, err := g.Conditional().AttachSandboxProvider(call(t), req)
		return reply.GetSandbox(), reply.GetAttached(), err
	},
	"detach": func(t *testing.T, g *gatewaytest.Gateway, sandbox, provider string, expected uint64, p *conditionalv1.SandboxPrecondition) (*openshellv1.Sandbox, bool, error) {
		req := conditionalDetach(sandbox, provider, p)
		req.Request.ExpectedResourceVersion = expected
		reply, err := g.Conditional().DetachSandboxProvider(call(t), req)
		return reply.GetSandbox(), reply.GetDetached(), err
	},
}

// Another id is refused whatever else is wrong, in whatever phase, and nothing changes.
func TestConditionalAttachmentMismatch(t *testing.T) {
	g := startWithProviders(t, 2)
	a := g.MustCreate(t, "web")
	g.MustDelete(t, "web")
	g.MustCreate(t, "web", gatewaytest.Request(func(r *openshellv1.CreateSandboxRequest) { r.Spec.Providers = []string{"p0"} }))
	for name, do := range attachments {
		for _, phase := range []openshellv1.SandboxPhase{ready, provisioning, failed, deleting, stopped} {
			b := g.SetPhase(t, "web", phase)
			for _, provider := range []string{"p0", "p1", "none", "twin", ""} { // a no-op, a change, and what the plain call refuses
				for _, p := range []*conditionalv1.SandboxPrecondition{expect(id(a)), expect(id(a), version(b)), expect(id(a), 1), expect(anID)} {
					_, _, err := do(t, g, "web", provider, 0, p)
					wantReason(t, err, codes.FailedPrecondition, "openshell.conditional.v1", "SANDBOX_IDENTITY_MISMATCH", map[string]string{
						"workspace": "default", "name": "web", "expected_id": p.GetId(), "current_id": id(b),
					})
				}
			}
			t.Logf("%s in %v", name, phase)
			wantUnchanged(t, g, b)
		}
	}
}

// After the id comes the version, given in either place, before the rules of the plain call.
func TestConditionalAttachmentVersion(t *testing.T) {
	g := startWithProviders(t, 2)
	web := g.MustCreate(t, "web", gatewaytest.Request(func(r *openshellv1.CreateSandboxRequest) { r.Spec.Providers = []string{"p0"} }))
	for name, do := range attachments {
		t.Run(name, func(t *testing.T) {
			for _, provider := range []string{"p0", "p1", "none", "twin", ""} {
				for _, other := range []uint64{1, version(web) - 1, version(web) + 1} {
					for _, err := range []error{
						third(do(t, g, "web", provider, 0, expect(id(web), other))),
						third(do(t, g, "web", provider, other, expect(id(web)))),
					} {
						wantReason(t, err, codes.Aborted, "openshell.nvidia.com", "RESOURCE_VERSION_CONFLICT", map[string]string{
							"recovery": "REFRESH_STATE", "current_resource_version": fmt.Sprint(version(web)),
						})
					}
				}
			}
			wantUnchanged(t, g, web)
		})
	}
	_, _, err := attachments["attach"](t, g, "web", "none", 0, expect(id(web), version(web)))
	wantPlain(t, err, codes.FailedPrecondition, "provider 'none' not found")
	_, _, err = attachments["attach"](t, g, "web", "twin", version(web), expect(id(web)))
	wantPlain(t, err, codes.FailedPrecondition, "TOKEN_0")
	_, _, err = attachments["detach"](t, g, "web", "", 0, expect(id(web)))
	wantField(t, err, "provider")
	wantUnchanged(t, g, web)
}

func third(_ *openshellv1.Sandbox, _ bool, err error) error { return err }

func TestConditionalAttachment(t *testing.T) {
	g := startWithProviders(t, 2)
	web := g.MustCreate(t, "web")
	for i, tc := range []struct {
		call, provider string
		changed        bool
		want           []string
	}{
		{"attach", "p0", true, []string{"p0"}}, {"attach", "p0", false, []string{"p0"}}, {"attach", "p1", true, []string{"p0", "p1"}},
		{"detach", "p0", true, []string{"p1"}}, {"detach", "p0", false, []string{"p1"}},
	} {
		p, expected := expect(id(web), version(web)), uint64(0)
		if i%2 == 1 {
			p, expected = expect(id(web)), version(web)
		}
		after, changed, err := attachments[tc.call](t, g, "web", tc.provider, expected, p)
		if err != nil || changed != tc.changed || !slices.Equal(after.GetSpec().GetProviders(), tc.want) || version(after) != version(web)+1 || id(after) != id(web) {
			t.Fatalf("step %d: %v, %v, %v", i, after, changed, err)
		}
		wantUnchanged(t, g, after)
		web = after
	}
}

func TestConditionalAttachmentShape(t *testing.T) {
	g := startWithProviders(t, 1)
	web := g.MustCreate(t, "web")
	for name, do := range attachments {
		t.Run(name, func(t *testing.T) {
			_, _, err := do(t, g, "", "p0", 0, nil)
			wantPlain(t, err, codes.InvalidArgument, "sandbox is required")
			_, _, err = do(t, g, "web", "p0", 0, nil)
			wantField(t, err, "precondition")
			_, _, err = do(t, g, "web", "p0", 0, &conditionalv1.SandboxPrecondition{ResourceVersion: new(uint64)})
			wantField(t, err, "precondition.id")
			_, _, err = do(t, g, "web", "p0", 0, expect("web"))
			wantField(t, err, "precondition.id")
			_, _, err = do(t, g, "web", "p0", 0, expect(id(web), 0))
			wantField(t, err, "precondition.resource_version")
			_, _, err = do(t, g, "web", "p0", version(web), expect(id(web), version(web))) // even the same
			wantField(t, err, "expected_resource_version")
			_, _, err = do(t, g, "none", "p0", 0, expect(id(web)))
			wantPlain(t, err, codes.NotFound, "sandbox not found")
			wantUnchanged(t, g, web)
		})
	}
	_, err := g.Conditional().AttachSandboxProvider(call(t), nil)
	wantPlain(t, err, codes.InvalidArgument, "sandbox is required")
	req := conditionalDetach("web", "p0", expect(id(web)))
	req.Request.WorkspaceScope = nil
	_, err = g.Conditional().DetachSandboxProvider(call(t), req)
	wantField(t, err, "workspace_scope")
	req.Request.WorkspaceScope = workspace("nowhere")
	_, err = g.Conditional().DetachSandboxProvider(call(t), req)
	wantPlain(t, err, codes.NotFound, "sandbox not found")
	req.Request.WorkspaceScope, req.Request.RequestId = gatewaytest.Default(), "one"
	_, err = g.Conditional().DetachSandboxProvider(call(t), req)
	wantField(t, err, "request_id")
	wantUnchanged(t, g, web)
}
