package sqlstore

import (
	"context"
	"time"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

const (
	phasesQuery  = `SELECT phase, count(*) FROM sandboxes GROUP BY phase`
	overdueQuery = `SELECT count(*), coalesce({now} - min(due_at), 0) FROM sandboxes WHERE due_at < (SELECT {now})`
)

// phaseCount is a row of phasesQuery.
type phaseCount struct {
	phase openshellv1.SandboxPhase
	count int
}

// Statistics implements [store.Counted].
func (s *Store) Statistics(ctx context.Context) (store.Statistics, error) {
	counts, err := list(ctx, s, phasesQuery, nil, func(r scanner) (c phaseCount, err error) {
		err = r.Scan(&c.phase, &c.count)
		return c, err
	})
	if err != nil {
		return store.Statistics{}, err
	}
	statistics := store.Statistics{Sandboxes: map[openshellv1.SandboxPhase]int{}}
	for _, c := range counts {
		statistics.Sandboxes[c.phase] = c.count
	}
	var longest int64
	err = s.engine.Read(ctx, func(ctx context.Context) error {
		return s.stmt.overdue.QueryRowContext(ctx).Scan(&statistics.Overdue, &longest)
	})
	statistics.LongestOverdue = time.Duration(longest) * time.Microsecond
	return statistics, s.wrap(ctx, err)
}
