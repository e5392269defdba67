package gatewaytest

import (
	"context"
	"sync"
	"time"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// observedStore tells those who wait for a sandbox when a row has changed.
type observedStore struct {
	store.Store
	mu      sync.Mutex
	changed chan struct{} // closed at the next change
}

// next is closed once something has changed after this call.
func (s *observedStore) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.changed
}

func (s *observedStore) notify() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// CreateSandbox implements [store.Store].
func (s *observedStore) CreateSandbox(ctx context.Context, workspace string, build store.Build) (store.Sandbox, error) {
	defer s.notify()
	return s.Store.CreateSandbox(ctx, workspace, build)
}

// ChangeSandbox implements [store.Store].
func (s *observedStore) ChangeSandbox(ctx context.Context, target store.Target, precondition *store.Precondition, decide store.Decide) (store.Sandbox, error) {
	defer s.notify()
	return s.Store.ChangeSandbox(ctx, target, precondition, decide)
}

// Reschedule implements [store.Store].
func (s *observedStore) Reschedule(ctx context.Context, sandboxID, operationID string, after time.Duration) error {
	defer s.notify()
	return s.Store.Reschedule(ctx, sandboxID, operationID, after)
}

// Transact implements [store.Store].
func (s *observedStore) Transact(ctx context.Context, fn func(store.Tx) error) error {
	defer s.notify()
	return s.Store.Transact(ctx, fn)
}
