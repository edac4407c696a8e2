package leasehold

import (
	"context"
	"errors"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// Release ends the lease. The last lease of a grant frees the lock or passes it on
// to another goroutine of this Client: see Options.Cohort.
//
// Release waits for the rest of LockOptions.MinHold, and then for the store's
// answer: for five seconds at most, and up to a third of the TTL more if other
// goroutines of this Client wait. The request is sent even if ctx has ended. ctx
// bounds only the wait for MinHold: if it ends there, the error matches ctx.Err(), and
// the lock ends by itself when both MinHold and the TTL of the last renewal are over, or
// after the longest TTL of the store if that is sooner.
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
	over, err = l.releaseOnce(ctx)
	returned = true
	return over, l.released, err
}

// isOver reports whether l is lost or released, as far as is known.
func (l *Lease) isOver() bool {
	l.h.c.mu.Lock()
	defer l.h.c.mu.Unlock()
	return l.err != nil
}

// releaseOnce is one call of release. l.releasing is held.
func (l *Lease) releaseOnce(ctx context.Context) (over bool, err error) {
	if !l.detached {
		t, impatient := l.leaveHold(ctx)
		l.detached, over = true, t.verdict != stays
		if t.verdict == askAround && l.h.askAround(ctx, t) {
			t.verdict = passItOn
		}
		switch t.verdict {
		case stays, passItOn:
			l.released, l.outcome = true, l.lost
			return over, l.outcome
		case leaveIt:
			l.released, l.outcome = true, errors.Join(l.lost, l.h.stay(ctx), impatient)
			return over, l.outcome
		}
	}
	return over, l.releaseHold(ctx)
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
		l.released, l.outcome = true, &LostError{Name: l.h.req.Name, Cause: LostDenied, Reason: "the store no longer had it when it was released"}
	case err != nil:
		return err // unknown: the next call tries again
	default:
		l.released = true
	}
	return l.outcome
}

// leaveHold takes l out of its hold, after waiting for MinHold if l is the last of it.
// If ctx ends first, impatient is its error. l.releasing is held.
func (l *Lease) leaveHold(ctx context.Context) (t turn, impatient error) {
	for {
		t, rest, lost := l.share.leave(impatient != nil)
		if rest <= 0 {
			l.lost = lost
			return t, impatient
		}
		over := l.Done()
		if l.isOver() { // at the time that its options had set
			if over = nil; errors.Is(l.h.keep(ctx, rest), store.ErrNotHeld) {
				l.WaiveMinHold()
				continue
			}
		}
		impatient = pauseUnless(ctx, over, rest)
	}
}

// pauseUnless waits for that long, or until over is closed. It returns the error of ctx
// if that ends first.
func pauseUnless(ctx context.Context, over <-chan struct{}, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-over:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// WaiveMinHold makes Release free the lock at once, whatever LockOptions.MinHold
// says. It is for work that failed before it began, which other processes may try.
// It does not block, and calling it again changes nothing.
func (l *Lease) WaiveMinHold() {
	l.h.c.mu.Lock()
	defer l.h.c.mu.Unlock()
	l.h.least = 0
}

// discard releases l, which nobody will be given, because a function of the
// user's failed just before.
func (l *Lease) discard() {
	c := l.h.c
	l.WaiveMinHold() // no work was done, so no run of it has to exclude others
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
