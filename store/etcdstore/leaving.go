package etcdstore

import (
	"context"
	"errors"

	clientv3 "go.etcd.io/etcd/client/v3"

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
	doubt  bool   // a try failed and may have taken effect
	quiet  bool   // tell nobody
}

// releaseShared is release for a lock that several can hold.
func (s *core) releaseShared(ctx context.Context, r store.ReleaseRequest) error {
	for doubt := false; ; {
		h := s.holds.get(r.Name, r.Owner)
		l := leaving{s: s, name: r.Name, doubt: doubt}
		known := h != nil && r.Attempt == ""
		if known {
			l.key, l.create, l.slot = h.key, h.create, h.slot
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
	for try := 0; ; try++ {
		r, doubt, err := l.s.commit(ctx, l.txn(try))
		l.doubt = l.doubt || doubt
		var q *quarantineError
		switch {
		case errors.As(err, &q): // a release counts all the same
		case (isGone(err) || isFull(err)) && !l.quiet:
			// One of the places to tell has just gone, or there is no space to tell them.
			l.doubt = l.doubt || isFull(err)
			l.quiet = true
			continue
		case err != nil:
			return err
		}
		if r.Succeeded {
			if l.quiet || try >= patient {
				l.s.wake(l.name)
			}
			return nil
		}
		l.v = l.s.view(l.name, r)
		i := l.v.index(l.key, l.create)
		switch {
		case i < 0 && l.doubt: // an earlier try ended it
			return nil
		case i < 0:
			return store.ErrNotHeld
		case l.mod != 0 && l.v.places[i].mod != l.mod:
			return errMoved
		}
		l.slot = l.v.places[i].slotKey()
	}
}

// patient is how often a release tries to tell those whose turn it is in its transaction,
// which fails if others come meanwhile. Then they are told later.
const patient = 4

func (l *leaving) txn(try int) txn {
	prefix := l.s.layout.lock(l.name)
	t := txn{
		ifs:  []clientv3.Cmp{created(l.key, l.create)},
		then: []clientv3.Op{clientv3.OpDelete(l.key)},
		els:  l.s.layout.readAll(l.name),
	}
	if l.mod != 0 {
		t.ifs = append(t.ifs, modified(l.key, l.mod))
	}
	if l.slot != "" {
		t.then = append(t.then, clientv3.OpDelete(l.slot))
	} else if l.v != nil { // it may enter meanwhile
		t.ifs = append(t.ifs, unchanged(l.s.layout.slots(l.name), l.v.revision))
	}
	switch {
	case l.v == nil: // nobody to tell, if nobody came later
		t.ifs = append(t.ifs, newest(prefix, l.create))
	case l.quiet:
	default:
		if try < patient {
			t.ifs = append(t.ifs, unchanged(prefix, l.v.revision))
		}
		if i := l.v.index(l.key, l.create); i >= 0 {
			t.then = append(t.then, l.v.without(i).told(l.s.layout, try < patient)...)
		}
	}
	return t
}

// wake tells those whose turn it is, in the background and one by one, since some of them
// may be gone. If it fails, they look by themselves. The caller is counted at the gate.
func (s *core) wake(name string) {
	s.gate.Stay()
	go func() {
		defer s.gate.Leave()
		v, _ := s.read(context.Background(), name)
		if v == nil {
			return
		}
		for _, tell := range v.told(s.layout, false) {
			_, _, _ = s.commit(context.Background(), txn{then: []clientv3.Op{tell}})
		}
	}()
}
