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

// ReleaseAndRejoin implements store.Rejoiner, in one transaction: the servers write a turn
// down once instead of twice. It makes a place only for a mutex, and only if the session of the
// lease is that of next.TTL.
func (s *Store) ReleaseAndRejoin(ctx context.Context, r store.ReleaseRequest, next store.WaitRequest) (queued bool, err error) {
	if err := s.gate.Enter(store.CheckRejoin(r, next, s.Caps())); err != nil {
		return false, err
	}
	defer s.gate.Leave()
	if err := s.require(next.Require); err != nil {
		return false, err
	}
	ctx, cancel := s.limited(ctx)
	defer cancel()
	j := &rejoining{s: s.places, owner: r.Owner, next: next, start: s.clock.Now()}
	done, err := j.of(ctx, r)
	if err == nil && !done {
		done, err = s.places.release(ctx, r)
	}
	switch {
	case err != nil:
		return false, s.failed(ctx, "release", r.Name, err)
	case !done:
		return false, store.ErrNotHeld
	}
	return j.queued, nil
}

// rejoining is one call of ReleaseAndRejoin.
type rejoining struct {
	s      *places
	owner  string // of the lease
	next   store.WaitRequest
	start  clock.Instant
	queued bool
}

// of releases the lease and makes a place. It returns false if that cannot be done in one
// transaction, or need not be, since nobody waits: then nothing has changed.
func (j *rejoining) of(ctx context.Context, r store.ReleaseRequest) (done bool, err error) {
	s := j.s
	if ctx.Err() != nil || !r.Kind.IsMutex() || !j.next.Kind.IsMutex() {
		return false, ctx.Err()
	}
	h := s.leases.get(leaseKey{r.Name, r.Owner})
	old, err := j.held(ctx, h)
	if old == nil || err != nil {
		return false, err
	}
	if old.spec != rule.Mutex || old.record.isOfAnother(r) {
		old.leave()
		return false, nil
	}
	p := &place{tree: old.tree, leave: old.leave, dir: old.dir, record: recordOf(j.next.Lease, j.next.Spare)}
	t := &turnover{making: &making{place: p, mark: newMark(j.next.Owner), spec: rule.Mutex, weight: 1}, old: old}
	err = p.make(ctx, s, func() error {
		err := t.run(ctx)
		if t.released && h != nil && s.leases.remove(h) {
			h.place.Load().leave()
		}
		return err
	})
	switch {
	case errors.Is(err, errNotMade):
		return t.released, nil
	case err != nil:
		return false, err
	}
	j.queued = s.rejoined.Put(j.next.Lease, reserved{p, j.start}, func() { s.expired(p) })
	if !j.queued {
		s.remove(p)
	}
	return true, nil
}

// held returns the place of the lease in the session that the next place will be in, which
// it enters. It returns nil if there is none, or if h is in another session.
func (j *rejoining) held(ctx context.Context, h *lease) (*place, error) {
	if h != nil {
		old := *h.place.Load()
		if old.Ended() || old.Class() != j.s.limits.Class(j.next.TTL) {
			return nil, nil
		}
		old.leave = old.Enter()
		return &old, nil
	}
	// The lease is that of another store.
	t, leave, err := j.s.tree(ctx, j.next.TTL)
	if err != nil {
		return nil, err
	}
	f, ok, err := t.find(ctx, j.next.Name, j.owner)
	if err != nil || !ok || !f.held() {
		leave()
		return nil, err
	}
	return &place{tree: t, leave: leave, dir: t.dir(j.next.Name), numbered: f.numbered, record: f.record}, nil
}

// errNotMade means that a release has made no place.
var errNotMade = errors.New("no place was made")

// turnover makes a place and deletes an older one.
type turnover struct {
	*making
	old      *place
	released bool // the older one is gone
}

// run returns errNotMade if there is no new place.
func (t *turnover) run(ctx context.Context) error {
	lasting := context.WithoutCancel(ctx)
	for behind := t.old.behind; ; behind = "" {
		if behind == "" { // nobody is known to wait
			q, err := t.children(ctx, t.dir, false)
			if err != nil {
				return err
			}
			i := q.find(t.old.name)
			if i < 0 || i+1 == len(q.queue) {
				return errNotMade
			}
			behind = q.queue[i+1].name
		}
		err := t.once(ctx, lasting, behind)
		switch {
		case err == nil:
			return nil
		case t.Ended():
			return errNotMade
		case errors.Is(err, zk.ErrNoNode): // the waiter or the lease is gone
			continue
		case !session.Broken(err):
			return err
		}
		if found, err := t.adopt(lasting); found || err != nil {
			t.released = found
			return err
		}
		if _, ok, err := t.Get(lasting, t.old.path()); err != nil || !ok {
			t.released = err == nil
			return cmp.Or(err, errNotMade)
		}
	}
}

// once makes the transaction. It fails unless somebody waits at the place behind, so that
// the new place never has a lock that is free. The queue is read right after it.
func (t *turnover) once(ctx, lasting context.Context, behind string) error {
	turn := session.Multi(session.Check(t.dir+"/"+behind), session.Delete(t.old.path()), t.request())
	sent, err := t.Send(ctx, turn, session.List(t.dir))
	if err != nil {
		return err
	}
	answers, err := sent.Wait(lasting)
	if err != nil {
		return err
	}
	parts, err := answers[0].Each(3)
	for _, p := range parts {
		err = cmp.Or(err, p.Err)
	}
	if err != nil {
		return explain(err, t.dir)
	}
	t.released = true
	return t.take(append(parts[2:], answers[1:]...))
}
