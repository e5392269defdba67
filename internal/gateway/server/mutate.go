package server

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/apierr"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// mutate makes a change in one transaction, once if the call carries a request_id. do says what came of it, and of what by
// its id; reply makes the answer of what do has left, and replay of what is there when the call comes again.
func mutate[R any](
	ctx context.Context, s *Server, r *store.Request, do func(tx store.Tx) (outcome store.Outcome, subjectID string, err error),
	reply func() (R, error), replay func(context.Context, store.Admitted) (R, error),
) (R, error) {
	return once(ctx, s, r, func() (R, error) {
		err := s.Store.Transact(ctx, func(tx store.Tx) error {
			if err := tx.Admit(r); err != nil {
				return err
			}
			outcome, subjectID, err := do(tx)
			if err != nil || !r.Admitted() {
				return err
			}
			return tx.Settle(r.ID, outcome, subjectID)
		})
		if err != nil {
			var none R
			return none, err
		}
		return reply()
	}, replay)
}

// create is mutate for a call that makes an object, and that is answered with the object, as it is now when the call comes again.
func create[R any](
	ctx context.Context, s *Server, r *store.Request, insert func(tx store.Tx) (store.Object, error), response func(store.Object, error) (R, error),
) (R, error) {
	var created store.Object
	return mutate(ctx, s, r, func(tx store.Tx) (_ store.Outcome, _ string, err error) {
		created, err = insert(tx)
		return store.OutcomeDone, created.ID, err
	}, func() (R, error) {
		return response(created, nil)
	}, func(ctx context.Context, before store.Admitted) (R, error) {
		return response(s.subject(ctx, before.SubjectID))
	})
}

// mutateDeletion is mutate for a delete, which answers as it was answered when it comes again.
func mutateDeletion(ctx context.Context, s *Server, r *store.Request, do func(tx store.Tx) (store.Outcome, error)) (openshellv1.DeletionOutcome, error) {
	var outcome store.Outcome
	return mutate(ctx, s, r, func(tx store.Tx) (_ store.Outcome, _ string, err error) {
		outcome, err = do(tx)
		return outcome, "", err
	}, func() (openshellv1.DeletionOutcome, error) {
		if outcome == store.OutcomeRefused { // what the caller makes of it is no answer
			return openshellv1.DeletionOutcome_DELETION_OUTCOME_UNSPECIFIED, nil
		}
		return deletionOutcome(outcome)
	}, func(_ context.Context, before store.Admitted) (openshellv1.DeletionOutcome, error) {
		return deletionOutcome(before.Outcome)
	})
}

// insertUpTo adds an object to its workspace, which may hold so many of the kind and no more.
func insertUpTo(limit int, tx store.Tx, wanted store.Object) (store.Object, error) {
	n, err := tx.Count(wanted.Kind, wanted.Workspace)
	if err != nil {
		return store.Object{}, err
	}
	created, err := tx.CreateObject(wanted)
	if err == nil && n >= limit {
		err = status.Errorf(codes.ResourceExhausted, "workspace '%s' has %d %ss, which is the limit; remove one first", wanted.Workspace, n, wanted.Kind)
	}
	return created, err
}

// remove deletes an object, or finds it gone where that is allowed.
func (s *Server) remove(ctx context.Context, r *store.Request, key store.Key, allowMissing bool) (openshellv1.DeletionOutcome, error) {
	return mutateDeletion(ctx, s, r, func(tx store.Tx) (store.Outcome, error) { return removeObject(tx, key, allowMissing) })
}

func removeObject(tx store.Tx, key store.Key, allowMissing bool) (store.Outcome, error) {
	o, err := tx.LockObject(key)
	switch {
	case errors.Is(err, store.ErrObjectNotFound) && allowMissing:
		return store.OutcomeAbsent, nil
	case err != nil:
		return store.OutcomePending, err
	}
	return store.OutcomeCompleted, tx.DeleteObject(o)
}

// subject is the object that an earlier call was about, as it is now.
func (s *Server) subject(ctx context.Context, id string) (store.Object, error) {
	o, err := s.Store.ObjectByID(ctx, id)
	if errors.Is(err, store.ErrObjectNotFound) {
		err = &apierr.RequestReplayUnavailable{}
	}
	return o, err
}
