package sqlstore_test

import (
	"database/sql"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store/sqlite"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store/sqlstore"
)

// No statement may read more of a table than it answers with, nor sort: 100,000 sandboxes are to cost no more than 100.
func TestNothingScans(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	s, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	// Along an index up to the limit, or over what was found already.
	harmless := regexp.MustCompile(`^SCAN ((s|l|sandboxes) USING (COVERING )?INDEX |(locked|due|CONSTANT ROW)$)`)
	for name, query := range sqlstore.Queries(sqlstore.Dialect{Now: "now_us()"}) {
		t.Run(name, func(t *testing.T) {
			args := make([]any, strings.Count(query, "?"))
			rows, err := db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query, args...)
			if err != nil {
				t.Fatal(err)
			}
			defer rows.Close()
			for rows.Next() {
				var id, parent, unused int
				var step string
				if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
					t.Fatal(err)
				}
				t.Log(step)
				if strings.Contains(step, "TEMP B-TREE") || strings.HasPrefix(step, "SCAN") && !harmless.MatchString(step) {
					t.Errorf("it does: %s", step)
				}
			}
			if err := rows.Err(); err != nil {
				t.Fatal(err)
			}
		})
	}
}
