// Package lifecycle takes sandboxes from one phase to the next.
//
// What is to become of a row is decided by pure functions ([store.Decide]), one file an operation. [Manager] has the
// store carry them out and the compute driver do the work in between. That work is written in the row, under an id of its
// own for every step: whoever comes back from the driver changes the row only while it still carries that step, so that a
// late answer can neither move a sandbox out of DELETING nor touch another that has its name by then.
package lifecycle

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/driver"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

const (
	// lease is how long an operation is left to the process that is at it, which extends it while the driver is busy.
	lease = 15 * time.Second
	// retryAfter is when to try again after a failure that says nothing about the sandbox.
	retryAfter = time.Second
)

// Manager runs operations. Its workers outlive the calls that began them, and are its own.
type Manager struct {
	store  store.Store
	driver driver.Driver
	log    *slog.Logger

	// stopTakingUp ends the loop that takes up what is due, stopWorking every worker.
	stopTakingUp, stopWorking context.CancelFunc
	working                   context.Context
	mu                        sync.Mutex // guards closing, against a worker that starts meanwhile
	closing                   bool
	workers                   sync.WaitGroup
	busy                      atomic.Int64  // workers that took up what was due
	wake                      chan struct{} // due work may have changed
}

// New makes a manager and begins to take up what is due in the store.
func New(s store.Store, d driver.Driver, log *slog.Logger) *Manager {
	m := &Manager{store: s, driver: d, log: log, wake: make(chan struct{}, 1)}
	var takingUp context.Context
	m.working, m.stopWorking = context.WithCancel(context.Background())
	takingUp, m.stopTakingUp = context.WithCancel(m.working)
	m.workers.Go(func() { m.takeUp(takingUp) })
	m.workers.Go(func() { m.tidy(takingUp) })
	return m
}

// Close waits for the workers, and stops them when ctx ends. What they leave undone is in the store, due at once,
// or when its lease runs out.
func (m *Manager) Close(ctx context.Context) {
	m.mu.Lock()
	m.closing = true
	m.mu.Unlock()
	m.stopTakingUp()
	defer context.AfterFunc(ctx, m.stopWorking)()
	m.workers.Wait()
	m.stopWorking()
}

var errClosing = fmt.Errorf("%w: the gateway is shutting down", store.ErrUnavailable)

// spawn runs fn in a worker; false when no more are started.
func (m *Manager) spawn(fn func(ctx context.Context)) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closing {
		return false
	}
	m.workers.Go(func() { fn(m.working) })
	return true
}

// detached runs fn in a worker and waits for its result, or until ctx ends: fn goes on then.
func detached[T any](ctx context.Context, m *Manager, fn func(ctx context.Context) (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	var zero T
	if err := ctx.Err(); err != nil {
		return zero, err
	}
	if !m.spawn(func(ctx context.Context) {
		value, err := fn(ctx)
		done <- result{value, err}
	}) {
		return zero, errClosing
	}
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		return zero, ctx.Err()
	}
}

// call makes one call to the driver, holding the lease of the operation as long as it takes. When the manager stops
// meanwhile, the operation is left in the store for whoever comes next, and the error is errClosing.
func (m *Manager) call(ctx context.Context, s store.Sandbox, fn func(ctx context.Context, i driver.Instance) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var holding sync.WaitGroup
	holding.Go(func() { m.hold(ctx, s) })
	err := fn(ctx, instance(s))
	cancel()
	holding.Wait()
	if err != nil && m.working.Err() != nil {
		m.reschedule(context.WithoutCancel(ctx), s, 0)
		return errClosing
	}
	return err
}

// hold extends the lease of an operation until ctx ends.
func (m *Manager) hold(ctx context.Context, s store.Sandbox) {
	ticker := time.NewTicker(lease / 3)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			m.reschedule(ctx, s, lease)
		case <-ctx.Done():
			return
		}
	}
}

// reschedule has an operation taken up after a while. Should it fail, the lease runs out. The loop finds by itself what is not
// due before it wakes again.
func (m *Manager) reschedule(ctx context.Context, s store.Sandbox, after time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, lease)
	defer cancel()
	if err := m.store.Reschedule(ctx, s.ID, s.Operation.ID, after); err != nil && ctx.Err() == nil {
		m.log.WarnContext(ctx, "cannot reschedule an operation", "sandbox_id", s.ID, "operation", s.Operation.Kind, "error", err)
	}
	if after < idle {
		m.nudge()
	}
}

// change changes a sandbox by its id, as every step after the first of a request does: its name may have another holder
// by then.
func (m *Manager) change(ctx context.Context, s store.Sandbox, decide store.Decide) (store.Sandbox, error) {
	changed, err := m.store.ChangeSandbox(ctx, store.Target{ID: s.ID}, nil, decide)
	m.nudge()
	return changed, err
}

// nudge makes the loop look at what is due.
func (m *Manager) nudge() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

func instance(s store.Sandbox) driver.Instance {
	return driver.Instance{ID: s.ID, Spec: s.Spec, Since: s.Operation.Since}
}

func newID() string { return uuid.NewString() }
