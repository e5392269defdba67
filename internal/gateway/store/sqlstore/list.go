package sqlstore

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// ListSandboxes implements [store.Store]. A page is found by its first key, so its cost does not depend on how many
// sandboxes there are before or after it.
func (s *Store) ListSandboxes(ctx context.Context, q store.ListQuery) ([]store.Sandbox, error) {
	if unstorable(texts(q)...) {
		return nil, nil
	}
	query, args := listQuery(q)
	var sandboxes []store.Sandbox
	err := s.engine.Read(ctx, func(ctx context.Context) error {
		rows, err := s.engine.Reader().QueryContext(ctx, s.dialect.rewrite(query), args...)
		if err != nil {
			return err
		}
		sandboxes, err = scanAll(rows)
		return err
	})
	return sandboxes, s.wrap(ctx, err)
}

// texts are those that a client may have made up.
func texts(q store.ListQuery) []string {
	all := append(slices.Collect(maps.Keys(q.Labels)), slices.Collect(maps.Values(q.Labels))...)
	if q.After != nil {
		all = append(all, q.After.Name, q.After.Workspace, q.After.ID)
	}
	return append(all, q.Workspace)
}

// listQuery walks the sandboxes in their order or, if labels are asked for, those that carry the first of them: the rows
// of sandbox_labels repeat what the order consists of. The other labels are looked up row by row.
func listQuery(q store.ListQuery) (string, []any) {
	var where []string
	var args []any
	and := func(condition string, values ...any) {
		where = append(where, condition)
		args = append(args, values...)
	}

	from, key, workspace := "sandboxes AS s", "s.created_at, s.name, s.workspace, s.id", "s.workspace"
	labels := slices.Sorted(maps.Keys(q.Labels))
	if len(labels) > 0 {
		from = "sandbox_labels AS l JOIN sandboxes AS s ON s.id = l.sandbox_id"
		key, workspace = "l.created_at, l.name, l.workspace, l.sandbox_id", "l.workspace"
		and("l.key = ? AND l.value = ?", labels[0], q.Labels[labels[0]])
		for _, other := range labels[1:] {
			and("EXISTS (SELECT 1 FROM sandbox_labels AS o WHERE o.sandbox_id = s.id AND o.key = ? AND o.value = ?)", other, q.Labels[other])
		}
	}
	if q.Workspace != "" {
		and(workspace+" = ?", q.Workspace)
	}
	if c := q.After; c != nil {
		and("("+key+") > (?, ?, ?, ?)", micros(c.CreatedAt), c.Name, c.Workspace, c.ID)
	}

	query := "SELECT " + listColumns + " FROM " + from
	if len(where) > 0 {
		query += " WHERE " + strings.Join(where, " AND ")
	}
	return query + " ORDER BY " + key + " LIMIT ?", append(args, q.Limit)
}

var listColumns = "s." + strings.ReplaceAll(columns, ", ", ", s.")
