package leasehold

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
)

// wait asks for the lock until it is granted, tries are used up, ctx ends, or
// the answer is one that waiting can not change. It is the one place that
// waits. With bound, what is derived from the lease's context ends with ctx.
func (l *Lock) wait(ctx context.Context, tries int, bound bool) (*Lease, error) {
	if err := store.CheckName(l.name); err != nil {
		return nil, err
	}
	life, err := l.o.life()
	if err != nil {
		return nil, err
	}
	if outer, ok := ctx.Value(leaseKey{l.c, l.name}).(*Lease); ok {
		return outer.reenter(ctx, bound)
	}
	if l.o.Require > store.Efficiency && l.o.Require > l.c.store.Caps().Class {
		caps := l.c.store.Caps()
		return nil, fmt.Errorf("%w: lock %q requires %v, and this store (%s, %d nodes) gives %v at most", ErrUnsupported, l.name, l.o.Require, caps.Engine, caps.Nodes, caps.Class)
	}
	if l.o.Owner != "" && tries != 1 {
		return nil, invalid("a fixed Owner goes with one attempt: use Try, or set Tries to 1")
	}
	if !ownerPerAttempt && l.o.Owner == "" {
		l = l.With(LockOptions{Owner: store.NewOwner()})
	}
	delay := l.o.delay()
	var last error            // why the lock was not granted so far
	var trouble clock.Instant // since when the store gave no answer at all
	for try := 1; ; try++ {
		if ctx.Err() != nil {
			return nil, gaveUp(ctx, last)
		}
		lease, err := l.attempt(ctx, life, bound)
		if err == nil {
			return lease, nil
		}
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return nil, gaveUp(ctx, errors.Join(last, err))
		}
		last = err
		busy, retry := canWait(err)
		switch now := l.c.clock.Now(); {
		case !retry:
			return nil, err
		case busy != nil || opens(err):
			trouble = 0
		case trouble == 0:
			trouble = now
		case now.Sub(trouble) > life.TTL:
			return nil, err
		}
		if tries > 0 && try >= tries {
			return nil, err
		}
		if l.o.OnWait != nil {
			l.o.OnWait(err)
		}
		pause(ctx, untilFree(delay(try), busy))
	}
}

// canWait says whether the lock may be had later: because its holder will be
// gone (busy is then set), or because nodes may come back.
func canWait(err error) (busy *BusyError, retry bool) {
	if errors.As(err, &busy) {
		return busy, true
	}
	var quorum *QuorumError
	if errors.As(err, &quorum) {
		return nil, quorum.Transient()
	}
	return nil, errors.Is(err, ErrLost) // granted, but too late to be of use
}

// opens says whether the lock can not be had because nodes are in quarantine,
// which has an end.
func opens(err error) bool {
	var quorum *QuorumError
	if !errors.As(err, &quorum) {
		return false
	}
	_, ok := quorum.OpensIn()
	return ok
}

// untilFree cuts a pause short to when the holder's lease ends, plus a little
// so that the store has really dropped it.
func untilFree(d time.Duration, busy *BusyError) time.Duration {
	if busy != nil && busy.ExpiresIn > 0 {
		return min(d, busy.ExpiresIn+time.Millisecond)
	}
	return max(d, time.Millisecond)
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// gaveUp is the error of a wait that its context ended. It matches the
// context's error and whatever the last answer matched.
func gaveUp(ctx context.Context, last error) error {
	ended := ctx.Err()
	if cause := context.Cause(ctx); cause != ended {
		ended = errors.Join(ended, cause)
	}
	var busy *BusyError
	if errors.As(last, &busy) {
		e := *busy
		e.Err = errors.Join(ended, busy.Err)
		return &e
	}
	switch {
	case last == nil:
		return ended
	case errors.Is(last, ended):
		return last
	}
	return errors.Join(ended, last)
}
