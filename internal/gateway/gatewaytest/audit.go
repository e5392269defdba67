package gatewaytest

import (
	"testing"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// Audit is what the gateway has recorded of deletes, oldest first; at most 1000 records.
func (g *Gateway) Audit(t testing.TB) []store.AuditRecord {
	t.Helper()
	records, err := g.store.ListAudit(timeout(t), store.AuditQuery{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	return records
}
