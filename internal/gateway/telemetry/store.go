package telemetry

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// Store measures how long the operations of a store take, and shows what is in it. To be called once.
func (t *Telemetry) Store(s store.Store) store.Store {
	m := &measuredStore{store: s, time: t.metrics.storeTime}
	t.registry.MustRegister(statistics{store: m, log: t.log})
	return m
}

// measuredStore does not embed the store, so that no operation goes unmeasured.
type measuredStore struct {
	store store.Store
	time  *prometheus.HistogramVec
}

// measure runs an operation of the store.
func measure[T any](m *measuredStore, operation string, do func() (T, error)) (T, error) {
	began := time.Now()
	value, err := do()
	result := "ok"
	if failed(err) {
		result = "failed"
	}
	m.time.WithLabelValues(operation, result).Observe(time.Since(began).Seconds())
	return value, err
}

// failed tells trouble of the database from its answers, such as that there is no such row.
func failed(err error) bool {
	return errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrInternal) || errors.Is(err, store.ErrOutcomeUnknown)
}

// CreateSandbox implements [store.Store].
func (m *measuredStore) CreateSandbox(ctx context.Context, workspace string, build store.Build) (store.Sandbox, error) {
	return measure(m, "create_sandbox", func() (store.Sandbox, error) { return m.store.CreateSandbox(ctx, workspace, build) })
}

// Sandbox implements [store.Store].
func (m *measuredStore) Sandbox(ctx context.Context, workspace, name string) (store.Sandbox, error) {
	return measure(m, "sandbox", func() (store.Sandbox, error) { return m.store.Sandbox(ctx, workspace, name) })
}

// SandboxByID implements [store.Store].
func (m *measuredStore) SandboxByID(ctx context.Context, id string) (store.Sandbox, error) {
	return measure(m, "sandbox_by_id", func() (store.Sandbox, error) { return m.store.SandboxByID(ctx, id) })
}

// ListSandboxes implements [store.Store].
func (m *measuredStore) ListSandboxes(ctx context.Context, query store.ListQuery) (store.Page[store.Sandbox], error) {
	return measure(m, "list_sandboxes", func() (store.Page[store.Sandbox], error) { return m.store.ListSandboxes(ctx, query) })
}

// ChangeSandbox implements [store.Store].
func (m *measuredStore) ChangeSandbox(ctx context.Context, target store.Target, precondition *store.Precondition, decide store.Decide) (store.Sandbox, error) {
	return measure(m, "change_sandbox", func() (store.Sandbox, error) { return m.store.ChangeSandbox(ctx, target, precondition, decide) })
}

// ClaimDue implements [store.Store].
func (m *measuredStore) ClaimDue(ctx context.Context, limit int, lease time.Duration) ([]store.Sandbox, error) {
	return measure(m, "claim_due", func() ([]store.Sandbox, error) { return m.store.ClaimDue(ctx, limit, lease) })
}

// Reschedule implements [store.Store].
func (m *measuredStore) Reschedule(ctx context.Context, sandboxID, operationID string, after time.Duration) error {
	_, err := measure(m, "reschedule", func() (struct{}, error) {
		return struct{}{}, m.store.Reschedule(ctx, sandboxID, operationID, after)
	})
	return err
}

// NextDue implements [store.Store].
func (m *measuredStore) NextDue(ctx context.Context) (time.Duration, bool, error) {
	var found bool
	next, err := measure(m, "next_due", func() (next time.Duration, err error) {
		next, found, err = m.store.NextDue(ctx)
		return next, err
	})
	return next, found, err
}

// Workspace implements [store.Store].
func (m *measuredStore) Workspace(ctx context.Context, name string) (store.Workspace, error) {
	return measure(m, "workspace", func() (store.Workspace, error) { return m.store.Workspace(ctx, name) })
}

// ListWorkspaces implements [store.Store].
func (m *measuredStore) ListWorkspaces(ctx context.Context, query store.WorkspaceQuery) (store.Page[store.Workspace], error) {
	return measure(m, "list_workspaces", func() (store.Page[store.Workspace], error) { return m.store.ListWorkspaces(ctx, query) })
}

// Object implements [store.Store].
func (m *measuredStore) Object(ctx context.Context, key store.Key) (store.Object, error) {
	return measure(m, "object", func() (store.Object, error) { return m.store.Object(ctx, key) })
}

// ObjectByID implements [store.Store].
func (m *measuredStore) ObjectByID(ctx context.Context, id string) (store.Object, error) {
	return measure(m, "object_by_id", func() (store.Object, error) { return m.store.ObjectByID(ctx, id) })
}

// ListObjects implements [store.Store].
func (m *measuredStore) ListObjects(ctx context.Context, query store.ObjectQuery) (store.Page[store.Object], error) {
	return measure(m, "list_objects", func() (store.Page[store.Object], error) { return m.store.ListObjects(ctx, query) })
}

// Transact implements [store.Store].
func (m *measuredStore) Transact(ctx context.Context, fn func(tx store.Tx) error) error {
	_, err := measure(m, "transact", func() (struct{}, error) { return struct{}{}, m.store.Transact(ctx, fn) })
	return err
}

// Admitted implements [store.Store].
func (m *measuredStore) Admitted(ctx context.Context, scope, requestID string) (store.Admitted, bool, error) {
	var found bool
	admitted, err := measure(m, "admitted", func() (admitted store.Admitted, err error) {
		admitted, found, err = m.store.Admitted(ctx, scope, requestID)
		return admitted, err
	})
	return admitted, found, err
}

// ListAudit implements [store.Store].
func (m *measuredStore) ListAudit(ctx context.Context, query store.AuditQuery) ([]store.AuditRecord, error) {
	return measure(m, "list_audit", func() ([]store.AuditRecord, error) { return m.store.ListAudit(ctx, query) })
}

// Purge implements [store.Store].
func (m *measuredStore) Purge(ctx context.Context, limit int) (int, error) {
	return measure(m, "purge", func() (int, error) { return m.store.Purge(ctx, limit) })
}

// Statistics implements [store.Store].
func (m *measuredStore) Statistics(ctx context.Context) (store.Statistics, error) {
	return measure(m, "statistics", func() (store.Statistics, error) { return m.store.Statistics(ctx) })
}

// Close implements [store.Store]. It is no operation to be measured.
func (m *measuredStore) Close() error { return m.store.Close() }
