package zkstore

import (
	"context"
	"errors"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/internal/validity"
	"github.com/leasehold-dev/leasehold/store"
)

// waiting is one pending Wait.
type waiting struct {
	s      *engine
	r      store.WaitRequest
	reason func(error)
	start  clock.Instant

	place *place // nil: there is none
	// first is the holder's place and position the waiter's, as they were last reported.
	// The holder was then guessed, or read.
	first    numbered
	position int
	guessed  bool
}

// Wait implements driver.Engine. The server tells a waiter when the place that it waits for
// is gone, which is the one before its own if the lock is a mutex (see the package
// documentation). A waiter also looks by itself three times in its TTL. Barge has no effect:
// the queue is ZooKeeper's, and has one order.
func (s *engine) Wait(ctx context.Context, r store.WaitRequest, reason func(error)) (store.Grant, error) {
	if err := s.require(r.Require); err != nil {
		return store.Grant{}, err
	}
	w := &waiting{s: s, r: r, reason: reason, start: s.clock.Now()}
	if p, ok := s.places.rejoined.Take(r.Lease); ok {
		w.place, w.start = p.place, p.start
	}
	returned := false
	defer func() { // also if reason panics
		if !returned && w.place != nil {
			s.places.remove(w.place)
		}
	}()
	g, err := w.run(ctx)
	if err != nil {
		return store.Grant{}, err
	}
	returned = true
	return g, nil
}

// run waits, in one place after the other if the session ends meanwhile.
func (w *waiting) run(ctx context.Context) (store.Grant, error) {
	for {
		g, err := w.once(ctx)
		if err == nil || errors.Is(err, store.ErrNotHeld) || isRefusal(err) {
			return g, err
		}
		var q *store.QuorumError
		if ctx.Err() != nil || !errors.As(err, &q) {
			err = w.s.failed(ctx, "wait for", w.r.Name, err)
		}
		if !errors.As(err, &q) || !q.Transient() {
			return store.Grant{}, err
		}
		w.tell(q)
		if w.place != nil && w.place.Ended() {
			w.place.leave()
			w.place = nil
		}
		clock.Sleep(ctx, retryAfter)
	}
}

// retryAfter is how long a waiter waits after a failure.
const retryAfter = 200 * time.Millisecond

// tell calls the reason function.
func (w *waiting) tell(err error) {
	w.first = numbered{} // what was reported of the holder is no longer the last
	if w.reason != nil {
		w.reason(err)
	}
}

// once makes a place, unless there is one, and waits in it.
func (w *waiting) once(ctx context.Context) (store.Grant, error) {
	if w.place == nil {
		limited, cancel := w.s.timed(ctx)
		p, err := w.s.places.enqueue(limited, w.r.Lease)
		if err != nil {
			if ctx.Err() == nil {
				err = w.s.failed(limited, "wait for", w.r.Name, err)
			}
			cancel()
			return store.Grant{}, err
		}
		cancel()
		w.place = p
	}
	for {
		g, pause, err := w.look(ctx)
		if err != nil {
			return store.Grant{}, err
		}
		if g != nil {
			return *g, nil
		}
		if !pause {
			continue
		}
		if err := w.pause(ctx); err != nil {
			return store.Grant{}, err
		}
	}
}

// look takes the lock if the place has it. Otherwise it watches the place before, and
// pause is set unless that is gone. It blocks for at most Options.Timeout, so that the
// waiter is told if no server answers.
func (w *waiting) look(ctx context.Context) (g *store.Grant, pause bool, err error) {
	limited, cancel := w.s.timed(ctx)
	defer cancel()
	defer func() {
		if err != nil && !errors.Is(err, store.ErrNotHeld) && !isRefusal(err) && ctx.Err() == nil {
			err = w.s.failed(limited, "wait for", w.r.Name, err)
		}
	}()
	asOf := w.start // the queue shows every break before this
	if early := w.place.early; early != nil {
		asOf = max(asOf, early.asOf)
	} else {
		asOf = w.place.Proven()
	}
	q, me, err := w.place.queue(limited)
	switch {
	case err != nil:
		return nil, false, err
	case me < 0 && w.place.Ended():
		return nil, false, w.place.Reason()
	case me < 0:
		w.place.leave()
		w.place = nil
		return nil, false, store.ErrNotHeld
	}
	a := q.owns(me)
	switch a.Verdict {
	case rule.Granted:
		err := w.place.settle(limited, q, me)
		if errors.Is(err, errChanged) {
			return nil, false, nil
		}
		if err != nil {
			return nil, false, err
		}
		g, err := w.granted(limited, q, asOf)
		return &g, false, err
	case rule.Mismatch:
		return nil, false, w.mismatch(limited, q.queue, me)
	}
	if q.partial && w.place.set != nil { // what is watched is gone before its turn
		return nil, true, w.found(limited, q.queue[0], a.Position)
	}
	gone, err := w.place.watch(limited, q, q.hurdleOf(me))
	switch {
	case err != nil:
		return nil, false, err
	case gone:
		w.foundBefore(q.queue[0], a.Position)
		return nil, false, nil
	}
	return nil, true, w.found(limited, q.queue[0], a.Position)
}

// mismatch removes the place and returns the error for a lock that is in use as another
// kind, or nil if that is no longer so.
func (w *waiting) mismatch(ctx context.Context, q queue, me int) error {
	n, ok, err := w.place.Get(ctx, w.place.dir+"/"+q[0].name)
	if err != nil || !ok {
		return err
	}
	refusal := w.place.refusal(w.r.Lease, q, me, n.Data)
	if w.place.removeNow(ctx) == nil {
		w.place = nil
	}
	return refusal
}

// pause waits until there is a change in what the waiter waits for, or it is time to look.
func (w *waiting) pause(ctx context.Context) error {
	after := validity.RenewAfter(w.r.TTL)
	if w.guessed {
		after = min(after, w.s.busy.guessFor)
	}
	timer := time.NewTimer(after)
	defer timer.Stop()
	select {
	case <-w.place.changed():
		if w.place.handedOver() {
			w.place.early = &lineup{queue: append(queue{w.place.numbered}, w.place.behind...), version: anyVersion, noted: w.place.noted, asOf: w.place.asOf}
			w.place.unlisted = true
			return nil
		}
		w.place.followed()
		w.place.unwatch()
		return nil
	case <-w.place.ownChanged():
		w.place.unwatch()
		return nil
	case <-timer.C:
		return nil
	case <-w.place.Over:
		return w.place.Reason()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// found reports the holder and the position if they have changed.
func (w *waiting) found(ctx context.Context, first numbered, position int) error {
	if w.reason == nil || !w.guessed && w.first == first && w.position == position {
		return nil
	}
	is, err := w.holder(ctx, first)
	if err != nil || is.first.name == "" {
		return err // if it is gone, that is announced
	}
	w.report(is, first, position)
	return nil
}

// foundBefore is found for a queue that has moved on since. Nothing is read for it, but the
// client has to know that others want the lock: it then queues for its next turn with the
// release of this one.
func (w *waiting) foundBefore(first numbered, position int) {
	if w.reason == nil || w.first.name != "" {
		return
	}
	if is, recent := w.recent(); recent {
		w.report(is, first, position)
	}
}

// report reports a holder, and the position behind first.
func (w *waiting) report(is glimpse, first numbered, position int) {
	w.guessed = is.first.name != first.name
	w.first, w.position = first, position
	busy := w.place.busyError(w.r.Name, is.first, is.record, is.ours)
	busy.Position = position
	w.reason(busy)
}

// recent returns a holder of the lock that was read not long ago.
func (w *waiting) recent() (glimpse, bool) {
	seen := w.s.busy.of(w.r.Name)
	return seen, seen.first.name != "" && w.s.clock.Now().Sub(seen.at) < validity.RenewAfter(w.r.TTL)
}

// holder reads the first place, unless it is known. For the first report of a waiter, a
// recent holder will do. The result is zero if the place is gone.
func (w *waiting) holder(ctx context.Context, first numbered) (glimpse, error) {
	seen, recent := w.recent()
	at, data := w.s.clock.Now(), w.place.data
	switch {
	case first.name == w.place.before.name && w.place.set != nil:
	case recent && (seen.first.name == first.name || w.first.name == ""):
		return seen, nil
	default:
		n, ok, err := w.place.Get(ctx, w.place.dir+"/"+first.name)
		if err != nil || !ok {
			return glimpse{}, err
		}
		data = n.Data
	}
	return w.s.busy.add(w.r.Name, first, data, at), nil
}

// granted makes a lease of the place. Its validity counts from the last proof that the
// session lives, or from a new one if much of that time is over.
//
// The queue q shows every break before asOf. Either the validity counts from asOf or earlier, or
// the place is read again after the proof. So a lease that was broken before it was granted
// is over a TTL after the break.
func (w *waiting) granted(ctx context.Context, q lineup, asOf clock.Instant) (store.Grant, error) {
	changed := w.place.ownHasChanged() // since it was handed over
	w.place.unwatch()
	at := max(w.start, w.s.clock.Now().Add(-validity.RenewAfter(w.r.TTL)))
	proven, err := w.place.Prove(ctx, at)
	if err != nil {
		return store.Grant{}, err
	}
	if q.noted || changed || asOf < at {
		err = w.place.unbroken(ctx)
	} else {
		proven = min(proven, asOf)
	}
	switch {
	case errors.Is(err, errRemoved):
		w.place.leave()
		w.place = nil
		return store.Grant{}, store.ErrNotHeld
	case errors.Is(err, errBroken):
		if w.place.removeNow(ctx) == nil {
			w.place = nil
		}
		return store.Grant{}, store.BrokenError("wait for", w.r.Name)
	case err != nil:
		return store.Grant{}, err
	}
	g, err := w.s.places.grant(ctx, w.place, w.r.Lease, at)
	if err != nil {
		return store.Grant{}, err
	}
	w.s.busy.forget(w.r.Name)
	g.Since = max(0, min(proven, w.s.clock.Now()).Sub(w.start))
	return g, nil
}
