package gateway_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/driver"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/driver/simulated"
)

// failing is a driver whose creates and deletes fail when they are told to.
type failing struct {
	driver.Driver
	create, delete error
}

func (f failing) Create(ctx context.Context, i driver.Instance) error {
	if f.create != nil {
		return f.create
	}
	return f.Driver.Create(ctx, i)
}

func (f failing) Delete(context.Context, driver.Instance) (driver.Deletion, error) {
	return driver.Deletion{}, f.delete
}

// A client is told what the driver refuses, of which kind only for a create (contract, CreateSandbox and DeleteSandbox), and
// nothing of its other troubles, which are no answer of the gateway either.
func TestDriverErrors(t *testing.T) {
	secret := errors.New("inner secret")
	for name, tc := range map[string]struct {
		err            error
		create, delete codes.Code
	}{
		"refusal":              {&driver.Refusal{Message: "its reason"}, codes.Internal, codes.Internal},
		"already exists":       {&driver.Refusal{Message: "its reason", Kind: driver.ErrAlreadyExists}, codes.AlreadyExists, codes.Internal},
		"failed precondition":  {&driver.Refusal{Message: "its reason", Kind: driver.ErrFailedPrecondition}, codes.FailedPrecondition, codes.Internal},
		"trouble":              {secret, codes.Internal, codes.Internal},
		"its own time limit":   {errors.Join(context.DeadlineExceeded, secret), codes.Internal, codes.Internal},
		"broken off by itself": {errors.Join(context.Canceled, secret), codes.Internal, codes.Internal},
		"its own status":       {errors.Join(status.Error(codes.NotFound, "elsewhere"), secret), codes.Internal, codes.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			told := func(r *running, err error, code codes.Code) {
				t.Helper()
				wantCode(t, err, code)
				if shown := strings.Contains(err.Error(), "its reason"); shown != strings.Contains(tc.err.Error(), "its reason") || strings.Contains(err.Error(), "inner") {
					t.Errorf("the client is told %v", err)
				}
				if strings.Contains(tc.err.Error(), "inner") && (!strings.Contains(err.Error(), "find-me") || !strings.Contains(r.log.String(), "inner secret")) {
					t.Errorf("error %v, log %s", err, r.log)
				}
			}
			ctx := metadata.AppendToOutgoingContext(call(t), "x-request-id", "find-me")
			r := run(t, gateway.Config{Store: open(t), Driver: failing{Driver: simulated.Driver{}, create: tc.err}})
			_, err := r.client.CreateSandbox(ctx, createWeb(&openshellv1.SandboxSpec{}))
			told(r, err, tc.create)

			r = run(t, gateway.Config{Store: open(t), Driver: failing{Driver: simulated.Driver{}, delete: tc.err}})
			if _, err := r.client.CreateSandbox(ctx, createWeb(&openshellv1.SandboxSpec{})); err != nil {
				t.Fatal(err)
			}
			_, err = r.client.DeleteSandbox(ctx, plainDelete("web"))
			told(r, err, tc.delete)
		})
	}
}
