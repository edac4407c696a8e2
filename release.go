package leasehold

import (
	"context"
	"errors"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// Release ends the lease. The last lease of a grant frees the lock.
//
// Release waits for the rest of LockOptions.MinHold, and then for the store's
// answer: for five seconds at most. The request is sent even if ctx has ended. ctx
// bounds only the wait for MinHold: if it ends there, the error matches ctx.Err(), and
// the lock ends by itself when both MinHold and the TTL of the last renewal are over, or
// after the longest TTL of the store if that is sooner. If another call of Release waits
// for MinHold then, the lock is left to that one.
//
// The error matches ErrLost if the lease had been lost. Another error means that
// the lock may not be free yet; it is when its TTL is over. Calling Release again
// returns the same result, or tries again if the outcome was unknown.
func (l *Lease) Release(ctx context.Context) error {
	mustHave(ctx)
	over, known, err := l.release(ctx)
	if !known {
		l.h.c.logUnknown(l.h.req.Name, err)
	}
	if over {
		l.observeRelease(err)
	}
	return err
}

// release makes the request. It reports whether the hold has ended by it for the first
// time, and whether the outcome is known. It calls no function of the user's: that could
// release l again, and would wait for release to return.
func (l *Lease) release(ctx context.Context) (over, known bool, err error) {
	l.releasing.Lock()
	defer l.releasing.Unlock()
	if l.released {
		return false, true, l.outcome
	}
	returned := false
	defer func() {
		if !returned && l.isOver() { // the clock failed: it is no longer renewed
			l.h.c.drop(ctx, store.ReleaseRequest{Lease: l.h.req})
		}
	}()
	if !l.detached {
		var gaveUp error
		if over, gaveUp = l.leaveHold(ctx); gaveUp != nil {
			returned = true
			return false, true, gaveUp
		}
	}
	if err = l.outcome; !l.released {
		err = l.releaseHold(ctx)
	}
	returned = true
	return over, l.released, err
}

// isOver reports whether l is lost or released, as far as is known.
func (l *Lease) isOver() bool {
	l.h.c.mu.Lock()
	defer l.h.c.mu.Unlock()
	return l.err != nil
}

// releaseHold releases the lock, and settles what Release returns. l.releasing is
// held.
func (l *Lease) releaseHold(ctx context.Context) error {
	err := l.h.release(ctx, l.lost != nil)
	switch {
	case l.lost != nil: // before: say so, whatever the store still had
		l.released, l.outcome = true, l.lost
		if err != nil && !errors.Is(err, store.ErrNotHeld) {
			l.outcome = errors.Join(l.lost, err)
		}
	case errors.Is(err, store.ErrNotHeld):
		gone := &LostError{Name: l.h.req.Name, Cause: LostDenied, Reason: "the store no longer had it when it was released"}
		if gone.Broken = l.h.brokenBy(ctx, 0); gone.Broken != nil {
			gone.Reason = gone.Broken.String()
		}
		l.released, l.outcome = true, gone
	case err != nil:
		return err // unknown: the next call tries again
	default:
		l.released = true
	}
	return l.outcome
}

// leaveHold takes l out of its hold, after waiting for MinHold if l is the last of it. Unless
// the store has to be asked then, it settles what Release returns. If ctx ends first and another
// call goes on waiting, l stays, and gaveUp is the error of ctx. l.releasing is held, but not
// while leaveHold waits.
func (l *Lease) leaveHold(ctx context.Context) (over bool, gaveUp error) {
	var impatient error
	for !l.detached {
		d, rest, lost := l.share.leave(impatient != nil)
		if rest > 0 {
			if impatient = l.awaitMinHold(ctx, rest); impatient != nil && l.resting > 0 {
				return false, impatient
			}
			continue
		}
		l.detached, l.lost, over = true, lost, d != keep
		switch d {
		case keep:
			l.released, l.outcome = true, l.lost
		case letExpire:
			l.released, l.outcome = true, errors.Join(l.lost, l.h.stay(ctx), impatient)
		}
	}
	return over, nil
}

// awaitMinHold waits until the rest of MinHold is over or waived, or l is over. It returns the
// error of ctx if that ends first. Other calls of Release can go on meanwhile.
func (l *Lease) awaitMinHold(ctx context.Context, rest time.Duration) error {
	l.resting++
	l.releasing.Unlock()
	defer func() {
		l.releasing.Lock()
		l.resting--
	}()
	over := l.Done()
	if l.isOver() { // at the time that its options had set
		if over = nil; errors.Is(l.h.prolong(ctx, rest), store.ErrNotHeld) {
			l.WaiveMinHold()
			return nil
		}
	}
	t := time.NewTimer(rest)
	defer t.Stop()
	select {
	case <-t.C:
	case <-over:
	case <-l.h.minHoldWaived():
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// WaiveMinHold makes Release free the lock at once, whatever LockOptions.MinHold
// says, also a Release that waits already. It is for work that failed before it began,
// which other processes may try. It does not block. Once l is released it does nothing:
// another lease of the same grant may be held.
func (l *Lease) WaiveMinHold() {
	h := l.h
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	if l.err == ErrReleased {
		return
	}
	if h.least = 0; h.waived != nil {
		close(h.waived)
		h.waived = nil
	}
}

// minHoldWaived returns a channel that is closed when MinHold is waived.
func (h *hold) minHoldWaived() <-chan struct{} {
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	waived := h.waived
	if waived == nil {
		waived = make(chan struct{})
		if h.least == 0 {
			close(waived)
		} else {
			h.waived = waived
		}
	}
	return waived
}

// discard releases l, which nobody will be given, because a function of the
// user's failed just before.
func (l *Lease) discard() {
	c := l.h.c
	l.h.grantTold() // or nobody will be
	if !l.reentered {
		l.WaiveMinHold() // no work was done, so no run of it has to exclude others
	}
	ctx := context.WithoutCancel(l.base)
	c.guard.Run(func() { l.Release(ctx) }, nil)
}

// observeRelease tells the observer that l was released: after what it is still being
// told of.
func (l *Lease) observeRelease(err error) {
	c := l.h.c
	if c.observe == nil {
		return
	}
	tell := func() { c.observe(l.base, l.event(Released, l.held, err)) }
	c.mu.Lock()
	telling := l.h.telling > 0
	if telling {
		c.notify.Add(tell)
	}
	c.mu.Unlock()
	if !telling {
		tell()
	}
}
