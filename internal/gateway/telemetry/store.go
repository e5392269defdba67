package telemetry

import (
	"context"
	"errors"
	"time"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// Store measures how long the operations of a store take.
func (t *Telemetry) Store(s store.Store) store.Store {
	return &measuredStore{Store: s, metrics: t.metrics}
}

type measuredStore struct {
	store.Store
	metrics metrics
}

// measure runs an operation of the store.
func measure[T any](m *measuredStore, operation string, do func() (T, error)) (T, error) {
	began := time.Now()
	value, err := do()
	result := "ok"
	if failed(err) {
		result = "failed"
	}
	m.metrics.storeTime.WithLabelValues(operation, result).Observe(time.Since(began).Seconds())
	return value, err
}

// failed tells trouble of the database from its answers, such as that there is no such row.
func failed(err error) bool {
	return errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrInternal) || errors.Is(err, store.ErrOutcomeUnknown)
}

// CreateSandbox implements [store.Store].
func (m *measuredStore) CreateSandbox(ctx context.Context, workspace string, build store.Build) (store.Sandbox, error) {
	return measure(m, "create_sandbox", func() (store.Sandbox, error) { return m.Store.CreateSandbox(ctx, workspace, build) })
}

// Sandbox implements [store.Store].
func (m *measuredStore) Sandbox(ctx context.Context, workspace, name string) (store.Sandbox, error) {
	return measure(m, "sandbox", func() (store.Sandbox, error) { return m.Store.Sandbox(ctx, workspace, name) })
}

// SandboxByID implements [store.Store].
func (m *measuredStore) SandboxByID(ctx context.Context, id string) (store.Sandbox, error) {
	return measure(m, "sandbox_by_id", func() (store.Sandbox, error) { return m.Store.SandboxByID(ctx, id) })
}

// ListSandboxes implements [store.Store].
func (m *measuredStore) ListSandboxes(ctx context.Context, query store.ListQuery) ([]store.Sandbox, error) {
	return measure(m, "list_sandboxes", func() ([]store.Sandbox, error) { return m.Store.ListSandboxes(ctx, query) })
}

// ChangeSandbox implements [store.Store].
func (m *measuredStore) ChangeSandbox(ctx context.Context, target store.Target, precondition *store.Precondition, decide store.Decide) (store.Sandbox, error) {
	return measure(m, "change_sandbox", func() (store.Sandbox, error) { return m.Store.ChangeSandbox(ctx, target, precondition, decide) })
}

// ClaimDue implements [store.Store].
func (m *measuredStore) ClaimDue(ctx context.Context, limit int, lease time.Duration) ([]store.Sandbox, error) {
	return measure(m, "claim_due", func() ([]store.Sandbox, error) { return m.Store.ClaimDue(ctx, limit, lease) })
}

// Reschedule implements [store.Store].
func (m *measuredStore) Reschedule(ctx context.Context, sandboxID, operationID string, after time.Duration) error {
	_, err := measure(m, "reschedule", func() (struct{}, error) {
		return struct{}{}, m.Store.Reschedule(ctx, sandboxID, operationID, after)
	})
	return err
}

// NextDue implements [store.Store].
func (m *measuredStore) NextDue(ctx context.Context) (time.Duration, bool, error) {
	var found bool
	next, err := measure(m, "next_due", func() (next time.Duration, err error) {
		next, found, err = m.Store.NextDue(ctx)
		return next, err
	})
	return next, found, err
}

// Workspace implements [store.Store].
func (m *measuredStore) Workspace(ctx context.Context, name string) (store.Workspace, error) {
	return measure(m, "workspace", func() (store.Workspace, error) { return m.Store.Workspace(ctx, name) })
}
