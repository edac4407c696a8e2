package zkstore

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/internal/validity"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/zkstore/internal/zk"
)

// waiting is one pending Wait.
type waiting struct {
	s      *engine
	r      store.WaitRequest
	reason func(error)
	start  clock.Instant

	place *place // nil: there is none
	// paused is set while the place watches what it has to wait for. It looks at lookAt all the same.
	paused bool
	lookAt time.Time
	lost   <-chan struct{} // closed when the connection is
	// silentUntil is the time from which the holder is read for the caller.
	silentUntil time.Time

	// busy is the error that was made last for the caller, of the holder's place first and the waiter's
	// position. It is told unless a failure was reported since.
	busy     *store.BusyError
	first    numbered
	position int
	told     bool
}

// Wait implements driver.Engine. The server tells a waiter when the place that it waits for
// is gone, which is the one before its own if the lock is a mutex (see the package
// documentation). A waiter also looks by itself now and then (see lookAfter).
func (s *engine) Wait(ctx context.Context, r store.WaitRequest, reason func(error)) (store.Grant, error) {
	if err := s.require(r.Lease); err != nil {
		return store.Grant{}, err
	}
	w := &waiting{s: s, r: r, reason: reason, start: s.clock.Now()}
	if p, ok := s.rejoined.Take(r.Lease); ok {
		w.place, w.start = p.place, p.start
		w.silentUntil = time.Now().Add(silentFor)
		w.paused, w.lookAt = p.set != nil, w.silentUntil
	}
	returned := false
	defer func() { // also if reason panics
		if !returned && w.place != nil {
			s.remove(w.place)
		}
	}()
	g, err := w.run(ctx)
	returned = err == nil
	return g, err
}

// run waits, in one place after the other if the session ends meanwhile.
func (w *waiting) run(ctx context.Context) (store.Grant, error) {
	for {
		g, err := w.once(ctx)
		if err == nil || isRefusal(err) {
			return g, err
		}
		var q *store.QuorumError
		if ctx.Err() != nil || !errors.As(err, &q) {
			err = w.s.failed(ctx, "wait for", w.r.Name, err)
		}
		if !errors.As(err, &q) || !q.Transient() {
			return store.Grant{}, err
		}
		w.told = false
		if w.reason != nil {
			w.reason(q)
		}
		if w.place != nil && w.place.Ended() {
			w.place, w.paused = nil, false
		}
		clock.Sleep(ctx, retryAfter)
	}
}

// retryAfter is how long a waiter waits after a failure.
const retryAfter = 200 * time.Millisecond

// once makes a place, unless there is one, and waits in it.
func (w *waiting) once(ctx context.Context) (store.Grant, error) {
	for {
		g, err := w.look(ctx)
		switch {
		case err != nil:
			return store.Grant{}, err
		case g != nil:
			return *g, nil
		case w.paused:
			if err := w.pause(ctx); err != nil {
				return store.Grant{}, err
			}
		}
	}
}

// look takes the lock if the place has it. Otherwise it watches the place before, and
// sets paused unless that is gone. It blocks for at most Options.Timeout, so that the
// waiter is told if no server answers.
//
// If it is paused already, only the connection was lost, and look does not list the queue: on the next
// connection the server announces what has happened to the watched place, and nothing else lets the waiter in.
// New places come behind its own, since their numbers rise. A place that moves to another session
// keeps its number, but its old node is gone, which is announced. A reader watches the last place before
// its own that is not a reader's: readers that come and go between the two change nothing. A waiter for a
// semaphore may be let in before the place before it ends, but that place is written to first. If
// several holders are watched, that is a list, and such a watch ends with its connection.
func (w *waiting) look(ctx context.Context) (g *store.Grant, err error) {
	limited, cancel := w.s.timed(ctx)
	defer cancel()
	defer func() {
		if ctx.Err() == nil {
			err = w.s.failed(limited, "wait for", w.r.Name, err)
		}
	}()
	if !w.paused {
		if g, err = w.lookAtQueue(limited); err != nil || !w.paused {
			return g, err
		}
	}
	if w.lost, err = w.place.Connected(limited); err == nil {
		w.tell()
	}
	return nil, err
}

// lookAtQueue is look for a waiter that is not paused.
func (w *waiting) lookAtQueue(ctx context.Context) (g *store.Grant, err error) {
	if w.place == nil {
		if w.place, err = w.s.enqueue(ctx, w.r.Lease); err != nil {
			return nil, err
		}
	}
	q, me, err := w.place.queue(ctx)
	switch {
	case err != nil:
		return nil, err
	case me < 0 && w.place.Ended():
		return nil, w.place.Reason()
	case me < 0:
		w.place = nil
		return nil, store.ErrNotHeld
	}
	a := q.owns(me)
	switch a.Verdict {
	case rule.Granted:
		err := w.place.settle(ctx, q.queue, me)
		if errors.Is(err, errChanged) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if w.place.last = ""; me+2 < len(q.queue) {
			w.place.last = q.queue[len(q.queue)-1].name
		}
		g, err := w.granted(ctx, q)
		return &g, err
	case rule.Mismatch:
		return nil, w.mismatch(ctx, q.queue, me)
	}
	if gone, err := w.place.watch(ctx, q, me); err != nil || gone {
		if gone && w.busy == nil && w.reason != nil {
			// The place before has left, and was not read. The caller has to know that others want the lock: it then
			// queues for its next turn with its release.
			w.busy = w.place.busyError(w.r.Name, q.queue[0], record{}, false)
			w.busy.Holder.Foreign, w.busy.Position = !q.queue[0].isNative(), a.Position
			w.tell()
		}
		return nil, err
	}
	// In a long queue the last ones seldom look by themselves: each list names all places.
	now := time.Now()
	w.lookAt = now.Add(max(validity.RenewAfter(w.r.TTL), time.Duration(me)*lookAfter))
	if w.place.before != q.queue[0].name && now.Before(w.silentUntil) {
		w.lookAt, w.paused = w.silentUntil, true
		return nil, nil
	}
	err = w.report(ctx, q.queue[0], a.Position)
	w.paused = err == nil
	return nil, err
}

// silentFor is how long a waiter whose place was made with a release does not ask who the holder is. Its
// caller knows that others want the lock, and if they hold it for a moment each, it seldom waits so long.
const silentFor = 500 * time.Millisecond

// lookAfter is how long a waiter trusts what it watches, for each place before its own, if that is longer
// than a third of its TTL.
const lookAfter = 100 * time.Millisecond

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

// report reports the holder and the position if they have changed.
func (w *waiting) report(ctx context.Context, first numbered, position int) error {
	if w.reason == nil || w.busy != nil && w.first == first && w.position == position {
		return nil
	}
	of := w.place.first // as it was read by the watch
	if first.name != w.place.before || w.place.set == nil {
		answers, err := w.place.Ask(ctx, zk.Read(w.place.dir+"/"+first.name))
		if err != nil {
			return err
		}
		of = answers[0]
	}
	n, ok, err := of.Node()
	if err != nil || !ok { // if it is gone, that is announced
		return err
	}
	w.first, w.position, w.told = first, position, false
	rec, ours := decodeRecord(n.Data)
	w.busy = w.place.busyError(w.r.Name, first, rec, ours)
	w.busy.Position = position
	return nil
}

// tell tells the caller of the holder, unless that is what it was told last.
func (w *waiting) tell() {
	if w.busy != nil && !w.told {
		w.told = true
		w.reason(w.busy)
	}
}

// pause waits until there is a change in what the waiter waits for, or it is time to look. It remains
// paused if the connection is lost.
func (w *waiting) pause(ctx context.Context) error {
	timer := time.NewTimer(time.Until(w.lookAt))
	defer timer.Stop()
	p := w.place
	select {
	case <-p.set.Over:
		if p.handedOver() {
			p.early = &lineup{queue: queue{p.numbered}, noted: p.noted, asOf: p.asOf}
		} else {
			p.unwatch()
		}
	case <-p.ownChanged():
		p.unwatch()
	case <-timer.C:
	case <-w.lost:
		return nil
	case <-p.Over:
		return p.Reason()
	case <-ctx.Done():
		return ctx.Err()
	}
	w.paused = false
	return nil
}

// granted makes a lease of the place. Its validity counts from the last proof that the
// session lives, or from a new one if much of that time is over.
//
// The queue q shows every break before q.asOf. Either the validity counts from then or earlier, or
// the place is read again after the proof. So a lease that was broken before it was granted
// is over a TTL after the break.
func (w *waiting) granted(ctx context.Context, q lineup) (store.Grant, error) {
	asOf := max(w.start, q.asOf)
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
		w.place = nil
		return store.Grant{}, store.ErrNotHeld
	case errors.Is(err, errBroken) && w.place.removeNow(ctx) == nil:
		w.place = nil
		return store.Grant{}, err
	case err != nil:
		return store.Grant{}, err
	}
	g, err := w.s.grant(ctx, w.place, w.r.Lease, at)
	g.Since = max(0, min(proven, w.s.clock.Now()).Sub(w.start))
	return g, err
}

// watched is what the waiter at a place watches.
type watched struct {
	before string
	set    *zk.Watch // nil: nothing is watched
	first  zk.Answer // the node before, as it was then
	// own is a watch on the waiter's own place, on the same connection as set. It is nil unless
	// only the place that is watched comes before that (see handedOver).
	own *zk.Watch
	// asOf is an instant before the watch was asked for. The place that is watched was there later
	// than that, so the waiter had no lease before asOf that could have been broken.
	asOf  clock.Instant
	noted bool // lineup.noted of that time
}

// ownChanged returns a channel that is closed when the waiter's own place has changed.
func (w *watched) ownChanged() <-chan struct{} {
	if w.own == nil {
		return nil
	}
	return w.own.Over
}

// handedOver reports whether the lock is certainly the waiter's, so that nothing has to be listed.
// Only one place was before the waiter's own. The server has announced the end of that place, and
// before that no change of the waiter's own. A server announces changes in their order, and a place
// that is made later comes behind both. If a holder's place moves to another session, the same
// transaction writes to the old node and deletes it: only the write is announced.
//
// Without that, a turn of two clients takes another round trip: the list of the queue.
func (w *watched) handedOver() bool {
	return w.own != nil && w.set.Deleted && !w.ownHasChanged()
}

// ownHasChanged reports whether a change of the waiter's own place was announced.
func (w *watched) ownHasChanged() bool {
	select {
	case <-w.ownChanged():
		return true
	default:
		return false
	}
}

// unwatch ends the watches. It changes nothing if there are none: several goroutines read the place
// of a lease, which watches nothing, and the end of the lease may call unwatch meanwhile.
func (w *watched) unwatch() {
	if w.set != nil {
		w.set.Stop()
		w.own.Stop()
		*w = watched{}
	}
}

// mayBeHandedOver reports whether the place is the second one in the queue and certainly has the
// lock once the first one has ended. Two places of one owner are an exception: if the lease of the
// first one is broken, the second one may be refused.
func (p *place) mayBeHandedOver(q queue) bool {
	return len(q) > 1 && q[1].name == p.name && p.spec == rule.Mutex && !q[0].isOf(ownerMark(p.record.Owner))
}

// watch watches what the place q[me] has to wait for. again reports that the queue has to be looked
// at again. If the place is the next one, its queue is listed with that: the holder may have left
// since, and then the list saves a round trip.
func (p *place) watch(ctx context.Context, q lineup, me int) (again bool, err error) {
	h, next := q.hurdleOf(me), p.mayBeHandedOver(q.queue)
	if p.set != nil && p.before == h && (p.own != nil || !next) {
		return false, nil
	}
	p.unwatch()
	w := watched{before: h, set: zk.WatchNode(p.dir + "/" + h), asOf: p.Proven(), noted: q.noted}
	if h == anyPlace {
		w.set = zk.WatchList(p.dir)
	}
	requests := []zk.Request{w.set.Request()}
	if next {
		w.own = zk.WatchNode(p.path())
		requests = append(requests, w.own.Request(), zk.List(p.dir))
	}
	answers, err := p.Once(ctx, requests...)
	if err == nil {
		w.first = answers[0]
		again, err = w.answered(p, answers[0], q.queue)
	}
	if err == nil && next && !again {
		_, ok, failed := answers[1].Node()
		again = !ok // if the own place is gone, the queue shows that
		if !zk.Broken(failed) {
			err = failed
		}
	}
	if p.watched = w; err != nil || again {
		p.unwatch()
	}
	if next && err == nil && again {
		if p.early = earlyOf(answers[2]); p.early != nil {
			p.early.asOf = w.asOf
		}
	}
	return again, err
}

// answered takes the answer to the request of a watch. again reports that what is watched is not as
// q shows it.
func (w *watched) answered(p *place, a zk.Answer, q queue) (again bool, err error) {
	switch {
	case zk.Broken(a.Err):
		return true, nil
	case w.before == anyPlace:
		names, _, err := a.Names()
		return !slices.EqualFunc(queueOf(names), q, func(a, b numbered) bool { return a.name == b.name }), err
	}
	n, ok, err := a.Node()
	if ok && hasSeats(p.spec) { // it may have got its slot just before
		rec, _ := decodeRecord(n.Data)
		return rec.Agreed && q.find(w.before) >= q.holders(), err
	}
	return !ok, err
}
