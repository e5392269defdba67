package lifecycle

import (
	"context"
	"errors"
	"time"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

const (
	// concurrency bounds how many due operations are looked after at once.
	concurrency = 64
	// idle bounds how long the loop sleeps: another process may have died meanwhile, and left work behind.
	idle = 5 * time.Second
)

// takeUp looks after what falls due: timers of running operations, and what a process that died left behind.
func (m *Manager) takeUp(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-m.wake:
		case <-ctx.Done():
			return
		}
		timer.Reset(m.claim(ctx))
	}
}

// claim hands all that is due to workers and says how long there is nothing more to do.
func (m *Manager) claim(ctx context.Context) time.Duration {
	for {
		next, found, err := m.store.NextDue(ctx)
		switch {
		case err != nil:
			return m.trouble(ctx, err)
		case !found:
			return idle
		case next > 0:
			return min(next, idle)
		}
		free := concurrency - int(m.busy.Load())
		if free <= 0 {
			return idle // the next worker that ends wakes the loop
		}
		claimed, err := m.store.ClaimDue(ctx, free, lease)
		if err != nil {
			return m.trouble(ctx, err)
		}
		if len(claimed) == 0 { // another process has it
			return retryAfter
		}
		for i, s := range claimed {
			m.busy.Add(1)
			if !m.spawn(func(ctx context.Context) { m.resume(ctx, s) }) {
				m.busy.Add(-1)
				m.giveBack(ctx, claimed[i:])
				return idle
			}
		}
	}
}

// giveBack leaves what the manager has claimed while it was being closed to another.
func (m *Manager) giveBack(ctx context.Context, claimed []store.Sandbox) {
	for _, s := range claimed {
		m.reschedule(context.WithoutCancel(ctx), s, 0)
	}
}

func (m *Manager) trouble(ctx context.Context, err error) time.Duration {
	if ctx.Err() == nil {
		m.log.WarnContext(ctx, "cannot take up what is due", "error", err)
	}
	return retryAfter
}

// resume takes a claimed operation one step further.
func (m *Manager) resume(ctx context.Context, s store.Sandbox) {
	if s.Operation.Pending {
		m.busy.Add(-1) // the driver may take long; others are not to wait for that
	} else {
		defer func() { m.busy.Add(-1); m.nudge() }()
	}
	if err := m.step(ctx, s); err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrNotFound) {
		m.log.WarnContext(ctx, "an operation did not come to its end",
			"workspace", s.Workspace, "name", s.Name, "sandbox_id", s.ID, "operation", s.Operation.Kind, "error", err)
	}
}

func (m *Manager) step(ctx context.Context, s store.Sandbox) error {
	var err error
	switch op := s.Operation; {
	case op.Kind == store.OperationDelete:
		_, err = m.delete(ctx, s)
	case op.Kind == store.OperationRetire:
		err = m.retire(ctx, s)
	case op.Kind == store.OperationStop:
		_, err = m.stop(ctx, s)
	case op.Kind == store.OperationCreate && op.Pending:
		_, err = m.create(ctx, s)
	case op.Kind == store.OperationRestart && waiting(s):
		err = m.restart(ctx, s)
	case op.Pending:
		_, err = m.start(ctx, s)
	default:
		err = m.observe(ctx, s)
	}
	return err
}
