package client

import (
	"context"
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

const ready = openshellv1.SandboxPhase_SANDBOX_PHASE_READY

// refuse makes every call of a method fail with a code.
func refuse(code codes.Code) hook {
	return func(*fake, int, any) error { return status.Error(code, "refused") }
}

// unrecorded is what a state knows that was written by a caller without the scope for the workspace.
var unrecorded = Ref{Workspace: "default", Name: "web", ID: idA}

// What Observe makes of every pair of answers: only the recorded workspace id, or the stand-in, turns "not there" into
// "gone".
func TestObserve(t *testing.T) {
	unproven := func(err error) bool { _, ok := errors.AsType[*UnprovenError](err); return ok }
	named := func(is func(error) bool) func(error) bool {
		return func(err error) bool {
			return is(err) && strings.Contains(err.Error(), `the name "web" belongs to another sandbox, with id `+idB+" (phase ready)")
		}
	}
	other := func(err error) bool {
		e, ok := errors.AsType[*OtherGatewayError](err)
		return ok && e.FoundWorkspaceID == otherWSID && e.Ref == web
	}
	for name, tc := range map[string]struct {
		set     func(*fake)
		ref     Ref
		found   bool
		gone    *Gone
		wantErr func(error) bool
	}{
		"ours":                {set: func(f *fake) { f.put("web", idA, ready) }, found: true},
		"ours, other gateway": {set: func(f *fake) { f.put("web", idA, ready); f.workspace = otherWSID }, found: true},
		"absent":              {set: func(*fake) {}, gone: &Gone{}},
		"replaced":            {set: func(f *fake) { f.put("web", idB, ready) }, gone: &Gone{CurrentID: idB, CurrentPhase: "ready"}},
		"absent, other gateway": {
			set: func(f *fake) { f.workspace = otherWSID }, wantErr: other,
		},
		"a web of its own, other gateway": {
			set: func(f *fake) { f.put("web", idB, ready); f.workspace = otherWSID }, wantErr: named(other),
		},
		"absent, no scope for the workspace": {
			set:  func(f *fake) { f.hooks["GetWorkspace"] = refuse(codes.PermissionDenied) },
			gone: &Gone{Evidence: StoodIn},
		},
		"replaced, no scope for the workspace": {
			set: func(f *fake) {
				f.put("web", idB, ready)
				f.hooks["GetWorkspace"] = refuse(codes.PermissionDenied)
			},
			gone: &Gone{CurrentID: idB, CurrentPhase: "ready", Evidence: StoodIn},
		},
		"absent, no member": {
			set: func(f *fake) {
				f.hooks["GetWorkspace"] = refuse(codes.PermissionDenied)
				f.hooks["ListSandboxes"] = refuse(codes.PermissionDenied)
			},
			wantErr: unproven,
		},
		"absent, no such workspace": {
			set: func(f *fake) { f.hooks["GetWorkspace"] = refuse(codes.NotFound) }, wantErr: unproven,
		},
		"absent, workspace unavailable": {
			set: func(f *fake) { f.hooks["GetWorkspace"] = refuse(codes.Unavailable) }, wantErr: unproven,
		},
		"replaced, workspace unavailable": {
			set: func(f *fake) {
				f.put("web", idB, ready)
				f.hooks["GetWorkspace"] = refuse(codes.Unavailable)
			},
			wantErr: named(unproven),
		},
		"absent, no workspace id recorded": {
			set: func(*fake) {}, ref: unrecorded, wantErr: unproven,
		},
		"replaced, no workspace id recorded": {
			set: func(f *fake) { f.put("web", idB, ready) }, ref: unrecorded, wantErr: named(unproven),
		},
		"absent, no workspace id recorded, no scope for the workspace": {
			set: func(f *fake) { f.hooks["GetWorkspace"] = refuse(codes.PermissionDenied) }, ref: unrecorded,
			gone: &Gone{Evidence: StoodIn},
		},
		"unauthenticated": {
			set:     func(f *fake) { f.hooks["GetSandbox"] = refuse(codes.Unauthenticated) },
			wantErr: func(err error) bool { return status.Code(err) == codes.Unauthenticated },
		},
		"no access": {
			set:     func(f *fake) { f.hooks["GetSandbox"] = refuse(codes.PermissionDenied) },
			wantErr: func(err error) bool { return status.Code(err) == codes.PermissionDenied },
		},
		"a sandbox without an id": {
			set:     func(f *fake) { f.put("web", "", ready) },
			wantErr: func(err error) bool { _, ok := errors.AsType[*BrokenReplyError](err); return ok },
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			tc.set(f)
			ref := tc.ref
			if ref == (Ref{}) {
				ref = web
			}
			serve(t, f, func(ctx context.Context, c *Client) {
				sb, gone, err := c.Observe(ctx, ref)
				switch {
				case tc.wantErr != nil:
					if !tc.wantErr(err) || sb != nil || gone != nil {
						t.Errorf("got %v, %v, error %v", sb, gone, err)
					}
				case err != nil:
					t.Error(err)
				case tc.found != (sb != nil):
					t.Errorf("sandbox %v, want found %v", sb, tc.found)
				case tc.gone == nil != (gone == nil), gone != nil && *gone != *tc.gone:
					t.Errorf("gone %+v, want %+v", gone, tc.gone)
				}
			})
		})
	}
}

// The workspace is read after the answer it confirms: an endpoint that changes over in between must not be believed.
func TestProofComesAfterTheAnswer(t *testing.T) {
	f := newFake()
	f.hooks["GetSandbox"] = func(f *fake, _ int, _ any) error {
		f.workspace = otherWSID // from here on another gateway answers
		return nil
	}
	serve(t, f, func(ctx context.Context, c *Client) {
		_, gone, err := c.Observe(ctx, web)
		if _, ok := errors.AsType[*OtherGatewayError](err); !ok || gone != nil {
			t.Errorf("got %v, %v", gone, err)
		}
	})
}

func TestProveAbsent(t *testing.T) {
	f := newFake()
	serve(t, f, func(ctx context.Context, c *Client) {
		if holder, gone, err := c.ProveAbsent(ctx, web); holder != nil || gone == nil || err != nil {
			t.Errorf("absent: %v, %v, %v", holder, gone, err)
		}
		f.put("web", idB, ready)
		if holder, gone, err := c.ProveAbsent(ctx, web); IDOf(holder) != idB || gone != nil || err != nil {
			t.Errorf("held: %v, %v, %v", holder, gone, err)
		}
	})
}

// Even a legacy record without any id can be forgotten, if nobody has the name.
func TestProveAbsentWithoutAnyID(t *testing.T) {
	f := newFake()
	serve(t, f, func(ctx context.Context, c *Client) {
		if _, gone, err := c.ProveAbsent(ctx, Ref{Workspace: "default", Name: "web"}); err != nil || *gone != (Gone{Evidence: NotRecorded}) {
			t.Errorf("%v, %v", gone, err)
		}
	})
}

// A delete without a recorded workspace id believes the gateway that has shown the sandbox, and no other one.
func TestDeleteWithoutAWorkspaceID(t *testing.T) {
	for name, tc := range map[string]struct {
		set   func(*fake)
		fails func(*testing.T, error)
	}{
		"there":    {func(f *fake) { f.put("web", idA, ready) }, nil},
		"absent":   {func(*fake) {}, func(t *testing.T, err error) { t.Helper(); want[*UnprovenError](t, err) }},
		"replaced": {func(f *fake) { f.put("web", idB, ready) }, func(t *testing.T, err error) { t.Helper(); want[*UnprovenError](t, err) }},
		"moved midway": {func(f *fake) {
			f.put("web", idA, ready)
			f.hooks[guardedDelete] = func(f *fake, _ int, _ any) error { f.workspace = otherWSID; return nil }
		}, func(t *testing.T, err error) { t.Helper(); want[*OtherGatewayError](t, err) }},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			tc.set(f)
			serve(t, f, func(ctx context.Context, c *Client) {
				_, err := c.Delete(ctx, unrecorded, true)
				if tc.fails != nil {
					tc.fails(t, err)
				} else if err != nil {
					t.Error(err)
				}
			})
		})
	}
}
