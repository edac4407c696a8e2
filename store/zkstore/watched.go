package zkstore

import (
	"cmp"
	"context"
	"slices"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store/zkstore/internal/session"
)

// watched is what the waiter at a place watches.
type watched struct {
	before hurdle
	set    *session.Watch // nil: nothing is watched
	// data is that of the place that is watched, as it was then.
	data []byte
	// own is a watch on the waiter's own place, on the same connection as set. It is nil unless
	// only the place that is watched comes before that (see handedOver).
	own *session.Watch
	// asOf is an instant before the watch was asked for. The place that is watched was there later
	// than that, so the waiter had no lease before asOf that could have been broken.
	asOf clock.Instant
	// pending is a watch whose answer nobody has waited for, or nil.
	pending *setting
}

// changed returns a channel that is closed when there is a change. Something is watched.
func (w *watched) changed() <-chan struct{} { return w.set.Over }

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

// followed takes the queue that was listed as soon as the change was announced, if it was.
func (p *place) followed() {
	answers, asOf := p.set.Followed()
	if answers == nil {
		return
	}
	if p.early = earlyOf(answers, hasSeats(p.spec)); p.early != nil {
		p.early.asOf, p.unlisted = asOf, false
	}
}

// unwatch ends the watches. It changes nothing if there are none: several goroutines read the place
// of a lease, which watches nothing, and the end of the lease may call unwatch meanwhile.
func (w *watched) unwatch() {
	if w.set == nil && w.own == nil && w.pending == nil {
		return
	}
	w.set.Stop()
	w.own.Stop()
	w.pending.stop()
	w.set, w.own, w.pending = nil, nil, nil
}

// watchFor returns a watch for the hurdle of a place in dir.
func watchFor(dir string, h hurdle) *session.Watch {
	if h == anyPlace {
		return session.WatchList(dir)
	}
	return session.WatchNode(dir + "/" + h.name)
}

// watch watches what the waiter has to wait for. again reports that it has changed since q
// was read.
func (p *place) watch(ctx context.Context, q lineup, h hurdle) (again bool, err error) {
	next := p.mayBeHandedOver(q)
	if p.set != nil && p.before == h && (p.own != nil || !next) {
		return false, nil
	}
	w := p.pending
	p.pending = nil
	p.unwatch()
	if w == nil || w.before != h || (w.own != nil) != next {
		w.stop()
		if w, err = p.sendWatch(ctx, h, next); err != nil {
			return false, err
		}
	}
	return p.takeWatch(ctx, w, q)
}

// setting is a watch whose request has left.
type setting struct {
	before hurdle
	of     *session.Watch
	own    *session.Watch // on the own place, or nil
	asOf   clock.Instant  // a proof that the session lives, from before that
	sent   *session.Batch
}

// stop ends the watch, if there is one.
func (w *setting) stop() {
	if w != nil {
		w.of.Stop()
		w.own.Stop()
	}
}

// sendWatch asks for a watch. next has the own place watched as well, and the queue may be asked
// for with then.
func (p *place) sendWatch(ctx context.Context, h hurdle, next bool, then ...session.Request) (w *setting, err error) {
	w = &setting{before: h, of: watchFor(p.dir, h), asOf: p.Proven()}
	requests := append(make([]session.Request, 0, 3), w.of.Request())
	if next {
		w.own = session.WatchNode(p.path())
		requests = append(requests, w.own.Request())
	} else {
		w.of.Then(lineupRequests(p.dir, hasSeats(p.spec))...)
	}
	w.sent, err = p.Send(ctx, append(requests, then...)...)
	return w, err
}

// takeWatch waits for the answers to the request of a watch for the queue q.
func (p *place) takeWatch(ctx context.Context, w *setting, q lineup) (again bool, err error) {
	answers, err := w.sent.Wait(ctx)
	if err != nil {
		w.stop()
		return false, err
	}
	if again, err = p.watching(w.of, answers[0], q.queue, w.before); w.own == nil {
		return again, err
	}
	_, ok, failed := answers[1].Node()
	if !session.Broken(failed) {
		err = cmp.Or(err, failed)
	}
	if again || err != nil || !ok {
		if len(answers) > 2 { // the queue
			if p.early = earlyOf(answers[2:], false); p.early != nil {
				p.early.asOf = w.asOf
			}
		}
		w.own.Stop()
		return err == nil, err // if the own place is gone, the queue shows that
	}
	p.own, p.asOf = w.own, w.asOf
	return false, nil
}

// mayBeHandedOver reports whether the place is the second one in the queue and certainly has the
// lock once the first one has ended. Two places of one owner are an exception: if the lease of the
// first one is broken, the second one may be refused.
func (p *place) mayBeHandedOver(l lineup) bool {
	q := l.queue
	return !l.partial && len(q) > 1 && q[1].name == p.name && p.spec == rule.Mutex && !q[0].isOf(ownerMark(p.record.Owner))
}

// watching takes the answer to the request of a watch.
func (p *place) watching(of *session.Watch, a session.Answer, q queue, h hurdle) (again bool, err error) {
	var data []byte
	switch {
	case session.Broken(a.Err):
		again = true
	case h == anyPlace:
		var names []string
		names, err = a.Names()
		again = !slices.EqualFunc(queueOf(names), q, func(a, b numbered) bool { return a.name == b.name })
	default:
		n, ok, failed := a.Node()
		data, again, err = n.Data, !ok, failed
		if ok && hasSeats(p.spec) { // it may have got its slot just before
			rec, _ := decodeRecord(data)
			again = rec.Agreed && q.find(h.name) >= q.holders()
		}
	}
	if again || err != nil {
		of.Stop()
		return again, err
	}
	p.watched = watched{before: h, set: of, data: data}
	return false, nil
}
