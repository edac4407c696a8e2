package filestore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

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

// The first pauses: so many yields, and naps up to naps.
const yields, naps = 4, 16

// pause lets the process that is in the way finish. Its transactions take less
// than a millisecond, so the first pauses are very short. The others are random
// so that contenders get out of step.
func pause(ctx context.Context, try int) {
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
	clock.Sleep(ctx, d/2+rand.N(d))
}

// errLimit is the end of Options.Timeout.
var errLimit = errors.New("time limit")

// quota limits how many requests run at once, to its capacity. Nil means no limit.
type quota chan struct{}

// run waits for its turn in each of all, in order, and calls work until no other
// transaction is in its way, within ctx and the time limit.
func (b *database) run(ctx context.Context, all []quota, work func(context.Context) (bool, error)) (maybe bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, b.limit, errLimit)
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
	if b.own {
		inner = context.WithoutCancel(ctx)
	}
	for try := 0; ; try++ {
		maybe, err = work(inner)
		switch {
		case err == nil:
			return false, nil
		case ctx.Err() != nil && !b.d.again(err):
			return maybe, ended(ctx, err)
		case !b.d.again(err):
			return maybe, err
		}
		pause(ctx, try)
		if ctx.Err() != nil {
			return false, ended(ctx, err)
		}
	}
}
