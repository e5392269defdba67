package storetest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"google.golang.org/protobuf/testing/protocmp"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

var createCases = map[string]func(*testing.T, store.Store){
	"create keeps everything": func(t *testing.T, s store.Store) {
		before := time.Now().Add(-time.Minute)
		var built store.Sandbox
		created := mustCreate(t, s, sandbox("web", func(sb *store.Sandbox, now time.Time) {
			sb.Labels = map[string]string{"app": "web", "empty": "", "example.com/x": "Y_z.1"}
			sb.Annotations = map[string]string{"note": "any text: \x01 \"quoted\" ünïcödé\n", "": ""}
			sb.Spec.Command = []string{"sleep", "1"}
			sb.CreatedFrom = &openshellv1.SandboxWorkloadTemplateProvenance{Name: "small", ResourceVersion: "1"}
			sb.Status.Conditions = []*openshellv1.SandboxCondition{{Type: "Ready", Status: "False"}}
			sb.Operation = store.Operation{
				ID: uuid.NewString(), Kind: store.OperationDelete, Pending: true, Since: now, DueAt: now.Add(time.Hour), Restarts: 7,
				Before: &store.Snapshot{
					Status: &openshellv1.SandboxStatus{Phase: openshellv1.SandboxPhase_SANDBOX_PHASE_STOPPING, RestartCount: 3},
					Operation: store.Operation{
						ID: uuid.NewString(), Kind: store.OperationStop, Since: now.Add(-time.Second), DueAt: now.Add(time.Minute),
						Before: &store.Snapshot{
							Status:    &openshellv1.SandboxStatus{Phase: openshellv1.SandboxPhase_SANDBOX_PHASE_READY},
							Operation: store.Operation{ID: uuid.NewString(), Kind: store.OperationRun, Since: now, DueAt: now},
						},
					},
				},
			}
			built = *sb
			built.CreatedAt = now
		}))
		built.Workspace, built.ResourceVersion = store.DefaultWorkspace, 1
		if diff := cmp.Diff(built, created, protocmp.Transform()); diff != "" {
			t.Errorf("reply (-built +created):\n%s", diff)
		}
		if created.CreatedAt.Before(before) || created.CreatedAt.After(time.Now().Add(time.Minute)) {
			t.Errorf("created at %v", created.CreatedAt)
		}
		wantRow(t, s, created)
		byName, err := s.Sandbox(testContext(t), store.DefaultWorkspace, "web")
		if diff := cmp.Diff(created, byName, protocmp.Transform()); diff != "" || err != nil {
			t.Errorf("by name: %v\n%s", err, diff)
		}
	},
	"create under a taken name": func(t *testing.T, s store.Store) {
		mustCreate(t, s, sandbox("web", labelled(map[string]string{"mine": "yes"})))
		for _, phase := range []openshellv1.SandboxPhase{
			openshellv1.SandboxPhase_SANDBOX_PHASE_READY, openshellv1.SandboxPhase_SANDBOX_PHASE_ERROR, openshellv1.SandboxPhase_SANDBOX_PHASE_DELETING,
		} {
			holder, err := s.ChangeSandbox(testContext(t), named("web"), nil, setPhase(phase))
			if err != nil {
				t.Fatal(err)
			}
			stranger := sandbox("web", labelled(map[string]string{"theirs": "yes"}))
			_, err = s.CreateSandbox(testContext(t), store.DefaultWorkspace, stranger)
			wantError(t, err, store.ErrAlreadyExists)
			wantRow(t, s, holder)
			wantGone(t, s, stranger(time.Now()).ID)
		}
		if page, err := s.ListSandboxes(testContext(t), store.ListQuery{Labels: map[string]string{"theirs": "yes"}, Limit: 9}); err != nil || len(page.Rows) != 0 {
			t.Errorf("labels of sandboxes that were not created: %v, %v", page, err)
		}
	},
	"a removed name is free": func(t *testing.T, s store.Store) {
		a := mustCreate(t, s, sandbox("web"))
		if _, err := s.ChangeSandbox(testContext(t), named("web"), nil, remove); err != nil {
			t.Fatal(err)
		}
		b := mustCreate(t, s, sandbox("web"))
		wantGone(t, s, a.ID)
		if b.ResourceVersion != 1 {
			t.Errorf("the successor begins at version %d", b.ResourceVersion)
		}
		wantRow(t, s, b)
	},
	"create in an unknown workspace": func(t *testing.T, s store.Store) {
		for _, workspace := range []string{"", "other", "DEFAULT", "\x00"} {
			_, err := s.CreateSandbox(testContext(t), workspace, sandbox("web"))
			wantError(t, err, store.ErrWorkspaceNotFound)
		}
	},
	"names are bytes": func(t *testing.T, s store.Store) {
		all := []string{
			"web", "Web", "WEB", "web ", " web", "web\t", "wéb", "we\u0301b", "w_b", "w%b", "straße", "strasse", "ſtraße", "ı", "i", "İ",
			"a", "á", "ａ", "0", "٠", "a-b", "ab", "a.b", strings.Repeat("x", 300), strings.Repeat("x", 301),
		}
		ids := map[string]string{}
		for _, name := range all {
			ids[name] = mustCreate(t, s, sandbox(name)).ID
		}
		for _, name := range all {
			got, err := s.Sandbox(testContext(t), store.DefaultWorkspace, name)
			if err != nil || got.ID != ids[name] || got.Name != name {
				t.Errorf("name %q: %v, id %s, want %s (%v)", name, got.Name, got.ID, ids[name], err)
			}
		}
	},
	"absent": func(t *testing.T, s store.Store) {
		created := mustCreate(t, s, sandbox("web"))
		for _, name := range []string{"", "WEB", "web%", "web\x00", "other", created.ID} {
			_, err := s.Sandbox(testContext(t), store.DefaultWorkspace, name)
			wantError(t, err, store.ErrNotFound)
		}
		_, err := s.Sandbox(testContext(t), "other", "web")
		wantError(t, err, store.ErrNotFound)
		for _, id := range []string{"", "web", strings.ToUpper(created.ID), uuid.NewString(), "\x00"} {
			_, err := s.SandboxByID(testContext(t), id)
			wantError(t, err, store.ErrNotFound)
		}
	},
	"of many creates of a name one wins": func(t *testing.T, s store.Store) {
		const n = 16
		var created, taken int
		var mu sync.Mutex
		var all sync.WaitGroup
		for range n {
			all.Go(func() {
				_, err := s.CreateSandbox(testContext(t), store.DefaultWorkspace, sandbox("web"))
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					created++
				case errors.Is(err, store.ErrAlreadyExists):
					taken++
				default:
					t.Error(err)
				}
			})
		}
		all.Wait()
		if created != 1 || taken != n-1 {
			t.Errorf("%d created, %d found the name taken", created, taken)
		}
	},
	"a cancelled create does nothing": func(t *testing.T, s store.Store) {
		ctx, cancel := context.WithCancel(testContext(t))
		cancel()
		_, err := s.CreateSandbox(ctx, store.DefaultWorkspace, sandbox("web"))
		wantError(t, err, context.Canceled)
		_, err = s.Sandbox(testContext(t), store.DefaultWorkspace, "web")
		wantError(t, err, store.ErrNotFound)
	},
}
