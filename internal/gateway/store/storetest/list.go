package storetest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// walk reads a list page by page.
func walk(t *testing.T, s store.Store, q store.ListQuery) []store.Sandbox {
	t.Helper()
	var all []store.Sandbox
	for {
		page, err := s.ListSandboxes(testContext(t), q)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Rows) > q.Limit || page.More && len(page.Rows) == 0 {
			t.Fatalf("%d rows on a page of %d, more: %t", len(page.Rows), q.Limit, page.More)
		}
		all = append(all, page.Rows...)
		if !page.More {
			return all
		}
		last := page.Rows[len(page.Rows)-1]
		q.After = &store.Cursor{CreatedAt: last.CreatedAt, Name: last.Name, Workspace: last.Workspace, ID: last.ID}
	}
}

var listCases = map[string]func(*testing.T, store.Store){
	"lists are oldest first, page by page": func(t *testing.T, s store.Store) {
		var want []string
		for _, name := range []string{"c", "a", "d", "b", "e", "g", "f"} {
			mustCreate(t, s, sandbox(name))
			want = append(want, name)
		}
		for _, limit := range []int{1, 2, 3, 7, 8} {
			for _, workspace := range []string{"", store.DefaultWorkspace} {
				got := names(walk(t, s, store.ListQuery{Workspace: workspace, Limit: limit}))
				if !slices.Equal(got, want) {
					t.Errorf("workspace %q, pages of %d: %v, want %v", workspace, limit, got, want)
				}
			}
		}
	},
	"pages end where they hold too much": func(t *testing.T, s store.Store) {
		// Three of these go on a page, and the fourth does not.
		large := strings.Repeat("x", store.MaxPage*3/10)
		for name, edit := range map[string]func(*store.Sandbox, time.Time){
			"spec":        func(s *store.Sandbox, _ time.Time) { s.Spec.Environment["LARGE"] = large },
			"annotations": func(s *store.Sandbox, _ time.Time) { s.Annotations = map[string]string{"large": large} },
		} {
			var want []string
			for i := range 7 {
				want = append(want, mustCreate(t, s, sandbox(name+numbered(i), edit, labelled(map[string]string{"of": name}))).Name)
			}
			q := store.ListQuery{Labels: map[string]string{"of": name}, Limit: 100}
			if page, err := s.ListSandboxes(testContext(t), q); err != nil || len(page.Rows) != 3 || !page.More {
				t.Errorf("large %s: the page holds %d of %d, more: %t, %v", name, len(page.Rows), len(want), page.More, err)
			}
			if got := names(walk(t, s, q)); !slices.Equal(got, want) {
				t.Errorf("large %s: %v, want %v", name, got, want)
			}
		}
	},
	"a page holds one row at least": func(t *testing.T, s store.Store) {
		for i := range 2 {
			mustCreate(t, s, sandbox("web"+numbered(i), func(s *store.Sandbox, _ time.Time) {
				s.Spec.Environment["LARGE"] = strings.Repeat("x", store.MaxPage+1)
			}))
		}
		if got := names(walk(t, s, store.ListQuery{Limit: 9})); len(got) != 2 {
			t.Errorf("%v", got)
		}
	},
	"lists give whole rows": func(t *testing.T, s store.Store) {
		created := mustCreate(t, s, sandbox("web", due(time.Hour), labelled(map[string]string{"a": "b"})))
		for _, q := range []store.ListQuery{{Limit: 1}, {Limit: 1, Labels: map[string]string{"a": "b"}}} {
			page, err := s.ListSandboxes(testContext(t), q)
			if err != nil || len(page.Rows) != 1 || page.More {
				t.Fatal(page, err)
			}
			wantRow(t, s, page.Rows[0])
			if page.Rows[0].ID != created.ID {
				t.Error(page.Rows[0])
			}
		}
	},
	"lists of another workspace are empty": func(t *testing.T, s store.Store) {
		mustCreate(t, s, sandbox("web", labelled(map[string]string{"a": "b"})))
		for _, labels := range []map[string]string{nil, {"a": "b"}} {
			if page, err := s.ListSandboxes(testContext(t), store.ListQuery{Workspace: "other", Labels: labels, Limit: 9}); err != nil || len(page.Rows) != 0 || page.More {
				t.Errorf("%v, %v", names(page.Rows), err)
			}
		}
	},
	"lists by label": func(t *testing.T, s store.Store) {
		for name, labels := range map[string]map[string]string{
			"none": nil, "a1": {"a": "1"}, "a2": {"a": "2"}, "A1": {"A": "1"}, "a1b1": {"a": "1", "b": "1"},
			"a1b2": {"a": "1", "b": "2"}, "empty": {"a": ""}, "a1b1c1": {"a": "1", "b": "1", "c": "1"},
		} {
			mustCreate(t, s, sandbox(name, labelled(labels)))
		}
		for _, tc := range []struct {
			labels map[string]string
			want   []string
		}{
			{map[string]string{"a": "1"}, []string{"a1", "a1b1", "a1b1c1", "a1b2"}},
			{map[string]string{"a": "1", "b": "1"}, []string{"a1b1", "a1b1c1"}},
			{map[string]string{"a": "1", "b": "1", "c": "1"}, []string{"a1b1c1"}},
			{map[string]string{"A": "1"}, []string{"A1"}},
			{map[string]string{"a": ""}, []string{"empty"}},
			{map[string]string{"a": "%"}, nil},
			{map[string]string{"a": "1", "nobody": "has"}, nil},
		} {
			for _, limit := range []int{1, 2, 100} {
				got := names(walk(t, s, store.ListQuery{Workspace: store.DefaultWorkspace, Labels: tc.labels, Limit: limit}))
				slices.Sort(got)
				if !slices.Equal(got, tc.want) {
					t.Errorf("labels %v, pages of %d: %v, want %v", tc.labels, limit, got, tc.want)
				}
			}
		}
	},
	"deletes between pages skip nothing": func(t *testing.T, s store.Store) {
		for prefix, labels := range map[string]map[string]string{"plain": nil, "labelled": {"mine": "yes"}} {
			const n = 30
			want := map[string]int{}
			for i := range n {
				want[mustCreate(t, s, sandbox(prefix+numbered(i), labelled(map[string]string{"mine": "yes"}))).ID] = 1
			}
			seen := map[string]int{}
			q := store.ListQuery{Labels: labels, Limit: 4}
			for more := true; more; {
				list, err := s.ListSandboxes(testContext(t), q)
				if err != nil {
					t.Fatal(err)
				}
				page := list.Rows
				more = list.More
				for _, row := range page {
					if want[row.ID] > 0 {
						seen[row.ID]++
					}
				}
				if len(page) == 0 {
					break
				}
				last := page[len(page)-1]
				q.After = &store.Cursor{CreatedAt: last.CreatedAt, Name: last.Name, Workspace: last.Workspace, ID: last.ID}
				// What was listed goes, the last row of the page included, and its name goes to another.
				for _, row := range []store.Sandbox{page[0], last} {
					if want[row.ID] == 0 || page[0].ID == last.ID {
						continue
					}
					if _, err := s.ChangeSandbox(testContext(t), store.Target{ID: row.ID}, nil, remove); err != nil {
						t.Error(err)
					}
					mustCreate(t, s, sandbox(row.Name))
				}
			}
			if diff := cmp.Diff(want, seen); diff != "" {
				t.Errorf("%s: how often each was listed (-want +got):\n%s", prefix, diff)
			}
		}
	},
}
