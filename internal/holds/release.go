package holds

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/leasefsm"
	"github.com/leasehold-dev/leasehold/store"
)

// disposition is what becomes of a hold when one of its leases leaves it.
type disposition uint8

const (
	keep      disposition = iota // other leases of it are left
	release                      // the store is asked to
	letExpire                    // it ends by its TTL
)

// Release ends l. It waits for the rest of MinHold, for as long as ctx lasts, and then for the store.
func (l *Lease) Release(ctx context.Context) error {
	over, known, err := l.release(ctx)
	if !known {
		l.h.c.logUnknown(l.h.req.Name, err)
	}
	if over {
		l.ObserveRelease(err)
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
	if !l.detached {
		var gaveUp error
		if over, gaveUp = l.leaveHold(ctx); gaveUp != nil {
			return false, true, gaveUp
		}
	}
	if err = l.outcome; !l.released {
		err = l.releaseHold(ctx)
	}
	return over, l.released, err
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
		gone := Loss{Name: l.h.req.Name, Cause: leasefsm.Denied, Reason: "the store no longer had it when it was released"}
		if gone.Broken = l.h.brokenBy(ctx, 0); gone.Broken != nil {
			gone.Reason = gone.Broken.String()
		}
		l.released, l.outcome = true, l.h.c.LostError(gone)
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
		d, rest, lost := l.leave(impatient != nil)
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

// leave takes l out of its hold, unless it is the last of it and MinHold is not over: rest is
// then how long it has to wait before it calls again. Otherwise leave says what
// becomes of the hold, and why l had been lost, if it had. With impatient it does
// not ask to wait, and leaves the lock to its TTL instead.
func (l *Lease) leave(impatient bool) (d disposition, rest time.Duration, lost error) {
	h := l.h
	now := h.c.lock()
	defer h.c.mu.Unlock()
	h.stepLocked(leasefsm.Tick, 0, now)
	rest = h.least.Sub(now)
	early := leastHold && len(h.leases) == 1 && rest > 0 && (l.err == nil || h.endedOnTime())
	if early && !impatient {
		return keep, rest, nil
	}
	switch lost = l.err; {
	case !l.leaveLocked(now):
		return keep, 0, lost
	case early:
		return letExpire, 0, lost
	}
	return release, 0, lost
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

// WaiveMinHold makes Release free the lock at once, also a Release that waits already. Once l is
// released it does nothing: another lease of the same grant may be held.
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

// Discard releases l, which nobody will be given, because a function of the
// user's failed just before.
func (l *Lease) Discard() {
	c := l.h.c
	l.GrantTold() // or nobody will be
	if !l.reentered {
		l.WaiveMinHold() // no work was done, so no run of it has to exclude others
	}
	ctx := context.WithoutCancel(l.base)
	c.Guard.Run(func() { l.Release(ctx) }, nil)
}

// ObserveRelease tells the observer that l was released: after what it is still being
// told of.
func (l *Lease) ObserveRelease(err error) {
	c := l.h.c
	if c.Observe == nil {
		return
	}
	tell := func() { c.Observe(l.base, l, Released, l.held, err) }
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

// GiveBack releases l, which is not started and which nobody wants, on a context of its own.
func (l *Lease) GiveBack(ctx context.Context) {
	if err := l.h.release(ctx, false); retries(err) {
		l.h.c.logUnknown(l.h.req.Name, err)
	}
}

// release releases h in the store, on a context of its own, and tries again
// while the outcome is unknown. With undo it leaves the lease to other attempts of
// the same owner, if they know of it.
func (h *hold) release(ctx context.Context, undo bool) error {
	// After a TTL the store has dropped the lease by itself, and nobody wants
	// to wait longer than some seconds to learn that.
	bound := min(max(h.req.TTL, time.Second), 5*time.Second)
	begin := clock.Bound
	if !releaseDetached {
		begin = context.WithTimeout
	}
	ctx, cancel := begin(ctx, bound)
	defer cancel()
	r := store.ReleaseRequest{Lease: h.req, Renewed: h.renewed.Load(), Undo: undo}
	err := h.By.Release(ctx, r)
	for try := 1; retries(err); try++ {
		if clock.Sleep(ctx, min(max(h.pauseAfter(ctx, try), time.Millisecond), bound/10)); ctx.Err() != nil {
			return err
		}
		r.Renewed = h.renewed.Load()
		if err = h.c.Store.Release(ctx, r); errors.Is(err, store.ErrNotHeld) {
			return nil // an earlier try of ours may have done it
		}
	}
	return err
}

// retries reports whether a release that ended with err is tried again.
func retries(err error) bool {
	return err != nil && !errors.Is(err, store.ErrNotHeld) && !errors.Is(err, store.ErrClosed) && !errors.Is(err, store.ErrInvalid)
}

// pauseAfter is the user's RetryDelay. If that does not return, the release is
// tried once more at once.
func (h *hold) pauseAfter(ctx context.Context, try int) time.Duration {
	returned := false
	defer func() {
		if !returned {
			h.c.drop(ctx, store.ReleaseRequest{Lease: h.req})
		}
	}()
	d := h.RetryDelay(try)
	returned = true
	return d
}

// prolong makes the store keep the lock for that long at least without further renewals,
// or for its longest TTL.
func (h *hold) prolong(ctx context.Context, d time.Duration) error {
	r := h.req
	caps := h.c.Store.Caps()
	if r.TTL = d; caps.MaxTTL > 0 {
		r.TTL = min(d, caps.MaxTTL)
	}
	r.TTL = max(r.TTL, caps.MinTTL, store.MinTTL)
	ctx, cancel := clock.Bound(ctx, time.Second)
	defer cancel()
	h.renewed.Store(true)
	return h.c.Store.Renew(ctx, []store.Lease{r})[0]
}

// stay makes the store keep the lock for the rest of MinHold without further
// renewals, or for as long as it can. Its error says how the lock ends instead
// of being released.
func (h *hold) stay(ctx context.Context) error {
	rest := -h.c.lock().Sub(h.least)
	h.c.mu.Unlock()
	most := h.c.Store.Caps().MaxTTL
	ends := store.Round(rest).String()
	if rest < h.req.TTL { // which a renewal does not shorten
		ends += " to " + store.Round(h.req.TTL).String()
	}
	err := h.prolong(ctx, rest)
	switch {
	case err != nil:
		return fmt.Errorf("not released before MinHold is over; the lock may end by its TTL, up to %v too early: %w", store.Round(rest), err)
	case most > 0 && most < rest:
		return fmt.Errorf("not released before MinHold is over: the lock ends by itself in %v, the longest TTL of the store and %v too early", store.Round(most), store.Round(rest-most))
	}
	return fmt.Errorf("not released before MinHold is over: the lock ends by itself in %s", ends)
}
