package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/gate"
)

// errLimit is the end of Options.Timeout.
var errLimit = errors.New("time limit")

// caller calls procedures of the database.
type caller struct {
	pool    *pool
	engine  engine
	o       Options
	calls   calls
	gate    *gate.Gate
	seats   *seats
	batches *batches

	// explicit is set if transactions do not start at READ COMMITTED, so that every
	// call has to be put into a transaction that does.
	explicit atomic.Bool
}

// call calls a procedure and scans its rows with each. It repeats the call while
// trying again can help. maybe is set if the call failed but may have had an effect, and if
// it succeeded after a try that may have had one.
//
// It waits first while too many other calls are under way.
func (c *caller) call(ctx context.Context, query statement, each func(row) error, args ...any) (maybe bool, err error) {
	defer c.pool.enter(ctx)()
	return c.callNow(ctx, query, each, args...)
}

// callNow is call for what others must not delay.
func (c *caller) callNow(ctx context.Context, query statement, each func(row) error, args ...any) (maybe bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.o.Timeout, errLimit)
	defer cancel()
	var last error // what the server said before
	for try := 0; ; try++ {
		conn, err := c.pool.conn(ctx)
		if err != nil {
			// Nothing was sent in this try.
			if c.engine.fault(err).again && pause(ctx, try) {
				continue
			}
			err = ended(ctx, cmp.Or(last, err))
			if over, ok := errors.AsType[*endedError](err); ok {
				over.unconnected = last == nil
			}
			return maybe, err
		}
		unsure, err := c.callOn(ctx, conn, query, each, args...)
		maybe = maybe || unsure
		c.putBack(conn, err)
		if err == nil {
			return maybe, nil
		}
		fault := c.engine.fault(err)
		if !fault.again || !pause(ctx, try) {
			if last != nil && ctx.Err() != nil && fault.code == "" {
				err = last
			}
			return maybe, ended(ctx, err)
		}
		last = err
		if fault.unprepared {
			c.seats.poll("prepared statements do not stay with a connection")
			c.pool.revert()
		}
	}
}

// putBack gives a connection back to the pool after a call with that result, unless it is
// unusable.
func (c *caller) putBack(conn *sql.Conn, err error) {
	if err != nil && c.engine.fault(err).unusable {
		discard(conn)
		return
	}
	conn.Close()
}

// callOn calls a procedure once on one connection.
func (c *caller) callOn(ctx context.Context, conn *sql.Conn, query statement, each func(row) error, args ...any) (maybe bool, err error) {
	if c.pool.due() {
		c.prepareSoon(ctx)
	}
	if !c.explicit.Load() {
		err = rows(ctx, conn, c.pool.prepares.Load(), query, each, args...)
		if err == nil {
			return false, nil
		}
		fault := c.engine.fault(err)
		if fault.code != codeIsolation {
			return !fault.certain, err
		}
		// Transactions start at another isolation level here.
		c.explicit.Store(true)
	}
	sent, err := inTransaction(ctx, c.engine, conn, func() error { return rows(ctx, conn, c.pool.prepares.Load(), query, each, args...) })
	return sent && err != nil && !c.engine.fault(err).certain, err
}

// prepareSoon makes the server prepare the calls, in the background, if sessions last. If
// that cannot be told now, nothing is decided. The caller is counted at the gate.
func (c *caller) prepareSoon(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	c.gate.Stay()
	go func() {
		defer c.gate.Leave()
		ctx, cancel := context.WithTimeout(ctx, c.o.Timeout)
		defer cancel()
		c.seats.probe(ctx)
		if c.seats.last() {
			c.pool.prepare()
		} else if c.seats.known() {
			c.pool.decided.Store(true)
		}
	}()
}

// pause waits a little longer for each try. It returns false if ctx has ended.
func pause(ctx context.Context, try int) bool {
	const least, most = time.Millisecond, 200 * time.Millisecond
	d := min(least<<min(try, 10), most)
	return clock.Sleep(ctx, d/2+rand.N(d))
}

// endedError is the error of a call whose context has ended.
type endedError struct {
	cause, ctx, last error
	// unconnected: the call had no connection yet.
	unconnected bool
}

// ended returns err, as an endedError if it came with the end of ctx.
func ended(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if d, has := ctx.Deadline(); has && !time.Now().Before(d) {
		// A socket with the same deadline can fail a moment earlier. If the time of day was set
		// forward, the context may last on.
		clock.Sleep(ctx, time.Second/10)
	}
	if ctx.Err() == nil {
		return err
	}
	return &endedError{cause: context.Cause(ctx), ctx: ctx.Err(), last: err}
}

func (e *endedError) Error() string { return fmt.Sprintf("%v, after: %v", e.cause, e.last) }

func (e *endedError) Unwrap() []error { return []error{e.ctx, e.cause} }

// callOnce is call on one connection, without repetition. The call may wait for block in the
// server.
func (c *caller) callOnce(ctx context.Context, block time.Duration, conn *sql.Conn, query statement, each func(row) error, args ...any) (maybe bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, block+c.o.Timeout, errLimit)
	defer cancel()
	maybe, err = c.callOn(ctx, conn, query, each, args...)
	return maybe, ended(ctx, err)
}
