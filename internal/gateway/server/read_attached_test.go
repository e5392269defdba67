package server

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// changingSandbox is a store of one sandbox, whose providers are others at every look, until the last.
type changingSandbox struct {
	store.Store
	providers [][]string
}

func (c *changingSandbox) Sandbox(context.Context, string, string) (store.Sandbox, error) {
	now := c.providers[0]
	if len(c.providers) > 1 {
		c.providers = c.providers[1:]
	}
	return store.Sandbox{Spec: &openshellv1.SandboxSpec{Providers: now}}, nil
}

// A provider that is detached and deleted while its sandbox is read is no fault of the reader; one that is missing all the
// same is.
func TestReadAttachedLooksAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		providers [][]string
		want      codes.Code
	}{
		"detached meanwhile": {[][]string{{"gone"}, {}}, codes.OK},
		"still attached":     {[][]string{{"gone"}}, codes.FailedPrecondition},
	} {
		t.Run(name, func(t *testing.T) {
			read := func(sandbox store.Sandbox) (string, error) {
				if len(sandbox.Spec.GetProviders()) > 0 {
					return "", missingProvider("gone", "default")
				}
				return "read", nil
			}
			reply, err := readAttached(t.Context(), &Server{Config: Config{Store: &changingSandbox{providers: tc.providers}}}, "default", "web", read)
			if status.Code(err) != tc.want || (reply == "read") != (tc.want == codes.OK) {
				t.Errorf("got %q, %v; want %v", reply, err, tc.want)
			}
		})
	}
}
