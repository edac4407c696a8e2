package etcdstore

import (
	"context"
	"slices"

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
	p.ahead = int(got.Count) - 1
	if !first.native {
		p.unlikely = unlikelyBehind(got.Count)
	}
	w.reason(s.busy(ctx, w.r.Name, first, int(got.Count)-1))
	return g, false, nil
}

// grant returns the grant of a lock that came to the place at a revision. Other places were read
// behind it.
func (w *exclusive) grant(revision int64, behind []entry) store.Grant {
	w.place.waited = w.s.clock.Now().Sub(w.start)
	w.s.own(w.place).follow(successors(w.place.prefix, behind))
	return w.s.granted(revision)
}

// take returns the grant. A lease of which much is over is kept alive first.
func (w *exclusive) take(ctx context.Context, revision int64, behind []entry) (g store.Grant, done bool, err error) {
	if err := w.s.replaced.doubtful(w.s.clock.Now()); err != nil {
		return g, false, err
	}
	if w.late() {
		there, err := w.refresh(ctx)
		if err != nil || !there {
			return g, false, err
		}
	}
	return w.grant(revision, behind), true, nil
}

// pushed implements turn: a message says that the lock was handed over. Users without a right to the
// lock can write that as well, so the lock is read. The member that has passed on the message
// knows the transaction that wrote it, and need not ask the others.
func (w *exclusive) pushed(ctx context.Context, m push) (g store.Grant, done bool, err error) {
	p := w.place
	r, err := w.s.glance(ctx, m.revision, byAge(p.prefix, mostRead))
	if r == nil || err != nil {
		return w.look(ctx)
	}
	all := entriesOf(r.Responses[0].GetResponseRange().Kvs)
	if len(all) == 0 || !all[0].is(p) || all[0].mod == p.create || all[0].Broken {
		return w.look(ctx)
	}
	w.finds(all[0])
	return w.take(ctx, all[0].mod, all[1:])
}

// look implements turn.
func (w *exclusive) look(ctx context.Context) (g store.Grant, done bool, err error) {
	revision, behind, err := w.handed(ctx)
	if err != nil || revision == 0 {
		return g, false, err
	}
	return w.take(ctx, revision, behind)
}

// handed returns the revision at which the lock came to the place and places behind it, or 0.
func (w *exclusive) handed(ctx context.Context) (revision int64, behind []entry, err error) {
	p := w.place
	r, _, err := w.s.commit(ctx, txn{then: append([]operation{byAge(p.prefix, mostRead), before(p.prefix, p.create)}, w.logs()...)})
	if err != nil {
		return 0, nil, err
	}
	oldest := r.Responses[0].GetResponseRange()
	first, near := entriesOf(oldest.Kvs), entriesOf(r.Responses[1].GetResponseRange().Kvs)
	if len(near) == 0 || !near[0].is(p) {
		if there, err := w.refresh(ctx); err != nil || !there {
			return 0, nil, err
		}
		return 0, nil, w.released(ctx)
	}
	if len(near) == 1 && first[0].Broken { // it has had the lock, and did not notice
		return 0, nil, w.broken()
	}
	w.finds(near[0])
	w.confirm(r.Header.RaftTerm)
	if first[0].spec() != rule.Mutex {
		return 0, nil, otherKind(w.r.Lease, first[0])
	}
	if len(near) == 1 { // no place is before it
		if near[0].mod > p.create { // the one before handed it over
			return near[0].mod, first[1:], nil
		}
		if revision, err = w.takeOver(ctx, near[0].mod); revision != 0 || err != nil {
			return revision, first[1:], err
		}
		return w.handed(ctx) // the place has changed
	}
	w.trouble = 0
	was := p.ahead
	if p.ahead = slices.IndexFunc(first, func(e entry) bool { return e.is(p) }); p.ahead < 0 {
		p.ahead = int(oldest.Count) - 1
		if was > 0 { // others may have come behind it
			p.ahead = min(p.ahead, was)
		}
	}
	w.reason(w.s.busy(ctx, w.r.Name, first[0], p.ahead))
	w.ahead.watch(w.s.link, near[1].key, r.Header.Revision, w.changes)
	return 0, nil, nil
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
