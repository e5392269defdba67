package client

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

// A gateway without the service deletes nothing, whichever way it says so.
func TestUnawareGatewayIsRefused(t *testing.T) {
	for name, refusal := range map[string]codes.Code{
		"unknown service": codes.Unimplemented,
		// a stock gateway that enforces scopes, to a caller with sandbox:write alone
		"scope for the unknown method": codes.PermissionDenied,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			f.hooks["grpc.health.v1.Health/Check"] = refuse(codes.Unimplemented)
			f.hooks[guardedDelete] = refuse(refusal)
			f.put("web", idA, ready)
			serve(t, f, func(ctx context.Context, c *Client) {
				_, err := c.Delete(ctx, web, false)
				if e := as[*NotSupportedError](t, err); e.Health != "UNIMPLEMENTED" || status.Code(e.Refusal) != refusal {
					t.Errorf("%+v", e)
				}
				if f.count(plainDelete) != 0 {
					t.Error("deleted by name")
				}
				got, err := c.Delete(ctx, web, true)
				if err != nil || !got.ByName {
					t.Errorf("opted in: %+v, %v", got, err)
				}
			})
		})
	}
}

func TestDeleteByName(t *testing.T) {
	unaware := func() *fake {
		f := newFake()
		f.serving = false
		f.put("web", idA, ready)
		return f
	}
	t.Run("ours", func(t *testing.T) {
		f := unaware()
		f.slow = true
		f.hooks["GetSandbox"] = func(f *fake, nth int, _ any) error {
			if nth > 5 {
				delete(f.sandboxes, "web")
			}
			return nil
		}
		serve(t, f, func(ctx context.Context, c *Client) {
			got, err := c.Delete(ctx, web, true)
			if err != nil || !got.ByName || got.Replaced {
				t.Errorf("%+v, %v", got, err)
			}
			if n := f.count(plainDelete); n != 1 {
				t.Errorf("%d deletes", n)
			}
		})
	})
	t.Run("already replaced", func(t *testing.T) {
		f := unaware()
		f.put("web", idB, ready)
		serve(t, f, func(ctx context.Context, c *Client) {
			got, err := c.Delete(ctx, web, true)
			if err != nil || got.ByName || !got.Replaced || f.count(plainDelete) != 0 {
				t.Errorf("%+v, %v", got, err)
			}
		})
	})
	t.Run("replaced between read and delete", func(t *testing.T) {
		f := unaware()
		f.hooks[plainDelete] = func(f *fake, _ int, _ any) error { f.put("web", idB, ready); return nil }
		serve(t, f, func(ctx context.Context, c *Client) {
			_, err := c.Delete(ctx, web, true)
			if e := as[*DeletedAnotherError](t, err); e.DeletedID != idB {
				t.Errorf("%+v", e)
			}
		})
	})
	t.Run("Health must answer", func(t *testing.T) {
		f := unaware()
		f.hooks["OpenShell/Health"] = func(_ *fake, nth int, _ any) error {
			if nth == 1 { // the first is the version check
				return nil
			}
			return status.Error(codes.Unimplemented, "404")
		}
		serve(t, f, func(ctx context.Context, c *Client) {
			_, err := c.Delete(ctx, web, true)
			hasCode(codes.Unimplemented)(t, err)
			if f.count(plainDelete) != 0 {
				t.Error("deleted by name")
			}
		})
	})
	t.Run("gone before the delete", func(t *testing.T) {
		for name, refusal := range map[string]error{
			"already absent":      nil,
			"not found":           status.Error(codes.NotFound, "sandbox not found"),
			"failed precondition": status.Error(codes.FailedPrecondition, "busy"),
		} {
			f := unaware()
			f.hooks[plainDelete] = func(f *fake, _ int, _ any) error { delete(f.sandboxes, "web"); return refusal }
			serve(t, f, func(ctx context.Context, c *Client) {
				if got, err := c.Delete(ctx, web, true); err != nil || got != (Deletion{}) || f.count(plainDelete) != 1 {
					t.Errorf("%s: %+v, %v", name, got, err)
				}
			})
		}
	})
	t.Run("pending operation", func(t *testing.T) {
		f := unaware()
		f.sandboxes["web"].Status.Provisioning = &openshellv1.SandboxProvisioning{DriverOperationPending: true}
		f.hooks[plainDelete] = one(1, status.Error(codes.FailedPrecondition, "busy"))
		serve(t, f, func(ctx context.Context, c *Client) {
			if got, err := c.Delete(ctx, web, true); err != nil || !got.ByName {
				t.Errorf("%+v, %v", got, err)
			}
		})
	})
	t.Run("a reply of the 0.0 series", func(t *testing.T) {
		d := &deletion{wait: newWait(web, "gone")}
		_, err := d.accepted("DeleteSandbox", &openshellv1.DeleteSandboxResponse{})
		want[*BrokenReplyError](t, err)
	})
}

// Nothing binds a delete by name to an id, so one without an answer is not repeated, and what it hit is not known.
func TestDeleteByNameUnanswered(t *testing.T) {
	unaware := func(key string, answer hook) *fake {
		f := newFake()
		f.serving = false
		f.put("web", idA, ready)
		f.hooks[key] = answer
		return f
	}
	replace := func(f *fake, _ int, _ any) error { f.put("web", idB, ready); return unavailable() }
	for name, tc := range map[string]struct {
		key    string
		answer hook
		gone   Gone
	}{
		"it hit ours":               {"lose " + plainDelete, refuse(codes.Unavailable), Gone{}},
		"it hit a stranger":         {"lose " + plainDelete, replace, Gone{}},
		"it came before a stranger": {plainDelete, replace, Gone{CurrentID: idB, CurrentPhase: "ready"}},
		"a stranger is on the way": {plainDelete, func(f *fake, _ int, _ any) error { f.put("web", idB, deleting); return unavailable() },
			Gone{CurrentID: idB, CurrentPhase: "deleting"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := unaware(tc.key, tc.answer)
			serve(t, f, func(ctx context.Context, c *Client) {
				got, err := c.Delete(ctx, web, true)
				if want := (Deletion{Gone: tc.gone, Unanswered: true, MaybeReplaced: tc.gone.CurrentID != ""}); err != nil || got != want {
					t.Errorf("%+v, %v", got, err)
				}
			})
			if n := f.count(plainDelete); n != 1 {
				t.Errorf("%d deletes", n)
			}
		})
	}
	for name, tc := range map[string]struct {
		then  hook // of GetSandbox
		fails func(*testing.T, error)
	}{
		"ours is still there": {nil, func(t *testing.T, err error) {
			t.Helper()
			if e := as[*DeleteUndoneError](t, err); e.Observed.Phase != "ready" || e.Answer != "" {
				t.Errorf("%+v", e)
			}
		}},
		"it was given up": {func(f *fake, nth int, _ any) error {
			switch nth {
			case 2:
				f.sandboxes["web"].Status.Phase = deleting
			case 4:
				f.sandboxes["web"].Status.Phase = ready
			}
			return nil
		}, func(t *testing.T, err error) { t.Helper(); want[*DeleteUndoneError](t, err) }},
		"another gateway answers": {turn(2, func(f *fake) { delete(f.sandboxes, "web"); f.workspace = otherWSID }),
			func(t *testing.T, err error) { t.Helper(); want[*OtherGatewayError](t, err) }},
	} {
		t.Run(name, func(t *testing.T) {
			f := unaware(plainDelete, refuse(codes.DeadlineExceeded))
			if tc.then != nil {
				f.hooks["GetSandbox"] = tc.then
			}
			serve(t, f, func(ctx context.Context, c *Client) {
				_, err := c.Delete(ctx, web, true)
				if e := as[*UnansweredDeleteError](t, err); status.Code(e.Answer) != codes.DeadlineExceeded {
					t.Errorf("%+v", e)
				}
				tc.fails(t, err)
			})
			if n := f.count(plainDelete); n != 1 {
				t.Errorf("%d deletes", n)
			}
		})
	}
	t.Run("the time limit comes first", func(t *testing.T) {
		f := unaware(plainDelete, nil)
		serve(t, f, func(ctx context.Context, c *Client) {
			ctx, cancel := context.WithCancel(ctx)
			f.hooks[plainDelete] = func(*fake, int, any) error { cancel(); return unavailable() }
			_, err := c.Delete(ctx, web, true)
			want[*UnansweredDeleteError](t, err)
			want[*WaitError](t, err)
		})
	})
}
