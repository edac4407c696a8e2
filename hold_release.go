package leasehold

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
)

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
	err := h.releaseIn(ctx, r)
	for try := 1; retries(err); try++ {
		if clock.Sleep(ctx, min(max(h.pauseAfter(ctx, try), time.Millisecond), bound/10)); ctx.Err() != nil {
			return err
		}
		r.Renewed = h.renewed.Load()
		if err = h.c.store.Release(ctx, r); errors.Is(err, store.ErrNotHeld) {
			return nil // an earlier try of ours may have done it
		}
	}
	return err
}

// retries reports whether a release that ended with err is tried again.
func retries(err error) bool {
	return err != nil && !errors.Is(err, store.ErrNotHeld) && !errors.Is(err, store.ErrClosed) && !errors.Is(err, ErrInvalid)
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
	d := h.delay(try)
	returned = true
	return d
}

// late releases what was granted too late to be of use.
func (h *hold) late(ctx context.Context, took time.Duration) error {
	err := h.release(ctx, true)
	return &LostError{Name: h.req.Name, Cause: LostLateGrant, Reason: "the grant took " + store.Round(took).String() + " to arrive, and its validity was over", Err: err}
}

// releaseIn makes the request r of h, by way of the queue that waited for it.
func (h *hold) releaseIn(ctx context.Context, r store.ReleaseRequest) error {
	if h.q == nil {
		return h.c.store.Release(ctx, r)
	}
	return h.q.releaseOrRejoin(ctx, r)
}

// prolong makes the store keep the lock for that long at least without further renewals,
// or for its longest TTL.
func (h *hold) prolong(ctx context.Context, d time.Duration) error {
	r := h.req
	caps := h.c.store.Caps()
	if r.TTL = d; caps.MaxTTL > 0 {
		r.TTL = min(d, caps.MaxTTL)
	}
	r.TTL = max(r.TTL, caps.MinTTL, store.MinTTL)
	ctx, cancel := clock.Bound(ctx, time.Second)
	defer cancel()
	h.renewed.Store(true)
	return h.c.store.Renew(ctx, []store.Lease{r})[0]
}

// stay makes the store keep the lock for the rest of MinHold without further
// renewals, or for as long as it can. Its error says how the lock ends instead
// of being released.
func (h *hold) stay(ctx context.Context) error {
	rest := -h.c.lock().Sub(h.least)
	h.c.mu.Unlock()
	most := h.c.store.Caps().MaxTTL
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
