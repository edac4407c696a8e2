package filestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// errLimit is the end of Options.Timeout.
var errLimit = errors.New("time limit")

// write runs fn in a writing transaction, and repeats it while other transactions
// are in the way. maybe is set if it failed but may have taken effect.
func (s *Store) write(ctx context.Context, fn func(*step) error) (maybe bool, err error) {
	return s.writeIn(ctx, []quota{s.writers}, fn)
}

// ask is write for a request that asks for a lock. At most one such request of the
// process competes with its releases and renewals: behind fifty of them, a release on
// a slow machine would reach its time limit.
func (s *Store) ask(ctx context.Context, fn func(*step) error) (maybe bool, err error) {
	return s.writeIn(ctx, []quota{s.askers, s.writers}, fn)
}

func (s *Store) writeIn(ctx context.Context, all []quota, fn func(*step) error) (maybe bool, err error) {
	return s.run(ctx, all, func(ctx context.Context) (maybe bool, err error) {
		maybe, err = s.once(ctx, false, fn)
		if used := (tokensUsedUpError{}); errors.As(err, &used) {
			if err := s.moreTokens(ctx, used.need); err != nil {
				return false, err
			}
			return s.once(ctx, false, fn)
		}
		return maybe, err
	})
}

// read runs fn in a read-only transaction.
func (s *Store) read(ctx context.Context, fn func(*step) error) error {
	_, err := s.run(ctx, []quota{s.readers}, func(ctx context.Context) (bool, error) {
		return s.once(ctx, true, fn)
	})
	return err
}

// quota limits how many requests run at once, to its capacity. Nil means no limit.
type quota chan struct{}

// run waits for its turn in each of all, in order, and calls work until no other
// transaction is in its way, within ctx and the time limit.
func (s *Store) run(ctx context.Context, all []quota, work func(context.Context) (bool, error)) (maybe bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.limit, errLimit)
	defer cancel()
	if ctx.Err() != nil {
		return false, ended(ctx, nil)
	}
	for _, t := range all {
		if t == nil {
			continue
		}
		select {
		case t <- struct{}{}:
			defer func() { <-t }()
		case <-ctx.Done():
			return false, ended(ctx, nil)
		}
	}
	inner := ctx
	if s.own {
		inner = context.WithoutCancel(ctx)
	}
	for try := 0; ; try++ {
		maybe, err = work(inner)
		switch {
		case err == nil:
			return false, nil
		case ctx.Err() != nil && !s.d.again(err):
			return maybe, ended(ctx, err)
		case !s.d.again(err):
			return maybe, err
		}
		pause(ctx, try)
		if ctx.Err() != nil {
			return false, ended(ctx, err)
		}
	}
}

// ended returns the error for a ctx that has ended. last is the error that
// prevented success until then.
func ended(ctx context.Context, last error) error {
	return &endedError{cause: context.Cause(ctx), ctx: ctx.Err(), last: last}
}

type endedError struct{ cause, ctx, last error }

func (e *endedError) Error() string {
	if e.last == nil {
		return e.cause.Error()
	}
	return fmt.Sprintf("%v, after: %v", e.cause, e.last)
}

func (e *endedError) Unwrap() []error { return []error{e.ctx, e.cause} }

// pause lets the process that is in the way finish. Its transactions take less
// than a millisecond, so the first pauses are very short. The others are random
// so that contenders get out of step.
func pause(ctx context.Context, try int) {
	const yields, naps = 4, 16
	switch {
	case try < yields:
		yield()
		return
	case try < naps:
		nap()
		return
	}
	const least, most = time.Millisecond, 16 * time.Millisecond
	d := min(least<<min(try-naps, 10), most)
	timer := time.NewTimer(d/2 + rand.N(d))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// failed turns err into the error that the caller of a method gets.
func (s *Store) failed(ctx context.Context, op, name string, maybe bool, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		if name == "" {
			return fmt.Errorf("%s in %s: %w", op, s.node, err)
		}
		return fmt.Errorf("%s %q in %s: %w", op, name, s.node, err)
	}
	n := store.NodeOutcome{Node: s.node, Outcome: store.TimedOut}
	var over *endedError
	switch {
	case errors.As(err, &over) && over.last != nil:
		_, why := s.d.explain(over.last)
		n.Err = fmt.Errorf("no success within %v: %w", s.limit, why)
	case errors.As(err, &over):
		n.Err = fmt.Errorf("no turn within %v: this process has too many pending requests", s.limit)
	default:
		n.Outcome, n.Err = s.d.explain(err)
	}
	if maybe && n.Outcome == store.Refused {
		n.Outcome = store.Unreachable // the outcome for errors that leave the result unknown
	}
	return &store.QuorumError{Op: op, Name: name, Need: 1, Nodes: []store.NodeOutcome{n}}
}

// moreTokens puts a new range of tokens on disk, n of which are wanted at once.
func (s *Store) moreTokens(ctx context.Context, n int64) error {
	return s.d.durably(ctx, s.db, func(tx *sql.Tx) error {
		_, err := tx.StmtContext(ctx, s.stmts[qReserve]).ExecContext(ctx, n, s.tokenFloor(), tokenRange)
		return err
	})
}
