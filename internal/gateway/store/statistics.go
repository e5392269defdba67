package store

import (
	"context"
	"time"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

// Statistics count what is in a store, in all of it: gateways that share a database see the same.
type Statistics struct {
	// Sandboxes by phase; a phase that none is in is left out.
	Sandboxes map[openshellv1.SandboxPhase]int
	// Overdue is how many operations have fallen due and not been taken up.
	Overdue int
	// LongestOverdue is how long the first of them has been waiting; 0 when there is none.
	LongestOverdue time.Duration
}

// Counted tells what is in a store.
type Counted interface {
	// Statistics counts, in time that grows with the number of sandboxes. Its parts need not be of the same moment.
	Statistics(ctx context.Context) (Statistics, error)
}
