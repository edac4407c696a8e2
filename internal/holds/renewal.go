package holds

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/leasefsm"
	"github.com/leasehold-dev/leasehold/internal/validity"
	"github.com/leasehold-dev/leasehold/store"
)

// renewals carries out what the renewer finds due.
type renewals struct{ c *Holds }

func (r renewals) Lock()                 { r.c.mu.Lock() }
func (r renewals) Unlock()               { r.c.mu.Unlock() }
func (r renewals) LockAt() clock.Instant { return r.c.lock() }
func (r renewals) Contain(f func())      { r.c.Guard.Run(f, nil) }
func (r renewals) Renew(batch []*hold)   { r.c.renew(context.Background(), batch) }

func (r renewals) Step(h *hold, e leasefsm.Event, now clock.Instant) { h.stepLocked(e, 0, now) }

// renew asks the store to renew batch, and waits for the answers for no longer
// than until the next renewal of any of them would be due, or until caller ends.
func (c *Holds) renew(caller context.Context, batch []*hold) []error {
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
		if !settled { // the store panicked
			c.renewalFailed(batch)
		}
	}()
	start := c.Clock.Now()
	errs := c.Store.Renew(ctx, reqs)
	abandoned := caller.Err() != nil
	if !renewalFromStart {
		start = c.Clock.Now()
	}

	var denied []*hold // and perhaps broken
	defer func() { c.deny(denied, c.Clock.Now().Sub(start)) }()
	now := c.lock()
	defer c.mu.Unlock()
	settled = true
	for i, h := range batch {
		switch {
		case errs[i] == nil:
			h.lastErr = nil
			h.stepLocked(leasefsm.Renewed, start, now)
		case errors.Is(errs[i], store.ErrNotHeld) && len(denied) < maxExplained:
			h.lastErr = errs[i]
			denied = append(denied, h)
		case errors.Is(errs[i], store.ErrNotHeld):
			h.lastErr = errs[i]
			h.stepLocked(leasefsm.RenewalDenied, 0, now)
		case abandoned: // which says nothing about the store
		default:
			h.lastErr = errs[i]
			h.renewalFailedLocked(now)
		}
	}
	return errs
}

// maxExplained bounds the leases of a batch of which deny asks why they are gone: a store
// that has lost its data has broken none.
const maxExplained = 16

// deny tells the holders of leases that the store does not have any more, and asks the store
// before who broke them, if somebody did: the holder is told once. A renewal has just taken
// the time took, and the question may take a little longer. A lease that was broken is its
// holder's meanwhile, except with BreakRequest.Now.
func (c *Holds) deny(denied []*hold, took time.Duration) {
	if len(denied) == 0 {
		return
	}
	broken := make([]*store.Broken, len(denied))
	var asked sync.WaitGroup
	for i, h := range denied {
		asked.Go(func() {
			c.Guard.Run(func() { broken[i] = h.brokenBy(context.Background(), took) }, nil)
		})
	}
	asked.Wait()
	now := c.lock()
	defer c.mu.Unlock()
	for i, h := range denied {
		h.broken = broken[i]
		h.stepLocked(leasefsm.RenewalDenied, 0, now)
	}
}

// brokenBy returns who broke the lease of h, or nil if nobody did or the store does not say
// in time.
func (h *hold) brokenBy(ctx context.Context, took time.Duration) *store.Broken {
	h.c.lock()
	fixed, token := h.Fixed, h.token
	h.c.mu.Unlock()
	bound := min(max(2*took, 100*time.Millisecond), 500*time.Millisecond, h.req.TTL/6)
	ctx, cancel := clock.Bound(ctx, bound)
	defer cancel()
	state, err := h.c.Store.Inspect(ctx, h.req.Name)
	if b := state.Broken; err == nil && b != nil && b.Owner == h.req.Owner && (!fixed || b.Token == token) {
		return b
	}
	return nil
}

// renewalFailed has the leases of batch renewed again before long.
func (c *Holds) renewalFailed(batch []*hold) {
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
	if h.c.Observe != nil && h.fsm.Live() && len(h.leases) > 0 {
		h.leases[0].observeLaterLocked(RenewalFailed, now, h.lastErr)
	}
}

var errRenewal = errors.New("the renewal panicked")

// renewNow renews h now, and waits for the store's answer. Renewals that are due go on meanwhile:
// a caller who does not wait long enough must not hold them up.
func (c *Holds) renewNow(ctx context.Context, h *hold) error {
	h.renewed.Store(true)
	return c.renew(ctx, []*hold{h})[0]
}
