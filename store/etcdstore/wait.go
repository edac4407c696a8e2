package etcdstore

import (
	"context"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/rule"
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
	// trouble is how many requests in a row failed, and gone how many leases were gone
	// when they were needed.
	trouble, gone int
}

// Wait implements store.Waiter. All places are in one order, so Barge has no effect.
//
// The process that releases the lock writes to the inbox of this one, which watches it.
// If that fails, and for native clients, the waiter watches the place before its own.
func (s *Store) Wait(ctx context.Context, r store.WaitRequest, reason func(error)) (store.Grant, error) {
	if err := s.gate.Enter(r.Check(s.Caps())); err != nil {
		return store.Grant{}, err
	}
	defer s.gate.Leave()
	if reason == nil {
		reason = func(error) {}
	}
	w := &waiting{s: &s.core, r: r, reason: reason, start: s.clock.Now()}
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
	s.examineAgain(ctx)
	if err := s.require(ctx, r.Require); err != nil {
		return store.Grant{}, err
	}
	ctx, cancel := s.gate.Until(ctx)
	defer cancel()
	g, err := w.run(ctx)
	if err != nil {
		return store.Grant{}, err
	}
	returned = true
	return g, nil
}

// run waits until the lock is granted or an error shows that waiting is of no use.
func (w *waiting) run(ctx context.Context) (store.Grant, error) {
	for {
		g, err := w.step(ctx)
		if err == nil {
			return g, nil
		}
		if errors.Is(err, store.ErrNotHeld) {
			return store.Grant{}, err
		}
		err = w.s.refused(ctx, "wait for", w.r.Name, false, err)
		if ctx.Err() != nil || !passing(err) {
			return store.Grant{}, err
		}
		w.trouble++
		w.reason(err)
		if !sleep(ctx, min(20*time.Millisecond<<min(w.trouble, 6), time.Second)) {
			return store.Grant{}, w.s.failed(ctx, "wait for", w.r.Name, false, ctx.Err())
		}
	}
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

// enqueue makes a place. done is set if the lock is granted at once.
func (w *waiting) enqueue(ctx context.Context) (g store.Grant, done bool, err error) {
	s := w.s
	if err := s.replaced.closed(s.clock.Now()); err != nil {
		return g, false, err
	}
	if !s.inbox.started() {
		// Most locks are free, and most processes never need an inbox.
		p, revision, first, _, err := s.try(ctx, w.r.Lease)
		if err != nil {
			return g, false, err
		}
		if revision != 0 {
			w.place = p
			return w.grant(revision, nil), true, nil
		}
		if first.Owner == w.r.Owner && !first.native {
			g, err := s.join(ctx, w.r.Lease, first)
			return g, err == nil, err
		}
	}
	l, err := s.pool.leaseFor(ctx, w.r.TTL)
	if err != nil {
		return g, false, err
	}
	p := s.newPlace(w.r.Lease, l)
	p.mailbox = s.inbox.open(l.id)
	r, doubt, err := s.commit(ctx, txn{
		ifs:  []clientv3.Cmp{absent(p.key)},
		then: []clientv3.Op{clientv3.OpPut(p.key, recordOf(p.of, l, s.inbox.process).encode(), clientv3.WithLease(l.id)), byAge(p.prefix, 1)},
		els:  []clientv3.Op{clientv3.OpGet(p.key), byAge(p.prefix, 1)},
	})
	if doubt {
		l.tainted.Store(true)
	}
	if err != nil {
		s.inbox.forget(p.mailbox)
		s.pool.revoke(l)
		if isGone(err) && w.gone < 3 { // it was revoked, or lost with the data of the server
			w.gone++
			s.pool.forget()
			return g, false, nil
		}
		return g, false, err
	}
	w.place = p
	p.create = r.Header.Revision
	if !r.Succeeded { // an earlier try made it
		p.create = entryOf(r.Responses[0].GetResponseRange().Kvs[0]).create
	}
	got := r.Responses[1].GetResponseRange()
	first := entryOf(got.Kvs[0])
	switch {
	case first.key == p.key && (r.Succeeded || first.mod > p.create):
		return w.grant(first.mod, nil), true, nil
	case first.key == p.key: // it waited since an earlier try made it, until the one before it was gone
		revision, err := w.takeOver(ctx)
		if err != nil || revision == 0 {
			return g, false, err
		}
		return w.grant(revision, nil), true, nil
	case first.Owner == w.r.Owner && !first.native:
		s.leave(p)
		w.place = nil
		g, err := s.join(ctx, w.r.Lease, first)
		return g, err == nil, err
	}
	w.trouble = 0
	w.reason(s.busy(ctx, w.r.Name, first, int(got.Count)-1))
	return g, false, nil
}

// grant returns the grant of a lock that came to the place at a revision.
func (w *waiting) grant(revision int64, m *message) store.Grant {
	h := w.s.own(w.place)
	if m != nil {
		h.follow(m.followers(revision), m.Whole)
		w.s.readAhead(h, w.place.prefix)
	}
	g := w.s.granted(revision, w.r.Spare)
	g.Since = max(0, w.place.lease.since().Sub(w.start))
	return g
}

// watch waits in the place. It returns false if the place has expired.
func (w *waiting) watch(ctx context.Context) (g store.Grant, done bool, err error) {
	p := w.place
	if w.ahead == nil {
		w.ahead = &lookout{}
	}
	refresh := time.NewTimer(w.untilRefresh())
	defer refresh.Stop()
	later := time.NewTimer(w.s.lookAfter)
	defer later.Stop()
	for {
		look := false
		select {
		case <-ctx.Done():
			return g, false, ctx.Err()
		case <-p.mailbox.bell:
			var pushed push
			if pushed, look = p.mailbox.take(p.create); pushed.revision != 0 {
				return w.take(ctx, pushed.revision, &pushed.message)
			}
		case <-refresh.C:
			there, err := w.refresh(ctx)
			if err != nil || !there {
				return g, false, err
			}
			refresh.Reset(w.untilRefresh())
			look = true
		case <-later.C:
			look = true
		case <-w.ahead.gone():
			if look = w.ahead.seen.Load(); !look { // the watch has ended for another reason
				w.ahead.ended = nil
				later.Reset(defaultLookAfter)
			}
		}
		if !look {
			continue
		}
		revision, err := w.look(ctx)
		switch {
		case err != nil:
			return g, false, err
		case revision > 0:
			return w.take(ctx, revision, nil)
		case w.place == nil:
			return g, false, nil
		}
	}
}

func (w *waiting) untilRefresh() time.Duration {
	return max(0, w.place.lease.since().Add(w.r.TTL/3).Sub(w.s.clock.Now()))
}

// take returns the grant. A lease of which much is over is kept alive first.
func (w *waiting) take(ctx context.Context, revision int64, m *message) (g store.Grant, done bool, err error) {
	if err := w.s.replaced.doubtful(w.s.clock.Now()); err != nil {
		return g, false, err
	}
	if w.s.clock.Now().Sub(w.place.lease.since()) > w.r.TTL/2 {
		there, err := w.refresh(ctx)
		if err != nil || !there {
			return g, false, err
		}
	}
	return w.grant(revision, m), true, nil
}

// refresh keeps the place alive. It returns false, without a place, if that has expired.
func (w *waiting) refresh(ctx context.Context) (there bool, err error) {
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
	r, _, err := w.s.commit(ctx, txn{then: []clientv3.Op{clientv3.OpGet(p.key, clientv3.WithKeysOnly())}})
	if err != nil {
		return false, err
	}
	kvs := r.Responses[0].GetResponseRange().Kvs
	if len(kvs) == 0 || kvs[0].CreateRevision != p.create {
		return false, w.released()
	}
	p.lease.kept(sent)
	w.trouble = 0
	return true, nil
}

// lost forgets a place that has expired.
func (w *waiting) lost() {
	w.ahead.stop()
	w.ahead = nil
	w.s.inbox.forget(w.place.mailbox)
	w.s.pool.revoke(w.place.lease)
	w.place = nil
}

// released is the result if the place was removed while its lease is there.
func (w *waiting) released() error {
	w.lost()
	return store.ErrNotHeld
}

// look reads the queue. It returns the revision at which the lock came to the place, or
// 0. If the place has expired, it is forgotten.
func (w *waiting) look(ctx context.Context) (revision int64, err error) {
	p := w.place
	r, _, err := w.s.commit(ctx, txn{then: []clientv3.Op{byAge(p.prefix, 1), upTo(p.prefix, p.create)}})
	if err != nil {
		return 0, err
	}
	first := entriesOf(r.Responses[0].GetResponseRange().Kvs)
	line := entriesOf(r.Responses[1].GetResponseRange().Kvs)
	me := len(line) - 1
	if me < 0 || line[me].key != p.key || line[me].create != p.create {
		if there, err := w.refresh(ctx); err != nil || !there {
			return 0, err
		}
		return 0, w.released()
	}
	is := rule.Owns(ranked(line), me)
	if is.Verdict == rule.Granted {
		if line[me].mod > p.create { // the one before handed it over
			return line[me].mod, nil
		}
		return w.takeOver(ctx)
	}
	w.trouble = 0
	w.reason(w.s.busy(ctx, w.r.Name, first[0], is.Position))
	w.ahead.watch(w.s.link, line[me-1].key, r.Header.Revision)
	return 0, nil
}

// takeOver gives the place a revision that is later than any token of the owner before,
// which did not hand the lock over.
func (w *waiting) takeOver(ctx context.Context) (revision int64, err error) {
	p := w.place
	r, _, err := w.s.commit(ctx, txn{
		ifs:  []clientv3.Cmp{created(p.key, p.create), oldest(p.prefix, p.create)},
		then: []clientv3.Op{touch(p.key)},
	})
	if err != nil || !r.Succeeded {
		return 0, err
	}
	return r.Header.Revision, nil
}

// readAhead reads the places behind one that has been given the lock, unless they are
// known. The caller is counted at the gate.
func (s *core) readAhead(h *hold, prefix string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.next) > 1 || len(h.next) == 1 && h.whole {
		return
	}
	reading := make(chan struct{})
	h.reading = reading
	s.gate.Stay()
	go func() {
		defer s.gate.Leave()
		defer close(reading)
		r, _, err := s.commit(context.Background(), txn{then: []clientv3.Op{byAge(prefix, mostRead)}})
		if err != nil {
			return // the release will read it
		}
		all := entriesOf(r.Responses[0].GetResponseRange().Kvs)
		if len(all) > 0 && all[0].key == h.key && all[0].create == h.create {
			h.follow(successors(prefix, all[1:]), len(all) < mostRead)
		}
	}()
}
