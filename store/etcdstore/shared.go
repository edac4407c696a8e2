package etcdstore

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
)

// shared is the turn of a lock that several can hold. A place that leaves tells it when to
// look, and it enters by itself: it takes a slot.
type shared struct {
	*waiting
	heard   int64 // the revision of the last message
	resized bool  // Resize removed the place
}

// enqueue implements turn.
func (w *shared) enqueue(ctx context.Context) (g store.Grant, done bool, err error) {
	s := w.s
	if err := s.replaced.closed(s.clock.Now()); err != nil {
		return g, false, err
	}
	w.resized = false
	if !s.inbox.started() {
		// Most locks are free, and most processes never need an inbox.
		p, g, v, _, err := s.enter(ctx, w.r.Lease, patient)
		if err != nil {
			return g, false, err
		}
		if w.place = p; p != nil {
			return w.owned(g), true, nil
		}
		if err := w.mismatch(ctx, v, len(v.places)); err != nil {
			return g, false, err
		}
	}
	l, err := s.pool.leaseFor(ctx, w.r.TTL)
	if err != nil {
		return g, false, err
	}
	p := s.newPlace(w.r.Lease, l)
	p.mailbox = s.inbox.open(l.id)
	e := entry{record: recordOf(p.of, l, s.inbox.process), key: p.key, lease: l.id}
	t, entering, number := s.entry(p.of, e, nil)
	enqueue := nested(txn{ifs: []condition{absent(p.key), absent(s.layout.tombstoneOf(p.of))}, then: t.then[:1]})
	t.els = append([]operation{enqueue}, t.els...)
	r, err := w.commitPlace(ctx, p, t)
	if err == errAgain {
		return g, false, nil
	} else if err != nil {
		return g, false, err
	}
	w.place, w.trouble = p, 0
	if r.Succeeded {
		p.create, p.slot = r.Header.Revision, s.layout.slot(w.r.Name, number)
		entering.mod, entering.slot = r.Header.Revision, &slot{number: number}
		return w.owned(s.admitted(entering)), true, nil
	}
	v := s.view(w.r.Name, r)
	i := v.index(p.key, 0)
	switch refused := r.Responses[1].GetResponseRange().Kvs; {
	case i < 0 && len(refused) != 0:
		return g, false, w.refused(p)
	case i < 0: // an earlier try made it, and it was removed
		return g, false, w.released(ctx)
	}
	p.create = v.places[i].create
	return w.decide(ctx, v)
}

// owned notes a grant.
func (w *shared) owned(g store.Grant) store.Grant {
	w.s.own(w.place)
	return g
}

// pushed implements turn. A message is a hint, as for a mutex. It may be old as well.
func (w *shared) pushed(ctx context.Context, m push) (g store.Grant, done bool, err error) {
	if m.revision <= w.heard {
		return w.look(ctx)
	}
	w.heard = m.revision
	w.resized = w.resized || m.Resized
	w.place.contended = m.Contended
	if !m.Entered {
		return w.look(ctx)
	}
	r, err := w.s.glance(ctx, m.revision, get(w.place.key), get(w.s.layout.slot(w.r.Name, m.Slot)))
	if r == nil || err != nil {
		return w.look(ctx)
	}
	has := entriesOf(r.Responses[0].GetResponseRange().Kvs)
	if len(has) == 0 || !has[0].is(w.place) || has[0].Broken || !has[0].enters(w.s.layout, w.r.Name, r.Responses[1].GetResponseRange().Kvs) {
		return w.look(ctx)
	}
	w.finds(has[0])
	return w.entered(ctx, has[0])
}

// enters notes the slot of the place, which is of the lock called name, and reports whether what was
// read there is that of the place.
func (e *entry) enters(l layout, name string, kvs []*mvccpb.KeyValue) bool {
	if len(kvs) == 0 || clientv3.LeaseID(kvs[0].Lease) != e.lease {
		return false
	}
	is, ok := slotOf(l.slots(name), kvs[0])
	if !ok || l.lock(name)+is.Suffix != e.key || is.Create != e.create {
		return false
	}
	e.slot = &is
	return true
}

// entered returns the grant of a place that has entered earlier.
func (w *shared) entered(ctx context.Context, e entry) (g store.Grant, done bool, err error) {
	if err := w.s.replaced.doubtful(w.s.clock.Now()); err != nil {
		return g, false, err
	}
	if there, err := w.fresh(ctx); err != nil || !there {
		return g, false, err
	}
	w.place.slot = e.slotKey()
	return w.owned(w.s.admitted(e)), true, nil
}

// look implements turn.
func (w *shared) look(ctx context.Context) (g store.Grant, done bool, err error) {
	v, err := w.s.read(ctx, w.r.Name, w.logs()...)
	if err != nil {
		return g, false, err
	}
	if me := v.index(w.place.key, w.place.create); me >= 0 {
		if v.places[me].Broken { // it has had the lock, and did not notice
			return g, false, w.broken()
		}
		w.finds(v.places[me])
		w.confirm(v.term)
	}
	return w.decide(ctx, v)
}

// decide does what the place has to do in v.
func (w *shared) decide(ctx context.Context, v *view) (g store.Grant, done bool, err error) {
	s, p := w.s, w.place
	w.trouble = 0
	me := v.index(p.key, p.create)
	if me < 0 {
		return g, false, w.missing(ctx, v)
	}
	p.contended = me+1 < len(v.places)
	if e := v.places[me]; e.slot != nil { // it was let in, or an earlier try entered
		if e.Broken {
			return g, false, w.broken()
		}
		return w.entered(ctx, e)
	}
	if has, ok := v.held(w.r.Owner); ok { // another attempt of the owner
		s.leave(p)
		w.place = nil
		g, err := s.join(ctx, w.r.Lease, has)
		if errors.Is(err, store.ErrNotHeld) {
			return g, false, nil // it was released meanwhile
		}
		return g, err == nil, err
	}
	is := rule.Owns(ranked(v.places), me)
	if is.Verdict != rule.Granted {
		if err := w.mismatch(ctx, v, me); err != nil {
			return g, false, err
		}
		w.reason(s.refusal(ctx, w.r.Lease, v, me, is.Position))
		p.ahead = is.Position - 1
		switch {
		case w.ahead == nil: // most waits are over before a watch pays
		case is.Position == 1: // anybody who leaves may make room
			w.ahead.watch(s.link, v.prefix, v.revision, clientv3.WithPrefix(), onlyDeletes())
		default:
			w.ahead.watch(s.link, v.places[me-1].key, v.revision, w.changes)
		}
		return g, false, nil
	}
	if there, err := w.fresh(ctx); err != nil || !there {
		return g, false, err
	}
	e, number := v.places[me], v.freeSlot(me)
	record, guard := s.generation(v, me, s.layout.slots(w.r.Name))
	e.record = record
	t := s.turnOf(w.r.Name, e, number)
	t.ifs = append(t.ifs, guard...)
	t.then = append(t.then, s.layout.turns(v.entered(me, number), s.ops.told())...)
	return w.take(ctx, t, e, number)
}

// turnOf is the transaction with which a place that waits enters a lock.
func (s *link) turnOf(name string, e entry, number int64) txn {
	enter := touch(e.key) // its revision is the token
	if e.Token != 0 {
		enter = replace(e.key, e.record.encode())
	}
	of := successor{Suffix: e.key[len(s.layout.lock(name)):], Create: e.create}
	return txn{
		// A second try fails, since the first one has modified the place.
		ifs:  []condition{created(e.key, e.create), modified(e.key, e.mod), absent(s.layout.slot(name, number))},
		then: []operation{enter, s.layout.take(name, number, of, e.lease)},
		els:  s.layout.readAll(name),
	}
}

// take enters with t, or decides anew.
func (w *shared) take(ctx context.Context, t txn, e entry, number int64) (g store.Grant, done bool, err error) {
	s, p := w.s, w.place
	r, doubt, err := s.commit(ctx, t)
	if doubt {
		p.lease.tainted.Store(true)
	}
	if (isGone(err) || isTooMany(err)) && len(t.then) > 2 { // perhaps because of places that are notified
		t.then = t.then[:2]
		defer s.wake(w.r.Name)
		if r, doubt, err = s.commit(ctx, t); doubt {
			p.lease.tainted.Store(true)
		}
	}
	if isGone(err) {
		w.lost()
		return g, false, nil
	}
	if err != nil {
		return g, false, err
	}
	if !r.Succeeded {
		return w.decide(ctx, s.view(w.r.Name, r))
	}
	p.slot = s.layout.slot(w.r.Name, number)
	e.mod, e.slot = r.Header.Revision, &slot{number: number}
	return w.owned(s.admitted(e)), true, nil
}

// fresh keeps a lease alive of which much is over. It returns false, without a place, if
// that has expired.
func (w *shared) fresh(ctx context.Context) (there bool, err error) {
	if !w.late() {
		return true, nil
	}
	return w.refresh(ctx)
}

// missing returns why the place is not in v. If another one can be made, it returns nil.
func (w *shared) missing(ctx context.Context, v *view) error {
	if w.resized {
		w.lost() // the next place shows what is in use now
		return nil
	}
	if err := w.mismatch(ctx, v, len(v.places)); err != nil {
		w.lost()
		return err
	}
	if there, err := w.refresh(ctx); err != nil || !there {
		return err
	}
	return w.released(ctx)
}

// mismatch returns a *store.KindError if the place at index me of v is for another kind of
// lock than those before it.
func (w *shared) mismatch(ctx context.Context, v *view, me int) error {
	if me == 0 || v.places[0].spec() == rule.Spec(w.r.Kind.Normal()) {
		return nil
	}
	return otherKind(w.r.Lease, v.places[0])
}
