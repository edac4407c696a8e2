package leasehold

import (
	"context"
	"errors"

	"github.com/leasehold-dev/leasehold/internal/leasefsm"
	"github.com/leasehold-dev/leasehold/store"
)

// attempt asks the store for the lock once: on behalf of all in q, unless q is nil.
func (c *holds) attempt(ctx context.Context, r *recipe, t terms, bound bool, q *queue) (*Lease, error) {
	req := store.AcquireRequest{Lease: store.Lease{Name: r.name, Owner: r.o.Owner, Kind: t.kind, Weight: t.weight, TTL: t.life.TTL, Require: r.o.Require}}
	if req.Owner != "" {
		req.Attempt = store.NewOwner()
	}
	switch {
	case q != nil:
		req = store.AcquireRequest{Lease: q.request(r.call.trace).Lease}
		req.Owner = store.NewOwner()
	case req.Owner == "":
		req.Owner = store.NewOwner()
		req.Meta = c.describer.describe(r.o.Purpose, r.call.trace, !t.unrenewed)
	}
	fsm := leasefsm.New(t.life)
	start := c.clock.Now() // before the first byte leaves: validity counts from here
	grant, err := c.store.Acquire(ctx, req)
	if meta := describedLease(err, r.o.Owner); meta != "" {
		req.Meta = meta
		grant, err = c.store.Acquire(ctx, req)
	}
	if err != nil {
		return nil, err
	}
	settled := false
	defer func() {
		if !settled {
			c.drop(ctx, store.ReleaseRequest{Lease: grant.Lease, Undo: true})
		}
	}()
	now := c.lock()
	settled = true
	fsm = fsm.Step(leasefsm.Granted, start, now)
	lease := newLease(c, grant, fsm)
	h := lease.h
	if !fsm.Live() {
		c.mu.Unlock()
		return nil, h.late(ctx, now.Sub(start))
	}
	defer c.mu.Unlock()
	h.startLocked(&lease.share, now, r, ctx, bound)
	return lease, nil
}

// describedLease returns how the lease of a fixed owner is described, if err says that the owner
// holds the lock: some stores compare descriptions, and another process may have acquired the
// lease with one.
func describedLease(err error, owner string) string {
	var busy *store.BusyError
	if owner == "" || !errors.As(err, &busy) || busy.Holder.Owner != owner || busy.Holder.Waiting {
		return ""
	}
	h := busy.Holder
	h.Owner = ""
	if h == (store.Holder{}) {
		return ""
	}
	return h.Encode()
}
