package etcdstore

import (
	"context"
	"errors"

	"github.com/leasehold-dev/leasehold/store"
)

// leaving ends a place of a lock that several can hold, whether it holds the lock or
// waits, and tells those whose turn it is then.
type leaving struct {
	s      *core
	name   string
	key    string
	create int64
	slot   string // its key; empty: it is not known to have one
	mod    int64  // as in ending
	v      *view  // nil: nothing was read
	// contended is set if there are others to tell, as far as is known, and permit if the lock
	// is known to be a semaphore.
	contended, permit bool
	also              []operation // further ones of the transaction that ends the place
	handed            handing     // what the last transaction handed on
	doubt             bool        // a try failed and may have taken effect
	quiet             bool        // the transaction cannot write to others
}

// releaseShared is release for a lock that several can hold.
func (s *core) releaseShared(ctx context.Context, r store.ReleaseRequest) error {
	for doubt := false; ; {
		h := s.holds.get(r.Name, r.Owner)
		l := leaving{s: s, name: r.Name, doubt: doubt, permit: !r.Kind.IsMutex() && !r.Kind.Shared}
		known := h != nil && r.Attempt == ""
		if known {
			l.key, l.create, l.slot, l.contended = h.key, h.create, h.slot, h.contended
		} else {
			has, err := l.find(ctx, r)
			switch {
			case doubt && errors.Is(err, store.ErrNotHeld):
				return nil // an earlier try ended it
			case err != nil:
				return s.refused(ctx, "release", r.Name, doubt, err)
			}
			if h == nil || h.create != has.create || h.lease.id != has.lease {
				h = &hold{key: has.key, create: has.create, lease: adopted(has)}
			}
			l.key, l.create, l.slot = has.key, has.create, has.slotKey()
			if r.Attempt != "" {
				l.mod = has.mod
			}
		}
		s.holds.drop(r.Name, r.Owner, h)
		err := l.run(ctx)
		doubt = l.doubt
		switch {
		case err == nil:
			s.pool.done(h.lease)
			s.pool.done(h.named)
			return nil
		case err == errMoved:
			continue // another attempt of the owner joined, or it was renewed for longer
		case known && errors.Is(err, store.ErrNotHeld):
			continue // the owner may have acquired the lock again through another handle
		case errors.Is(err, store.ErrNotHeld):
			return s.refused(ctx, "release", r.Name, false, err)
		default:
			s.pool.revoke(h.lease)
			return s.refused(ctx, "release", r.Name, true, err)
		}
	}
}

// find reads the place of an owner that holds the lock. It removes the place of an owner
// that waits, and returns ErrNotHeld then.
func (l *leaving) find(ctx context.Context, r store.ReleaseRequest) (entry, error) {
	v, err := l.s.read(ctx, r.Name)
	if v == nil {
		return entry{}, err
	}
	l.v = v
	if has, ok := v.held(r.Owner); ok {
		if r.Attempt != "" && has.Made != r.Attempt && (has.Made != "" || r.Undo) {
			return entry{}, store.ErrNotHeld // it is another attempt's
		}
		return has, nil
	}
	for _, has := range v.places {
		if has.Owner == r.Owner && !has.native {
			l.key, l.create = has.key, has.create
			if err := l.run(ctx); err != nil {
				return entry{}, err
			}
			break
		}
	}
	return entry{}, store.ErrNotHeld
}

// run deletes the place and its slot.
func (l *leaving) run(ctx context.Context) error {
	if l.v == nil && l.contended {
		v, err := l.s.read(ctx, l.name)
		if v == nil {
			return err
		}
		l.v = v
	}
	for try := 0; ; try++ {
		t, alone, err := l.txn(try)
		if err != nil || len(t.then) == 0 {
			return err
		}
		r, doubt, err := l.s.commit(ctx, t)
		l.doubt = l.doubt || doubt
		var q *quarantineError
		switch {
		case errors.As(err, &q): // a release counts all the same
		case (isGone(err) || isFull(err) || isTooMany(err)) && !l.quiet:
			// One of the places to tell has just gone, or there is no space or room to tell them.
			l.doubt = l.doubt || isFull(err)
			l.quiet = true
			continue
		case err != nil:
			return err
		}
		if r.Succeeded {
			if alone {
				l.s.announce(l.name, l.s.view(l.name, r), l.handed.told(r))
			}
			return nil
		}
		l.v = l.s.view(l.name, r)
	}
}

// patient is how often a transaction is tried that fails if others come meanwhile.
const patient = 2

// txn is the transaction that deletes the place and its slot. Without a view it does so
// if nobody came later, so that there is nobody to tell. Otherwise it lets in those whose
// turn it is, or it is alone: then it does not fail because of others, and reads whom to let
// in next. It is alone for permits, whose holders often leave at the same time, and hands
// their slot to the next waiter if no other holder has let that one in.
func (l *leaving) txn(try int) (t txn, alone bool, err error) {
	s := l.s
	t = txn{
		ifs:  []condition{created(l.key, l.create)},
		then: append([]operation{remove(l.key)}, l.also...),
		els:  s.layout.readAll(l.name),
	}
	var p passage
	var h handing
	l.handed = handing{}
	alone = l.permit || l.quiet || try >= patient
	if l.v == nil && !alone {
		t.ifs = append(t.ifs, newest(s.layout.lock(l.name), l.create))
	}
	if l.v != nil {
		i := l.v.index(l.key, l.create)
		switch {
		case i < 0 && l.doubt: // an earlier try ended it, and may have told nobody
			s.announce(l.name, l.v, 0)
			return txn{}, false, nil
		case i < 0:
			return t, false, store.ErrNotHeld
		case l.mod != 0 && l.v.places[i].mod != l.mod:
			return t, false, errMoved
		}
		e, freed := l.v.places[i], int64(-1)
		if e.slot != nil && e.slot.key != "" {
			l.slot, freed = e.slot.key, e.slot.number
		} else {
			t.ifs = append(t.ifs, modified(l.key, e.mod)) // it may enter meanwhile
		}
		switch alone = alone || !e.Shared; {
		case !alone:
			p = s.layout.pass(l.v.without(i), l.name, freed, s.ops.told())
		case !l.quiet && !e.Shared && freed >= 0:
			h = s.layout.hand(l.v.without(i), l.name, freed)
		}
	}
	if l.mod != 0 {
		t.ifs = append(t.ifs, modified(l.key, l.mod))
	}
	switch {
	case h.enter.reused:
		t.then = append(t.then, nested(txn{ifs: h.enter.ifs, then: h.enter.then, els: []operation{remove(l.slot)}}))
	case l.slot != "" && !p.reused:
		t.then = append(t.then, remove(l.slot))
	}
	if h.waiter != 0 {
		h.at = len(t.then)
		t.then = append(t.then, nested(h.look))
		l.handed = h
	}
	t.ifs, t.then = append(t.ifs, p.ifs...), append(t.then, p.then...)
	if alone {
		t.then = append(t.then, s.layout.readAll(l.name)...)
	}
	return t, alone, nil
}

// announce lets in those whose turn it is in v, a view of the lock called name, or tells them,
// in the background. If that fails, they look by themselves. The place created at told was
// told already that it is the first that still waits. The caller is counted at the gate.
func (s *core) announce(name string, v *view, told int64) {
	turns := s.layout.letIn(v, name, told, s.ops.told())
	if len(turns) == 0 {
		return
	}
	s.gate.Stay()
	go func() {
		defer s.gate.Leave()
		_, _, _ = s.commit(context.Background(), txn{then: turns})
	}()
}

// wake is announce for a lock that has to be read first.
func (s *core) wake(name string) {
	s.gate.Stay()
	go func() {
		defer s.gate.Leave()
		if v, _ := s.read(context.Background(), name); v != nil {
			s.announce(name, v, 0)
		}
	}()
}
