package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
)

// errLimit is the end of Options.Timeout.
var errLimit = errors.New("time limit")

// querier is a connection or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// call calls a procedure and scans its rows with each. It repeats the call while
// the server says that nothing was done and that trying again can help. maybe is set
// if the call failed but may have had an effect.
//
// It waits first while too many other calls are under way.
func (s *Store) call(ctx context.Context, query statement, each func(*sql.Rows) error, args ...any) (maybe bool, err error) {
	defer s.pool.enter(ctx)()
	return s.callNow(ctx, query, each, args...)
}

// callNow is call for what others must not delay.
func (s *Store) callNow(ctx context.Context, query statement, each func(*sql.Rows) error, args ...any) (maybe bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.o.Timeout, errLimit)
	defer cancel()
	var last error // what the server said before
	for try := 0; ; try++ {
		conn, err := s.pool.conn(ctx)
		if err != nil {
			// Nothing was sent.
			if s.engine.fault(err).again && pause(ctx, try) {
				continue
			}
			return false, ended(ctx, cmp.Or(last, err))
		}
		maybe, err := s.callOn(ctx, conn, query, each, args...)
		if err == nil {
			conn.Close()
			return false, nil
		}
		fault := s.engine.fault(err)
		if fault.unusable {
			discard(conn)
		} else {
			conn.Close()
		}
		if !fault.again || !pause(ctx, try) {
			if last != nil && ctx.Err() != nil && fault.code == "" {
				err = last
			}
			return maybe, ended(ctx, err)
		}
		last = err
		if fault.unprepared {
			s.seats.poll("prepared statements do not stay with a connection")
			s.pool.revert()
		}
	}
}

// callOn calls a procedure once on one connection.
func (s *Store) callOn(ctx context.Context, conn *sql.Conn, query statement, each func(*sql.Rows) error, args ...any) (maybe bool, err error) {
	if s.pool.due() {
		s.prepareSoon(ctx)
	}
	if !s.explicit.Load() {
		err = rows(ctx, conn, query, each, args...)
		if err == nil {
			return false, nil
		}
		fault := s.engine.fault(err)
		if fault.code != codeIsolation {
			return !fault.certain, err
		}
		// Transactions start at another isolation level here.
		s.explicit.Store(true)
	}
	tx, err := conn.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return false, err
	}
	defer tx.Rollback() // no effect after a commit
	if err := rows(ctx, tx, query, each, args...); err != nil {
		return false, err
	}
	err = tx.Commit()
	return err != nil && !s.engine.fault(err).certain, err
}

// prepareSoon makes the server prepare the calls, in the background, if sessions last. The
// caller is counted at the gate.
func (s *Store) prepareSoon(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	s.gate.Stay()
	go func() {
		defer s.gate.Leave()
		ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
		defer cancel()
		if s.seats.probe(ctx); !s.seats.last() {
			return
		}
		if err := s.pool.prepare(); err != nil {
			s.o.Logger.Warn("cannot prepare statements; calls take a little longer", "err", err)
		}
	}()
}

// rows runs a query and scans each of its rows.
func rows(ctx context.Context, q querier, query statement, each func(*sql.Rows) error, args ...any) error {
	text, rest := query(args)
	r, err := q.QueryContext(ctx, text, rest...)
	if err != nil {
		return err
	}
	defer r.Close()
	for r.Next() {
		if err := each(r); err != nil {
			return err
		}
	}
	return cmp.Or(r.Err(), r.Close())
}

// discard closes a connection instead of giving it back to the pool. The server
// then frees what the session has locked.
func discard(conn *sql.Conn) {
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	conn.Close()
}

// pause waits a little longer for each try. It returns false if ctx has ended.
func pause(ctx context.Context, try int) bool {
	const least, most = time.Millisecond, 200 * time.Millisecond
	d := min(least<<min(try, 10), most)
	return clock.Sleep(ctx, d/2+rand.N(d))
}

// endedError is the error of a call whose context has ended.
type endedError struct{ cause, ctx, last error }

// ended returns err, as an endedError if it came with the end of ctx.
func ended(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	return &endedError{cause: context.Cause(ctx), ctx: ctx.Err(), last: err}
}

func (e *endedError) Error() string { return fmt.Sprintf("%v, after: %v", e.cause, e.last) }

func (e *endedError) Unwrap() []error { return []error{e.ctx, e.cause} }

// failed turns err into the error that the caller of a method gets.
func (s *Store) failed(ctx context.Context, op, name string, maybe bool, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		if errors.Is(cause, store.ErrClosed) {
			return store.ErrClosed
		}
		if name == "" {
			return fmt.Errorf("%s in %s: %w", op, s.node, ctx.Err())
		}
		return fmt.Errorf("%s %q in %s: %w", op, name, s.node, ctx.Err())
	}
	n := store.NodeOutcome{Node: s.node}
	var over *endedError
	if errors.As(err, &over) {
		fault := s.engine.fault(over.last)
		if n.Outcome = store.TimedOut; fault.again {
			n.Outcome = fault.outcome // nothing was done
		}
		n.Err = fmt.Errorf("no success within %v: %w", s.o.Timeout, fault.explain(over.last))
	} else {
		fault := s.engine.fault(err)
		n.Outcome, n.Err = fault.outcome, fault.explain(err)
	}
	if maybe && n.Outcome == store.Refused {
		n.Outcome = store.Unreachable // the outcome for errors that leave the result unknown
	}
	return &store.QuorumError{Op: op, Name: name, Need: 1, Nodes: []store.NodeOutcome{n}}
}
