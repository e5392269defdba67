// Package changes tells those who wait for a sandbox to change of the changes that this process makes. Whoever waits must
// look at the database from time to time nevertheless: other gateways may change the sandbox too.
package changes

import (
	"context"
	"sync"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// Changes knows who waits for which sandbox. The zero value is ready for use.
type Changes struct {
	mu      sync.Mutex
	waiting map[string]map[chan struct{}]struct{} // by the id of the sandbox
}

// Of returns a channel on which there is something to receive whenever the sandbox with the id may have changed since
// something was received; at first there is. end must be called when nobody receives any more.
func (c *Changes) Of(id string) (changed <-chan struct{}, end func()) {
	w := make(chan struct{}, 1)
	w <- struct{}{} // what happened before now
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting[id] == nil {
		if c.waiting == nil {
			c.waiting = map[string]map[chan struct{}]struct{}{}
		}
		c.waiting[id] = map[chan struct{}]struct{}{}
	}
	c.waiting[id][w] = struct{}{}
	return w, func() { c.end(id, w) }
}

func (c *Changes) end(id string, w chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting[id], w)
	if len(c.waiting[id]) == 0 {
		delete(c.waiting, id)
	}
}

func (c *Changes) tell(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for w := range c.waiting[id] {
		select {
		case w <- struct{}{}:
		default: // it has been told, and has not looked yet
		}
	}
}

// Store tells of the changes that are made through it.
func (c *Changes) Store(s store.Store) store.Store { return telling{s, c} }

type telling struct {
	store.Store
	changes *Changes
}

// ChangeSandbox implements [store.Store].
func (t telling) ChangeSandbox(ctx context.Context, target store.Target, p *store.Precondition, decide store.Decide) (store.Sandbox, error) {
	s, err := t.Store.ChangeSandbox(ctx, target, p, decide)
	t.changes.tell(s.ID)
	return s, err
}

// Transact implements [store.Store]. What came of a commit may not be known; then it may have changed the sandboxes.
func (t telling) Transact(ctx context.Context, fn func(tx store.Tx) error) error {
	written := map[string]struct{}{}
	err := t.Store.Transact(ctx, func(tx store.Tx) error {
		clear(written)
		return fn(noting{tx, written})
	})
	for id := range written {
		t.changes.tell(id)
	}
	return err
}

// noting is a transaction that notes the sandboxes it writes.
type noting struct {
	store.Tx
	written map[string]struct{}
}

// WriteSandbox implements [store.Tx].
func (n noting) WriteSandbox(s store.Sandbox) (store.Sandbox, error) {
	n.written[s.ID] = struct{}{}
	return n.Tx.WriteSandbox(s)
}
