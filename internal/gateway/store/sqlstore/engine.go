// Package sqlstore is a [store.Store] over database/sql. The transactions are written here once, for every SQL database;
// a database's own package opens it, says how its SQL differs in a [Dialect], and how a transaction is run in an
// [Engine].
package sqlstore

import (
	"context"
	"database/sql"
	"strconv"
	"strings"
)

// Dialect is what differs in the SQL.
type Dialect struct {
	// Now is an expression for the database's clock, in microseconds since 1970.
	Now string
	// ForUpdate, ForShare and SkipLocked end a SELECT that locks its rows, where rows can be locked.
	ForUpdate, ForShare, SkipLocked string
	// NumberedParameters says that parameters are $1, $2, … and not ?.
	NumberedParameters bool
	// Unavailable says that an error of the driver stands for a database that could not serve the call in time, so that
	// nothing was changed and the call may be tried again.
	Unavailable func(error) bool
}

// Engine runs transactions.
type Engine interface {
	// Write runs fn in a transaction of the Writer and returns once it is committed, durably, or not at all. fn may run
	// more than once; when it fails its work is undone and its error returned as it is. Other errors are the driver's.
	Write(ctx context.Context, fn func(ctx context.Context, tx *sql.Tx) error) error
	// Read runs fn, which reads from the Reader. It may run more than once.
	Read(ctx context.Context, fn func(ctx context.Context) error) error
	// Writer is the database that Write runs on.
	Writer() *sql.DB
	// Reader is the database for reads outside transactions, which see all that was committed before they began.
	Reader() *sql.DB
	// Close waits for the transactions under way and releases the database.
	Close() error
}

// rewrite fits a query to the dialect: words in braces stand for what it has in their place.
func (d Dialect) rewrite(query string) string {
	query = strings.NewReplacer(
		"{now}", d.Now, "{for update}", d.ForUpdate, "{for share}", d.ForShare, "{skip locked}", d.SkipLocked,
	).Replace(query)
	if !d.NumberedParameters {
		return query
	}
	var b strings.Builder
	n := 0
	for _, r := range query {
		if r != '?' {
			b.WriteRune(r)
			continue
		}
		n++
		b.WriteString("$" + strconv.Itoa(n))
	}
	return b.String()
}
