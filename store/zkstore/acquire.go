package zkstore

import (
	"context"
	"errors"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/zkstore/internal/zk"
)

// Acquire implements driver.Engine. It makes a place in the queue: if that is among the first
// that fit together, it has the lock, and otherwise Acquire removes it again.
func (s *engine) Acquire(ctx context.Context, r store.AcquireRequest) (store.Grant, error) {
	if err := s.require(r.Lease); err != nil {
		return store.Grant{}, err
	}
	g, err := (&attempt{s, r, s.clock.Now()}).run(ctx)
	return g, s.failed(ctx, "acquire", r.Name, err)
}

// attempt is one call of Acquire.
type attempt struct {
	s     *engine
	r     store.AcquireRequest
	start clock.Instant
}

// run makes the attempt, and again if the lock became free meanwhile.
func (a *attempt) run(ctx context.Context) (store.Grant, error) {
	if a.s.leases.get(leaseKey{a.r.Name, a.r.Owner}) != nil {
		if g, err := a.confirm(ctx); !errors.Is(err, store.ErrNotHeld) || errors.Is(err, errBroken) {
			return g, err
		}
	}
	for {
		p, err := a.s.enqueue(ctx, a.r.Lease)
		if err != nil {
			return store.Grant{}, err
		}
		if g, err := a.take(ctx, p); !errors.Is(err, errFree) {
			return g, err
		}
		a.start = a.s.clock.Now() // the holder has left since: a new place would have been the first
	}
}

// take takes the lock if the place has it, and otherwise removes the place.
func (a *attempt) take(ctx context.Context, p *place) (store.Grant, error) {
	s := a.s
	for refused := false; ; {
		q, me, err := p.queue(ctx)
		switch {
		case err != nil:
			s.remove(p)
			return store.Grant{}, err
		case me < 0 && refused: // an answer to refused was lost, which had removed it
			return store.Grant{}, errFree
		case me < 0: // somebody else has removed it
			return store.Grant{}, errRemoved
		}
		if q.owns(me).Verdict != rule.Granted || q.holds(me, p.record.Owner) {
			g, err := a.refused(ctx, p, q.queue, me)
			if errors.Is(err, errChanged) {
				refused = true
				continue
			}
			return g, err
		}
		if q.noted {
			if err := p.unbroken(ctx); err != nil {
				if p.removeNow(ctx) != nil {
					s.remove(p)
				}
				return store.Grant{}, err
			}
		}
		p.sole = len(q.queue) == 1 && !q.noted
		err = p.settle(ctx, q.queue, me)
		if errors.Is(err, errChanged) {
			continue
		}
		var g store.Grant
		if err == nil {
			g, err = s.grant(ctx, p, a.r.Lease, a.start)
		}
		if err != nil {
			s.remove(p)
		}
		return g, err
	}
}

// errFree means that the holder of a lock has left while it was looked at.
var errFree = errors.New("the lock is free")

// refused removes a place that has not got the lock, and names what blocks it. It returns
// errChanged, and removes nothing, if the one that blocks it has left since: the place may have
// the lock by then, and a new one would be behind those of others. If an earlier place of the
// same owner holds the lock, refused confirms that grant.
func (a *attempt) refused(ctx context.Context, p *place, q queue, me int) (store.Grant, error) {
	s, r := a.s, a.r
	blocker, _ := q.blocker(me)
	path := p.dir + "/" + blocker.name
	answers, err := p.Ask(ctx, zk.Multi(zk.Check(path, zk.AnyVersion), zk.Delete(p.path(), zk.AnyVersion)), zk.Read(path))
	if err != nil {
		s.remove(p)
		return store.Grant{}, err
	}
	switch parts, err := answers[0].Each(2); {
	case len(parts) == 2 && errors.Is(parts[0].Err, zk.ErrNoNode):
		return store.Grant{}, errChanged
	case err != nil: // perhaps it is gone already
		s.remove(p)
	}
	n, ok, err := answers[1].Node()
	switch {
	case err != nil:
		return store.Grant{}, err
	case !ok:
		return store.Grant{}, errFree
	}
	if q.holds(me, r.Owner) {
		g, err := a.confirm(ctx)
		if errors.Is(err, store.ErrNotHeld) && !errors.Is(err, errBroken) {
			err = errFree
		}
		return g, err
	}
	return store.Grant{}, p.refusal(r.Lease, q, me, n.Data)
}

// confirm grants again what the owner has, or returns store.ErrNotHeld.
func (a *attempt) confirm(ctx context.Context) (store.Grant, error) {
	return a.s.renewed(ctx, a.r.Lease, a.start, change{join: true})
}
