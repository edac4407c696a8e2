package zkstore

import (
	"cmp"
	"context"
	"errors"
	"slices"

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
	end := func(err error) error {
		if t.released && h != nil && s.leases.remove(h) {
			h.place.Load().leave()
		}
		return err
	}
	if err = end(t.once(ctx, ctx)); err != nil {
		err = p.make(ctx, s, func() error { return end(t.run(ctx, err)) })
	}
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
	// watch is that of the request that has left behind the transaction.
	watch *session.Watch
}

// run goes on after once has failed with that error. It returns errNotMade if there is no new
// place.
func (t *turnover) run(ctx context.Context, err error) error {
	lasting := context.WithoutCancel(ctx)
	for ; err != nil; err = t.once(ctx, lasting) {
		switch {
		case t.Ended():
			return errNotMade
		case t.sent != nil: // the caller waits no more
		case errors.Is(err, errNobody):
			q, err := t.children(ctx, t.dir, false)
			if err != nil {
				return err
			}
			i := q.find(t.old.name)
			if i < 0 || i+1 == len(q.queue) {
				return errNotMade
			}
			t.old.behind = q.queue[i+1:]
		case errors.Is(err, zk.ErrNoNode): // the waiter or the lease is gone
			t.old.behind = nil
		case !session.Broken(err):
			return err
		default:
			t.old.behind = nil
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
	return nil
}

// errNobody means that nobody is known to wait.
var errNobody = errors.New("nobody is known to wait")

// once makes the transaction, unless it has left already. The transaction fails unless somebody
// waits at the next place, so that the new place never has a lock that is free. The request for
// a watch on the last place that is known leaves right behind it: in most cases that is the one
// before the new one. The end of lasting ends the wait for the answers: then once can be called
// again.
func (t *turnover) once(ctx, lasting context.Context) error {
	behind := t.old.behind
	if len(behind) == 0 {
		return errNobody
	}
	last := hurdle{behind[len(behind)-1].name}
	if t.sent == nil {
		turn := session.Multi(session.Check(t.dir+"/"+behind[0].name), session.Delete(t.old.path()), t.request())
		t.watch = watchFor(t.dir, last)
		sent, err := t.Send(ctx, turn, t.watch.Request())
		if err != nil {
			return err
		}
		t.sent = sent
	}
	answers, err := t.sent.Wait(lasting)
	if err != nil {
		return err
	}
	t.sent = nil
	if err := t.turned(answers[0]); err != nil {
		t.watch.Stop()
		return err
	}
	t.expect(behind, last, answers[1])
	return nil
}

// turned takes the answer to the transaction.
func (t *turnover) turned(a session.Answer) error {
	parts, err := a.Each(3)
	for _, p := range parts {
		err = cmp.Or(err, p.Err)
	}
	if err != nil {
		return explain(err, t.dir)
	}
	t.released = true
	path, czxid, err := parts[2].Created()
	if err != nil {
		return err
	}
	return t.named(path, czxid)
}

// expect takes the answer to the request for the watch: if the watch is set, nothing has to be
// read before the last place that was known is gone.
func (t *turnover) expect(behind queue, last hurdle, a session.Answer) {
	if gone, err := t.watching(t.watch, a, nil, last); gone || err != nil {
		return
	}
	t.early = &lineup{queue: append(slices.Clip(behind), t.numbered), version: anyVersion}
}
