package migrations

import (
	"context"
	"database/sql"
	"embed"
	"fmt"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed postgres/*.sql
var postgresFiles embed.FS

// PostgresLock is the advisory lock of a database that is held while its schema changes.
const PostgresLock = 0x6f70656e7368656c // "openshel"

// lockAttempts bounds how long a process waits for another that migrates: once a second.
const lockAttempts = 300

// Postgres migrates a PostgreSQL database. Processes may call it at the same time: one migrates, the others wait.
//
// Processes of the version before are still at work while a database is migrated, and one of them may be started after
// that. So a step only adds: columns with a default or without NOT NULL, tables, indexes. What is no longer needed is
// dropped a release after the last one that reads it, and nothing changes its type or its name.
func Postgres(ctx context.Context, db *sql.DB) error {
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockID(PostgresLock), lock.WithLockTimeout(1, lockAttempts))
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	return up(ctx, goose.DialectPostgres, db, postgresFiles, "postgres", goose.WithSessionLocker(locker))
}
