package server_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/apierr"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

const openshellDomain = "openshell.nvidia.com"

// onceCall is a call with a request_id about the sandbox web of the workspace "default".
type onceCall func(ctx context.Context, g *gatewaytest.Gateway, requestID string, opts ...grpc.CallOption) (proto.Message, error)

func deletes(p *conditionalv1.SandboxPrecondition, allowMissing bool) onceCall {
	return func(ctx context.Context, g *gatewaytest.Gateway, requestID string, opts ...grpc.CallOption) (proto.Message, error) {
		r := &openshellv1.DeleteSandboxRequest{Name: "web", WorkspaceScope: gatewaytest.Default(), AllowMissing: allowMissing, RequestId: requestID}
		if p == nil {
			return g.OpenShell().DeleteSandbox(ctx, r, opts...)
		}
		return g.Conditional().DeleteSandbox(ctx, &conditionalv1.ConditionalDeleteSandboxRequest{Precondition: p, Request: r}, opts...)
	}
}

func stops(p *conditionalv1.SandboxPrecondition) onceCall {
	return func(ctx context.Context, g *gatewaytest.Gateway, requestID string, opts ...grpc.CallOption) (proto.Message, error) {
		r := &openshellv1.StopSandboxRequest{Name: "web", WorkspaceScope: gatewaytest.Default(), RequestId: requestID}
		if p == nil {
			return g.OpenShell().StopSandbox(ctx, r, opts...)
		}
		return g.Conditional().StopSandbox(ctx, &conditionalv1.ConditionalStopSandboxRequest{Precondition: p, Request: r}, opts...)
	}
}

func starts(p *conditionalv1.SandboxPrecondition) onceCall {
	return func(ctx context.Context, g *gatewaytest.Gateway, requestID string, opts ...grpc.CallOption) (proto.Message, error) {
		r := &openshellv1.StartSandboxRequest{Name: "web", WorkspaceScope: gatewaytest.Default(), RequestId: requestID}
		if p == nil {
			return g.OpenShell().StartSandbox(ctx, r, opts...)
		}
		return g.Conditional().StartSandbox(ctx, &conditionalv1.ConditionalStartSandboxRequest{Precondition: p, Request: r}, opts...)
	}
}

func creates(keys map[string]any) onceCall {
	return func(ctx context.Context, g *gatewaytest.Gateway, requestID string, opts ...grpc.CallOption) (proto.Message, error) {
		return g.OpenShell().CreateSandbox(ctx, createRequest(func(r *openshellv1.CreateSandboxRequest) {
			r.Name, r.RequestId = "web", requestID
			if keys != nil {
				r.Spec.Template = &openshellv1.SandboxTemplate{DriverConfig: gatewaytest.DriverConfig(keys)}
			}
		}), opts...)
	}
}

// do makes a call and says whether its answer was a replay.
func (do onceCall) do(t *testing.T, g *gatewaytest.Gateway, requestID string) (reply proto.Message, replayed bool, err error) {
	t.Helper()
	var header metadata.MD
	reply, err = do(call(t), g, requestID, grpc.Header(&header))
	return reply, strings.Join(header.Get(apierr.ReplayedHeader), ",") == "true", err
}

func wantSandbox(t *testing.T, reply proto.Message, err error, id string, phase openshellv1.SandboxPhase) {
	t.Helper()
	r, _ := reply.(*openshellv1.SandboxResponse)
	if err != nil || r.GetSandbox().GetMetadata().GetId() != id || r.GetSandbox().GetStatus().GetPhase() != phase {
		t.Errorf("%v, %v; want %s in %v", reply, err, id, phase)
	}
}

// wantMismatch says that a request_id was used for something else.
func wantMismatch(t *testing.T, g *gatewaytest.Gateway, do onceCall, requestID string) {
	t.Helper()
	_, _, err := do.do(t, g, requestID)
	wantReason(t, err, codes.FailedPrecondition, openshellDomain, "REQUEST_ID_PAYLOAD_MISMATCH", nil)
}

func wantUncertain(t *testing.T, g *gatewaytest.Gateway, do onceCall, requestID string) {
	t.Helper()
	_, _, err := do.do(t, g, requestID)
	wantReason(t, err, codes.FailedPrecondition, openshellDomain, "REQUEST_OUTCOME_UNCERTAIN", nil)
}

func TestRequestIDShape(t *testing.T) {
	g := gatewaytest.Start(t)
	a := g.MustCreate(t, "web")
	for name, do := range map[string]onceCall{
		"delete": deletes(nil, true), "conditional delete": deletes(expect(id(a)), true), "create": creates(nil),
		"stop": stops(nil), "conditional stop": stops(expect(id(a))), "start": starts(nil), "conditional start": starts(expect(id(a))),
	} {
		for _, bad := range []string{"1", "00000000-0000-0000-0000-000000000000", "{" + anID + "}", strings.ReplaceAll(anID, "-", ""), anID + " "} {
			_, _, err := do.do(t, g, bad)
			wantField(t, err, "request_id")
		}
		t.Log(name)
	}
	wantUnchanged(t, g, a)
}

// A create that comes again answers with its sandbox as it is by then, over a restart too, and makes no other.
func TestCreateIsReplayed(t *testing.T) {
	g := gatewaytest.Start(t)
	create, requestID := creates(nil), uuid.NewString()
	reply, replayed, err := create.do(t, g, requestID)
	made, _ := reply.(*openshellv1.SandboxResponse)
	if err != nil || replayed {
		t.Fatal(reply, replayed, err)
	}
	a := made.GetSandbox()
	g.WaitPhase(t, id(a), ready)
	for _, again := range []string{requestID, strings.ToUpper(requestID)} {
		reply, replayed, err = create.do(t, g, again)
		if wantSandbox(t, reply, err, id(a), ready); !replayed {
			t.Error("it is not marked as a replay")
		}
	}
	g.Restart(t)
	if reply, replayed, err = create.do(t, g, requestID); !replayed {
		t.Error("after a restart it is no replay")
	}
	wantSandbox(t, reply, err, id(a), ready)
	wantMismatch(t, g, creates(map[string]any{"ready_after": "1s"}), requestID)
	_, _, err = create.do(t, g, uuid.NewString())
	wantPlain(t, err, codes.AlreadyExists, "'web'")
	b := g.Replace(t, "web")
	_, _, err = create.do(t, g, requestID) // its own is gone
	wantReason(t, err, codes.FailedPrecondition, openshellDomain, "REQUEST_REPLAY_UNAVAILABLE", nil)
	wantUnchanged(t, g, b)
}

// A delete that comes again gets the answer of the first, and does nothing to a successor, on either path.
func TestDeleteIsReplayedAndSparesTheSuccessor(t *testing.T) {
	for name, tc := range map[string]struct {
		keys        map[string]any
		conditional bool
		outcome     openshellv1.DeletionOutcome
	}{
		"completed":              {map[string]any{"delete_after": "0s"}, false, finished},
		"accepted":               {map[string]any{"delete_after": "1s"}, false, accepted},
		"completed, conditional": {map[string]any{"delete_after": "0s"}, true, finished},
		"accepted, conditional":  {map[string]any{"delete_after": "1s"}, true, accepted},
	} {
		t.Run(name, func(t *testing.T) {
			g := gatewaytest.Start(t)
			a := g.MustCreate(t, "web", gatewaytest.Simulated(tc.keys))
			del, requestID := deletes(nil, false), uuid.NewString()
			if tc.conditional {
				del = deletes(expect(id(a)), false)
			}
			reply, replayed, err := del.do(t, g, requestID)
			if wantDeletion(t, reply, err, tc.outcome, id(a)); replayed {
				t.Error("the first is marked as a replay")
			}
			g.WaitGone(t, id(a))
			for _, after := range []func() *openshellv1.Sandbox{
				func() *openshellv1.Sandbox { return nil },
				func() *openshellv1.Sandbox { return g.MustCreate(t, "web") },
				func() *openshellv1.Sandbox { g.Restart(t); b, _ := g.Get(t, "web"); return b },
			} {
				b := after()
				reply, replayed, err := del.do(t, g, requestID)
				if wantDeletion(t, reply, err, tc.outcome, id(a)); !replayed {
					t.Error("it is not marked as a replay")
				}
				if b != nil {
					wantUnchanged(t, g, b)
				}
			}
		})
	}
}

func TestAbsentDeleteIsReplayed(t *testing.T) {
	g := gatewaytest.Start(t)
	for name, del := range map[string]onceCall{"plain": deletes(nil, true), "conditional": deletes(expect(anID), true)} {
		requestID := uuid.NewString()
		got, replayed, err := del.do(t, g, requestID)
		if wantDeletion(t, got, err, alreadyAbsent, ""); replayed {
			t.Error(name, "the first is marked as a replay")
		}
		b := g.MustCreate(t, "web")
		got, replayed, err = del.do(t, g, requestID)
		if wantDeletion(t, got, err, alreadyAbsent, ""); !replayed {
			t.Error(name, "it is not marked as a replay")
		}
		wantUnchanged(t, g, b)
		g.MustDelete(t, "web")
	}
}

func TestStopAndStartAreReplayed(t *testing.T) {
	g := gatewaytest.Start(t)
	a := g.MustCreate(t, "web")
	for _, p := range []*conditionalv1.SandboxPrecondition{nil, expect(id(a))} {
		stopID, startID := uuid.NewString(), uuid.NewString()
		reply, _, err := stops(p).do(t, g, stopID)
		wantSandbox(t, reply, err, id(a), stopped)
		idle := uuid.NewString() // what has nothing to do counts as well
		reply, _, err = stops(p).do(t, g, idle)
		wantSandbox(t, reply, err, id(a), stopped)
		reply, _, err = starts(p).do(t, g, startID)
		wantSandbox(t, reply, err, id(a), starting)
		now := g.WaitPhase(t, id(a), ready)
		for do, requestID := range map[*onceCall]string{new(stops(p)): stopID, new(stops(p)): idle, new(starts(p)): startID} {
			reply, replayed, err := do.do(t, g, requestID)
			if wantSandbox(t, reply, err, id(a), ready); !replayed { // the state of now
				t.Error("it is not marked as a replay")
			}
		}
		wantUnchanged(t, g, now)
	}
}

// The precondition is part of what was asked, and the two forms of a call are two methods.
func TestPreconditionIsInTheFingerprint(t *testing.T) {
	g := gatewaytest.Start(t)
	a := g.MustCreate(t, "web", gatewaytest.Simulated(map[string]any{"delete_after": "0s"}))
	requestID := uuid.NewString()
	reply, _, err := stops(expect(id(a))).do(t, g, requestID)
	wantSandbox(t, reply, err, id(a), stopped)
	wantMismatch(t, g, stops(expect(anID)), requestID)
	wantMismatch(t, g, stops(expect(id(a), 1)), requestID)
	if _, replayed, err := stops(expect(strings.ToUpper(id(a)))).do(t, g, requestID); err != nil || !replayed {
		t.Errorf("the same id in capitals: %v, %v", replayed, err)
	}
	if _, replayed, err := stops(nil).do(t, g, requestID); err != nil || replayed {
		t.Errorf("the plain form: %v, %v", replayed, err)
	}
	deleteID := uuid.NewString()
	reply, _, err = deletes(expect(id(a)), true).do(t, g, deleteID)
	wantDeletion(t, reply, err, finished, id(a))
	b := g.MustCreate(t, "web")
	wantMismatch(t, g, deletes(expect(id(b)), true), deleteID)
	wantMismatch(t, g, deletes(expect(id(a)), false), deleteID)
	wantUnchanged(t, g, b)
}

// What is refused leaves nothing behind: the same call may succeed later.
func TestRefusalLeavesNoAdmission(t *testing.T) {
	g := gatewaytest.Start(t)
	requestID := uuid.NewString()
	_, _, err := deletes(nil, false).do(t, g, requestID)
	wantPlain(t, err, codes.NotFound, "")
	_, _, err = creates(map[string]any{"create_error": "no such image"}).do(t, g, requestID)
	wantPlain(t, err, codes.Internal, "no such image")
	a := g.MustCreate(t, "web", gatewaytest.Simulated(map[string]any{"delete_error": "the volume is busy"}))
	_, _, err = creates(nil).do(t, g, requestID)
	wantPlain(t, err, codes.AlreadyExists, "'web'")
	_, _, err = deletes(expect(anID), true).do(t, g, requestID)
	wantReason(t, err, codes.FailedPrecondition, "openshell.conditional.v1", "SANDBOX_IDENTITY_MISMATCH", nil)
	_, _, err = stops(expect(id(a), 99)).do(t, g, requestID)
	wantReason(t, err, codes.Aborted, openshellDomain, "RESOURCE_VERSION_CONFLICT", nil)
	for range 2 { // refused by the driver, after the mark
		_, _, err = deletes(expect(id(a)), true).do(t, g, requestID)
		wantPlain(t, err, codes.Internal, "the volume is busy")
	}
	if reply, replayed, err := stops(expect(id(a))).do(t, g, requestID); err != nil || replayed {
		t.Errorf("%v, %v, %v", reply, replayed, err)
	}
}

// Between the admission and the outcome nobody knows it: while the call goes on, and after a crash until its work is taken up.
func TestOutcomeIsUncertainWhileTheWorkGoesOn(t *testing.T) {
	g := gatewaytest.Start(t)
	create, requestID := creates(map[string]any{"create_takes": "1h"}), uuid.NewString()
	answered := make(chan error, 1)
	go func() {
		_, err := create(context.Background(), g, requestID)
		answered <- err
	}()
	a := g.WaitName(t, "web")
	wantUncertain(t, g, create, requestID)
	wantMismatch(t, g, creates(nil), requestID)
	g.Kill(t)
	if err := <-answered; status.Code(err) != codes.Unavailable {
		t.Errorf("the call that was broken off: %v", err)
	}
	g.Restart(t)
	wantUncertain(t, g, create, requestID)
	b, _ := g.Get(t, "web")
	if id(b) != id(a) {
		t.Errorf("web is %v, was %v", b, a)
	}
	g.Kill(t)
}
