package linearizability

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// The mutants are gateways that are wrong in a way that the proof must see. Each is a store around the real one. Where
// it pauses, a real one would wait for its database, its driver or its back-off.

// mutants by what they do wrong.
var mutants = map[string]mutation{
	"check outside the transaction": func(s store.Store) store.Store { return checkOutside{s} },
	"inner retry by name":           func(s store.Store) store.Store { return retryByName{s} },
	"reader of stale rows":          func(s store.Store) store.Store { return &staleReader{Store: s, rows: map[string]staleRow{}} },
	"late driver event honoured":    func(s store.Store) store.Store { return &lateEvents{Store: s, rows: map[string][]store.Sandbox{}} },
}

// pause lets others act.
func pause(ctx context.Context, longest time.Duration) {
	timer := time.NewTimer(rand.N(longest))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// checkOutside compares the id in one step and changes what holds the name in the next.
type checkOutside struct{ store.Store }

func (s checkOutside) ChangeSandbox(ctx context.Context, target store.Target, precondition *store.Precondition, decide store.Decide) (store.Sandbox, error) {
	if precondition != nil {
		current, err := s.Sandbox(ctx, target.Workspace, target.Name)
		if err != nil {
			return store.Sandbox{}, err
		}
		if err := precondition.CheckIdentity(current); err != nil {
			return store.Sandbox{}, err
		}
		pause(ctx, 20*time.Millisecond)
	}
	return s.Store.ChangeSandbox(ctx, target, nil, decide)
}

// retryByName loses the answer to some commits and then repeats the statement on whoever holds the name.
type retryByName struct{ store.Store }

func (s retryByName) ChangeSandbox(ctx context.Context, target store.Target, precondition *store.Precondition, decide store.Decide) (store.Sandbox, error) {
	var statement store.Change
	changed, err := s.Store.ChangeSandbox(ctx, target, precondition, func(current store.Sandbox, now time.Time) (store.Change, error) {
		var err error
		statement, err = decide(current, now)
		return statement, err
	})
	if err != nil || rand.IntN(5) > 0 {
		return changed, err
	}
	pause(ctx, 20*time.Millisecond)
	repeated, err := s.Store.ChangeSandbox(ctx, store.Target{Workspace: changed.Workspace, Name: changed.Name}, nil,
		func(current store.Sandbox, _ time.Time) (store.Change, error) {
			if current.ID == changed.ID {
				return store.Change{}, nil // it was committed
			}
			if statement.Write != nil {
				kept := *statement.Write
				kept.Annotations, kept.Spec = current.Annotations, current.Spec
				statement.Write = &kept
			}
			return statement, nil
		})
	if errors.Is(err, store.ErrNotFound) {
		return changed, nil
	}
	return repeated, err
}

// staleReader serves what it read a little while ago.
type staleReader struct {
	store.Store
	mu   sync.Mutex
	rows map[string]staleRow
}

type staleRow struct {
	sandbox store.Sandbox
	err     error
	read    time.Time
}

func (s *staleReader) Sandbox(ctx context.Context, workspace, name string) (store.Sandbox, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	row, ok := s.rows[name]
	if !ok || time.Since(row.read) > 20*time.Millisecond {
		row = staleRow{read: time.Now()}
		row.sandbox, row.err = s.Store.Sandbox(ctx, workspace, name)
		if row.err == nil || errors.Is(row.err, store.ErrNotFound) {
			s.rows[name] = row
		}
	}
	return row.sandbox, row.err
}

// lateEvents honours what the driver says about an operation although the sandbox is at another one by then.
type lateEvents struct {
	store.Store
	mu   sync.Mutex
	rows map[string][]store.Sandbox // by id, one for each operation that there has been
}

func (s *lateEvents) remember(rows ...store.Sandbox) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, row := range rows {
		s.rows[row.ID] = append(s.rows[row.ID], row)
	}
}

func (s *lateEvents) CreateSandbox(ctx context.Context, workspace string, build store.Build) (store.Sandbox, error) {
	row, err := s.Store.CreateSandbox(ctx, workspace, build)
	if err == nil {
		s.remember(row)
	}
	return row, err
}

func (s *lateEvents) ChangeSandbox(ctx context.Context, target store.Target, precondition *store.Precondition, decide store.Decide) (store.Sandbox, error) {
	guarded := decide
	if target.ID != "" { // an event of the driver
		pause(ctx, 5*time.Millisecond)
		decide = func(current store.Sandbox, now time.Time) (store.Change, error) {
			change, err := guarded(current, now)
			s.mu.Lock()
			defer s.mu.Unlock()
			for _, before := range s.rows[current.ID] {
				if err == nil && change == (store.Change{}) {
					change, err = guarded(before, now)
				}
			}
			return change, err
		}
	}
	row, err := s.Store.ChangeSandbox(ctx, target, precondition, decide)
	if err == nil {
		s.remember(row)
	}
	return row, err
}

const (
	// envSeeds is how many runs each mutant gets. Without it, there are none: they take minutes.
	envSeeds = "OPENSHELL_LIN_SEEDS"
	// catchWithin is how fast each must be caught.
	catchWithin = time.Minute
)

func seeds(t *testing.T) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(os.Getenv(envSeeds), 10, 32)
	if err != nil {
		t.Fatalf("%s: %v", envSeeds, err)
	}
	return n
}

func TestMutantsAreCaught(t *testing.T) {
	if os.Getenv(envSeeds) == "" {
		t.Skipf("%s does not say how many runs each mutant is to get", envSeeds)
	}
	first := seed(t)
	for store, start := range map[string]func(*testing.T, mutation) []grpc.ClientConnInterface{"SQLite": onSQLite, "PostgreSQL": onPostgreSQL} {
		for _, name := range slices.Sorted(maps.Keys(mutants)) {
			t.Run(store+"/"+name, func(t *testing.T) {
				var times []time.Duration
				for i := range seeds(t) {
					t.Run(strconv.FormatUint(first+i, 10), func(t *testing.T) {
						times = append(times, catch(t, first+i, start(t, mutants[name])))
					})
				}
				if slices.Sort(times); len(times) > 0 {
					t.Logf("caught %d of %d; after %s at best, %s in the median, %s at worst",
						len(times), seeds(t), times[0], times[len(times)/2], times[len(times)-1])
				}
			})
		}
	}
}

// catch says how long it takes to catch a mutant.
func catch(t *testing.T, seed uint64, conns []grpc.ClientConnInterface) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), catchWithin)
	defer cancel()
	config := fast(seed, conns)
	config.InternalIsUnknown = true
	stats, v := Prove(ctx, func(Stats) bool { return false }, config)
	if v == nil || v.After > catchWithin {
		t.Fatalf("not caught within %s: %s", catchWithin, stats)
	}
	problem, _, _ := strings.Cut(v.Problem, "\n")
	t.Logf("caught after %s: %s", v.After.Round(time.Millisecond), problem)
	return v.After.Round(time.Millisecond)
}
