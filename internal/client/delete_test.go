package client

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/apierr"
)

const (
	deleting = openshellv1.SandboxPhase_SANDBOX_PHASE_DELETING

	guardedDelete = "ConditionalSandboxes/DeleteSandbox"
	plainDelete   = "OpenShell/DeleteSandbox"
)

func as[E error](t *testing.T, err error) E {
	t.Helper()
	e, ok := errors.AsType[E](err)
	if !ok {
		t.Fatalf("error is %T %v, want %T", err, err, e)
	}
	return e
}

func want[E error](t *testing.T, err error) {
	t.Helper()
	_ = as[E](t, err)
}

// one makes a hook answer only the nth call.
func one(n int, err error) hook {
	return func(_ *fake, nth int, _ any) error {
		if nth == n {
			return err
		}
		return nil
	}
}

func TestDeleteTakesTheIDAlong(t *testing.T) {
	f := newFake()
	f.put("web", idA, ready)
	f.hooks[guardedDelete] = func(_ *fake, _ int, req any) error {
		r := cast[*conditionalv1.ConditionalDeleteSandboxRequest](req)
		if r.GetPrecondition().GetId() != idA || r.GetPrecondition().ResourceVersion != nil || !r.GetRequest().GetAllowMissing() || r.GetRequest().GetRequestId() != "" || r.GetRequest().GetWorkspaceScope().GetWorkspace() != "default" {
			t.Errorf("request %v", r)
		}
		return nil
	}
	serve(t, f, func(ctx context.Context, c *Client) {
		got, err := c.Delete(ctx, web, false)
		if err != nil || got != (Deletion{}) {
			t.Errorf("got %+v, %v", got, err)
		}
		if f.count(plainDelete) != 0 {
			t.Error("a plain delete was sent")
		}
	})
}

// ACCEPTED is not gone: the delete ends when the id is, however long that takes, also if the name belongs to another
// sandbox by then.
func TestDeleteWaitsForTheID(t *testing.T) {
	for name, then := range map[string]func(*fake){
		"absent":   func(f *fake) { delete(f.sandboxes, "web") },
		"replaced": func(f *fake) { f.put("web", idB, ready) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			f.put("web", idA, ready)
			f.slow = true
			serve(t, f, func(ctx context.Context, c *Client) {
				start := time.Now()
				f.hooks["GetSandbox"] = func(f *fake, _ int, _ any) error {
					if time.Since(start) > 20*time.Second {
						then(f)
					}
					return nil
				}
				got, err := c.Delete(ctx, web, false)
				if err != nil || got.Replaced || got.MaybeReplaced {
					t.Errorf("got %+v, %v", got, err)
				}
				if took := time.Since(start); took < 20*time.Second || took > 24*time.Second {
					t.Errorf("took %v", took)
				}
			})
		})
	}
}

func TestDeleteOfAReplacedSandbox(t *testing.T) {
	f := newFake()
	f.put("web", idB, ready)
	serve(t, f, func(ctx context.Context, c *Client) {
		got, err := c.Delete(ctx, web, true)
		if err != nil || !got.Replaced || got.CurrentID != idB || got.Evidence != Proved || got.ByName {
			t.Errorf("got %+v, %v", got, err)
		}
		f.workspace = otherWSID
		_, err = c.Delete(ctx, web, true)
		want[*OtherGatewayError](t, err)
		if f.count(plainDelete) != 0 || f.sandboxes["web"] == nil {
			t.Error("the stranger was touched")
		}
	})
}

// After a reply was lost, a mismatch leaves open who deleted ours: that very attempt may have.
func TestLostDeleteReply(t *testing.T) {
	for name, then := range map[string]func(*fake){
		"absent":      func(*fake) {},
		"replaced":    func(f *fake) { f.put("web", idB, ready) },
		"still there": func(f *fake) { f.put("web", idA, ready) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			f.put("web", idA, ready)
			f.hooks["lose "+guardedDelete] = one(1, unavailable())
			f.hooks[guardedDelete] = func(f *fake, nth int, _ any) error {
				if nth == 2 {
					then(f)
				}
				return nil
			}
			serve(t, f, func(ctx context.Context, c *Client) {
				got, err := c.Delete(ctx, web, false)
				if err != nil || got.Replaced || got.MaybeReplaced != (name == "replaced") {
					t.Errorf("got %+v, %v", got, err)
				}
				if n := f.count(guardedDelete); n != 2 {
					t.Errorf("%d guarded deletes", n)
				}
			})
		})
	}
}

// A gateway that gave up waiting for its lock did nothing, so a mismatch after that is a replacement to be told.
func TestDeleteAfterLockTimeout(t *testing.T) {
	st, err := status.New(codes.Unavailable, "lock timeout").WithDetails(&errdetails.ErrorInfo{Domain: apierr.DomainOpenShell, Reason: "MUTATION_LOCK_TIMEOUT"})
	if err != nil {
		t.Fatal(err)
	}
	f := newFake()
	f.put("web", idA, ready)
	f.hooks[guardedDelete] = func(f *fake, nth int, _ any) error {
		if nth == 1 {
			return st.Err()
		}
		f.put("web", idB, ready)
		return nil
	}
	serve(t, f, func(ctx context.Context, c *Client) {
		if got, err := c.Delete(ctx, web, false); err != nil || !got.Replaced {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}

func TestDeleteRepeats(t *testing.T) {
	pending := (&apierr.OperationPending{Workspace: "default", Name: "web", ID: idA}).GRPCStatus().Err()
	conflict := (&apierr.VersionConflict{Current: 9}).GRPCStatus().Err()
	for name, tc := range map[string]struct {
		refusal error
		pending bool
	}{
		"operation pending":        {refusal: pending},
		"stock pending":            {refusal: status.Error(codes.FailedPrecondition, "busy"), pending: true},
		"version conflict":         {refusal: conflict},
		"unavailable":              {refusal: unavailable()},
		"server deadline":          {refusal: status.Error(codes.DeadlineExceeded, "took too long")},
		"mixed fleet, newer later": {refusal: status.Error(codes.Unimplemented, "unknown method")},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			sb := f.put("web", idA, ready)
			if tc.pending {
				sb.Status.Provisioning = &openshellv1.SandboxProvisioning{DriverOperationPending: true}
			}
			f.hooks[guardedDelete] = func(_ *fake, nth int, _ any) error {
				if nth <= 4 {
					return tc.refusal
				}
				return nil
			}
			serve(t, f, func(ctx context.Context, c *Client) {
				if got, err := c.Delete(ctx, web, true); err != nil || got.ByName {
					t.Errorf("got %+v, %v", got, err)
				}
				if guarded, plain := f.count(guardedDelete), f.count(plainDelete); guarded != 5 || plain != 0 {
					t.Errorf("%d guarded and %d plain deletes", guarded, plain)
				}
			})
		})
	}
}

// Everything else is final, with nothing deleted by name.
func TestDeleteRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		hook  hook
		calls int
		check func(t *testing.T, err error)
	}{
		"driver refuses":  {hook: refuse(codes.Internal), calls: 1, check: hasCode(codes.Internal)},
		"unauthenticated": {hook: refuse(codes.Unauthenticated), calls: 1, check: hasCode(codes.Unauthenticated)},
		"no access":       {hook: refuse(codes.PermissionDenied), calls: 1, check: hasCode(codes.PermissionDenied)},
		"invalid":         {hook: refuse(codes.InvalidArgument), calls: 1, check: hasCode(codes.InvalidArgument)},
		"plain failed precondition, nothing pending": {hook: refuse(codes.FailedPrecondition), calls: 1, check: hasCode(codes.FailedPrecondition)},
		"unknown method for good": {hook: refuse(codes.Unimplemented), calls: mixedFleetTries, check: func(t *testing.T, err error) {
			t.Helper()
			if e := as[*MixedFleetError](t, err); status.Code(e) != codes.Unimplemented || !strings.Contains(e.Error(), "health says SERVING") || !strings.Contains(e.Error(), "8 times") {
				t.Error(e)
			}
		}},
		"unavailable for good": {hook: refuse(codes.Unavailable), calls: -1, check: func(t *testing.T, err error) {
			if e := as[*WaitError](t, err); !errors.Is(e, context.DeadlineExceeded) || status.Code(e.Last) != codes.Unavailable {
				t.Error(e)
			}
		}},
		"replaced, but the workspace cannot be read": {
			hook: func(f *fake, _ int, _ any) error {
				f.hooks["GetWorkspace"] = refuse(codes.Internal)
				return (&apierr.IdentityMismatch{Name: "web", ExpectedID: idA, CurrentID: idB}).GRPCStatus().Err()
			},
			calls: 1, check: func(t *testing.T, err error) { t.Helper(); want[*UnprovenError](t, err) },
		},
		"a mismatch about somebody else": {
			hook: func(*fake, int, any) error {
				return (&apierr.IdentityMismatch{Name: "web", ExpectedID: idB, CurrentID: idA}).GRPCStatus().Err()
			},
			calls: 1, check: func(t *testing.T, err error) { want[*BrokenReplyError](t, err) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			f.put("web", idA, ready)
			f.hooks[guardedDelete] = tc.hook
			serve(t, f, func(ctx context.Context, c *Client) {
				_, err := c.Delete(ctx, web, true)
				tc.check(t, err)
				if n := f.count(guardedDelete); tc.calls >= 0 && n != tc.calls {
					t.Errorf("%d guarded deletes, want %d", n, tc.calls)
				}
				if f.count(plainDelete) != 0 {
					t.Error("deleted by name")
				}
			})
		})
	}
}

func hasCode(want codes.Code) func(*testing.T, error) {
	return func(t *testing.T, err error) {
		t.Helper()
		if status.Code(err) != want {
			t.Errorf("got %v, want %v", err, want)
		}
	}
}

// A success counts only if it speaks of our sandbox.
func TestDeleteBrokenReply(t *testing.T) {
	for name, reply := range map[string]*openshellv1.DeleteSandboxResponse{
		"unspecified":         {SandboxId: idA},
		"empty":               {},
		"unknown outcome":     {Outcome: 77, SandboxId: idA},
		"another sandbox":     {Outcome: openshellv1.DeletionOutcome_DELETION_OUTCOME_COMPLETED, SandboxId: idB},
		"no sandbox":          {Outcome: openshellv1.DeletionOutcome_DELETION_OUTCOME_ACCEPTED},
		"absent with our id":  {Outcome: openshellv1.DeletionOutcome_DELETION_OUTCOME_ALREADY_ABSENT, SandboxId: idA},
		"absent with another": {Outcome: openshellv1.DeletionOutcome_DELETION_OUTCOME_ALREADY_ABSENT, SandboxId: idB},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &deletion{wait: newWait(web, "gone")}
				_, err := d.accepted("DeleteSandbox", reply)
				want[*BrokenReplyError](t, err)
			})
		})
	}
}
