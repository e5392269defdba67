package fuzz

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// memory is a store for one call at a time. It undoes nothing, and nothing in it falls due. What it lacks is the interface's
// nil, and panics.
type memory struct {
	store.Store

	mu         sync.Mutex // of all below
	workspaces map[string]store.Workspace
	sandboxes  map[string]store.Sandbox // by id
	objects    map[string]store.Object  // by id
	admitted   map[string]store.Admitted
	requests   map[string]string // id of a request to its key in admitted

	// What the last call has asked for.
	precondition *store.Precondition
	admission    *store.Admission
	list         *store.ListQuery
}

func newMemory() *memory {
	return &memory{
		workspaces: map[string]store.Workspace{store.DefaultWorkspace: {ID: uuid.NewString(), Name: store.DefaultWorkspace, ResourceVersion: 1, CreatedAt: time.Now()}},
		sandboxes:  map[string]store.Sandbox{}, objects: map[string]store.Object{},
		admitted: map[string]store.Admitted{}, requests: map[string]string{},
	}
}

// restore makes a store what another is.
func (m *memory) restore(from *memory) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.workspaces, m.sandboxes, m.objects = maps.Clone(from.workspaces), maps.Clone(from.sandboxes), maps.Clone(from.objects)
	m.admitted, m.requests = maps.Clone(from.admitted), maps.Clone(from.requests)
	m.precondition, m.admission, m.list = nil, nil, nil
}

// locked runs fn while nobody else is at the store.
func locked[T any](m *memory, fn func(transaction) (T, error)) (T, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fn(transaction{memory: m})
}

func (m *memory) Workspace(_ context.Context, name string) (store.Workspace, error) {
	return locked(m, func(t transaction) (store.Workspace, error) { return t.workspace(name) })
}

func (m *memory) ListWorkspaces(_ context.Context, query store.WorkspaceQuery) (store.Page[store.Workspace], error) {
	return locked(m, func(transaction) (store.Page[store.Workspace], error) {
		return pageOf(slices.Collect(maps.Values(m.workspaces)), query.Limit), nil
	})
}

func pageOf[T any](rows []T, limit int) store.Page[T] {
	return store.Page[T]{Rows: rows[:min(len(rows), limit)], More: len(rows) > limit}
}

func (m *memory) Object(_ context.Context, key store.Key) (store.Object, error) {
	return locked(m, func(t transaction) (store.Object, error) { return t.Object(key) })
}

func (m *memory) ObjectByID(_ context.Context, id string) (store.Object, error) {
	return locked(m, func(transaction) (store.Object, error) {
		o, found := m.objects[id]
		if !found {
			return o, store.ErrObjectNotFound
		}
		return o, nil
	})
}

func (m *memory) ListObjects(_ context.Context, query store.ObjectQuery) (store.Page[store.Object], error) {
	return locked(m, func(t transaction) (store.Page[store.Object], error) { return pageOf(t.list(query), query.Limit), nil })
}

func (m *memory) Transact(_ context.Context, fn func(store.Tx) error) error {
	_, err := locked(m, func(t transaction) (struct{}, error) { return struct{}{}, fn(t) })
	return err
}

func (m *memory) Admitted(_ context.Context, scope, requestID string) (store.Admitted, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, found := m.admitted[scope+requestID]
	return a, found, nil
}

func (m *memory) CreateSandbox(_ context.Context, workspace string, build store.Build) (store.Sandbox, error) {
	return locked(m, func(t transaction) (store.Sandbox, error) { return t.CreateSandbox(workspace, build) })
}

func (m *memory) Sandbox(_ context.Context, workspace, name string) (store.Sandbox, error) {
	return locked(m, func(t transaction) (store.Sandbox, error) {
		return t.find(store.Target{Workspace: workspace, Name: name})
	})
}

func (m *memory) SandboxByID(_ context.Context, id string) (store.Sandbox, error) {
	return locked(m, func(t transaction) (store.Sandbox, error) { return t.find(store.Target{ID: id}) })
}

// ListSandboxes pays no heed to where the page begins.
func (m *memory) ListSandboxes(_ context.Context, query store.ListQuery) (store.Page[store.Sandbox], error) {
	return locked(m, func(transaction) (store.Page[store.Sandbox], error) {
		m.list = &query
		rows := slices.SortedFunc(maps.Values(m.sandboxes), func(a, b store.Sandbox) int { return a.CreatedAt.Compare(b.CreatedAt) })
		return pageOf(rows, query.Limit), nil
	})
}

func (m *memory) ChangeSandbox(_ context.Context, target store.Target, p *store.Precondition, decide store.Decide) (store.Sandbox, error) {
	return locked(m, func(t transaction) (store.Sandbox, error) {
		if err := t.Admit(target.Request); err != nil {
			return store.Sandbox{}, err
		}
		current, err := t.Sandbox(target, p)
		if err != nil {
			return current, err
		}
		change, err := decide(current, time.Now())
		if err != nil {
			return current, err
		}
		request := current.Operation.ID
		if target.Request != nil {
			request = target.Request.ID
		}
		if change.Settle != "" {
			_ = t.Settle(request, change.Settle, current.ID)
		}
		switch {
		case change.Remove:
			delete(m.sandboxes, current.ID)
		case change.Write != nil:
			return t.WriteSandbox(*change.Write)
		}
		return current, nil
	})
}

func (m *memory) ClaimDue(context.Context, int, time.Duration) ([]store.Sandbox, error) {
	return nil, nil
}
func (m *memory) Reschedule(context.Context, string, string, time.Duration) error { return nil }
func (m *memory) NextDue(context.Context) (time.Duration, bool, error)            { return 0, false, nil }
func (m *memory) Purge(context.Context, int) (int, error)                         { return 0, nil }

// transaction is the store while nobody else is at it.
type transaction struct {
	store.Tx
	*memory
}

func (t transaction) workspace(name string) (store.Workspace, error) {
	w, found := t.workspaces[name]
	if !found {
		return w, store.ErrWorkspaceNotFound
	}
	return w, nil
}

func (t transaction) find(target store.Target) (store.Sandbox, error) {
	for id, s := range t.sandboxes {
		if id == target.ID || target.ID == "" && s.Workspace == target.Workspace && s.Name == target.Name {
			return s, nil
		}
	}
	return store.Sandbox{}, store.ErrNotFound
}

func (t transaction) Now() (time.Time, error) { return time.Now(), nil }

func (t transaction) Active(workspace string) (store.Workspace, error) {
	w, err := t.workspace(workspace)
	if err == nil && w.Terminating() {
		err = store.ErrWorkspaceTerminating
	}
	return w, err
}

func (t transaction) Count(kind store.Kind, workspace string) (int, error) {
	n := 0
	for _, o := range t.objects {
		if o.Kind == kind && o.Workspace == workspace && o.SandboxID == "" {
			n++
		}
	}
	_, err := t.workspace(workspace)
	return n, err
}

func (t transaction) CreateWorkspace(w store.Workspace) (store.Workspace, error) {
	if _, found := t.workspaces[w.Name]; found {
		return w, store.ErrAlreadyExists
	}
	w.ResourceVersion, w.CreatedAt = 1, time.Now()
	t.workspaces[w.Name] = w
	return w, nil
}

// DeleteWorkspace finds every workspace empty.
func (t transaction) DeleteWorkspace(name string) ([]store.Kind, error) {
	_, err := t.workspace(name)
	delete(t.workspaces, name)
	return nil, err
}

func (t transaction) CreateSandbox(workspace string, build store.Build) (store.Sandbox, error) {
	s := build(time.Now())
	s.Workspace, s.ResourceVersion, s.CreatedAt = workspace, 1, time.Now()
	if _, err := t.Active(workspace); err != nil {
		return s, err
	}
	if _, err := t.find(store.Target{Workspace: workspace, Name: s.Name}); err == nil {
		return s, store.ErrAlreadyExists
	}
	t.sandboxes[s.ID] = s
	return s, nil
}

func (t transaction) Sandbox(target store.Target, p *store.Precondition) (store.Sandbox, error) {
	if p != nil {
		t.memory.precondition = p
	}
	s, err := t.find(target)
	if err == nil {
		err = p.CheckIdentity(s)
	}
	return s, err
}

func (t transaction) WriteSandbox(s store.Sandbox) (store.Sandbox, error) {
	s.ResourceVersion++
	t.sandboxes[s.ID] = s
	return s, nil
}

func (t transaction) Object(key store.Key) (store.Object, error) {
	for _, o := range t.objects {
		if o.Key == key {
			return o, nil
		}
	}
	return store.Object{}, store.ErrObjectNotFound
}

func (t transaction) LockObject(key store.Key) (store.Object, error) { return t.Object(key) }

func (t transaction) ListObjects(query store.ObjectQuery) ([]store.Object, error) {
	return pageOf(t.list(query), query.Limit).Rows, nil
}

// list pays no heed to where the page begins, nor to labels.
func (t transaction) list(query store.ObjectQuery) []store.Object {
	rows := slices.SortedFunc(maps.Values(t.objects), func(a, b store.Object) int { return cmp.Compare(a.Name, b.Name) })
	rows = slices.DeleteFunc(rows, func(o store.Object) bool {
		return o.Kind != query.Kind || query.SandboxID != o.SandboxID || query.Workspaces != nil && !slices.Contains(query.Workspaces, o.Workspace)
	})
	if query.Reverse {
		slices.Reverse(rows)
	}
	return rows
}

func (t transaction) CreateObject(o store.Object, _ ...store.Object) (store.Object, error) {
	if _, err := t.Object(o.Key); err == nil {
		return o, store.ErrAlreadyExists
	}
	o.ResourceVersion, o.CreatedAt = 1, time.Now()
	t.objects[o.ID] = o
	return o, nil
}

func (t transaction) WriteObject(o store.Object) (store.Object, error) {
	o.ResourceVersion++
	t.objects[o.ID] = o
	return o, nil
}

func (t transaction) DeleteObject(o store.Object) error {
	delete(t.objects, o.ID)
	return nil
}

func (t transaction) Referrers(store.Object) ([]store.Referrer, error) { return nil, nil }

func (t transaction) Admit(r *store.Request) error {
	if !r.Admitted() {
		return nil
	}
	t.memory.admission = r.Admission
	key := r.Admission.Scope + r.Admission.RequestID
	if _, found := t.admitted[key]; found {
		return store.ErrAdmitted
	}
	t.admitted[key] = store.Admitted{Fingerprint: r.Admission.Fingerprint}
	t.requests[r.ID] = key
	return nil
}

func (t transaction) Settle(requestID string, outcome store.Outcome, subjectID string) error {
	if key, found := t.requests[requestID]; found {
		a := t.admitted[key]
		a.Outcome, a.SubjectID = outcome, subjectID
		t.admitted[key] = a
	}
	return nil
}

func (t transaction) Audit(store.AuditRecord) error      { return nil }
func (t transaction) Trim(store.Kind, string, int) error { return nil }
