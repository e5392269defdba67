package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// batchLimit bounds how many requests share a transaction, so that none waits for too many others.
const batchLimit = 256

// courtesies is how often others are let run before a transaction is committed.
const courtesies = 3

// queue runs requests on the one connection that writes: many in a transaction, each behind a savepoint of its own. None
// is answered before the commit has returned, which is after the disk has it (synchronous=FULL).
type queue struct {
	db       *sql.DB
	requests chan *request
	stop     chan struct{} // closed to stop
	stopped  chan struct{} // closed when it has

	savepoint, release, rollback *sql.Stmt
}

// request is one Write.
type request struct {
	fn    func(context.Context, *sql.Tx) error
	state atomic.Int32
	done  chan struct{} // closed when answered
	err   error
	panic any
}

// States of a request.
const (
	waiting int32 = iota
	running
	abandoned
)

func newQueue(db *sql.DB) (*queue, error) {
	q := &queue{db: db, requests: make(chan *request), stop: make(chan struct{}), stopped: make(chan struct{})}
	for stmt, query := range map[**sql.Stmt]string{
		&q.savepoint: "SAVEPOINT request",
		&q.release:   "RELEASE request",
		&q.rollback:  "ROLLBACK TO request",
	} {
		var err error
		if *stmt, err = db.Prepare(query); err != nil {
			return nil, err
		}
	}
	go q.run()
	return q, nil
}

// close waits for the transaction under way. What comes later is refused.
func (q *queue) close() {
	close(q.stop)
	<-q.stopped
}

var errClosed = fmt.Errorf("%w: the database is closed", store.ErrUnavailable)

// do runs fn in the next transaction. A request that has begun is waited for whatever becomes of ctx, so that its outcome
// is known.
func (q *queue) do(ctx context.Context, fn func(context.Context, *sql.Tx) error) error {
	if err := ctx.Err(); err != nil { // select would pick any that is ready
		return err
	}
	r := &request{fn: fn, done: make(chan struct{})}
	select {
	case q.requests <- r:
	case <-ctx.Done():
		return ctx.Err()
	case <-q.stopped:
		return errClosed
	}
	select {
	case <-r.done:
	case <-ctx.Done():
		if r.state.CompareAndSwap(waiting, abandoned) {
			return ctx.Err()
		}
		<-r.done
	}
	if r.panic != nil {
		panic(r.panic)
	}
	return r.err
}

func (q *queue) run() {
	defer close(q.stopped)
	for {
		select {
		case r := <-q.requests:
			q.transaction(r)
		case <-q.stop:
			return
		}
	}
}

// transaction runs a request and those that wait behind it, and answers them.
func (q *queue) transaction(first *request) {
	var batch []*request
	err := q.commit(func(tx *sql.Tx) error {
		for r := first; r != nil; {
			batch = append(batch, r)
			if err := q.execute(tx, r); err != nil || len(batch) == batchLimit {
				return err
			}
			r = q.next()
		}
		return nil
	})
	if len(batch) == 0 { // no transaction could be begun
		batch = q.drain(first)
	}
	for _, r := range batch {
		if err != nil { // it took all with it
			r.err = err
		}
		close(r.done)
	}
}

func (q *queue) commit(fn func(*sql.Tx) error) error {
	tx, err := q.db.Begin()
	if err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		_ = tx.Rollback() // SQLite has done so by itself where this fails
		return err
	}
	return tx.Commit()
}

// next is a request that waits now, or nil. Goroutines that are about to ask are let run first: to commit for one costs the
// disk as much as for many.
func (q *queue) next() *request {
	for range courtesies {
		select {
		case r := <-q.requests:
			return r
		default:
			runtime.Gosched()
		}
	}
	return nil
}

// drain collects all that wait now.
func (q *queue) drain(first *request) []*request {
	var all []*request
	for r := first; r != nil; r = q.next() {
		all = append(all, r)
	}
	return all
}

// execute runs one request. Its own failure undoes its own work only; an error is one of the transaction.
func (q *queue) execute(tx *sql.Tx, r *request) error {
	if !r.state.CompareAndSwap(waiting, running) {
		return nil // nobody waits for it any more
	}
	if _, err := tx.Stmt(q.savepoint).Exec(); err != nil {
		return err
	}
	r.run(tx)
	if r.err != nil || r.panic != nil {
		if _, err := tx.Stmt(q.rollback).Exec(); err != nil { // the whole transaction is lost, as on a full disk
			return fmt.Errorf("%w, after: %s", err, r.problem()) // which is one request's own, and not an error of all
		}
	}
	_, err := tx.Stmt(q.release).Exec()
	return err
}

// problem is why a request failed.
func (r *request) problem() string {
	if r.panic != nil {
		return fmt.Sprint(r.panic)
	}
	return r.err.Error()
}

func (r *request) run(tx *sql.Tx) {
	defer func() { r.panic = recover() }() // it belongs to who asked, not to the queue
	r.err = r.fn(context.Background(), tx)
}
