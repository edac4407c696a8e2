package etcdstore

import (
	"context"

	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
)

// exclusive is the turn of a mutex: the owner before hands the lock over, or the place is
// the first.
type exclusive struct{ *waiting }

// enqueue implements turn.
func (w *exclusive) enqueue(ctx context.Context) (g store.Grant, done bool, err error) {
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
		if first.spec() != rule.Mutex {
			return g, false, otherKind(w.r.Lease, first)
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
	r, err := w.commitPlace(ctx, p, txn{
		ifs:  []condition{absent(p.key), absent(s.layout.tombstoneOf(p.of))},
		then: []operation{put(p.key, recordOf(p.of, l, s.inbox.process).encode(), l.id), byAge(p.prefix, 1)},
		els:  []operation{get(p.key), byAge(p.prefix, 1), get(s.layout.tombstoneOf(p.of))},
	})
	if err == errAgain {
		return g, false, nil
	} else if err != nil {
		return g, false, err
	}
	w.place = p
	p.create = r.Header.Revision
	if !r.Succeeded { // an earlier try made it
		made, refused := r.Responses[0].GetResponseRange().Kvs, r.Responses[2].GetResponseRange().Kvs
		switch {
		case len(made) == 0 && len(refused) != 0:
			return g, false, w.refused(p)
		case len(made) == 0:
			return g, false, w.released(ctx)
		}
		p.create = made[0].CreateRevision
	}
	got := r.Responses[1].GetResponseRange()
	first := entryOf(got.Kvs[0])
	switch {
	case first.key == p.key && first.Broken:
		return g, false, w.broken()
	case first.key == p.key && (r.Succeeded || first.mod > p.create):
		return w.grant(first.mod, nil), true, nil
	case first.key == p.key: // it waited since an earlier try made it, until the one before it was gone
		revision, err := w.takeOver(ctx, first.mod)
		if err != nil || revision == 0 {
			return g, false, err
		}
		return w.grant(revision, nil), true, nil
	case first.spec() != rule.Mutex: // the place is given up
		return g, false, otherKind(w.r.Lease, first)
	case first.Owner == w.r.Owner && !first.native:
		s.leave(p)
		w.place = nil
		g, err := s.join(ctx, w.r.Lease, first)
		return g, err == nil, err
	}
	w.trouble = 0
	if !first.native {
		p.unlikely = unlikelyBehind(got.Count)
	}
	w.reason(s.busy(ctx, w.r.Name, first, int(got.Count)-1))
	return g, false, nil
}

// grant returns the grant of a lock that came to the place at a revision.
func (w *exclusive) grant(revision int64, m *message) store.Grant {
	w.place.waited = w.s.clock.Now().Sub(w.start)
	h := w.s.own(w.place)
	if m != nil {
		h.follow(m.followers(revision), m.Whole)
		w.s.readAhead(h, w.place.prefix)
	}
	return w.s.granted(revision, w.r.Spare)
}

// take returns the grant. A lease of which much is over is kept alive first.
func (w *exclusive) take(ctx context.Context, revision int64, m *message) (g store.Grant, done bool, err error) {
	if err := w.s.replaced.doubtful(w.s.clock.Now()); err != nil {
		return g, false, err
	}
	if w.late() {
		there, err := w.refresh(ctx)
		if err != nil || !there {
			return g, false, err
		}
	}
	return w.grant(revision, m), true, nil
}

// pushed implements turn: the lock was handed over.
func (w *exclusive) pushed(ctx context.Context, p push) (g store.Grant, done bool, err error) {
	return w.take(ctx, p.revision, &p.message)
}

// look implements turn.
func (w *exclusive) look(ctx context.Context) (g store.Grant, done bool, err error) {
	revision, err := w.handed(ctx)
	if err != nil || revision == 0 {
		return g, false, err
	}
	return w.take(ctx, revision, nil)
}

// handed returns the revision at which the lock came to the place, or 0.
func (w *exclusive) handed(ctx context.Context) (revision int64, err error) {
	p := w.place
	r, _, err := w.s.commit(ctx, txn{then: append([]operation{byAge(p.prefix, 1), upTo(p.prefix, p.create)}, w.logs()...)})
	if err != nil {
		return 0, err
	}
	first := entriesOf(r.Responses[0].GetResponseRange().Kvs)
	queue := entriesOf(r.Responses[1].GetResponseRange().Kvs)
	me := len(queue) - 1
	if me < 0 || queue[me].key != p.key || queue[me].create != p.create {
		if there, err := w.refresh(ctx); err != nil || !there {
			return 0, err
		}
		return 0, w.released(ctx)
	}
	if me == 0 && first[0].Broken { // it has had the lock, and did not notice
		return 0, w.broken()
	}
	w.finds(queue[me])
	w.confirm(r.Header.RaftTerm)
	if first[0].spec() != rule.Mutex {
		return 0, otherKind(w.r.Lease, first[0])
	}
	is := rule.Owns(ranked(queue), me)
	if is.Verdict == rule.Granted {
		if queue[me].mod > p.create { // the one before handed it over
			return queue[me].mod, nil
		}
		if revision, err = w.takeOver(ctx, queue[me].mod); revision != 0 || err != nil {
			return revision, err
		}
		return w.handed(ctx) // the place has changed
	}
	w.trouble = 0
	w.reason(w.s.busy(ctx, w.r.Name, first[0], is.Position))
	w.ahead.watch(w.s.link, queue[me-1].key, r.Header.Revision)
	return 0, nil
}

// takeOver gives the place, which was last changed at mod, a revision that is later than
// any token of the owner before, which did not hand the lock over.
func (w *exclusive) takeOver(ctx context.Context, mod int64) (revision int64, err error) {
	p := w.place
	r, _, err := w.s.commit(ctx, txn{
		ifs:  []condition{created(p.key, p.create), modified(p.key, mod), oldest(p.prefix, p.create)},
		then: []operation{touch(p.key)},
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
		r, _, err := s.commit(context.Background(), txn{then: []operation{byAge(prefix, mostRead)}})
		if err != nil {
			return // the release will read it
		}
		all := entriesOf(r.Responses[0].GetResponseRange().Kvs)
		if len(all) > 0 && all[0].key == h.key && all[0].create == h.create {
			h.follow(successors(prefix, all[1:]), len(all) < mostRead)
		}
	}()
}
