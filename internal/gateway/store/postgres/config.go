package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

const (
	// defaultConns lets four processes share a server with PostgreSQL's own limit of 100 connections.
	defaultConns = 24
	// connectTimeout is how long a host may take to answer, unless the URL says otherwise.
	connectTimeout = 5 * time.Second
	maxIdleTime    = 5 * time.Minute
	maxLifetime    = 30 * time.Minute // so that connections find their way to a new address
)

// poolParameter is pgx's name for the number of connections in a URL.
const poolParameter = "pool_max_conns"

// sessionParameters are set on every connection unless the URL says otherwise: nothing may wait for ever, and a process
// that stands still in a transaction must not hold its row for long.
var sessionParameters = map[string]string{
	"application_name":                    "openshell-reference-gateway",
	"statement_timeout":                   "10s",
	"lock_timeout":                        "5s",
	"idle_in_transaction_session_timeout": "10s",
}

// readOnly is what connections for reads have besides.
var readOnly = map[string]string{"default_transaction_read_only": "on"}

// config is what a URL says.
type config struct {
	url  string // that conn was read from
	conn *pgx.ConnConfig
	// writers and readers are how many connections transactions and reads may have. They are apart so that reads do not
	// wait behind transactions that wait for a row.
	writers, readers int
	// patience is how long a call is tried again.
	patience time.Duration
}

// parse reads a URL. pgx is not to describe what is wrong with it where it could repeat a password.
func parse(text string) (config, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return config{}, errors.New("the database URL cannot be read (it is not repeated here since it may hold a password): " +
			"it must look like postgres://user:password@host:5432/database?sslmode=verify-full, " +
			"and in user and password everything but letters and digits must be percent-encoded, such as / as %2F")
	case u.Scheme != "postgres" && u.Scheme != "postgresql":
		return config{}, fmt.Errorf("the database URL has the scheme %q, not postgres", u.Scheme)
	}
	conns := defaultConns
	query := u.Query()
	if value := query.Get(poolParameter); value != "" {
		if conns, err = strconv.Atoi(value); err != nil || conns < 2 {
			return config{}, fmt.Errorf("the database URL has %s=%s: it must be a number of at least 2", poolParameter, value)
		}
		query.Del(poolParameter)
		u.RawQuery = query.Encode()
	}
	conn, err := pgx.ParseConfig(u.String())
	if err != nil {
		return config{}, fmt.Errorf("the database URL cannot be used: %s", reason(err, u))
	}
	for name, value := range sessionParameters {
		if _, ok := conn.RuntimeParams[name]; !ok {
			conn.RuntimeParams[name] = value
		}
	}
	if !u.Query().Has("connect_timeout") {
		conn.ConnectTimeout = connectTimeout
	}
	// Of several hosts, only the one that takes writes shows all that was committed.
	conn.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsPrimary
	readers := max(1, conns/3)
	return config{url: u.String(), conn: conn, writers: conns - readers, readers: readers, patience: patience}, nil
}

// reason is what pgx found wrong, without the URL it was found in.
func reason(err error, u *url.URL) string {
	if inner := errors.Unwrap(err); inner != nil {
		err = inner
	}
	text := err.Error()
	if password, _ := u.User.Password(); strings.Contains(text, u.Redacted()) || password != "" && strings.Contains(text, password) {
		return "one of its parts is not valid"
	}
	return text
}

// session is the configuration of a connection with further parameters.
func (c config) session(parameters map[string]string) *pgx.ConnConfig {
	conn := c.conn.Copy()
	for name, value := range parameters {
		conn.RuntimeParams[name] = value
	}
	return conn
}

// renewPassword reads a password that is in a file anew, since it may have been changed. Where it finds none, the one that is
// there stays.
func (c config) renewPassword(_ context.Context, conn *pgx.ConnConfig) error {
	if fresh, err := pgx.ParseConfig(c.url); err == nil && fresh.Password != "" {
		conn.Password = fresh.Password
	}
	return nil
}

// open opens a pool of connections whose sessions have further parameters.
func (c config) open(parameters map[string]string) *sql.DB {
	return stdlib.OpenDB(*c.session(parameters), stdlib.OptionBeforeConnect(c.renewPassword))
}
