package durability

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/processtest"
)

const (
	// envCycles is how often the gateway is killed.
	envCycles     = "OPENSHELL_SIGKILL_CYCLES"
	defaultCycles = 5

	writers = 8
	// callsBetweenKills is at most how many calls are answered from one kill to the next.
	callsBetweenKills = 120
	strangers         = 5
	// settleTimeout is how long it may take until nothing is under way any more: the lease of what a killed gateway was at
	// has to run out first.
	settleTimeout = 2 * time.Minute
)

const (
	ready    = openshellv1.SandboxPhase_SANDBOX_PHASE_READY
	deleting = openshellv1.SandboxPhase_SANDBOX_PHASE_DELETING
)

// A gateway that is killed again and again loses nothing that it acknowledged, deletes nobody else's sandbox, and leaves
// nothing half done.
func TestKillsLoseNothing(t *testing.T) {
	g := start(t, processtest.Build(t))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	others := makeStrangers(ctx, t, g)

	var answered atomic.Int64
	work, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	journals := make([]*journal, writers)
	for i := range journals {
		journals[i] = &journal{gateway: g, name: "w" + strconv.Itoa(i), answered: &answered}
		running.Go(func() {
			if err := journals[i].write(work); err != nil {
				t.Error(err)
				stop()
			}
		})
	}
	n := cycles(t)
	for range n {
		awaitCalls(work, &answered, 1+rand.Int64N(callsBetweenKills))
		g.Kill()
		g.Restart(t)
	}
	stop()
	running.Wait()
	t.Logf("%d kills, %d calls answered, %d of unknown outcome", n, answered.Load(), unknown(journals))
	for _, j := range journals {
		if err := j.check(ctx); err != nil {
			t.Error(err)
		}
	}
	settled(ctx, t, g)
	for name, id := range others {
		if s, err := g.get(ctx, name); err != nil || s.GetMetadata().GetId() != id {
			t.Errorf("%s, which nobody deleted, was %s and is now %s (%v)", name, id, s.GetMetadata().GetId(), err)
		}
	}
}

func cycles(t *testing.T) int {
	t.Helper()
	value := os.Getenv(envCycles)
	if value == "" {
		return defaultCycles
	}
	n, err := strconv.Atoi(value)
	if err != nil {
		t.Fatalf("%s: %v", envCycles, err)
	}
	return n
}

func makeStrangers(ctx context.Context, t *testing.T, g *gateway) map[string]string {
	t.Helper()
	ids := map[string]string{}
	for i := range strangers {
		s, err := g.create(ctx, "stranger-"+strconv.Itoa(i), nil)
		if err != nil {
			t.Fatal(err)
		}
		ids[s.GetMetadata().GetName()] = s.GetMetadata().GetId()
	}
	return ids
}

// awaitCalls waits until so many more calls have been answered.
func awaitCalls(ctx context.Context, answered *atomic.Int64, calls int64) {
	target := answered.Load() + calls
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for answered.Load() < target {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// settled waits until no sandbox is on its way anywhere.
func settled(ctx context.Context, t *testing.T, g *gateway) {
	t.Helper()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	timeout := time.After(settleTimeout)
	for {
		reply, err := g.list(ctx)
		if err != nil {
			t.Fatal(err)
		}
		moving := map[string]string{}
		for _, s := range reply {
			if s.GetStatus().GetPhase() != ready || s.GetStatus().GetProvisioning().GetDriverOperationPending() {
				moving[s.GetMetadata().GetName()] = s.GetStatus().GetPhase().String()
			}
		}
		if len(moving) == 0 {
			return
		}
		select {
		case <-ticker.C:
		case <-timeout:
			t.Fatalf("stuck %s after the last kill: %v", settleTimeout, moving)
		}
	}
}

// journal is a client that is alone on its name and writes down what was acknowledged, so that it knows what must be.
type journal struct {
	gateway  *gateway
	name     string
	answered *atomic.Int64
	unknown  int

	// possible are the ids that may hold the name, with whether a delete of them was acknowledged; "" is a free name.
	possible map[string]bool
}

// write creates and deletes until ctx ends. Its error is a broken promise.
func (j *journal) write(ctx context.Context) error {
	j.possible = map[string]bool{"": false}
	for ctx.Err() == nil {
		if err := j.check(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		ids := slices.DeleteFunc(slices.Collect(maps.Keys(j.possible)), func(id string) bool { return id == "" })
		switch {
		case len(ids) == 0:
			j.create(ctx)
		case rand.IntN(4) == 0: // the wrong id must do nothing
			if err := j.gateway.deleteIf(ctx, j.name, "00000000-0000-4000-8000-000000000000"); err == nil {
				return fmt.Errorf("%s: a delete of an id that never was is answered with success", j.name)
			}
			j.count(nil)
		default:
			j.delete(ctx, ids[0])
		}
	}
	return nil
}

func (j *journal) create(ctx context.Context) {
	s, err := j.gateway.create(ctx, j.name, map[string]any{
		"create_takes": fmt.Sprint(rand.IntN(5), "ms"), "ready_after": fmt.Sprint(rand.IntN(20), "ms"), "delete_after": fmt.Sprint(rand.IntN(20), "ms"),
	})
	switch {
	case err == nil:
		j.possible = map[string]bool{s.GetMetadata().GetId(): false}
	case lost(err):
		j.possible = nil // anything: the next check sees what became of it
	}
	j.count(err)
}

func (j *journal) delete(ctx context.Context, id string) {
	err := j.gateway.deleteIf(ctx, j.name, id)
	switch {
	case err == nil:
		j.possible = map[string]bool{id: true, "": false}
	case lost(err):
		j.possible[""] = false // it may be gone now, or soon
	}
	j.count(err)
}

func (j *journal) count(err error) {
	if lost(err) {
		j.unknown++
		return
	}
	j.answered.Add(1)
}

// lost tells that the outcome of a call is not known.
func lost(err error) bool {
	code := status.Code(err)
	return code == codes.Unavailable || code == codes.DeadlineExceeded || code == codes.Canceled
}

// check holds what the gateway shows against the journal, and narrows down what was unknown.
func (j *journal) check(ctx context.Context) error {
	s, err := j.gateway.get(ctx, j.name)
	if err != nil && status.Code(err) != codes.NotFound {
		return nil // no answer, so nothing to say
	}
	id := s.GetMetadata().GetId()
	acknowledged, expected := j.possible[id]
	switch {
	case j.possible == nil: // after a create of unknown outcome
		if id != "" {
			j.possible = map[string]bool{id: false}
		} else {
			j.possible = map[string]bool{"": false}
		}
	case !expected:
		return fmt.Errorf("%s: %q holds the name, which must be one of %v (id: delete acknowledged)", j.name, id, j.possible)
	case acknowledged && s.GetStatus().GetPhase() != deleting:
		return fmt.Errorf("%s: the delete of %s was acknowledged, and now it is %s", j.name, id, s.GetStatus().GetPhase())
	case id == "": // free, and nobody else creates under it
		j.possible = map[string]bool{"": false}
	}
	return nil
}

func unknown(journals []*journal) (n int) {
	for _, j := range journals {
		n += j.unknown
	}
	return n
}
