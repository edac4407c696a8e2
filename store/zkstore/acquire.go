package zkstore

import (
	"cmp"
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/zkstore/internal/session"
)

// Acquire implements driver.Engine. It makes a place in the queue: if that is among the first
// that fit together, it has the lock, and otherwise Acquire removes it again.
func (s *engine) Acquire(ctx context.Context, r store.AcquireRequest) (store.Grant, error) {
	if err := s.require(r.Require); err != nil {
		return store.Grant{}, err
	}
	g, err := (&attempt{s, r, s.clock.Now()}).run(ctx)
	switch {
	case errors.Is(err, errBroken):
		return store.Grant{}, store.BrokenError("acquire", r.Name)
	case err != nil && !isRefusal(err):
		return store.Grant{}, s.failed(ctx, "acquire", r.Name, err)
	}
	return g, err
}

// isRefusal reports whether the error is about the lock and not about the servers.
func isRefusal(err error) bool {
	var kind *store.KindError
	return errors.Is(err, store.ErrBusy) || errors.Is(err, store.ErrInvalid) || errors.As(err, &kind)
}

// attempt is one call of Acquire.
type attempt struct {
	s     *engine
	r     store.AcquireRequest
	start clock.Instant
}

// run makes the attempt, and again if the lock became free meanwhile.
func (a *attempt) run(ctx context.Context) (store.Grant, error) {
	s, r := a.s, a.r
	if s.places.leases.get(leaseKey{r.Name, r.Owner}) != nil {
		if g, err := a.confirm(ctx); !errors.Is(err, store.ErrNotHeld) || errors.Is(err, errBroken) {
			return g, err
		}
	}
	if s.busy.of(r.Name).busy {
		if err := a.look(ctx); err != nil {
			return store.Grant{}, err
		}
	}
	p, err := s.places.enqueue(ctx, r.Lease)
	if err != nil {
		return store.Grant{}, err
	}
	g, err := a.take(ctx, p)
	if errors.Is(err, errFree) {
		// The holder has left since: a new place would have been the first.
		s.busy.forget(r.Name)
		a.start = s.clock.Now()
		return a.run(ctx)
	}
	return g, err
}

// take takes the lock if the place has it, and otherwise removes the place.
func (a *attempt) take(ctx context.Context, p *place) (store.Grant, error) {
	s := a.s
	for refused := false; ; {
		q, me, err := p.queue(ctx)
		switch {
		case err != nil:
			s.places.remove(p)
			return store.Grant{}, err
		case me < 0 && refused: // an answer to refused was lost, which had removed it
			p.leave()
			return store.Grant{}, errFree
		case me < 0: // somebody else has removed it
			p.leave()
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
					s.places.remove(p)
				}
				return store.Grant{}, err
			}
		}
		p.alone, p.nodeVersion = len(q.queue) == 1 && p.spec == rule.Mutex && !q.noted, q.nodeVersion
		err = p.settle(ctx, q, me)
		if errors.Is(err, errChanged) {
			continue
		}
		var g store.Grant
		if err == nil {
			g, err = s.places.grant(ctx, p, a.r.Lease, a.start)
		}
		if err != nil {
			s.places.remove(p)
			return store.Grant{}, err
		}
		s.busy.forget(a.r.Name)
		return g, nil
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
	blocker, waits := q.blocker(me)
	path := p.dir + "/" + blocker.name
	answers, err := p.Ask(ctx, session.Multi(session.Check(path), session.Delete(p.path())), session.Read(path))
	if err != nil {
		s.places.remove(p)
		return store.Grant{}, err
	}
	switch parts, err := answers[0].Each(2); {
	case err == nil && errors.Is(parts[0].Err, zk.ErrNoNode):
		return store.Grant{}, errChanged
	case err == nil && cmp.Or(parts[0].Err, parts[1].Err) == nil:
		p.leave()
	default: // perhaps it is gone already
		s.places.remove(p)
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
	if waits {
		s.busy.add(r.Name, numbered{}, nil, s.clock.Now())
	} else {
		s.busy.add(r.Name, blocker, n.Data, s.clock.Now())
	}
	return store.Grant{}, p.refusal(r.Lease, q, me, n.Data)
}

// look returns the error for a lock that others have, if there is no room for r.
func (a *attempt) look(ctx context.Context) error {
	r := a.r
	ss, leave, err := a.s.tree(ctx, r.TTL)
	if err != nil {
		return err
	}
	defer leave()
	dir := ss.dir(r.Name)
	answers, err := ss.Ask(ctx, append([]session.Request{session.Sync(dir)}, lineupRequests(dir, hasSeats(specOf(r.Kind)))...)...)
	if err != nil {
		return err
	}
	line, err := lineupOf(answers[1:])
	if err = cmp.Or(answers[0].Err, err); err != nil {
		return err
	}
	if line.hasSized() && !hasSeats(specOf(r.Kind)) {
		return nil // its size has to be read: make a place
	}
	me, q := len(line.queue), line.with(r.Lease)
	if q.holds(me, r.Owner) || q.owns(me).Verdict == rule.Granted {
		return nil
	}
	blocker, waits := q.blocker(me)
	seen := a.s.busy.of(r.Name)
	if seen.first.name != blocker.name { // otherwise that was read already
		n, ok, err := ss.Get(ctx, dir+"/"+blocker.name)
		if err != nil || !ok {
			return err
		}
		if seen.data = n.Data; !waits {
			a.s.busy.add(r.Name, blocker, n.Data, a.s.clock.Now())
		}
	}
	return ss.refusal(r.Lease, q, me, seen.data)
}

// confirm grants again what the owner has, or returns store.ErrNotHeld.
func (a *attempt) confirm(ctx context.Context) (store.Grant, error) {
	if err := a.s.places.renew(ctx, a.r.Lease, a.start, change{join: true}); err != nil {
		return store.Grant{}, err
	}
	return a.s.places.renewed(a.r.Lease)
}
