package provider

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// Each operation ends with its time limit, whatever the gateway does not answer, and names the limit.
func TestTimeouts(t *testing.T) {
	for operation, hangs := range map[string]string{
		"create": "/GetSandbox", "read": "/GetSandbox", "update": "/AttachSandboxProvider", "delete": "/DeleteSandbox",
	} {
		t.Run(operation, func(t *testing.T) {
			t.Parallel()
			g := gatewaytest.Start(t)
			g.MustProvider(t, "a")
			s := connected(t, g, nil)
			config := managed([]string{})
			config["timeouts"] = full(object(t, s.sandboxType.AttributeTypes["timeouts"]), values{operation: str("5s")})
			hang := func() {
				g.Intercept(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
					if strings.HasSuffix(info.FullMethod, hangs) {
						<-ctx.Done()
						return nil, context.Cause(ctx)
					}
					return handle(ctx, req)
				})
			}
			var state, left values
			if operation == "create" {
				hang()
			} else {
				state = s.created(config)
			}
			hang()
			var diags diagnostics
			start := time.Now()
			switch operation {
			case "create":
				left, diags = s.change(t.Context(), nil, config)
			case "read":
				left, diags = s.refresh(t.Context(), state)
			case "update":
				config["providers"] = textSetOf("a")
				left, diags = s.change(t.Context(), state, config)
			default:
				left, diags = s.destroy(t.Context(), state)
			}
			if took := time.Since(start); took < 4*time.Second || took > 20*time.Second {
				t.Errorf("it took %v", took)
			}
			expect(t, "error", diags.errors(), left.text("id"), fmt.Sprintf("timeouts = { %s = ", operation))
			if left.text("id") == "" || state != nil && !sameState(left, state) {
				t.Errorf("state %v", left)
			}
		})
	}
}
