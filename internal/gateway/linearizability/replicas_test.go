package linearizability

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/processtest"
)

// settleTimeout is long enough for work to be taken over whose gateway has died: its lease must run out.
const settleTimeout = time.Minute

// onProcesses starts a process for each replica and connects to each.
func onProcesses(t *testing.T, binary, databaseURL string) ([]*processtest.Gateway, []grpc.ClientConnInterface) {
	t.Helper()
	var gateways []*processtest.Gateway
	var conns []grpc.ClientConnInterface
	for range replicas {
		g := processtest.Start(t, binary, databaseURL)
		gateways = append(gateways, g)
		conns = append(conns, connect(t, g.Address))
	}
	return gateways, conns
}

// killNowAndThen kills a gateway and starts it again, one at a time. stop ends that, with all of them running, and says
// how often it happened.
func killNowAndThen(t *testing.T, gateways []*processtest.Gateway) (stop func() int) {
	ctx, cancel := context.WithCancel(t.Context())
	kills := 0
	var killer sync.WaitGroup
	killer.Go(func() {
		for wait := time.Second; ; wait = 5*time.Second + rand.N(20*time.Second) {
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				return
			}
			g := gateways[rand.IntN(len(gateways))]
			g.Kill()
			g.Restart(t)
			kills++
		}
	})
	return func() int {
		cancel()
		killer.Wait()
		return kills
	}
}

// nothingIsStuck waits until every sandbox has settled.
func nothingIsStuck(t *testing.T, conn grpc.ClientConnInterface) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), settleTimeout)
	defer cancel()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		all, stuck := unsettled(ctx, t, conn)
		if len(stuck) == 0 {
			t.Logf("all %d sandboxes have settled", all)
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("after %s, %d of %d sandboxes have not settled, such as %s", settleTimeout, len(stuck), all, stuck[0])
		}
	}
}

// unsettled lists the sandboxes that somebody is, or should be, at work on.
func unsettled(ctx context.Context, t *testing.T, conn grpc.ClientConnInterface) (all int, stuck []*openshellv1.Sandbox) {
	t.Helper()
	request := &openshellv1.ListSandboxesRequest{PageSize: 1000, WorkspaceScope: &datamodelv1.WorkspaceSelector{
		Selection: &datamodelv1.WorkspaceSelector_Workspace{Workspace: "default"},
	}}
	for {
		page, err := openshellv1.NewOpenShellClient(conn).ListSandboxes(ctx, request)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range page.GetSandboxes() {
			all++
			phase := s.GetStatus().GetPhase()
			if phase != openshellv1.SandboxPhase_SANDBOX_PHASE_READY && phase != openshellv1.SandboxPhase_SANDBOX_PHASE_STOPPED {
				stuck = append(stuck, s)
			}
		}
		if request.PageToken = page.GetNextPageToken(); request.GetPageToken() == "" {
			return all, stuck
		}
	}
}
