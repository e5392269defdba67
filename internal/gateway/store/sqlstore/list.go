package sqlstore

import (
	"context"
	"database/sql"
	"maps"
	"slices"
	"strings"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// ListSandboxes implements [store.Store]. A page is found by its first key, so its cost does not depend on how many
// sandboxes there are before or after it.
func (s *Store) ListSandboxes(ctx context.Context, q store.ListQuery) (store.Page[store.Sandbox], error) {
	if unstorable(append(labelTexts(q.Labels, q.After), q.Workspace)...) {
		return store.Page[store.Sandbox]{}, nil
	}
	size := q.Limit
	q.Limit++ // to tell whether there are more
	query, args := listQuery(q)
	return listPage(ctx, s, size, query, args, func(r scanner) (store.Sandbox, error) { return scan(r) })
}

// listPage reads the rows of a query that make up a page of at most size rows.
func listPage[T any](ctx context.Context, s *Store, size int, query string, args []any, scan func(scanner) (T, error)) (store.Page[T], error) {
	return read(ctx, s, query, args, func(rows *sql.Rows) (store.Page[T], error) { return collectPage(rows, size, scan) })
}

// list reads the rows of a query, all of them.
func list[T any](ctx context.Context, s *Store, query string, args []any, scan func(scanner) (T, error)) ([]T, error) {
	return read(ctx, s, query, args, func(rows *sql.Rows) ([]T, error) { return collect(rows, scan) })
}

func read[T any](ctx context.Context, s *Store, query string, args []any, collect func(*sql.Rows) (T, error)) (all T, err error) {
	err = s.engine.Read(ctx, func(ctx context.Context) error {
		rows, err := s.engine.Reader().QueryContext(ctx, s.dialect.rewrite(query), args...) //nolint:rowserrcheck // collect does
		if err != nil {
			return err
		}
		all, err = collect(rows)
		return err
	})
	return all, s.wrap(ctx, err)
}

// collect reads rows to their end.
func collect[T any](rows *sql.Rows, scan func(scanner) (T, error)) (all []T, err error) {
	err = each(rows, scan, func(item T) bool { all = append(all, item); return true })
	return all, err
}

// collectPage reads rows until a page is full, by their number or by what they hold.
func collectPage[T any](rows *sql.Rows, size int, scan func(scanner) (T, error)) (page store.Page[T], err error) {
	held := 0
	weighed := func(r scanner) (T, error) { return scan(weighing{r, &held}) }
	err = each(rows, weighed, func(item T) bool {
		page.More = len(page.Rows) == size || len(page.Rows) > 0 && held > store.MaxPage
		if !page.More {
			page.Rows = append(page.Rows, item)
		}
		return !page.More
	})
	return page, err
}

// each scans rows as long as more are wanted, and closes them.
func each[T any](rows *sql.Rows, scan func(scanner) (T, error), more func(T) bool) (err error) {
	defer func() {
		if e := rows.Close(); err == nil {
			err = e
		}
	}()
	for rows.Next() {
		item, err := scan(rows)
		if err != nil {
			return err
		}
		if !more(item) {
			return nil
		}
	}
	return rows.Err()
}

// weighing adds up the bytes of what is scanned.
type weighing struct {
	scanner
	held *int
}

func (w weighing) Scan(dest ...any) error {
	if err := w.scanner.Scan(dest...); err != nil {
		return err
	}
	for _, d := range dest {
		switch d := d.(type) {
		case *string:
			*w.held += len(*d)
		case *[]byte:
			*w.held += len(*d)
		}
	}
	return nil
}

// labelTexts are those of a list that a client may have made up.
func labelTexts(labels map[string]string, after *store.Cursor) []string {
	all := append(slices.Collect(maps.Keys(labels)), slices.Collect(maps.Values(labels))...)
	if after != nil {
		all = append(all, after.Name, after.Workspace, after.ID)
	}
	return all
}

// conditions make up a WHERE clause.
type conditions struct {
	where []string
	args  []any
}

func (c *conditions) and(condition string, args ...any) {
	c.where = append(c.where, condition)
	c.args = append(c.args, args...)
}

// page completes a query.
func (c *conditions) page(query, order string, limit int) (string, []any) {
	if len(c.where) > 0 {
		query += " WHERE " + strings.Join(c.where, " AND ")
	}
	return query + " ORDER BY " + order + " LIMIT ?", append(c.args, limit)
}

// listQuery walks the sandboxes in their order or, if labels are asked for, those that carry the first of them: the rows
// of sandbox_labels repeat what the order consists of. The other labels are looked up row by row.
func listQuery(q store.ListQuery) (string, []any) {
	var c conditions
	from, key, workspace := "sandboxes AS s", "s.created_at, s.name, s.workspace, s.id", "s.workspace"
	labels := slices.Sorted(maps.Keys(q.Labels))
	if len(labels) > 0 {
		from = "sandbox_labels AS l JOIN sandboxes AS s ON s.id = l.sandbox_id"
		key, workspace = "l.created_at, l.name, l.workspace, l.sandbox_id", "l.workspace"
		c.and("l.key = ? AND l.value = ?", labels[0], q.Labels[labels[0]])
		for _, other := range labels[1:] {
			c.and("EXISTS (SELECT 1 FROM sandbox_labels AS o WHERE o.sandbox_id = s.id AND o.key = ? AND o.value = ?)", other, q.Labels[other])
		}
	}
	if q.Workspace != "" {
		c.and(workspace+" = ?", q.Workspace)
	}
	if after := q.After; after != nil {
		c.and("("+key+") > (?, ?, ?, ?)", micros(after.CreatedAt), after.Name, after.Workspace, after.ID)
	}
	return c.page("SELECT "+listColumns+" FROM "+from, key, q.Limit)
}

var listColumns = "s." + strings.ReplaceAll(columns, ", ", ", s.")
