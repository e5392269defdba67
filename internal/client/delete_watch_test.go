package client

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

// A delete that the gateway gives up is asked for once more; the refusal of that is the report.
func TestDeleteUndone(t *testing.T) {
	newUndone := func() *fake {
		f := newFake()
		f.put("web", idA, ready)
		f.slow = true
		f.hooks["GetSandbox"] = func(f *fake, nth int, _ any) error {
			if nth%3 == 0 { // DELETING was seen, and now the row is back
				f.sandboxes["web"].Status.Phase = ready
				f.sandboxes["web"].Status.Conditions = []*openshellv1.SandboxCondition{{Type: "Ready", Status: "False", Reason: "DeleteFailed"}}
			}
			return nil
		}
		return f
	}
	t.Run("refused", func(t *testing.T) {
		f := newUndone()
		f.hooks[guardedDelete] = one(2, status.Error(codes.Internal, "volume is busy"))
		serve(t, f, func(ctx context.Context, c *Client) {
			_, err := c.Delete(ctx, web, false)
			hasCode(codes.Internal)(t, err)
			if n := f.count(guardedDelete); n != 2 {
				t.Errorf("%d deletes", n)
			}
		})
	})
	t.Run("undone again", func(t *testing.T) {
		f := newUndone()
		serve(t, f, func(ctx context.Context, c *Client) {
			_, err := c.Delete(ctx, web, false)
			if e := as[*DeleteUndoneError](t, err); e.Answer != "ACCEPTED" || e.Observed.Reason != "DeleteFailed" {
				t.Errorf("%+v", e)
			}
			if n := f.count(guardedDelete); n != 2 {
				t.Errorf("%d deletes", n)
			}
		})
	})
	t.Run("works the second time", func(t *testing.T) {
		f := newUndone()
		f.hooks[guardedDelete] = func(f *fake, nth int, _ any) error { f.slow = nth == 1; return nil }
		serve(t, f, func(ctx context.Context, c *Client) {
			if _, err := c.Delete(ctx, web, false); err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("stale reads are no such thing", func(t *testing.T) {
		f := newFake()
		f.put("web", idA, ready)
		f.slow = true
		f.hooks["GetSandbox"] = func(f *fake, nth int, _ any) error {
			f.sandboxes["web"].Status.Phase = ready
			if nth > 3 {
				delete(f.sandboxes, "web")
			}
			return nil
		}
		serve(t, f, func(ctx context.Context, c *Client) {
			if _, err := c.Delete(ctx, web, false); err != nil {
				t.Error(err)
			}
			if n := f.count(guardedDelete); n != 1 {
				t.Errorf("%d deletes", n)
			}
		})
	})
}

// The report of a delete that never ends names the phase, the reason and the time.
func TestDeleteTimesOut(t *testing.T) {
	f := newFake()
	f.put("web", idA, ready).Status.Conditions = []*openshellv1.SandboxCondition{{Type: "Ready", Status: "False", Reason: "FinalizerHeld", Message: "volume token-123456 is attached"}}
	f.slow = true
	serve(t, f, func(ctx context.Context, c *Client) {
		ctx, cancel := context.WithTimeout(WithSecrets(ctx, "token-123456"), 30*time.Second)
		defer cancel()
		_, err := c.Delete(ctx, web, false)
		e := as[*WaitError](t, err)
		if e.Observed.Phase != "deleting" || e.Observed.Reason != "FinalizerHeld" || e.Elapsed != 30*time.Second || !errors.Is(e, context.DeadlineExceeded) {
			t.Errorf("%+v", e)
		}
		if strings.Contains(e.Error(), "token-123456") {
			t.Error("secret in", e)
		}
		ctx, cancel = context.WithCancel(ctx)
		cancel()
		_, err = c.Delete(ctx, web, false)
		want[*WaitError](t, err)
	})
}

// Trouble while waiting is borne until the time limit; a lack of access is not.
func TestDeleteWaitErrors(t *testing.T) {
	f := newFake()
	f.put("web", idA, ready)
	f.slow = true
	f.hooks["GetSandbox"] = func(f *fake, nth int, _ any) error {
		if nth < 40 {
			return unavailable()
		}
		delete(f.sandboxes, "web")
		return nil
	}
	f.hooks["GetWorkspace"] = func(_ *fake, nth int, _ any) error {
		if nth < 20 {
			return unavailable()
		}
		return nil
	}
	serve(t, f, func(ctx context.Context, c *Client) {
		if _, err := c.Delete(ctx, web, false); err != nil {
			t.Error(err)
		}
		f.put("web", idA, ready)
		f.hooks["GetSandbox"] = refuse(codes.Unauthenticated)
		_, err := c.Delete(ctx, web, false)
		hasCode(codes.Unauthenticated)(t, err)
	})
}
