//go:build unix

package replicas

import (
	"syscall"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

func init() { tests["answers of a gateway that stood still come late"] = lateAnswers }

// lateAnswers lets a gateway stand still while its driver makes two sandboxes. The others take those over, one of the
// others being killed and replaced, and go on: they delete the one, and put another in the place of the other. When the first gateway
// moves again, what its driver says to it changes nothing.
func lateAnswers(t *testing.T, fleet []*replica) {
	slow, doomed, third := fleet[0], fleet[1], fleet[2]
	made := map[string]*openshellv1.Sandbox{}
	answers := map[string]chan error{}
	for name, deleteAfter := range map[string]string{"deleted": "1h", "replaced": "0s"} {
		answered := make(chan error, 1)
		answers[name] = answered
		go func() {
			_, err := slow.plain.CreateSandbox(within(t), request(name, map[string]any{"create_takes": "5s", "ready_after": "0s", "delete_after": deleteAfter}))
			answered <- err
		}()
		made[name] = third.await(t, name, "there", func(s *openshellv1.Sandbox) bool { return s != nil })
	}
	slow.signal(t, syscall.SIGSTOP)
	t.Cleanup(func() { slow.signal(t, syscall.SIGCONT) }) // so that it can end
	for name := range made {
		if phase := third.get(within(t), t, name).GetStatus(); phase.GetPhase() != provisioning || !phase.GetProvisioning().GetDriverOperationPending() {
			t.Fatalf("%s is %v already", name, phase)
		}
	}
	doomed.Kill()
	doomed.Restart(t)

	before := map[string]*openshellv1.Sandbox{}
	for name, first := range made {
		if now := third.awaitPhase(t, name, ready); meta(now).GetId() != meta(first).GetId() {
			t.Fatalf("%s is %s now, was %s", name, meta(now).GetId(), meta(first).GetId())
		}
		third.delete(t, name)
	}
	before["deleted"] = doomed.awaitPhase(t, "deleted", deleting)
	doomed.awaitGone(t, "replaced")
	doomed.create(t, "replaced", map[string]any{"ready_after": "0s"})
	before["replaced"] = doomed.awaitPhase(t, "replaced", ready)
	if meta(before["replaced"]).GetId() == meta(made["replaced"]).GetId() {
		t.Fatal("the successor has the id of the first")
	}

	slow.signal(t, syscall.SIGCONT)
	for name, code := range map[string]codes.Code{"deleted": codes.OK, "replaced": codes.NotFound} {
		if err := <-answers[name]; status.Code(err) != code {
			t.Errorf("the create of %s answered %v late, want %s", name, err, code)
		}
		if now := slow.get(within(t), t, name); !proto.Equal(now, before[name]) {
			t.Errorf("the late answer changed %s: it is %v, was %v", name, now, before[name])
		}
	}
}

func (r *replica) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(r.PID(), s); err != nil {
		t.Error(err)
	}
}
