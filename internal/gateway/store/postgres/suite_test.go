package postgres

import (
	"fmt"
	"net/url"
	"slices"
	"testing"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/pgtest"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store/storetest"
)

// TestSuite gives each case a schema of its own: that is faster than a database.
func TestSuite(t *testing.T) {
	dsn := pgtest.NewDatabase(t)
	admin := dial(t, dsn)
	cases := 0
	storetest.Run(t, func(t *testing.T) store.Store {
		cases++
		schema := fmt.Sprintf("case_%d", cases)
		exec(t, admin, "CREATE SCHEMA "+schema)
		return openStore(t, inSchema(t, dsn, schema))
	})
}

// TestNamesSortByBytes: the collation of the database, a language's in these tests, has no say.
func TestNamesSortByBytes(t *testing.T) {
	dsn := pgtest.NewDatabase(t)
	s := openStore(t, dsn)
	sorted := []string{"B", "Z", "a", "a-b", "ab", "ä"}
	for _, i := range []int{3, 0, 5, 2, 4, 1} {
		create(t, s, sorted[i])
	}
	exec(t, dial(t, dsn), "UPDATE sandboxes SET created_at = 1")
	var got []string
	query := store.ListQuery{Limit: 1}
	for {
		page, err := s.ListSandboxes(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Rows) == 0 {
			break
		}
		last := page.Rows[0]
		got = append(got, last.Name)
		query.After = &store.Cursor{CreatedAt: last.CreatedAt, Name: last.Name, Workspace: last.Workspace, ID: last.ID}
	}
	if !slices.Equal(got, sorted) {
		t.Errorf("the pages are %q, want %q", got, sorted)
	}
}

func inSchema(t *testing.T, dsn, schema string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set("search_path", schema)
	u.RawQuery = query.Encode()
	return u.String()
}
