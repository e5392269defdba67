package acceptance_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/openshell-iac/terraform-provider-openshell/internal/acceptance/cli"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// canary is a secret that can be searched for. The quotes make a gateway that quotes it write it in another way.
const canary = `canary-"4711"-\x`

// secretStage is one with TRACE logs of the provider, and a variable for the secret.
func secretStage(t *testing.T, c cli.CLI, kind, value string) *stage {
	t.Helper()
	g := gatewaytest.Start(t)
	s := &stage{WorkingDir: cli.InTest(t, c, "TF_LOG_PROVIDER=TRACE", "TF_VAR_canary="+value), t: t, g: g, c: c}
	s.provider(g)
	s.write("variable.tf", fmt.Sprintf("variable \"canary\" {\n  type = string\n  %s = true\n}\n", kind))
	return s
}

// discreet checks that nothing that a command wrote, logs of the provider included, holds the secret or a part of it.
func (s *stage) discreet(r cli.Result, more ...string) {
	s.t.Helper()
	if !strings.Contains(r.Stderr, "[TRACE]") && r.Args[0] != "show" {
		s.t.Errorf("%v: no TRACE logs in\n%s", r.Args, r.Stderr)
	}
	canaries{"secret": "canary-", "end of the secret": "4711"}.absent(s.t, append(more, r.Stdout, r.Stderr)...)
}

// A secret of a sandbox is in no plan, message or log, whether it is accepted, refused by the plan, or repeated by the gateway
// in an error or a condition.
func TestT32SecretsOfASandbox(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]string{"environment": "sensitive", "environment_wo": "ephemeral"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, c cli.CLI) {
				arguments := []string{`name = "web"`, name + ` = { API_KEY = var.canary }`}
				if kind == "ephemeral" {
					arguments = append(arguments, `environment_wo_version = 1`)
				}
				t.Run("accepted", func(t *testing.T) {
					t.Parallel()
					s := secretStage(t, c, kind, canary)
					acceptedSecret(s, arguments)
					if kind == "ephemeral" { // Terraform writes the others to plans and states
						shown := s.Run(t.Context(), "show", "-json", savedPlan)
						s.must(shown)
						s.discreet(cli.Result{Args: shown.Args}, withoutInputs(t, shown.Stdout), string(s.raw()))
					}
					s.discreet(s.Destroy(t.Context()))
				})
				t.Run("invalid", func(t *testing.T) {
					t.Parallel()
					s := secretStage(t, c, kind, canary+"\n")
					s.sandbox(arguments...)
					r := s.Plan(t.Context(), "")
					s.discreet(r)
					s.expectAt(r, web, name, "API_KEY")
				})
				t.Run("repeated by the gateway", func(t *testing.T) {
					t.Parallel()
					repeatedSecret(secretStage(t, c, kind, canary), arguments)
				})
			})
		})
	}
}

func acceptedSecret(s *stage, arguments []string) {
	ctx := s.t.Context()
	s.sandbox(arguments...)
	for _, r := range []cli.Result{
		s.Run(ctx, "plan", "-no-color", "-out="+savedPlan), s.Run(ctx, "show", "-no-color", savedPlan), s.Apply(ctx, savedPlan),
		s.Run(ctx, "show", "-no-color"), s.Plan(ctx, ""), s.Run(ctx, "plan", "-no-color", "-destroy"),
	} {
		s.discreet(r)
		s.must(r)
	}
	if sb, _ := s.g.Get(s.t, "web"); sb.GetSpec().GetEnvironment()["API_KEY"] != canary {
		s.t.Error("the gateway did not get it")
	}
}

func repeatedSecret(s *stage, arguments []string) {
	ctx := s.t.Context()
	s.sandbox(arguments...)
	s.g.Intercept(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		if r, ok := req.(*openshellv1.CreateSandboxRequest); ok {
			value := r.GetSpec().GetEnvironment()["API_KEY"]
			return nil, status.Errorf(codes.InvalidArgument, "spec.environment: %s, or %s, is not valid", value, strconv.Quote(value))
		}
		return handle(ctx, req)
	})
	r := s.Apply(ctx, "")
	s.discreet(r)
	s.expect(r, 1, cli.Error, "(sensitive value)")

	s.g.Intercept(shown(func(sb *openshellv1.Sandbox) {
		sb.Status.Phase = openshellv1.SandboxPhase_SANDBOX_PHASE_ERROR
		sb.Status.Conditions = []*openshellv1.SandboxCondition{{Type: "Ready", Status: "False", Reason: "Failed", Message: "bad key " + canary}}
	}))
	r = s.Apply(ctx, "")
	s.discreet(r)
	s.expect(r, 1, cli.Error, "bad key (sensitive value)")
	r = s.Refresh(ctx) // it reads what has no configuration any more
	s.discreet(r)
	s.expect(r, 0, cli.Warning, "bad key (sensitive value)")
}
