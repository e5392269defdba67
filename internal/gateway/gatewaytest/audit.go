package gatewaytest

import (
	"testing"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// Audit is what the gateway has recorded of deletes, oldest first.
func (g *Gateway) Audit(t testing.TB) []store.AuditRecord {
	t.Helper()
	query := store.AuditQuery{Limit: 1000}
	var all []store.AuditRecord
	for {
		page, err := g.store.ListAudit(timeout(t), query)
		if err != nil {
			t.Fatal(err)
		}
		if all = append(all, page...); len(page) < query.Limit {
			return all
		}
		query.After = &all[len(all)-1]
	}
}
