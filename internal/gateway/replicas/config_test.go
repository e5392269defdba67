package replicas

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// updates is how many each gateway is asked for.
const updates = 8

// policyTo is a policy that differs from all others.
func policyTo(host string) *sandboxv1.SandboxPolicy {
	return &sandboxv1.SandboxPolicy{Version: 1, NetworkPolicies: map[string]*sandboxv1.NetworkPolicyRule{
		"only": {Endpoints: []*sandboxv1.NetworkEndpoint{{Host: host, Port: 443, Ports: []uint32{443}}}},
	}}
}

// atOnce has every gateway make a number of changes, all of them at the same time. Half-way, one of them is killed and
// replaced; what was asked of it meanwhile is asked again, by the same request id.
func atOnce(t *testing.T, fleet []*replica, change func(r *replica, requestID, host string) error) {
	t.Helper()
	var calls sync.WaitGroup
	var made atomic.Int64
	for i, r := range fleet {
		calls.Go(func() {
			for n := range updates {
				requestID, host := uuid.NewString(), fmt.Sprintf("h%d-%d.example.com", i, n)
				err := change(r, requestID, host)
				for status.Code(err) == codes.Unavailable {
					err = change(r, requestID, host)
				}
				if err != nil {
					t.Errorf("change %d by gateway %d: %v", n, i, err)
					return
				}
				made.Add(1)
			}
		})
	}
	awaitCount(t, &made, size*updates/2)
	fleet[1].Kill()
	fleet[1].Restart(t)
	calls.Wait()
}

// configurations changes policies by all gateways at once, of one sandbox and of the whole gateway: none is lost, and none
// is made twice. The first of the latter makes the row that the others then wait for.
func configurations(t *testing.T, fleet []*replica) {
	web := fleet[0].create(t, "web", nil)
	atOnce(t, fleet, func(r *replica, requestID, host string) error {
		_, err := r.plain.UpdateConfig(within(t), &openshellv1.UpdateConfigRequest{
			Sandbox: "web", WorkspaceScope: gatewaytest.Default(), Policy: policyTo(host), RequestId: requestID,
		})
		return err
	})
	wantRevisions(t, fleet[1], &openshellv1.ListSandboxPoliciesRequest{Sandbox: "web", WorkspaceScope: gatewaytest.Default()})
	oneOfAll(t, fleet, web)
	atOnce(t, fleet, func(r *replica, requestID, host string) error {
		_, err := r.plain.UpdateConfig(within(t), &openshellv1.UpdateConfigRequest{Global: true, Policy: policyTo(host), RequestId: requestID})
		return err
	})
	wantRevisions(t, fleet[1], &openshellv1.ListSandboxPoliciesRequest{Global: true})
	settings, err := fleet[2].plain.GetGatewayConfig(within(t), &sandboxv1.GetGatewayConfigRequest{})
	if err != nil || settings.GetSettingsRevision() != size*updates {
		t.Errorf("%v, %v", settings, err)
	}
}

// wantRevisions wants one for each change, of which all but the newest are superseded.
func wantRevisions(t *testing.T, r *replica, req *openshellv1.ListSandboxPoliciesRequest) {
	t.Helper()
	list, err := r.plain.ListSandboxPolicies(within(t), req)
	if err != nil || len(list.GetRevisions()) != size*updates {
		t.Fatalf("%v, %v", list, err)
	}
	for n, revision := range list.GetRevisions() {
		superseded := revision.GetStatus() == openshellv1.PolicyStatus_POLICY_STATUS_SUPERSEDED
		if want := uint32(size*updates - n); revision.GetVersion() != want || superseded != (n > 0) {
			t.Errorf("instead of revision %d there is %v", want, revision)
		}
	}
}

// oneOfAll has every gateway make a change of the same version: one of them does.
func oneOfAll(t *testing.T, fleet []*replica, web *openshellv1.Sandbox) {
	t.Helper()
	id := web.GetMetadata().GetId()
	for n := range updates {
		version := fleet[0].get(within(t), t, "web").GetMetadata().GetResourceVersion()
		codesOf := make([]codes.Code, size)
		var calls errgroup.Group
		for i, r := range fleet {
			calls.Go(func() error {
				_, err := r.conditional.UpdateSandboxConfig(within(t), &conditionalv1.ConditionalUpdateSandboxConfigRequest{
					Precondition: &conditionalv1.SandboxPrecondition{Id: &id, ResourceVersion: &version},
					Request:      &openshellv1.UpdateConfigRequest{Sandbox: "web", WorkspaceScope: gatewaytest.Default(), Policy: policyTo(fmt.Sprintf("c%d-%d.example.com", i, n))},
				})
				codesOf[i] = status.Code(err)
				return nil
			})
		}
		_ = calls.Wait()
		made := 0
		for _, code := range codesOf {
			switch code {
			case codes.OK:
				made++
			case codes.Aborted:
			default:
				t.Errorf("round %d: %v", n, codesOf)
			}
		}
		if made != 1 {
			t.Errorf("round %d: %v", n, codesOf)
		}
	}
}
