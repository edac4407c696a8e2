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

// ReleaseAndRejoin implements driver.Engine, in one transaction: the servers write a turn
// down once instead of twice. It makes a place only for a mutex, and only if the session of the
// lease is that of next.TTL.
func (s *engine) ReleaseAndRejoin(ctx context.Context, r store.ReleaseRequest, next store.WaitRequest) (queued bool, err error) {
	if err := s.require(next.Require); err != nil {
		return false, err
	}
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
	p := &place{tree: old.tree, leave: old.leave, dir: old.dir, record: recordOf(j.next.Lease)}
	t := &turnover{making: &making{place: p, mark: newMark(j.next.Owner), spec: rule.Mutex, weight: 1}, old: old, remove: s.remove}
	end := func(err error) error {
		if t.released && h != nil && s.leases.remove(h) {
			h.place.Load().leave()
		}
		return err
	}
	if why := end(t.once(ctx, ctx)); why != nil { // its own variable: run may read it when make has returned
		err = p.make(ctx, s, func() error { return end(t.run(ctx, why)) })
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
	// checked is set if the transaction that has left checks that somebody waits.
	checked bool
	// watch is that of the request that has left behind the transaction, on the place last. It is
	// nil if that request lists the queue.
	watch  *session.Watch
	last   hurdle
	remove func(*place) // removes a place in the background
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
			t.old.behind, t.old.unlisted = q.queue[i+1:], false
		case errors.Is(err, zk.ErrNoNode): // the waiter or the lease is gone
			t.old.behind, t.old.unlisted = nil, false
		case !session.Broken(err) && ctx.Err() != nil:
			return err
		case !session.Broken(err): // the servers refuse the new place, such as one too many: the release alone may do
			return errNotMade
		default:
			t.old.behind, t.old.unlisted = nil, false
			if found, err := t.adopt(lasting); found || err != nil {
				if t.released = found; err == nil {
					err = t.behindSomebody(lasting)
				}
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

// once makes the transaction, unless it has left already. If a waiter is known, the transaction
// fails unless that is still there, so that the new place never has a lock that is free. If none
// is known since the lock was handed over without a list, there is one all the same in most
// cases. Otherwise once deletes the new place again. The end of lasting ends the wait for the
// answers: then once can be called again.
func (t *turnover) once(ctx, lasting context.Context) error {
	behind := t.old.behind
	if len(behind) == 0 && !t.old.unlisted {
		return errNobody
	}
	if t.sent == nil {
		turn := []session.Request{session.Delete(t.old.path()), t.request()}
		if t.checked = len(behind) > 0; t.checked {
			turn = slices.Insert(turn, 0, session.Check(t.dir+"/"+behind[0].name))
		}
		t.last = t.old.hint()
		then := session.List(t.dir)
		if t.watch = nil; t.last != anyPlace {
			t.watch = watchFor(t.dir, t.last).Then(session.List(t.dir))
			then = t.watch.Request()
		}
		sent, err := t.Send(ctx, session.Multi(turn...), then)
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
	if t.watch != nil {
		t.expect(behind, answers[1])
		return nil
	}
	return t.listed(lasting, answers[1:])
}

// hint returns the last place that is known before the new one, which is to be watched: the turn
// of the new place comes later than its end. If few are known, it returns anyPlace: then listing
// the queue is worth it, since the new place may be the next one (see watched.handedOver).
func (p *place) hint() hurdle {
	i := len(p.behind) - 1
	if i < 0 || i == 0 && !p.unlisted {
		return anyPlace
	}
	return hurdle{p.behind[i].name}
}

// listed takes the answer to the request for the queue.
func (t *turnover) listed(ctx context.Context, answers []session.Answer) error {
	t.early = earlyOf(answers, false)
	if err := t.behindSomebody(ctx); err != nil {
		return err
	}
	t.watchEarly(ctx)
	return nil
}

// watchEarly asks for the watches of the new place if that is the next one, and for the queue
// behind them. In more than a third of the turns of two clients that hold the lock for a moment,
// the holder leaves before the watches are set. The list then shows that the lock is free, without
// another round trip: with a log in memory, the median time of a hand-off between two processes
// is 480 µs instead of 580.
func (t *turnover) watchEarly(ctx context.Context) {
	if t.early == nil || !t.mayBeHandedOver(*t.early) {
		return
	}
	w, err := t.sendWatch(ctx, hurdle{t.early.queue[0].name}, true, session.List(t.dir))
	if err == nil { // otherwise the next Wait says why
		t.pending = w
	}
}

// behindSomebody deletes the new place if nobody was known to wait and nobody does.
func (t *turnover) behindSomebody(ctx context.Context) error {
	if t.checked {
		return nil
	}
	if t.early == nil {
		q, err := t.children(ctx, t.dir, false)
		if err != nil {
			t.leaveBehind()
			return err
		}
		t.early = &q
	}
	if t.early.find(t.name) != 0 {
		return nil
	}
	if _, _, err := t.delete(ctx); err != nil {
		t.leaveBehind()
	}
	return errNotMade
}

// leaveBehind removes the new place in the background.
func (t *turnover) leaveBehind() {
	p := *t.place
	p.leave = p.Enter()
	t.remove(&p)
}

// turned takes the answer to the transaction.
func (t *turnover) turned(a session.Answer) error {
	n := 2
	if t.checked {
		n++
	}
	parts, err := a.Each(n)
	for _, p := range parts {
		err = cmp.Or(err, p.Err)
	}
	if err != nil {
		return explain(err, t.dir)
	}
	t.released = true
	path, czxid, err := parts[n-1].Created()
	if err != nil {
		return err
	}
	if t.named(path, czxid) != nil { // the next Wait says why
		return errNotMade
	}
	return nil
}

// expect takes the answer to the request for the watch: if the watch is set, nothing has to be
// read before that place is gone.
func (t *turnover) expect(behind queue, a session.Answer) {
	if gone, err := t.watching(t.watch, a, nil, t.last); gone || err != nil {
		return
	}
	t.early = &lineup{queue: slices.Concat(behind, queue{t.numbered}), version: anyVersion, partial: true}
}
