package chaos_test

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/openshell-iac/terraform-provider-openshell/internal/acceptance/cli"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/client"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// checks is what is known from the commands before.
type checks struct {
	// excused are ids that a command which did not end by itself may have deleted and yet left in the state.
	excused map[string]bool
	// seen counts what was reported, by summary.
	seen map[string]int
}

// check holds a command's end, the state and the gateway against each other.
func (l *loop) check(r cli.Result, f fault) {
	l.t.Helper()
	l.g.WaitIdle(l.t)
	l.logf("%s, %s: exit code %d", strings.Join(r.Args, " "), f, r.ExitCode)
	if _, err := l.readState(); err != nil && f == kill { // in the middle of writing it
		l.logf("the killed command left no readable state: %v", err)
		if err := os.Remove(l.w.StateFile()); err != nil {
			l.t.Fatal(err)
		}
	}
	l.reports(r, f)
	have := l.state()
	if l.excused == nil {
		l.excused = map[string]bool{}
	}
	for _, id := range have {
		if l.second.made[id] {
			l.t.Errorf("the state has %s, which the second client made", id)
		}
		if f != nothing {
			l.excused[id] = true
		}
		if _, there := l.g.GetByID(l.t, id); !there && !l.second.deleted[id] && !l.excused[id] {
			l.t.Errorf("the state has %s, which is gone", id)
		}
	}
	for id := range l.second.alive {
		if _, there := l.g.GetByID(l.t, id); !there {
			l.t.Errorf("%s, which the second client made, is gone", id)
		}
	}
	for _, call := range l.g.Calls(openshellv1.OpenShell_DeleteSandbox_FullMethodName) {
		l.t.Errorf("a delete by name: %v", call.Request)
	}
	l.orphans(have, f)
}

// reports checks that what a command says is told as everything is, and that nothing broke.
func (l *loop) reports(r cli.Result, f fault) {
	l.t.Helper()
	if l.seen == nil {
		l.seen = map[string]int{}
	}
	for _, d := range r.Diagnostics {
		l.seen[d.Severity+": "+d.Summary]++
		if f == nothing && !strings.Contains(d.Detail, "What to do: ") {
			l.t.Errorf("%s", d)
		}
	}
	for _, text := range []string{"panic", "inconsistent", "bug in the provider", "did not respond", "Missing Resource Identity"} {
		if f != kill && strings.Contains(r.Text(), text) {
			l.t.Errorf("%q in\n%s", text, r.Text())
		}
	}
	if destroyed := r.Args[0] == "destroy"; destroyed && r.Err() == nil && len(l.state()) > 0 {
		l.t.Errorf("the destroy left %v in the state", l.state())
	}
}

// orphans checks that nothing was forgotten. What a killed command forgot has the label; by it the second client finds and
// removes it.
func (l *loop) orphans(have []string, f fault) {
	l.t.Helper()
	for _, sb := range l.labelled() {
		id := client.IDOf(sb)
		switch {
		case slices.Contains(have, id):
		case f == kill:
			l.logf("the killed command forgot %s", id)
			l.seen["orphans of killed commands"]++
			l.g.MustDelete(l.t, sb.GetMetadata().GetName())
		default:
			l.t.Errorf("%s is in no state: %v", id, sb)
		}
	}
}

// labelled are the sandboxes that carry the provider's label.
func (l *loop) labelled() []*openshellv1.Sandbox {
	return l.second.list(client.LabelManagedBy + "=" + client.ManagedByTerraform)
}

// audit checks by the gateway's records that the provider deleted nothing of the second client.
func (l *loop) audit() {
	l.t.Helper()
	for _, record := range l.g.Audit(l.t) {
		done := record.Outcome == store.OutcomeAccepted || record.Outcome == store.OutcomeCompleted
		if done && l.second.made[record.SandboxID] && !l.second.deleted[record.SandboxID] {
			l.t.Errorf("the provider deleted %s of the second client: %+v", record.SandboxID, record)
		}
	}
}

// state are the ids in the state, those of replaced sandboxes that are yet to be deleted included.
func (l *loop) state() []string {
	l.t.Helper()
	ids, err := l.readState()
	if err != nil {
		l.t.Fatalf("the state cannot be read: %v", err)
	}
	return ids
}

func (l *loop) readState() ([]string, error) {
	raw, err := l.w.RawState()
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var state struct {
		Resources []struct {
			Instances []struct {
				Attributes struct{ ID string }
			}
		}
	}
	if err := json.Unmarshal(raw, &state); err != nil {
		return nil, err
	}
	var ids []string
	for _, resource := range state.Resources {
		for _, instance := range resource.Instances {
			ids = append(ids, instance.Attributes.ID)
		}
	}
	return ids, nil
}
