package changes

import (
	"context"
	"errors"
	"testing"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// recording is a store whose transactions run twice, as they may, and write another sandbox each time.
type recording struct {
	store.Store
	outcome error
}

func (r recording) ChangeSandbox(_ context.Context, target store.Target, _ *store.Precondition, _ store.Decide) (store.Sandbox, error) {
	return store.Sandbox{ID: target.ID}, r.outcome
}

func (r recording) Transact(_ context.Context, fn func(store.Tx) error) error {
	for range 2 {
		if err := fn(writing{}); err != nil {
			return err
		}
	}
	return r.outcome
}

type writing struct{ store.Tx }

func (writing) WriteSandbox(s store.Sandbox) (store.Sandbox, error) { return s, nil }

// told says whether there is something to receive, and receives it.
func told(changed <-chan struct{}) bool {
	select {
	case <-changed:
		return true
	default:
		return false
	}
}

func TestChangesAreTold(t *testing.T) {
	for name, outcome := range map[string]error{"committed": nil, "nobody knows": store.ErrOutcomeUnknown} {
		t.Run(name, func(t *testing.T) {
			var c Changes
			s := c.Store(recording{outcome: outcome})
			web, end := c.Of("web")
			other, endOther := c.Of("other")
			second, endSecond := c.Of("web")
			for _, changed := range []<-chan struct{}{web, other, second} {
				if !told(changed) {
					t.Error("what happened before is not told")
				}
			}
			if _, err := s.ChangeSandbox(t.Context(), store.Target{ID: "web"}, nil, nil); !errors.Is(err, outcome) {
				t.Fatal(err)
			}
			if !told(web) || told(web) || !told(second) || told(other) {
				t.Error("a change is not told once, to those whom it concerns")
			}
			runs := 0
			err := s.Transact(t.Context(), func(tx store.Tx) error {
				runs++
				ids := []string{"undone", "web"}
				_, err := tx.WriteSandbox(store.Sandbox{ID: ids[runs-1]})
				return err
			})
			if !errors.Is(err, outcome) || !told(web) || !told(second) || told(other) {
				t.Errorf("after a transaction: %v", err)
			}
			end()
			endOther()
			endSecond()
			if len(c.waiting) != 0 {
				t.Errorf("left over: %v", c.waiting)
			}
		})
	}
}
