package leasehold

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// WaiveMinHold makes Release free the lock at once, whatever LockOptions.MinHold
// says. It is for work that failed before it began, which other processes may try.
// It does not block, and calling it again changes nothing.
func (l *Lease) WaiveMinHold() {
	l.h.c.mu.Lock()
	defer l.h.c.mu.Unlock()
	l.h.least = 0
}

// leave takes l out of its hold, after waiting for MinHold if l is the last of it.
// If ctx ends first, impatient is its error. l.releasing is held.
func (l *Lease) leave(ctx context.Context) (t turn, impatient error) {
	for {
		t, rest, lost := l.leaveHold(impatient != nil)
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

// keep makes the store keep the lock for that long at least without further renewals,
// or for its longest TTL.
func (h *hold) keep(ctx context.Context, d time.Duration) error {
	r := h.req
	caps := h.c.store.Caps()
	if r.TTL = d; caps.MaxTTL > 0 {
		r.TTL = min(d, caps.MaxTTL)
	}
	r.TTL = max(r.TTL, caps.MinTTL, store.MinTTL)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	h.renewed.Store(true)
	return h.c.store.Renew(ctx, []store.Lease{r})[0]
}

// stay makes the store keep the lock for the rest of MinHold without further
// renewals, or for as long as it can. It returns what there is to say about a lock
// that was not released.
func (h *hold) stay(ctx context.Context) error {
	rest := -h.c.lock().Sub(h.least)
	h.c.mu.Unlock()
	most := h.c.store.Caps().MaxTTL
	ends := store.Round(rest).String()
	if rest < h.req.TTL { // which a renewal does not shorten
		ends += " to " + store.Round(h.req.TTL).String()
	}
	err := h.keep(ctx, rest)
	switch {
	case err != nil:
		return fmt.Errorf("not released before MinHold is over; the lock may end by its TTL, up to %v too early: %w", store.Round(rest), err)
	case most > 0 && most < rest:
		return fmt.Errorf("not released before MinHold is over: the lock ends by itself in %v, the longest TTL of the store and %v too early", store.Round(most), store.Round(rest-most))
	}
	return fmt.Errorf("not released before MinHold is over: the lock ends by itself in %s", ends)
}
