package etcdstore

import (
	"context"
	"errors"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold-dev/leasehold/store"
)

// Release implements driver.Engine. The transaction that ends the lease lets in those whose turn
// it is then, and writes to the inboxes of their processes.
func (s *engine) Release(ctx context.Context, r store.ReleaseRequest) error {
	if p, ok := s.rejoined.Take(r.Lease); ok {
		s.leave(p)
		return store.ErrNotHeld
	}
	_, err := s.release(ctx, r, nil)
	return err
}

// ReleaseAndRejoin implements driver.Engine, in one transaction: etcd's log has one
// entry for a turn instead of two. It makes no place for a lock that several can hold,
// whose waiters enter beside each other.
func (s *engine) ReleaseAndRejoin(ctx context.Context, r store.ReleaseRequest, next store.WaitRequest) (queued bool, err error) {
	if !r.Kind.IsMutex() || s.require(ctx, "wait for", r.Name, next.Require) != nil || s.raise(ctx, "wait for", next.Lease) != nil {
		return s.release(ctx, r, nil)
	}
	sent := s.clock.Now()
	l, err := s.pool.leaseFor(ctx, next.TTL)
	if err != nil {
		return false, s.failed(ctx, "release", r.Name, false, err)
	}
	p := s.newPlace(next.Lease, l)
	p.sent = sent
	p.mailbox = s.inbox.open(l.id)
	queued, err = s.release(ctx, r, p)
	if !queued {
		s.inbox.forget(p.mailbox)
		s.pool.done(l) // if there may be a place, the lease is tainted
		return false, err
	}
	if !s.rejoined.Put(p.of, p, func() { s.expire(p) }) {
		s.leave(p)
		return false, nil
	}
	return true, nil
}

// expire ends a place that nobody claimed.
func (s *engine) expire(p *place) {
	if s.gate.Enter() == nil {
		defer s.gate.Leave()
		s.leave(p)
	}
}

// release ends the lease of r. If next is not nil, it also makes that place, if the lock
// passes to another one; standing reports whether it did.
func (s *engine) release(ctx context.Context, r store.ReleaseRequest, next *place) (standing bool, err error) {
	for ambiguous := false; ; {
		h := s.holds.get(r.Name, r.Owner)
		e := ending{s: s, of: r.Lease, ambiguous: ambiguous, rejoin: next}
		known := h != nil && r.Attempt == ""
		if known {
			e.key, e.create, e.slot, e.v = h.key, h.create, h.slot, h.view
		} else {
			has, err := e.find(ctx, r)
			switch {
			case err == errMoved:
				continue // the owner had a place that waited, and may have entered
			case ambiguous && errors.Is(err, store.ErrNotHeld):
				return false, nil // an earlier try ended it
			case err != nil:
				return false, s.refused(ctx, "release", r.Name, e.ambiguous, err)
			}
			if h == nil || h.create != has.create || h.lease.Load().id != has.lease {
				h = holdOf(has)
			}
			if r.Attempt != "" {
				e.mod = has.mod
			}
		}
		s.holds.drop(r.Name, r.Owner, h)
		l := h.lease.Load() // another attempt that joins meanwhile attaches the place to another one
		err := e.run(ctx)
		ambiguous = e.ambiguous
		switch {
		case err == nil:
			s.pool.done(l)
			return e.standing, nil
		case err == errMoved:
			continue // another attempt of the owner joined, or it was renewed for longer
		case known && errors.Is(err, store.ErrNotHeld):
			continue // the owner may have acquired the lock again through another handle
		case errors.Is(err, store.ErrNotHeld):
			// Another handle may have ended it, or it expired. Its lease is not used again.
			return false, s.refused(ctx, "release", r.Name, false, err)
		default:
			s.pool.revoke(l)
			return false, s.refused(ctx, "release", r.Name, true, err)
		}
	}
}

// ending ends a place, whether it holds the lock or waits, and lets in those whose turn it is then.
type ending struct {
	s      *engine
	of     store.Lease
	key    string
	create int64
	slot   string // its key; empty: it is not known to have one
	// mod, if not 0, is the revision that the place has to have: a later one may belong
	// to other attempts, too.
	mod       int64
	v         *view       // the lock, which may have changed since; nil: nobody is known to be behind
	rejoin    *place      // it comes last
	also      []operation // further ones of the transaction that ends the place
	ambiguous bool        // a try failed and may have taken effect
	// standing is set if rejoin was made.
	standing bool
}

// find reads the place of an owner that holds the lock, whatever its kind. It removes the place of
// an owner that waits, and returns ErrNotHeld then, or errMoved if the place has changed.
func (e *ending) find(ctx context.Context, r store.ReleaseRequest) (entry, error) {
	v, err := e.s.read(ctx, reading{name: r.Name})
	if v == nil {
		return entry{}, err
	}
	e.v = v
	has, held := v.held(r.Owner)
	if held && r.Attempt != "" && has.Made != r.Attempt && (has.Made != "" || r.Undo) {
		return entry{}, store.ErrNotHeld // it is another attempt's
	}
	for _, is := range v.places {
		if !held && is.Owner == r.Owner && !is.native {
			e.key, e.create, e.mod = is.key, is.create, is.mod // it may enter meanwhile
			if err := e.run(ctx); err != nil {
				return entry{}, err
			}
			break
		}
	}
	if !held {
		return entry{}, store.ErrNotHeld
	}
	e.key, e.create, e.slot = has.key, has.create, has.slotKey()
	return has, nil
}

// reading is what has to be read to end the place.
func (e *ending) reading() reading {
	if e.slot != "" || e.v.several() {
		return reading{name: e.of.Name}
	}
	return readingFor(e.of, e.key, e.create)
}

// patient is how often a transaction is tried that fails if others come or leave meanwhile.
const patient = 2

// run deletes the place and its slot.
func (e *ending) run(ctx context.Context) error {
	quiet := false // nobody can be told
	for try := 0; ; try++ {
		alone := quiet || try >= patient
		t, tells, err := e.txn(alone)
		if err == store.ErrNotHeld && e.ambiguous { // an earlier try ended it, and may have told nobody
			e.ended()
			e.s.wake(e.of.Name)
			return nil
		} else if err != nil {
			return err
		}
		commit := e.s.commit
		if !tells { // it concerns no inbox, which several locks have in common
			commit = func(ctx context.Context, t txn) (*clientv3.TxnResponse, bool, error) {
				return e.s.batches.commit(ctx, e.s.layout.lock(e.of.Name), t)
			}
		}
		r, ambiguous, err := commit(ctx, t)
		var q *quarantineError
		if ambiguous || isFull(err) {
			e.ambiguous = true
			if e.rejoin != nil { // a request for its place may still be in flight
				e.rejoin.lease.tainted.Store(true)
			}
		}
		switch {
		case errors.As(err, &q): // a release counts all the same
		case (isGone(err) || isFull(err)) && !quiet:
			// One of the places to tell has just gone, or there is no space to tell them.
			quiet = true
			continue
		case err != nil:
			return err
		}
		if !r.Succeeded {
			of := e.reading()
			if e.v = e.s.view(of, r); e.v.several() && of.key != "" { // it was a mutex before Resize
				if e.v, err = e.s.read(ctx, reading{name: of.name}); e.v == nil {
					return err
				}
			}
			continue
		}
		if alone {
			e.s.wake(e.of.Name)
		} else if e.rejoin != nil && tells {
			e.standing, e.rejoin.create, e.rejoin.ahead = true, r.Header.Revision, len(e.v.places)+e.v.more-1
			e.rejoin.lease.answered(r.Header.RaftTerm)
		}
		return nil
	}
}

// txn is the transaction that deletes the place and its slot. Without a view it
// does so only if no waiter came later: then it has nobody to tell. With a view it also lets in the
// places whose turn it is, unless alone is set: then no other place can make it fail. tells reports
// whether it changes keys of other places.
func (e *ending) txn(alone bool) (t txn, tells bool, err error) {
	l, name := e.s.layout, e.of.Name
	t = txn{
		ifs:  []condition{created(e.key, e.create)},
		then: append([]operation{remove(e.key)}, e.also...),
		els:  l.reads(e.reading()),
	}
	var h handoff
	switch {
	case e.v == nil && !alone:
		t.ifs = append(t.ifs, newest(l.lock(name), e.create))
	case e.v != nil:
		i := e.v.index(e.key, e.create)
		if i < 0 {
			return t, false, store.ErrNotHeld
		}
		has, freed := e.v.places[i], int64(-1)
		switch {
		case e.mod != 0 && has.mod != e.mod:
			return t, false, errMoved
		case has.slot == nil:
			t.ifs = append(t.ifs, modified(e.key, has.mod)) // it may enter meanwhile
		case has.slot.key != "":
			e.slot, freed = has.slot.key, has.slot.number
		}
		if alone {
			break
		}
		rest := e.v.without(i)
		if e.rejoin != nil {
			if i := rest.index(e.rejoin.key, 0); i >= 0 { // it gave up: its key is used again
				rest = rest.without(i)
			}
		}
		if h = l.admitNext(rest, name, freed); len(rest.places) == 0 {
			t.ifs = append(t.ifs, newest(l.lock(name), e.create))
		}
		if e.rejoin != nil && len(rest.places) > 0 {
			first, p := rest.places[0], e.rejoin
			t.ifs = append(t.ifs, created(first.key, first.create), absent(p.key))
			t.then = append(t.then, put(p.key, encode(recordOf(p.of, p.lease, e.s.inbox.process)), p.lease.id))
			tells = true
		}
	}
	if e.mod != 0 {
		t.ifs = append(t.ifs, modified(e.key, e.mod))
	}
	if e.slot != "" && !h.reused {
		t.then = append(t.then, remove(e.slot))
	}
	t.ifs, t.then = append(t.ifs, h.ifs...), append(t.then, h.then...)
	return t, tells || len(h.then)+len(e.also) > 0, nil
}

// ended looks for the place that comes with the release in the lock as an earlier try left it.
func (e *ending) ended() {
	if e.rejoin == nil {
		return
	}
	if i := e.v.index(e.rejoin.key, 0); i >= 0 {
		e.rejoin.create, e.standing = e.v.places[i].create, true
	}
}

// wake reads a lock in the background, and tells those whose turn it is. If that fails, they look by
// themselves. The caller is counted at the gate.
func (s *engine) wake(name string) {
	s.gate.Go(func() {
		v, _ := s.read(context.Background(), reading{name: name})
		if v == nil {
			return
		}
		if then := s.layout.notifyTurns(v); len(then) > 0 {
			_, _, _ = s.commit(context.Background(), txn{then: then})
		}
	})
}

// leave gives up a place in the background, or the lock that it was given meanwhile. The
// caller is counted at the gate.
func (s *engine) leave(p *place) {
	s.gate.Go(func() { s.leaveNow(context.Background(), p) })
}

// leaveNow is leave in the foreground. If it cannot be done in order, or a request for the place may
// still be in flight, it revokes the lease of the place: the next one then notices by watching it. A
// place that another attempt of the owner has joined stays: it is attached to another lease.
func (s *engine) leaveNow(ctx context.Context, p *place) {
	s.inbox.forget(p.mailbox)
	if p.create != 0 && !p.lease.tainted.Load() && s.leaveOnce(ctx, p) == nil {
		s.pool.done(p.lease)
		return
	}
	s.pool.revoke(p.lease)
}

// leaveOnce removes a place that is known to be there, whether it waits or has the lock.
func (s *engine) leaveOnce(ctx context.Context, p *place) (err error) {
	for {
		e := ending{s: s, of: p.of, key: p.key, create: p.create, slot: p.slot}
		if e.v, err = s.read(ctx, e.reading()); e.v == nil {
			return err
		}
		if i := e.v.index(p.key, p.create); i >= 0 {
			if e.mod = e.v.places[i].mod; e.v.places[i].Made != p.of.Attempt {
				return errMoved // it belongs to another attempt of its owner, too
			}
		}
		switch err = e.run(ctx); {
		case err == errMoved:
		case errors.Is(err, store.ErrNotHeld):
			return nil
		default:
			return err
		}
	}
}
