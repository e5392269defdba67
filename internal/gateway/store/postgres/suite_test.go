package postgres

import (
	"fmt"
	"net/url"
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
