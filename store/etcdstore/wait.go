package etcdstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/internal/validity"
	"github.com/leasehold-dev/leasehold/store"
)

// waiting is one pending Wait.
type waiting struct {
	s      *core
	r      store.WaitRequest
	reason func(error)
	start  clock.Instant
	place  *place // nil: there is none
	ahead  *lookout
	turn   turn
	// changes are the events of the place before one that is far back that it has to see.
	changes clientv3.OpOption
	search  *search
	// trouble is how many requests in a row failed, and gone how many leases were gone
	// when they were needed.
	trouble, gone int
}

// turn is how a place of that kind of lock is made, and how it comes to hold the lock. If
// the place has expired, the methods forget it.
type turn interface {
	// enqueue makes a place. done is set if the lock is granted at once.
	enqueue(ctx context.Context) (g store.Grant, done bool, err error)
	// pushed takes a message of the inbox.
	pushed(ctx context.Context, p push) (g store.Grant, done bool, err error)
	// look reads the queue. done is set if the lock belongs to the place.
	look(ctx context.Context) (g store.Grant, done bool, err error)
}

// Wait implements driver.Engine. All places are in one order, so Barge has no effect.
//
// The process that releases the lock writes to the inbox of this one, which watches it.
// If that fails, and for native clients, the waiter watches the place before its own.
func (s *engine) Wait(ctx context.Context, r store.WaitRequest, reason func(error)) (store.Grant, error) {
	if reason == nil {
		reason = func(error) {}
	}
	w := &waiting{s: &s.core, r: r, reason: reason, start: s.clock.Now()}
	w.turn = &exclusive{w}
	w.changes = onlyDeletes()
	if !r.Kind.IsMutex() {
		w.turn = &shared{waiting: w}
		w.changes = changesToo() // a place that enters makes the next one the first to wait
	}
	search, leave := s.searches.join(s.layout.lock(r.Name))
	w.search = search
	defer leave()
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
	s.examineAgain(ctx)
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
		if !passing(err) {
			return store.Grant{}, err
		}
		w.trouble++
		w.reason(err)
		// Others have the same trouble at the same time.
		if pause := min(20*time.Millisecond<<min(w.trouble, 6), time.Second); !sleep(ctx, pause/2+rand.N(pause/2)) {
			return store.Grant{}, w.s.failed(ctx, "wait for", w.r.Name, false, ctx.Err())
		}
	}
}

// settle is core.settle for a place to which the lock has come. It returns how long after the start
// the lease begins to count. After an error it can be called again, if there is a place.
func (w *waiting) settle(ctx context.Context) (since time.Duration, err error) {
	p := w.place
	switch err := w.s.settle(ctx, p, w.start); {
	case errors.Is(err, store.ErrNotHeld): // its lease may be broken, and stays then
		w.ahead.stop()
		w.s.inbox.forget(p.mailbox)
		w.ahead, w.place = nil, nil
		return 0, err
	case err != nil && p.mailbox == nil: // it cannot wait
		w.s.leave(p)
		w.place = nil
		return 0, err
	case err != nil:
		return 0, err
	}
	return max(0, p.lease.since().Sub(w.start)), nil
}

// passing reports whether waiting can mend err.
func passing(err error) bool {
	var q *store.QuorumError
	return errors.As(err, &q) && q.Transient()
}

// step makes a place if there is none and waits in it. After an error it can be called
// again.
func (w *waiting) step(ctx context.Context) (store.Grant, error) {
	for {
		for w.place == nil {
			if err := w.s.require(ctx, "wait for", w.r.Name, w.r.Require); err != nil {
				return store.Grant{}, err
			}
			g, done, err := w.enqueue(ctx)
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
	if w.ahead == nil {
		w.ahead = &lookout{}
	}
	refresh := time.NewTimer(w.untilRefresh())
	defer refresh.Stop()
	first := max(w.s.lookAfter, p.unlikely)
	if p.isFar() {
		first = max(first, w.spread())
	}
	later := time.NewTimer(first)
	defer later.Stop()
	var turn chan<- struct{} // nil unless it has to read the queue and is far back
	for {
		look := false
		select {
		case turn <- struct{}{}:
			turn = nil
			g, done, err := w.approach(ctx)
			if err != nil || done || w.place == nil {
				return g, done, err
			}
		case <-ctx.Done():
			return g, false, ctx.Err()
		case <-p.mailbox.bell:
			var pushed push
			if pushed, look = p.mailbox.take(p.create); pushed.revision != 0 {
				look = false
				if g, done, err := w.turn.pushed(ctx, pushed); err != nil || done || w.place == nil {
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
				there, look, err = w.refreshTogether(ctx)
			} else {
				there, err = w.keep(ctx) // and look confirms it
			}
			if err != nil || !there {
				return g, false, err
			}
			refresh.Reset(w.untilRefresh())
		case <-later.C:
			look = true
		case <-w.ahead.gone():
			w.ahead.ended = nil
			if look = w.ahead.seen.Load(); !look { // the watch has ended for another reason
				later.Reset(w.spread())
			}
		}
		if !look {
			continue
		}
		if p.isFar() { // it refreshes its place meanwhile
			turn = w.search.slots
			continue
		}
		if g, done, err := w.turn.look(ctx); err != nil || done || w.place == nil {
			return g, done, err
		}
		refresh.Reset(w.untilRefresh())
	}
}

// errAgain means that the lease of a new place was revoked, or lost with the data of the
// server: another lease may do.
var errAgain = errors.New("the lease of the place is gone")

// commitPlace commits the transaction that makes a place. If it fails, nothing is left of
// the place.
func (w *waiting) commitPlace(ctx context.Context, p *place, t txn) (*clientv3.TxnResponse, error) {
	r, doubt, err := w.s.commit(ctx, t)
	if doubt {
		p.lease.tainted.Store(true)
	}
	if err == nil {
		p.lease.answered(r.Header.RaftTerm)
		return r, nil
	}
	w.s.inbox.forget(p.mailbox)
	w.s.pool.revoke(p.lease)
	if isGone(err) && w.gone < 3 {
		w.gone++
		w.s.pool.forget()
		return nil, errAgain
	}
	return nil, err
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

// confirm is called when a read, which began after the last keep-alive was answered and went
// through the log if that does not count yet, has shown the place. The term is that of its answer.
func (w *waiting) confirm(term uint64) {
	w.place.lease.answered(term)
	w.trouble = 0
}

// finds notes how the place was read. It can be attached to another lease after an error of settle, or
// if another handle has moved it.
func (w *waiting) finds(e entry) {
	if e.lease != w.place.lease.id {
		w.place.lease = adopted(e)
	}
}

// logs has a read go through the log if that makes the last keep-alive count.
func (w *waiting) logs() []operation {
	if w.place.lease.unconfirmed() {
		return []operation{logged(w.place.key)}
	}
	return nil
}

// refresh keeps the place alive. It returns false, without a place, if that has expired.
func (w *waiting) refresh(ctx context.Context) (there bool, err error) {
	if there, err := w.keep(ctx); err != nil || !there {
		return false, err
	}
	p := w.place
	r, _, err := w.s.commit(ctx, txn{then: []operation{get(p.key), logged(p.key)}})
	if err != nil {
		return false, err
	}
	kvs := r.Responses[0].GetResponseRange().Kvs
	switch {
	case len(kvs) == 0 || kvs[0].CreateRevision != p.create:
		return false, w.released(ctx)
	case entryOf(kvs[0]).Broken: // it has had the lock, and did not notice
		return false, w.broken()
	}
	w.finds(entryOf(kvs[0]))
	w.confirm(r.Header.RaftTerm)
	return true, nil
}

// late reports whether much of the lease is over, and a keep-alive can count. If none can, settle
// gives the place another lease.
func (w *waiting) late() bool {
	l := w.place.lease
	return l.isOf(w.s.replaced.inTerm()) && w.s.clock.Now().Sub(l.since()) > w.r.TTL/2
}

// lost forgets a place that has expired.
func (w *waiting) lost() {
	w.ahead.stop()
	w.ahead = nil
	w.s.inbox.forget(w.place.mailbox)
	w.s.pool.revoke(w.place.lease)
	w.place = nil
}

// refused is the result if no place was made, because an earlier lease of the owner was
// broken.
func (w *waiting) refused(p *place) error {
	w.s.inbox.forget(p.mailbox)
	w.s.pool.done(p.lease)
	w.place = nil
	return errBroken
}

// broken gives up a place whose lease was broken, and is the result then.
func (w *waiting) broken() error {
	w.ahead.stop()
	w.ahead = nil
	w.s.leave(w.place)
	w.place = nil
	return errBroken
}

// released is the result if the place was removed while its lease is there: its owner was
// released, or the lock was resized.
func (w *waiting) released(ctx context.Context) error {
	w.lost()
	r, _, err := w.s.commit(ctx, txn{then: []operation{byAge(w.s.layout.lock(w.r.Name), 1)}})
	if err != nil {
		return err
	}
	for _, first := range entriesOf(r.Responses[0].GetResponseRange().Kvs) {
		if first.spec() != rule.Spec(w.r.Kind.Normal()) {
			return otherKind(w.r.Lease, first)
		}
	}
	return store.ErrNotHeld
}
