package replicas

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/apierr"
)

const (
	racers = 8
	// envRounds is how many rounds there are.
	envRounds     = "OPENSHELL_RACE_ROUNDS"
	defaultRounds = 400
)

func rounds(t *testing.T) int {
	t.Helper()
	value := os.Getenv(envRounds)
	if value == "" {
		return defaultRounds
	}
	n, err := strconv.Atoi(value)
	if err != nil {
		t.Fatalf("%s: %v", envRounds, err)
	}
	return n
}

// staleDeletes has one client delete the sandbox that it once read, through one gateway, while another
// replaces that by name, through a second. The replacement carries the very version that the first had. Meanwhile
// gateways are killed and come back.
func staleDeletes(t *testing.T, fleet []*replica) {
	all := rounds(t)
	outcomes := counter{counts: map[string]int{}}
	var racing sync.WaitGroup
	var done atomic.Int64
	for i := range racers {
		racing.Go(func() {
			name := fmt.Sprintf("web-%d", i)
			for range all / racers {
				if t.Failed() {
					return
				}
				stale, replacer := fleet[rand.IntN(size)], fleet[rand.IntN(size)]
				outcomes.add(race(t, name, stale, replacer))
				done.Add(1)
			}
		})
	}
	killed := 0
	for _, share := range []int64{4, 2} { // after a quarter and a half of the rounds
		awaitCount(t, &done, int64(all)/share)
		victim := fleet[rand.IntN(size)]
		victim.Kill()
		victim.Restart(t)
		killed++
	}
	racing.Wait()
	t.Logf("%d rounds, %d gateways killed: %v", done.Load(), killed, outcomes.counts)
	if t.Failed() {
		return
	}
	for _, outcome := range []string{"completed", "already_absent", "identity mismatch"} {
		if outcomes.counts[outcome] == 0 {
			t.Errorf("no stale delete ended as %s", outcome)
		}
	}
}

// race plays one round and says how the stale delete ended. The name is free before and after.
func race(t *testing.T, name string, stale, replacer *replica) string {
	steer := map[string]any{"ready_after": "0s", "delete_after": "0s"}
	first := certainly(t, replacer, name, steer)
	var replacement *openshellv1.Sandbox
	steps := []chan struct{}{make(chan struct{}), make(chan struct{}), make(chan struct{})}
	var racing sync.WaitGroup
	racing.Go(func() {
		close(steps[0])
		certainlyDelete(t, replacer, name, meta(first).GetId())
		close(steps[1])
		replacement = certainly(t, replacer, name, steer)
		close(steps[2])
	})
	<-steps[rand.IntN(len(steps))]
	outcome := staleDelete(t, stale, first)
	racing.Wait()
	if t.Failed() {
		return outcome
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	if outcome == "unknown" { // it may be under way still; it must not do harm any more
		outcome = "unknown, then " + staleDelete(t, stale, first)
	}
	now := replacer.get(ctx, t, name)
	if meta(now).GetId() != meta(replacement).GetId() || now.GetStatus().GetPhase() != ready ||
		meta(now).GetResourceVersion() != meta(replacement).GetResourceVersion() {
		t.Errorf("after a delete of %s that ended as %s, %s is %v; the replacement was %v",
			meta(first).GetId(), outcome, name, now, replacement)
	}
	if meta(first).GetResourceVersion() != meta(replacement).GetResourceVersion() {
		t.Errorf("the replacement is at version %d, the first was at %d", meta(replacement).GetResourceVersion(), meta(first).GetResourceVersion())
	}
	certainlyDelete(t, replacer, name, meta(replacement).GetId())
	return outcome
}

// staleDelete deletes a sandbox as it was once read.
func staleDelete(t *testing.T, r *replica, s *openshellv1.Sandbox) string {
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	id, version := meta(s).GetId(), meta(s).GetResourceVersion()
	reply, err := r.conditional.DeleteSandbox(ctx, &conditionalv1.ConditionalDeleteSandboxRequest{
		Precondition: &conditionalv1.SandboxPrecondition{Id: &id, ResourceVersion: &version},
		Request:      deleteRequest(meta(s).GetName()),
	})
	var mismatch *apierr.IdentityMismatch
	switch {
	case errors.As(apierr.From(err), &mismatch):
		if mismatch.ExpectedID != id || mismatch.CurrentID == id {
			t.Errorf("the mismatch is between %s and %s, not about %s", mismatch.ExpectedID, mismatch.CurrentID, id)
		}
		return "identity mismatch"
	case status.Code(err) == codes.Unavailable:
		return "unknown"
	case err != nil:
		t.Errorf("the stale delete failed: %v", err)
		return "failed"
	}
	outcome := strings.ToLower(strings.TrimPrefix(reply.GetOutcome().String(), "DELETION_OUTCOME_"))
	if absent := outcome == "already_absent"; absent != (reply.GetSandboxId() == "") || !absent && reply.GetSandboxId() != id {
		t.Errorf("the delete of %s was answered by %v", id, reply)
	}
	return outcome
}

// certainly makes a sandbox and waits until it is ready, whatever becomes of the gateway meanwhile.
func certainly(t *testing.T, r *replica, name string, steer map[string]any) *openshellv1.Sandbox {
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	for {
		_, err := r.plain.CreateSandbox(ctx, request(name, steer))
		switch status.Code(err) {
		case codes.OK, codes.AlreadyExists: // the latter by an answer that was lost: nobody else makes this name
		case codes.Unavailable:
			continue
		default:
			t.Errorf("create %s: %v", name, err)
			return nil
		}
		return untilReady(ctx, t, r, name)
	}
}

func untilReady(ctx context.Context, t *testing.T, r *replica, name string) *openshellv1.Sandbox {
	ticker := time.NewTicker(poll / 10)
	defer ticker.Stop()
	for {
		reply, err := r.plain.GetSandbox(ctx, &openshellv1.GetSandboxRequest{Name: name, WorkspaceScope: request(name, nil).GetWorkspaceScope()})
		switch {
		case err == nil && reply.GetSandbox().GetStatus().GetPhase() == ready:
			return reply.GetSandbox()
		case err != nil && status.Code(err) != codes.Unavailable:
			t.Errorf("get %s: %v", name, err)
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Errorf("%s is not ready after %s: %v", name, timeout, reply.GetSandbox().GetStatus())
			return nil
		}
	}
}

// certainlyDelete deletes by name, blindly, until the sandbox with the id is gone.
func certainlyDelete(t *testing.T, r *replica, name, id string) {
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	ticker := time.NewTicker(poll / 10)
	defer ticker.Stop()
	for {
		reply, err := r.plain.DeleteSandbox(ctx, deleteRequest(name))
		switch {
		case err == nil && reply.GetOutcome() != openshellv1.DeletionOutcome_DELETION_OUTCOME_ACCEPTED:
			return
		case err != nil && status.Code(err) != codes.Unavailable && status.Code(err) != codes.FailedPrecondition:
			t.Errorf("delete %s (%s): %v", name, id, err)
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Errorf("%s (%s) is not gone after %s: %v, %v", name, id, timeout, reply, err)
			return
		}
	}
}

// awaitCount waits until a counter is far enough, or the test has failed.
func awaitCount(t *testing.T, count *atomic.Int64, enough int64) {
	t.Helper()
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for count.Load() < enough && !t.Failed() {
		<-ticker.C
	}
}

type counter struct {
	mu     sync.Mutex
	counts map[string]int
}

func (c *counter) add(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[what]++
}
