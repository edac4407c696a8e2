package leasehold

import (
	"context"
	"errors"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// release releases h in the store, on a context of its own, and tries again
// while the outcome is unknown. With undo it leaves the lease to other attempts of
// the same owner, if they know of it.
func (h *hold) release(ctx context.Context, undo bool) error {
	// After a TTL the store has dropped the lease by itself, and nobody wants
	// to wait longer than some seconds to be told so.
	bound := min(max(h.req.TTL, time.Second), 5*time.Second)
	if releaseDetached {
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	r := store.ReleaseRequest{Lease: h.req, Renewed: h.renewed.Load(), Undo: undo}
	err := h.releaseOrRejoin(ctx, r)
	h.detachReleased()
	for try := 1; retries(err); try++ {
		if pause(ctx, min(max(h.pauseAfter(ctx, try), time.Millisecond), bound/10)); ctx.Err() != nil {
			return err
		}
		r.Renewed = h.renewed.Load()
		if err = h.c.store.Release(ctx, r); errors.Is(err, store.ErrNotHeld) {
			return nil // an earlier try of ours may have done it
		}
	}
	return err
}

// retries says whether a release that ended with err is to be tried again.
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

// logUnknown logs that nobody knows whether h was released.
func (h *hold) logUnknown(err error) {
	h.c.log.Warn("release: outcome unknown, the lock ends by its TTL", "lock", h.req.Name, "err", err)
}

// late releases what was granted too late to be of use.
func (h *hold) late(ctx context.Context, took time.Duration) error {
	err := h.release(ctx, true)
	return &LostError{Name: h.req.Name, Cause: LostLateGrant, Reason: "the grant took " + store.Round(took).String() + " to arrive, and its validity was over", Err: err}
}

// discard releases l, which nobody will be given, because a function of the
// user's failed just before.
func (l *Lease) discard() {
	c := l.h.c
	l.WaiveMinHold() // no work was done, so no run of it has to exclude others
	ctx := context.WithoutCancel(l.base)
	c.contain(func() { l.Release(ctx) }, nil)
}

// drop releases in the store what r was granted, when nothing else can be done
// about it.
func (c *Client) drop(ctx context.Context, r store.ReleaseRequest) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(max(r.TTL, time.Second), 5*time.Second))
	defer cancel()
	if err := c.store.Release(ctx, r); err != nil && !errors.Is(err, store.ErrNotHeld) {
		c.log.Warn("release: outcome unknown, the lock ends by its TTL", "lock", r.Name, "err", err)
	}
}
