package lifecycle

import (
	"context"
	"errors"
	"time"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/driver"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// Draft is a sandbox to be made, checked and with its defaults filled in.
type Draft struct {
	Name                string
	Labels, Annotations map[string]string
	Spec                *openshellv1.SandboxSpec
	// CreatedFrom is the workload template that the spec has its part of, nil for none.
	CreatedFrom *openshellv1.SandboxWorkloadTemplateProvenance
	// Request, when set, is the call that asks for it.
	Request *store.Request
	// Admit, when set, has the last word on whether it may be made, in the transaction that inserts it.
	Admit func(tx store.Tx) error
	// Children are made with it, in that transaction. Whose they are is filled in.
	Children []store.Object
}

// Create makes a sandbox and returns when the driver has taken it on. When the driver refuses, it is removed again and
// the error is a [DriverError].
func (m *Manager) Create(ctx context.Context, workspace string, draft Draft) (store.Sandbox, error) {
	return detached(ctx, m, func(ctx context.Context) (store.Sandbox, error) {
		s, err := m.insert(ctx, workspace, draft)
		if err != nil {
			return store.Sandbox{}, err
		}
		return m.create(ctx, s)
	})
}

func (m *Manager) insert(ctx context.Context, workspace string, draft Draft) (store.Sandbox, error) {
	build := born(newID(), operationOf(draft.Request), newID(), draft)
	if draft.Admit == nil && !draft.Request.Admitted() && len(draft.Children) == 0 {
		return m.store.CreateSandbox(ctx, workspace, build)
	}
	var s store.Sandbox
	err := m.store.Transact(ctx, func(tx store.Tx) error {
		err := tx.Admit(draft.Request)
		if err != nil {
			return err
		}
		if draft.Admit != nil {
			if err := draft.Admit(tx); err != nil {
				return err
			}
		}
		if s, err = tx.CreateSandbox(workspace, build); err != nil {
			return err
		}
		for _, child := range draft.Children {
			child.Workspace, child.SandboxID = s.Workspace, s.ID
			if _, err := tx.CreateObject(child); err != nil {
				return err
			}
		}
		return nil
	})
	return s, err
}

// create has the driver take a new sandbox on.
func (m *Manager) create(ctx context.Context, s store.Sandbox) (store.Sandbox, error) {
	err := m.call(ctx, s, m.driver.Create)
	switch {
	case errors.Is(err, errClosing):
		return store.Sandbox{}, err
	case err != nil:
		refusal := &DriverError{Action: "create", Sandbox: s, Err: err}
		last, err := m.change(ctx, s, during(s.Operation.ID, removed(store.OutcomeRefused)))
		switch {
		case errors.Is(err, store.ErrNotFound): // another attempt was refused before
			return store.Sandbox{}, refusal
		case err != nil:
			return store.Sandbox{}, err
		case last.Operation.ID != s.Operation.ID: // the driver has taken it on by another attempt
			return last, nil
		}
		return store.Sandbox{}, refusal
	}
	return m.change(ctx, s, during(s.Operation.ID, m.taken(ctx, s)))
}

// born is a new row, the driver's call pending.
func born(id, operationID, attemptID string, draft Draft) store.Build {
	admission := firstAdmission(draft.Spec)
	return func(now time.Time) store.Sandbox {
		s := store.Sandbox{
			ID: id, Name: draft.Name, Labels: draft.Labels, Annotations: draft.Annotations, Spec: draft.Spec, CreatedFrom: draft.CreatedFrom,
			Status: &openshellv1.SandboxStatus{
				ConfigurationAdmission: admission,
				ConfigurationActivated: new(bool),
				Provisioning:           &openshellv1.SandboxProvisioning{AttemptId: attemptID},
			},
			Operation: store.Operation{ID: operationID, Kind: store.OperationCreate, Since: now, DueAt: now.Add(lease), Admitted: draft.Request.Admitted()},
		}
		setPhase(s.Status, provisioning, reasonProvisioning, "The compute driver is making the sandbox.", now)
		setPending(&s, true)
		return s
	}
}

// taken decides what follows once the driver has taken the sandbox on: it is looked at until it is ready.
func (m *Manager) taken(ctx context.Context, s store.Sandbox) store.Decide {
	operationID := newID()
	seen, err := m.driver.Observe(ctx, driver.Instance{ID: s.ID, Spec: s.Spec, Since: time.Now()})
	if err != nil {
		seen.Next = retryAfter
	}
	return func(current store.Sandbox, now time.Time) (store.Change, error) {
		return settle(store.OutcomeDone)(rewrite(current, func(next *store.Sandbox) {
			setPending(next, false)
			next.Operation.Admitted = false
			next.Operation.ID, next.Operation.Since, next.Operation.Before = operationID, now, nil
			switch {
			case seen.State != driver.Starting: // it is ready, which is a step of its own
				next.Operation.DueAt = now
			case seen.Next > 0:
				next.Operation.DueAt = now.Add(seen.Next)
			default: // it will never be
				next.Operation.DueAt = time.Time{}
			}
		}))
	}
}

// removed deletes the row, which is what came of its operation.
func removed(outcome store.Outcome) store.Decide {
	return func(store.Sandbox, time.Time) (store.Change, error) {
		return store.Change{Remove: true, Settle: outcome}, nil
	}
}
