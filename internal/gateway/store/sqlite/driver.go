package sqlite

import (
	"database/sql/driver"
	"errors"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// busyTimeoutMillis is how long a connection waits for a lock. Only other programs that read or write the file, such as
// a backup, can hold one for long.
const busyTimeoutMillis = "5000"

// nowFunction gives SQL this process's clock. SQLite's own has milliseconds only.
const nowFunction = "now_us"

func init() {
	// Deterministic means to SQLite: the same within one statement.
	sqlite.MustRegisterDeterministicScalarFunction(nowFunction, 0, func(*sqlite.FunctionContext, []driver.Value) (driver.Value, error) {
		return time.Now().UnixMicro(), nil
	})
}

// unavailable says that somebody else held the lock for too long, or that the disk is full. Nothing was changed then.
func unavailable(err error) bool {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL:
		return true
	}
	return false
}
