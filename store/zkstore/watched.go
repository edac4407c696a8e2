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
	// asOf is an instant at which the place that is watched was certainly there. So the waiter
	// had no lease that could have been broken before.
	asOf clock.Instant
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
// Only one place was before the waiter's own. The end of that is announced, and no change of the
// waiter's own place was announced before. A server announces changes in their order, and a place
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

func (w *watched) unwatch() {
	w.set.Stop()
	w.own.Stop()
	w.set, w.own = nil, nil
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
	p.unwatch()
	asOf := p.Proven()
	of := watchFor(p.dir, h)
	requests := append(make([]session.Request, 0, 2), of.Request())
	var own *session.Watch
	if next {
		own = session.WatchNode(p.path())
		requests = append(requests, own.Request())
	}
	sent, err := p.Send(ctx, requests...)
	if err != nil {
		return false, err
	}
	answers, err := sent.Wait(ctx)
	if err != nil {
		of.Stop()
		own.Stop()
		return false, err
	}
	if again, err = p.watching(of, answers[0], q.queue, h); own == nil {
		return again, err
	}
	_, ok, failed := answers[1].Node()
	if !session.Broken(failed) {
		err = cmp.Or(err, failed)
	}
	if again || err != nil || !ok {
		own.Stop()
		return err == nil, err // if the own place is gone, the queue shows that
	}
	p.own, p.asOf = own, asOf
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
