package pgtest

import (
	"bytes"
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Dump is all that the tables of a database hold, with every text and every bytea as it is, to be searched.
func Dump(tb testing.TB, databaseURL string) []byte {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), statementTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	rows, err := conn.Query(ctx, "SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = current_schema()")
	if err != nil {
		tb.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		tb.Fatal(err)
	}
	var all bytes.Buffer
	for _, table := range tables {
		if _, err := conn.PgConn().CopyTo(ctx, &all, "COPY "+table+" TO STDOUT (FORMAT binary)"); err != nil {
			tb.Fatalf("dump table %s: %v", table, err)
		}
	}
	return all.Bytes()
}
