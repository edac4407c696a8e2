package leasehold

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// WaiveMinHold makes Release free the lock at once, whatever LockOptions.MinHold
// says. It is for work that failed before it began, which other processes may try.
// It does not block, and calling it again changes nothing.
func (l *Lease) WaiveMinHold() {
	rn := &l.h.c.renewer
	rn.mu.Lock()
	defer rn.mu.Unlock()
	l.h.least = 0
}

// leave takes l out of its hold, after waiting for MinHold if l is the last of it.
// If ctx ends first, impatient is its error. l.releasing is held.
func (l *Lease) leave(ctx context.Context) (t turn, impatient error) {
	for {
		t, rest, lost := l.h.c.renewer.leave(l, impatient != nil)
		if rest <= 0 {
			l.lost = lost
			return t, impatient
		}
		impatient = l.pause(ctx, rest)
	}
}

// pause waits for that long, or until l is lost. It returns the error of ctx if that
// ends first.
func (l *Lease) pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-l.Done():
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// stay makes the store keep the lock for the rest of MinHold without further
// renewals, or for as long as it can. It returns what there is to say about a lock
// that was not released.
func (h *hold) stay(ctx context.Context) error {
	rn := &h.c.renewer
	rest := -rn.lock().Sub(h.least)
	rn.mu.Unlock()
	r := h.req
	r.TTL = rest
	caps := h.c.store.Caps()
	if most := caps.MaxTTL; most > 0 {
		r.TTL = min(rest, most)
	}
	r.TTL = max(r.TTL, caps.MinTTL, store.MinTTL)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	err := h.c.store.Renew(ctx, []store.Lease{r})[0]
	switch {
	case err != nil:
		return fmt.Errorf("not released before MinHold is over; the lock may end by its TTL, up to %v too early: %w", store.Round(rest), err)
	case r.TTL < rest:
		return fmt.Errorf("not released before MinHold is over: the lock ends by itself in %v, the longest TTL of the store and %v too early", store.Round(r.TTL), store.Round(rest-r.TTL))
	}
	return fmt.Errorf("not released before MinHold is over: the lock ends by itself in %v", store.Round(rest))
}
