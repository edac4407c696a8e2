package etcdstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/validity"
	"github.com/leasehold-dev/leasehold/store"
)

// waiting is one pending Wait.
type waiting struct {
	s      *engine
	r      store.WaitRequest
	reason func(error)
	start  clock.Instant
	place  *place // nil: there is none
	ahead  predecessorWatch
	// watches is set once it has waited in the place.
	watches bool
	// resized is set if a message says that Resize removed the place.
	resized bool
	// trouble is how many requests in a row failed, and gone how many leases were gone
	// when they were needed.
	trouble, gone int
}

// Wait implements driver.Engine.
//
// The process that releases the lock writes to the inbox of this one, which watches it.
// If that fails, and for native clients, the waiter watches the place before its own.
func (s *engine) Wait(ctx context.Context, r store.WaitRequest, reason func(error)) (store.Grant, error) {
	if reason == nil {
		reason = func(error) {}
	}
	w := &waiting{s: s, r: r, reason: reason, start: s.clock.Now()}
	if p, ok := s.rejoined.Take(r.Lease); ok {
		w.place = p
		w.start = w.place.sent
	}
	returned := false
	defer func() { // also if reason panics
		w.ahead.stop()
		if w.place == nil {
			return
		}
		if returned {
			s.inbox.forget(w.place.mailbox)
		} else {
			s.leave(w.place)
		}
	}()
	if err := ctx.Err(); err != nil {
		return store.Grant{}, s.failed(ctx, "wait for", r.Name, false, err)
	}
	if err := s.raise(ctx, "wait for", r.Lease); err != nil {
		return store.Grant{}, err
	}
	g, err := w.run(ctx)
	if errors.Is(err, store.ErrKindMismatch) && w.place != nil {
		// The caller may end the lease in use, and use the name for another kind.
		s.leaveNow(ctx, w.place)
		w.place = nil
	}
	if err != nil {
		return store.Grant{}, err
	}
	returned = true
	return g, nil
}

// run waits until the lock is granted or an error shows that waiting cannot help.
func (w *waiting) run(ctx context.Context) (store.Grant, error) {
	for {
		g, err := w.step(ctx)
		if err == nil && w.place != nil {
			if g.Since, err = w.settle(ctx); errors.Is(err, store.ErrNotHeld) {
				continue // its lease is gone
			}
		}
		if err == nil {
			return g, nil
		}
		if errors.Is(err, store.ErrNotHeld) || errors.Is(err, store.ErrKindMismatch) || errors.Is(err, store.ErrUnsupported) {
			return store.Grant{}, err
		}
		err = w.s.refused(ctx, "wait for", w.r.Name, false, err)
		var q *store.QuorumError
		if !errors.As(err, &q) || !q.Transient() {
			return store.Grant{}, err
		}
		w.trouble++
		w.reason(err)
		// Others have the same trouble at the same time.
		if pause := min(20*time.Millisecond<<min(w.trouble, 6), time.Second); !clock.Sleep(ctx, pause/2+rand.N(pause/2)) {
			return store.Grant{}, w.s.failed(ctx, "wait for", w.r.Name, false, ctx.Err())
		}
	}
}

// settle is engine.settle for a place to which the lock has come. It returns how long after the start
// the lease begins to count. After an error it can be called again, if there is a place.
func (w *waiting) settle(ctx context.Context) (since time.Duration, err error) {
	p := w.place
	switch err := w.s.settle(ctx, p, w.start); {
	case errors.Is(err, store.ErrNotHeld): // its lease may be broken, and stays then
		w.forget()
		return 0, err
	case err != nil:
		return 0, err
	}
	return max(0, p.lease.since().Sub(w.start)), nil
}

// step makes a place if there is none and waits in it. After an error it can be called
// again.
func (w *waiting) step(ctx context.Context) (store.Grant, error) {
	for {
		for w.place == nil {
			if err := w.s.require(ctx, "wait for", w.r.Name, w.r.Require); err != nil {
				return store.Grant{}, err
			}
			select {
			case w.s.searches <- struct{}{}:
			case <-ctx.Done():
				return store.Grant{}, ctx.Err()
			}
			g, done, err := w.enqueue(ctx)
			<-w.s.searches
			if err != nil || done {
				return g, err
			}
		}
		g, done, err := w.watch(ctx)
		if err != nil || done {
			return g, err
		}
		// The place has expired.
	}
}

// watch waits in the place. It returns false if the place has expired.
func (w *waiting) watch(ctx context.Context) (g store.Grant, done bool, err error) {
	p := w.place
	w.watches = true
	refresh := time.NewTimer(w.untilRefresh())
	defer refresh.Stop()
	later := time.NewTimer(w.spread())
	defer later.Stop()
	var turn chan<- struct{} // nil unless it has to look
	for {
		look := false
		select {
		case turn <- struct{}{}:
			turn = nil
			g, done, err := w.look(ctx)
			<-w.s.searches
			if err != nil || done || w.place == nil {
				return g, done, err
			}
			refresh.Reset(w.untilRefresh())
		case <-ctx.Done():
			return g, false, ctx.Err()
		case m := <-p.mailbox.pushes:
			if look = m.revision == 0 || m.Create != p.create; !look {
				if g, done, err := w.pushed(ctx, m); err != nil || done || w.place == nil {
					return g, done, err
				}
			}
			if look && p.isFar() { // as all others
				look = false
				later.Reset(w.spread())
			}
		case <-refresh.C:
			var there bool
			if look = true; p.isFar() {
				there, look, err = w.refresh(ctx)
			} else {
				there, err = w.keep(ctx) // and look confirms it
			}
			if err != nil || !there {
				return g, false, err
			}
			refresh.Reset(w.untilRefresh())
		case <-later.C:
			look = true
		case <-w.ahead.ended:
			w.ahead.ended = nil
			if look = w.ahead.seen.Load(); !look { // the watch has ended for another reason
				later.Reset(w.spread())
			}
		}
		if look { // it refreshes its place meanwhile
			turn = w.s.searches
		}
	}
}

// A server reads all places of a lock to find the oldest, or the one before another: about a
// millisecond for a thousand. So a waiter that is far back reads them once, while few other waiters of its
// process do, and then watches the place before its own.

// isFar reports whether so many places are before p that the waiter need not read them.
func (p *place) isFar() bool { return p.ahead > mostRead }

// mostSearches is how many waiters of a process join queues, or read them from far back, at once.
const mostSearches = 8

// quickTurn is more than a turn takes of holders that release the lock at once.
const quickTurn = 10 * time.Millisecond

// spread is how long a waiter trusts its inbox alone. It is longer with many before it: otherwise all
// read the queue and watch the places before them just before they are notified. With 64 processes,
// that made 5.4 requests a turn instead of 1.7.
func (w *waiting) spread() time.Duration {
	return w.s.lookAfter + min(time.Duration(w.place.ahead)*quickTurn, time.Second) + rand.N(time.Duration(w.place.ahead+1)*quickTurn/2)
}

func (w *waiting) untilRefresh() time.Duration {
	// Many waiters do not do it at the same time.
	after := validity.RenewAfter(w.r.TTL)
	return max(0, w.place.lease.kept.Add(after-rand.N(after/4+1)).Sub(w.s.clock.Now()))
}

// keep keeps the lease of the place alive. The next read has to confirm that the place is
// there. It returns false, without a place, if the lease has expired.
func (w *waiting) keep(ctx context.Context) (there bool, err error) {
	p := w.place
	sent := w.s.clock.Now()
	left, err := w.s.keepAlive(ctx, []clientv3.LeaseID{p.lease.id})
	if err != nil {
		return false, err
	}
	if left[p.lease.id] == 0 {
		w.lost()
		return false, nil
	}
	p.lease.kept = sent
	return true, nil
}

// finds notes how the place was read. It can be attached to another lease after an error of settle, or
// if another handle has moved it. The read began after the last keep-alive was answered, and went through
// the log if that does not count yet. The term is that of its answer, or 0 if one member answered alone.
// It does not count if the place moves: see attach.
func (w *waiting) finds(e entry, term uint64) {
	if e.lease != w.place.lease.id {
		w.s.pool.drop(w.place.lease)
		w.place.lease = adopted(e)
	}
	if term != 0 && !e.Moves {
		w.place.lease.answered(term)
		w.trouble = 0
	}
}

// refresh keeps the place alive. It returns false, without a place, if that has expired. changed is
// set if it may not wait any more.
func (w *waiting) refresh(ctx context.Context) (there, changed bool, err error) {
	if there, err := w.keep(ctx); err != nil || !there {
		return false, false, err
	}
	p := w.place
	r, _, err := w.s.commit(ctx, txn{then: []operation{get(p.key), logged(p.key)}})
	if err != nil {
		return false, false, err
	}
	all := entriesOf(r.Responses[0].GetResponseRange().Kvs)
	switch {
	case len(all) == 0 || !all[0].is(p):
		return false, false, w.released(ctx)
	case all[0].Broken: // it has had the lock, and did not notice
		return false, false, w.broken()
	}
	w.finds(all[0], r.Header.RaftTerm)
	return true, all[0].mod != p.create, nil
}

// forget forgets the place.
func (w *waiting) forget() {
	w.ahead.stop()
	w.s.inbox.forget(w.place.mailbox)
	w.place, w.watches = nil, false
}

// lost forgets a place that has expired.
func (w *waiting) lost() {
	l := w.place.lease
	w.forget()
	w.s.pool.revoke(l)
}

// broken gives up a place whose lease was broken, and is the result then.
func (w *waiting) broken() error {
	p := w.place
	w.forget()
	w.s.leave(p)
	return errBroken
}

// released is the result if the place was removed while its lease is there: its owner was
// released, or the lock was resized.
func (w *waiting) released(ctx context.Context) error {
	w.lost()
	v, err := w.s.read(ctx, reading{name: w.r.Name, most: 1})
	if err != nil {
		return err
	}
	if err := w.mismatch(v, len(v.places)); err != nil {
		return err
	}
	return store.ErrNotHeld
}
