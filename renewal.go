package leasehold

import (
	"context"
	"errors"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/leasefsm"
	"github.com/leasehold-dev/leasehold/internal/validity"
	"github.com/leasehold-dev/leasehold/store"
)

// renewals carries out what the renewer finds due.
type renewals struct{ c *holds }

// init has the holds renewed from now on.
func (c *holds) init() {
	c.clockFailedLocked = c.loseAllLocked
	c.renewer.Init(renewals{c})
}

func (r renewals) Lock()                 { r.c.mu.Lock() }
func (r renewals) Unlock()               { r.c.mu.Unlock() }
func (r renewals) LockAt() clock.Instant { return r.c.lock() }
func (r renewals) Contain(f func())      { r.c.guard.Run(f, nil) }
func (r renewals) Renew(batch []*hold)   { r.c.renew(context.Background(), batch) }

func (r renewals) Step(h *hold, e leasefsm.Event, now clock.Instant) { h.stepLocked(e, 0, now) }

// renew asks the store to renew batch, and waits for the answers for no longer
// than until the next renewal of any of them would be due, or until caller ends.
func (c *holds) renew(caller context.Context, batch []*hold) []error {
	reqs := make([]store.Lease, len(batch))
	bound := batch[0].req.TTL
	for i, h := range batch {
		reqs[i] = h.req
		bound = min(bound, validity.RenewAfter(h.req.TTL))
	}
	ctx, cancel := context.WithTimeout(caller, bound)
	defer cancel()
	settled := false
	defer func() {
		if !settled { // the clock or the store panicked
			c.renewalFailed(batch)
		}
	}()
	start := c.clock.Now()
	errs := c.store.Renew(ctx, reqs)
	abandoned := caller.Err() != nil
	if !renewalFromStart {
		start = c.clock.Now()
	}

	now := c.lock()
	defer c.mu.Unlock()
	settled = true
	for i, h := range batch {
		switch {
		case errs[i] == nil:
			h.lastErr = nil
			h.stepLocked(leasefsm.Renewed, start, now)
		case errors.Is(errs[i], store.ErrNotHeld):
			h.lastErr = errs[i]
			h.stepLocked(leasefsm.RenewalDenied, 0, now)
		case abandoned: // which says nothing about the store
			h.stepLocked(leasefsm.RenewalAbandoned, 0, now)
		default:
			h.lastErr = errs[i]
			h.renewalFailedLocked(now)
		}
	}
	return errs
}

// renewalFailed has the leases of batch renewed again before long.
func (c *holds) renewalFailed(batch []*hold) {
	now := c.lock()
	defer c.mu.Unlock()
	for _, h := range batch {
		h.lastErr = errRenewal
		h.renewalFailedLocked(now)
	}
}

// renewalFailedLocked notes that a renewal has failed with h.lastErr.
func (h *hold) renewalFailedLocked(now clock.Instant) {
	h.stepLocked(leasefsm.RenewalUnknown, 0, now)
	if h.c.observe != nil && h.fsm.Live() && len(h.shares) > 0 {
		h.shares[0].observeLaterLocked(RenewalFailed, now, h.lastErr)
	}
}

var errRenewal = errors.New("the renewal panicked")

// renewNow renews h now, and waits for the store's answer.
func (c *holds) renewNow(ctx context.Context, h *hold) error {
	now := c.lock()
	h.stepLocked(leasefsm.RenewalSent, 0, now)
	c.mu.Unlock()
	return c.renew(ctx, []*hold{h})[0]
}
