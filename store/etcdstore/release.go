package etcdstore

import (
	"context"
	"errors"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold-dev/leasehold/store"
)

// Release implements driver.Engine. The transaction that ends the lease hands the lock to
// the next place, and writes to the inbox of its process.
func (s *engine) Release(ctx context.Context, r store.ReleaseRequest) error {
	if p, ok := s.rejoined.Take(r.Lease); ok {
		s.leave(p)
		return store.ErrNotHeld
	}
	_, err := s.release(ctx, r, nil)
	return err
}

// release ends the lease of r. If next is not nil, it also makes that place, if the lock
// passes to another one; standing reports whether it did.
func (s *core) release(ctx context.Context, r store.ReleaseRequest, next *place) (standing bool, err error) {
	e := ending{s: s, of: r.Lease, prefix: s.layout.lock(r.Name), rejoin: next}
	for {
		e.mod = 0
		e.hold = s.holds.get(r.Name, r.Owner)
		if !r.Kind.IsMutex() || e.hold != nil && e.hold.slot != "" {
			return false, s.releaseShared(ctx, r)
		}
		known := e.hold != nil && r.Attempt == ""
		if !known {
			if err := e.find(ctx, r); err == errShared {
				return false, s.releaseShared(ctx, r)
			} else if err != nil {
				return false, s.refused(ctx, "release", r.Name, e.doubt, err)
			}
		}
		s.holds.drop(r.Name, r.Owner, e.hold)
		switch err := e.run(ctx); {
		case err == nil:
			s.pool.done(e.hold.lease)
			s.pool.done(e.hold.named)
			return e.standing, nil
		case err == errMoved:
			continue // another attempt of the owner joined, or it was renewed for longer
		case known && errors.Is(err, store.ErrNotHeld):
			continue // the owner may have acquired the lock again through another handle
		case errors.Is(err, store.ErrNotHeld):
			// Another handle may have ended it, or it expired. Its lease is not used again.
			return false, s.refused(ctx, "release", r.Name, false, err)
		default:
			s.pool.revoke(e.hold.lease)
			return false, s.refused(ctx, "release", r.Name, true, err)
		}
	}
}

var errShared = constError("the place is of a lock that several can hold")

// ending ends a place that has the lock.
type ending struct {
	s      *core
	of     store.Lease
	prefix string
	hold   *hold
	// mod, if not 0, is the revision that the place has to have: a later one may belong
	// to other attempts, too.
	mod    int64
	rejoin *place      // it comes last
	also   []operation // further ones of the transaction that ends the lease
	doubt  bool        // a try failed and may have taken effect
	// standing is set if rejoin was made.
	standing bool
}

// find reads the place of an owner. It removes the place of an owner that waits, and
// returns ErrNotHeld then.
func (e *ending) find(ctx context.Context, r store.ReleaseRequest) error {
	got, doubt, err := e.s.commit(ctx, txn{then: []operation{byAge(e.prefix, 0)}})
	e.doubt = e.doubt || doubt
	if got == nil {
		return err
	}
	all := entriesOf(got.Responses[0].GetResponseRange().Kvs)
	holding := len(holders(all))
	for i, has := range all {
		switch {
		case has.native || has.Owner != r.Owner:
		case has.several():
			return errShared // the caller did not say which kind of lock it is
		case i >= holding:
			p := &place{of: r.Lease, prefix: e.prefix, key: has.key, lease: adopted(has), create: has.create}
			if err := e.s.leaveOnce(ctx, p); err != nil {
				return err
			}
			return store.ErrNotHeld
		case r.Attempt != "" && has.Made != r.Attempt && (has.Made != "" || r.Undo):
			return store.ErrNotHeld // it is another attempt's
		default:
			if e.hold == nil || e.hold.create != has.create || e.hold.lease.id != has.lease {
				e.hold = &hold{key: has.key, create: has.create, lease: adopted(has)}
			}
			if r.Attempt != "" {
				e.mod = has.mod
			}
			behind := all[i+1:]
			e.hold.follow(successors(e.prefix, behind[:min(len(behind), mostRead)]))
			return nil
		}
	}
	return store.ErrNotHeld
}

// run deletes the place and hands the lock on.
func (e *ending) run(ctx context.Context) error {
	for try := 0; ; try++ {
		next := e.hold.followers()
		if e.rejoin != nil {
			// One with the key of the new place gave up: that key is used again.
			next = slices.DeleteFunc(slices.Clone(next), func(n successor) bool { return n.Suffix == suffix(e.rejoin.lease.id) })
		}
		r, doubt, err := e.commit(ctx, next)
		e.doubt = e.doubt || doubt
		if doubt {
			e.taint()
		}
		var q *quarantineError
		switch {
		case errors.As(err, &q): // a release counts all the same
		case (isGone(err) || isFull(err)) && try < 3:
			// The next place has just gone, or there is no space to tell it. It watches
			// this one.
			if isFull(err) {
				e.doubt = true
				e.taint()
			}
			return e.quietly(ctx)
		case err != nil:
			return err
		}
		if r.Succeeded {
			e.standing = e.rejoin != nil && len(next) > 0
			if e.standing {
				e.rejoin.create = r.Header.Revision
				e.rejoin.lease.answered(r.Header.RaftTerm)
				e.rejoin.unlikely = unlikelyAfter(e.hold.waited, next)
			}
			return nil
		}
		all := entriesOf(r.Responses[0].GetResponseRange().Kvs)
		switch {
		case len(all) == 0 || all[0].key != e.hold.key || all[0].create != e.hold.create:
			return e.over(all)
		case e.mod != 0 && all[0].mod != e.mod:
			return errMoved
		}
		e.hold.follow(successors(e.prefix, all[1:]))
	}
}

// commit deletes the place if next are the places behind it. That can go with other steps if it
// concerns no inbox, which several locks have in common.
func (e *ending) commit(ctx context.Context, next []successor) (r *clientv3.TxnResponse, doubt bool, err error) {
	t := e.txn(next)
	if len(next) > 0 || len(e.also) > 0 {
		return e.s.commit(ctx, t)
	}
	return e.s.batches.commit(ctx, e.prefix, t)
}

// txn is the transaction that deletes the place if next are the places behind it.
func (e *ending) txn(next []successor) txn {
	t := e.deletion()
	if len(next) == 0 {
		t.ifs[0] = alone(e.prefix, e.hold.create)
		return t
	}
	first := next[0]
	t.ifs = append(t.ifs, created(e.prefix+first.Suffix, first.Create))
	if e.rejoin != nil {
		place := put(e.rejoin.key, recordOf(e.rejoin.of, e.rejoin.lease, e.s.inbox.process).encode(), e.rejoin.lease.id)
		t.ifs = append(t.ifs, absent(e.rejoin.key))
		t.then = append(t.then, place)
	}
	t.then = append(t.then, e.s.layout.handOver(e.prefix, first)...)
	return t
}

// taint notes that the transaction that makes the new place may still be in flight.
func (e *ending) taint() {
	if e.rejoin != nil {
		e.rejoin.lease.tainted.Store(true)
	}
}

// deletion is the transaction that deletes the place and tells nobody. Its first condition is
// that the place is there.
func (e *ending) deletion() txn {
	t := txn{
		ifs:  []condition{created(e.hold.key, e.hold.create)},
		then: append([]operation{remove(e.hold.key)}, e.also...),
		els:  []operation{byAge(e.prefix, mostRead)},
	}
	if e.mod != 0 {
		t.ifs = append(t.ifs, modified(e.hold.key, e.mod))
	}
	return t
}

// quietly deletes the place and tells nobody.
func (e *ending) quietly(ctx context.Context) error {
	r, doubt, err := e.s.commit(ctx, e.deletion())
	e.doubt = e.doubt || doubt
	switch {
	case r == nil:
		return err
	case r.Succeeded:
		return nil
	}
	all := entriesOf(r.Responses[0].GetResponseRange().Kvs)
	if len(all) > 0 && all[0].key == e.hold.key && all[0].create == e.hold.create {
		return errMoved
	}
	return e.over(all)
}

// over returns the result for a place that is not there any more. An earlier try of this
// release may have ended it; the place that comes with it tells.
func (e *ending) over(now []entry) error {
	if !e.doubt {
		return store.ErrNotHeld
	}
	if e.rejoin != nil {
		for _, has := range now {
			if has.key == e.rejoin.key {
				e.rejoin.create, e.standing = has.create, true
			}
		}
	}
	return nil
}
