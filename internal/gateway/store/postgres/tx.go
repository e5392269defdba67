package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// commandTimeout bounds BEGIN, COMMIT and ROLLBACK; no context of a caller ends the latter two.
const commandTimeout = 10 * time.Second

// connect opens a database whose transactions are either committed or not: when the connection is lost while a COMMIT is
// under way, the server is asked on another one what became of it. To run the transaction again without knowing would be
// no way out: a sandbox that was made and deleted since would come back, and a change would meet its own new version.
func connect(cfg config) *sql.DB {
	return sql.OpenDB(connector{Connector: stdlib.GetConnector(*cfg.session(nil), stdlib.OptionBeforeConnect(cfg.renewPassword)), config: cfg})
}

type connector struct {
	driver.Connector
	config
}

// Connect implements [driver.Connector].
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	opened, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	inner, ok := opened.(*stdlib.Conn)
	if !ok {
		return nil, fmt.Errorf("unexpected kind of connection %T", opened)
	}
	life, err := prepareSession(ctx, inner.Conn())
	if err != nil {
		return nil, errors.Join(err, inner.Close())
	}
	return &conn{Conn: inner, connector: c, life: life}, nil
}

// lifeQuery is when the server last came up from a crash, or from being a standby; statistics do not survive that, and
// are kept over an orderly restart. After a crash it may give a transaction the number of one whose end it has lost.
const lifeQuery = `SELECT coalesce(stats_reset::text, '') FROM pg_stat_wal`

// prepareSession prepares a new connection. Commits wait for the disk, even if the role's settings say otherwise.
func prepareSession(ctx context.Context, c *pgx.Conn) (life string, err error) {
	const durable = `SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'`
	if _, err := c.Exec(ctx, durable); err != nil {
		return "", err
	}
	return life, c.QueryRow(ctx, lifeQuery).Scan(&life)
}

// conn is a connection whose transactions know their number.
type conn struct {
	*stdlib.Conn
	connector connector
	life      string
}

// BeginTx implements [driver.ConnBeginTx]. The options are not looked at: there is one kind of transaction.
func (c *conn) BeginTx(ctx context.Context, _ driver.TxOptions) (driver.Tx, error) {
	if c.Conn.Conn().IsClosed() {
		return nil, driver.ErrBadConn
	}
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	results, err := c.run(ctx, "BEGIN ISOLATION LEVEL READ COMMITTED; SELECT pg_current_xact_id()")
	switch {
	case pgconn.SafeToRetry(err):
		return nil, driver.ErrBadConn
	case err != nil:
		return nil, err
	case len(results) != 2 || len(results[1].Rows) != 1 || len(results[1].Rows[0]) != 1:
		return nil, errors.New("unexpected answer to BEGIN")
	}
	return &tx{conn: c, number: string(results[1].Rows[0][0])}, nil
}

func (c *conn) run(ctx context.Context, statements string) ([]*pgconn.Result, error) {
	return c.Conn.Conn().PgConn().Exec(ctx, statements).ReadAll()
}

type tx struct {
	conn   *conn
	number string
}

// Rollback implements [driver.Tx].
func (t *tx) Rollback() error {
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	_, err := t.conn.run(ctx, "ROLLBACK")
	return err
}

// Commit implements [driver.Tx]. An error means that nothing was changed, unless it is [store.ErrOutcomeUnknown].
func (t *tx) Commit() error {
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	results, err := t.conn.run(ctx, "COMMIT")
	if err == nil {
		if len(results) == 1 && results[0].CommandTag.String() == "COMMIT" {
			return nil
		}
		return errors.New("the server rolled back instead of committing") // a statement's error was not heeded
	}
	var answer *pgconn.PgError
	if pgconn.SafeToRetry(err) || errors.As(err, &answer) && answer.SeverityUnlocalized == "ERROR" {
		return fmt.Errorf("%w: %w", errUndone, err)
	}
	return t.conn.outcome(t.number, err)
}

// outcome finds out what became of a COMMIT that was cut off by lost.
func (c *conn) outcome(number string, lost error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*c.connector.patience)
	defer cancel()
	var committed bool
	err := again(ctx, c.connector.patience, func(ctx context.Context) (err error) {
		committed, err = c.ask(ctx, number)
		return err
	})
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w, after: %w", store.ErrOutcomeUnknown, err, lost)
	case !committed:
		return fmt.Errorf("%w: %w", errUndone, lost)
	}
	return nil
}

func (c *conn) ask(ctx context.Context, number string) (committed bool, err error) {
	cfg := c.connector.session(nil)
	if err := c.connector.renewPassword(ctx, cfg); err != nil {
		return false, err
	}
	other, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return false, err
	}
	defer func() { _ = other.Close(ctx) }()
	var life, status string
	err = other.QueryRow(ctx, `SELECT (`+lifeQuery+`), coalesce(pg_xact_status($1::text::xid8), 'forgotten')`, number).Scan(&life, &status)
	var answer *pgconn.PgError
	if errors.As(err, &answer) && answer.Code == codeInvalidParameter { // there is no such number any more, or not yet again
		return false, nil
	}
	if err != nil {
		return false, err
	}
	sameLife := life == c.life
	switch {
	case status == "aborted", status == "in progress" && !sameLife: // the latter is another with the number
		return false, nil
	case status == "in progress":
		return false, errInProgress
	case status == "committed" && sameLife:
		return true, nil
	}
	return false, fmt.Errorf("the server crashed meanwhile, and its transaction %s is %s", number, status)
}
