package leasehold

import (
	"context"

	"github.com/leasehold-dev/leasehold/internal/leasefsm"
	"github.com/leasehold-dev/leasehold/internal/waitq"
	"github.com/leasehold-dev/leasehold/store"
)

// attempt asks the store once, for itself or for those in q as well.
func (l *Lock) attempt(ctx context.Context, t terms, bound bool, q *queue) (*Lease, error) {
	req := store.AcquireRequest{Lease: store.Lease{Name: l.name, Owner: l.o.Owner, Kind: t.kind, Weight: t.weight, TTL: t.life.TTL, Require: l.o.Require}}
	if req.Owner != "" {
		req.Attempt = store.NewOwner()
	}
	switch {
	case q != nil:
		r := q.request(0)
		req = store.AcquireRequest{Lease: r.Lease, Spare: r.Spare}
		req.Owner = store.NewOwner()
	case req.Owner == "":
		req.Owner = store.NewOwner()
		req.Meta = l.c.describe(l.o.Purpose, req.Spare)
	}
	fsm := leasefsm.New(t.life)
	start := l.c.clock.Now() // before the first byte leaves: validity counts from here
	grant, err := l.c.store.Acquire(ctx, req)
	if err != nil {
		return nil, err
	}
	if grant.Owner != "" {
		req.Owner = grant.Owner
	}
	settled := false
	defer func() {
		if !settled {
			l.c.drop(ctx, store.ReleaseRequest{Lease: req.Lease, Undo: true})
		}
	}()
	now := l.c.lock()
	settled = true
	fsm = fsm.Step(leasefsm.Granted, start, now)
	h := l.c.newHold(req.Lease, grant, fsm)
	if !fsm.Live() {
		l.c.mu.Unlock()
		return nil, h.late(ctx, now.Sub(start))
	}
	defer l.c.mu.Unlock()
	lease := h.startLocked(now, l, ctx, bound)
	if q != nil {
		q.stepLocked(waitq.Event[*waiter]{Kind: waitq.TryGranted, Token: grant.Token, Spare: grant.Spare}, now)
		h.attachLocked(q)
	}
	return lease, nil
}
