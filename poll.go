package leasehold

import (
	"context"
	"errors"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// poll asks until the lock is granted, with pauses, and at most tries times unless tries is 0.
// It gives up if the store has not answered at all for a TTL.
func (c *queues) poll(ctx context.Context, r *recipe, t terms, tries int, bound bool, began clock.Instant) (*Lease, error) {
	delay := r.delay()
	var last error            // why the lock was not granted so far,
	var at clock.Instant      // and when the store said so
	var trouble clock.Instant // since when the store gave no answer at all
	var told cause
	for try := 1; ; try++ {
		if ctx.Err() != nil {
			return nil, gaveUp(ctx, c.refreshHolder(ctx, r.name, t.life.TTL, last, at))
		}
		lease, err := c.attempt(ctx, r, t, bound, nil)
		if err == nil {
			return lease, nil
		}
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return nil, gaveUp(ctx, both(last, err))
		}
		last, at = err, c.clock.Now()
		busy, retry := canWait(err)
		switch now := at; {
		case !retry:
			return nil, err
		case busy != nil || opens(err):
			trouble = 0
		case trouble == 0:
			trouble = now
		case now.Sub(trouble) > t.life.TTL:
			return nil, err
		}
		if tries > 0 && try >= tries {
			return nil, err
		}
		r.seeWaiting(ctx, began, err, &told)
		clock.Sleep(ctx, untilFree(delay(try), busy))
	}
}

// untilFree returns how long to pause: d, or until the holder's lease ends if that is
// sooner. A millisecond is added so that the store has really dropped the lease.
func untilFree(d time.Duration, busy *BusyError) time.Duration {
	if busy != nil && busy.ExpiresIn > 0 {
		return min(d, busy.ExpiresIn+time.Millisecond)
	}
	return max(d, time.Millisecond)
}
