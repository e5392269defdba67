package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

var (
	// errUndone says that a transaction was not committed, and by now cannot be any more.
	errUndone = errors.New("the transaction was not committed")
	// errInProgress says that the server is at the commit still, or has not noticed yet that its client is gone.
	errInProgress = errors.New("the transaction has not ended yet")
)

// Codes of PostgreSQL (its documentation, appendix A).
const (
	codeSerializationFailure = "40001"
	codeDeadlock             = "40P01"
	codeTooManyConnections   = "53300"
	codeAdminShutdown        = "57P01"
	codeCrashShutdown        = "57P02"
	codeCannotConnectNow     = "57P03"
	codeIdleSession          = "57P05"
	codeIdleInTransaction    = "25P03"
	codeReadOnly             = "25006"
	codeLockNotAvailable     = "55P03"
	codeQueryCanceled        = "57014"
	codeInvalidParameter     = "22023"
	classConnection          = "08"
	classResources           = "53"
)

// transient says that a transaction was undone, or not begun, for a reason that is likely to pass at once. A connection
// that was lost counts: without COMMIT its work is undone, and what becomes of a COMMIT is found out where it is sent.
func transient(err error) bool {
	if err == nil || errors.Is(err, store.ErrOutcomeUnknown) {
		return false
	}
	var answer *pgconn.PgError
	if errors.As(err, &answer) {
		switch answer.Code {
		case codeSerializationFailure, codeDeadlock, codeTooManyConnections,
			codeAdminShutdown, codeCrashShutdown, codeCannotConnectNow, codeIdleSession, codeIdleInTransaction:
			return true
		}
		return class(answer) == classConnection
	}
	var connect *pgconn.ConnectError
	var network *net.OpError
	for _, lost := range []error{
		errUndone, errInProgress, driver.ErrBadConn, sql.ErrConnDone, sql.ErrTxDone, pgconn.ErrConnClosed, net.ErrClosed, io.EOF, io.ErrUnexpectedEOF,
	} {
		if errors.Is(err, lost) {
			return true
		}
	}
	return errors.As(err, &connect) || errors.As(err, &network) || pgconn.SafeToRetry(err)
}

// unavailable implements [sqlstore.Dialect]: nothing was changed, and it may be tried again later.
func unavailable(err error) bool {
	var connect *pgconn.ConnectError
	var answer *pgconn.PgError
	switch {
	case errors.Is(err, store.ErrOutcomeUnknown):
		return false
	case transient(err), errors.Is(err, context.DeadlineExceeded), errors.As(err, &connect):
		return true
	case !errors.As(err, &answer):
		return false
	}
	switch answer.Code {
	case codeLockNotAvailable, codeQueryCanceled, codeReadOnly:
		return true
	}
	return class(answer) == classResources
}

func class(e *pgconn.PgError) string { return e.Code[:min(2, len(e.Code))] }
