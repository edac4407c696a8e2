package leasehold

import (
	"context"
	"errors"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
)

// WaitFree blocks until nobody holds the lock. It takes nothing and has no place in
// the queue, so the lock may be held again when it returns: to do something that
// excludes others, acquire the lock. It waits for holders of every kind.
//
// It asks the store after each RetryDelay, and when the holder's lease is about to
// end. It calls OnWait with each answer. If ctx ends first, the error matches
// ctx.Err(), and ErrBusy if the lock was held. While nodes cannot be reached, it goes
// on for one TTL; any other error of the store is returned at once.
//
// A lease that is undecided, because some of several servers do not answer
// (store.State.Undecided), is waited for like any other. BusyError.Undecided then reports
// that. The wait ends when the servers decide that nobody holds the lock, or when the
// lease has expired on so many of those that answer that the others do not matter.
func (l *Lock) WaitFree(ctx context.Context) error {
	mustHave(ctx)
	if err := store.CheckName(l.r.name); err != nil {
		return err
	}
	delay := l.r.delay()
	ttl := orElse(l.r.o.TTL, DefaultTTL)
	var last error
	var trouble clock.Instant // since when the store gave no answer at all
	for try := 1; ; try++ {
		if ctx.Err() != nil {
			return gaveUp(ctx, last)
		}
		state, err := l.c.store.Inspect(ctx, l.r.name)
		if err == nil && state.Free() {
			return nil
		}
		if err == nil {
			err = state.InUse()
		} else if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return gaveUp(ctx, both(last, err))
		}
		busy, retry := canWait(err)
		switch now := l.c.clock.Now(); {
		case !retry:
			return err
		case busy != nil:
			trouble = 0
		case trouble == 0:
			trouble = now
		case now.Sub(trouble) > ttl:
			return err
		}
		last = err
		if l.r.o.OnWait != nil {
			l.r.o.OnWait(err)
		}
		clock.Sleep(ctx, untilFree(delay(try), busy))
	}
}
