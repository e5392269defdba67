// Package migrations brings a database to the schema that this build knows, one numbered step after another.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
)

//go:embed sqlite/*.sql
var sqliteFiles embed.FS

// SQLite migrates a SQLite database. A database that a newer build has migrated further is left as it is.
func SQLite(ctx context.Context, db *sql.DB) error {
	return up(ctx, goose.DialectSQLite3, db, sqliteFiles, "sqlite")
}

func up(ctx context.Context, dialect goose.Dialect, db *sql.DB, files fs.FS, folder string, opts ...goose.ProviderOption) error {
	steps, err := fs.Sub(files, folder)
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(dialect, db, steps, opts...)
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate the database: %w", err)
	}
	return nil
}
