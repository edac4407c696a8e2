package etcdstore

import (
	"context"
	"errors"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
)

// What a waiter does with its place: it makes one, is told to look, looks, and enters. done is set if
// the lock is granted. If the place has expired, w.place is nil afterwards.

// enqueue makes a place.
func (w *waiting) enqueue(ctx context.Context) (g store.Grant, done bool, err error) {
	s := w.s
	if err := s.replaced.closed(s.clock.Now()); err != nil {
		return g, false, err
	}
	w.resized = false
	l, err := s.pool.leaseFor(ctx, w.r.TTL)
	if err != nil {
		return g, false, err
	}
	p := s.newPlace(w.r.Lease, l)
	p.mailbox = s.inbox.open(l.id)
	e := p.entry(s.inbox.process)
	t, made := s.entry(p.of, e, nil)
	waits := txn{ifs: []condition{absent(p.key), absent(s.layout.tombstoneOf(p.of))}, then: []operation{put(p.key, encode(e.record), l.id)}}
	t.els = append([]operation{nested(waits)}, t.els...)
	r, _, err := s.commitPlace(ctx, p, t)
	if isGone(err) && w.gone < 3 {
		w.gone++
		return g, false, nil
	} else if err != nil {
		return g, false, err
	}
	w.place, w.trouble = p, 0
	if r.Succeeded {
		p.create, p.slot, made.mod = r.Header.Revision, made.slot.key, r.Header.Revision
		s.own(p)
		return s.admitted(made), true, nil
	}
	v := s.view(readingFor(p.of, p.key, 0), r)
	i := v.index(p.key, 0)
	switch refused := r.Responses[1].GetResponseRange().Kvs; {
	case i < 0 && len(refused) != 0: // an earlier lease of the owner was broken
		w.forget()
		s.pool.done(l)
		return g, false, errBroken
	case i < 0: // an earlier try made it, and it was removed
		return g, false, w.released(ctx)
	}
	p.create = v.places[i].create
	return w.decide(ctx, v)
}

// pushed takes a message. It is a hint, and may be old, so the lock is read. The member that has passed
// on the message knows the transaction that wrote it, and need not ask the others.
func (w *waiting) pushed(ctx context.Context, m push) (g store.Grant, done bool, err error) {
	w.resized = w.resized || m.Resized
	p := w.place
	of := readingFor(p.of, p.key, p.create)
	r, err := w.s.glance(ctx, m.revision, w.s.layout.reads(of)...)
	if r == nil || err != nil {
		return w.look(ctx)
	}
	v := w.s.view(of, r)
	me := v.index(p.key, p.create)
	if me < 0 || v.places[me].Broken {
		return w.look(ctx)
	}
	w.finds(v.places[me], 0)
	return w.decide(ctx, v)
}

// watched returns what has to be seen of the place before one that is not the first to wait: a place that
// enters a lock that several can hold makes the next one the first to wait.
func (w *waiting) watched() []clientv3.OpOption {
	if w.r.Kind.IsMutex() {
		return []clientv3.OpOption{onlyDeletes()}
	}
	return nil
}

// look reads the queue.
func (w *waiting) look(ctx context.Context) (g store.Grant, done bool, err error) {
	p := w.place
	var through []operation
	if p.lease.unconfirmed() { // a read through the log makes the last keep-alive count
		through = append(through, logged(p.key))
	}
	v, err := w.s.read(ctx, readingFor(p.of, p.key, p.create), through...)
	if err != nil {
		return g, false, err
	}
	if me := v.index(p.key, p.create); me >= 0 {
		if v.places[me].Broken { // it has had the lock, and did not notice
			return g, false, w.broken()
		}
		w.finds(v.places[me], v.term)
	}
	return w.decide(ctx, v)
}

// decide does what the place has to do in v.
func (w *waiting) decide(ctx context.Context, v *view) (g store.Grant, done bool, err error) {
	s, p := w.s, w.place
	w.trouble = 0
	me := v.index(p.key, p.create)
	if me < 0 {
		return g, false, w.missing(ctx, v)
	}
	e := v.places[me]
	switch has, held := v.held(w.r.Owner); {
	case e.slot != nil && e.Broken:
		return g, false, w.broken()
	case held && has.key != e.key: // another attempt of the owner, beside which this one may have been let in
		s.leave(p)
		w.place = nil
		g, err := s.join(ctx, w.r.Lease, has)
		if errors.Is(err, store.ErrNotHeld) {
			return g, false, nil // it was released meanwhile, or changed
		}
		return g, err == nil, err
	case e.slot != nil: // it was let in, or an earlier try entered
		return w.entered(ctx, v, e)
	}
	if rule.Owns(ranked(v.places), me).Verdict != rule.Granted {
		return g, false, w.wait(ctx, v, me)
	}
	return w.take(ctx, v, me)
}

// wait notes why the place has to wait in v, and watches those that have to leave before its turn comes.
func (w *waiting) wait(ctx context.Context, v *view, me int) error {
	if err := w.mismatch(v, me); err != nil {
		return err
	}
	s, p := w.s, w.place
	was := p.ahead
	if p.ahead = v.position(me); v.gap > 0 && was > 0 { // others may have come behind it
		p.ahead = min(p.ahead, was)
	}
	w.reason(v.refusal(w.r.Lease, me, p.ahead))
	before := v.before
	if me < len(v.places)-1 || v.gap == 0 {
		before = v.places[me-1].key
	}
	switch {
	case !w.watches || before == "": // most waits are over before a watch pays
	case p.ahead == 1 && v.several(): // anybody who leaves may make room
		w.ahead.watch(s.link, v.prefix, v.revision, clientv3.WithPrefix(), onlyDeletes())
	default:
		w.ahead.watch(s.link, before, v.revision, w.watched()...)
	}
	return nil
}

// entered returns the grant of a place that has entered in v or earlier.
func (w *waiting) entered(ctx context.Context, v *view, e entry) (g store.Grant, done bool, err error) {
	if err := w.s.replaced.doubtful(w.s.clock.Now()); err != nil {
		return g, false, err
	}
	w.place.slot, w.place.view = e.slotKey(), v
	w.s.own(w.place)
	return w.s.admitted(e), true, nil
}

// take enters, at index me of v, or decides anew.
func (w *waiting) take(ctx context.Context, v *view, me int) (g store.Grant, done bool, err error) {
	s, p, e := w.s, w.place, v.places[me]
	record, guard := s.generation(v, me, s.layout.slots(w.r.Name))
	enter := touch(e.key) // its revision is the token
	if e.record = record; e.Token != 0 {
		enter = replace(e.key, encode(e.record))
	}
	of := readingFor(p.of, p.key, p.create)
	// A second try fails, since the first one has modified the place.
	t := txn{ifs: []condition{created(e.key, e.create), modified(e.key, e.mod)}, then: []operation{enter}, els: s.layout.reads(of)}
	is := slot{}
	if e.several() {
		is.number = v.freeSlot(me)
		is.key = s.layout.slot(w.r.Name, is.number)
		t.ifs = append(append(t.ifs, absent(is.key)), guard...)
		t.then = append(t.then, takeSlot(is.key, e.id(v.prefix), e.lease))
	}
	v = v.entered(me, is)
	enters := len(t.then)
	t.then = append(t.then, s.layout.notifyTurns(v)...)
	r, ambiguous, err := s.commit(ctx, t)
	if isGone(err) && len(t.then) > enters { // perhaps because of places that are notified
		t.then = t.then[:enters]
		defer s.wake(w.r.Name)
		var again bool
		r, again, err = s.commit(ctx, t)
		ambiguous = ambiguous || again
	}
	if ambiguous {
		p.lease.tainted.Store(true)
	}
	if isGone(err) {
		w.lost()
		return g, false, nil
	}
	if err != nil {
		return g, false, err
	}
	if !r.Succeeded {
		return w.decide(ctx, s.view(of, r))
	}
	p.slot, p.view = is.key, v
	e.mod, e.slot = r.Header.Revision, &is
	v.places[me] = e
	s.own(p)
	return s.admitted(e), true, nil
}

// missing returns why the place is not in v. If another one can be made, it returns nil.
func (w *waiting) missing(ctx context.Context, v *view) error {
	if w.resized {
		w.lost() // the next place shows what is in use now
		return nil
	}
	if err := w.mismatch(v, len(v.places)); err != nil {
		w.lost()
		return err
	}
	if there, _, err := w.refresh(ctx); err != nil || !there {
		return err
	}
	return w.released(ctx)
}

// mismatch returns a *store.KindError if the place at index me of v is for another kind of
// lock than those before it.
func (w *waiting) mismatch(v *view, me int) error {
	if me == 0 || v.places[0].spec() == rule.Spec(w.r.Kind.Normal()) {
		return nil
	}
	return otherKind(w.r.Lease, v.places[0])
}
