package leasehold

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// WaiveMinHold makes Release give the lock back at once, whatever
// LockOptions.MinHold says: for work that failed before it began, and need not
// keep others from trying.
func (l *Lease) WaiveMinHold() {
	k := &l.h.c.keep
	k.mu.Lock()
	defer k.mu.Unlock()
	l.h.least = 0
}

// waitLeast waits until the lock was held for its least time, unless it is
// lost or l is not the last lease of it. If ctx ends first, waitLeast makes the
// lock stay for the rest, and returns why it was not released.
func (h *hold) waitLeast(ctx context.Context, l *Lease) error {
	rest, ok := h.leastLeft(l)
	if !ok || !leastHold {
		return nil
	}
	t := time.NewTimer(rest)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-l.Done():
		return nil
	case <-ctx.Done():
	}
	if rest, ok = h.leastLeft(l); !ok {
		return nil
	}
	return errors.Join(h.stay(ctx, rest), ctx.Err())
}

// leastLeft is what is left of the least time the lock is held, if l is the last
// lease of it.
func (h *hold) leastLeft(l *Lease) (time.Duration, bool) {
	k := &h.c.keep
	k.mu.Lock()
	defer k.mu.Unlock()
	rest := h.least.Sub(k.now())
	return rest, h.least != 0 && rest > 0 && len(h.leases) == 1
}

// stay makes the store keep the lock for rest without further renewals, or for
// as long as it can. It returns what there is to say about a lock that was not
// released.
func (h *hold) stay(ctx context.Context, rest time.Duration) error {
	r := h.req
	r.TTL = rest
	if most := h.c.store.Caps().MaxTTL; most > 0 {
		r.TTL = min(rest, most)
	}
	r.TTL = max(r.TTL, store.MinTTL)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	err := h.c.store.Renew(ctx, []store.Request{r})[0]
	switch {
	case err != nil:
		return fmt.Errorf("not released before MinHold is over; the lock may end by its TTL, up to %v too early: %w", store.Round(rest), err)
	case r.TTL < rest:
		return fmt.Errorf("not released before MinHold is over: the lock ends by itself in %v, the longest TTL of the store and %v too early", store.Round(r.TTL), store.Round(rest-r.TTL))
	}
	return fmt.Errorf("not released before MinHold is over: the lock ends by itself in %v", store.Round(rest))
}
