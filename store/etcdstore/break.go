package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold-dev/leasehold/store"
)

// NotifyBroken implements driver.Engine. Breaks of leases that were acquired before
// the first call are not noticed, unless the lease had to be waited for.
func (s *engine) NotifyBroken(f func(owner string)) (stop func()) {
	s.inbox.heeds.Store(true)
	return s.broken.Add(f)
}

// BreakLease implements driver.Engine, in one transaction, which also tells the process of
// the holder. With Now, the same transaction hands the lock on. If the holder's process was
// not told, the lease can last for one TTL more than BreakLease returned: its next renewal is
// refused, but etcd has extended the lease by then. Locks of native clients are refused with
// store.ErrUnsupported.
func (s *engine) BreakLease(ctx context.Context, r store.BreakRequest) (left time.Duration, err error) {
	const op = "break the lease of"
	b := breaking{s: &s.core, r: r}
	left, err = b.run(ctx)
	switch {
	case err == store.ErrNotHeld:
		return 0, fmt.Errorf("%s %q in etcd at %s: %w", op, r.Name, s.members, err)
	case errors.Is(err, store.ErrUnsupported):
		return 0, err
	case err != nil:
		return 0, s.refused(ctx, op, r.Name, true, err)
	}
	return left, nil
}

// breaking breaks one lease.
type breaking struct {
	s    *core
	r    store.BreakRequest
	keep clientv3.LeaseID // the lease of the note; 0: there is none yet
}

// run returns how long the lease can last.
func (b *breaking) run(ctx context.Context) (left time.Duration, err error) {
	for {
		v, last, err := b.s.readWithNote(ctx, b.r.Name)
		if err != nil {
			return 0, err
		}
		step, at := v.toBreak(b.r, last, b.s.floor)
		switch step {
		case breakOver:
			return 0, nil
		case breakForeign:
			return 0, store.UnbreakableError(b.r.Name)
		case breakNothing:
			return 0, store.ErrNotHeld
		}
		var done bool
		switch e := v.places[at]; step {
		case breakMark:
			done, err = b.mark(ctx, v, e)
		case breakTell:
			done, err = b.tell(ctx, v, e)
		case breakEnd:
			done, err = b.end(ctx, v, at)
		}
		switch {
		case isGone(err):
			b.keep = clientv3.NoLease // of the place or of the note
			continue
		case err != nil:
			return 0, err
		case !done:
			continue // the place has changed
		case step == breakEnd:
			return 0, nil
		}
		// etcd answers 0 just before it deletes the place. From BreakLease, 0 would mean that
		// the lease is over.
		left, err = b.s.left(ctx, v.places[at])
		return max(left, time.Millisecond), err
	}
}

// mark breaks the lease of e. It returns false if e is not as in v any more.
func (b *breaking) mark(ctx context.Context, v *view, e entry) (done bool, err error) {
	if err := b.prepare(ctx); err != nil {
		return false, err
	}
	r, _, err := b.s.commit(ctx, mark(b.s.layout, v, e, b.r, b.s.floor, b.keep))
	return err == nil && r.Succeeded, err
}

// tell tells the holder again, since a message can be lost. It returns false if e is not as
// in v any more.
func (b *breaking) tell(ctx context.Context, v *view, e entry) (done bool, err error) {
	r, _, err := b.s.commit(ctx, txn{
		ifs:  []condition{created(e.key, e.create), modified(e.key, e.mod)},
		then: remind(b.s.layout, v, e),
	})
	return err == nil && r.Succeeded, err
}

// end ends the lease of the place at index at of v, as its owner would. It returns false if
// the place is not as in v any more.
func (b *breaking) end(ctx context.Context, v *view, at int) (done bool, err error) {
	e := v.places[at]
	var also []operation
	if !e.Broken { // otherwise they are there
		if err := b.prepare(ctx); err != nil {
			return false, err
		}
		also = traces(b.s.layout, v, e, b.r, b.keep)
	}
	ends := ending{s: b.s, of: store.Lease{Name: b.r.Name, Owner: e.Owner}, key: e.key, create: e.create, slot: e.slotKey(), mod: e.mod, v: v, also: also}
	err = ends.run(ctx)
	if err == errMoved || errors.Is(err, store.ErrNotHeld) {
		return false, nil
	}
	return err == nil, err
}

// prepare makes the lease that ends the note after store.KeepBroken, unless there is one.
func (b *breaking) prepare(ctx context.Context) error {
	if b.keep != clientv3.NoLease {
		return nil
	}
	l, err := b.s.pool.grant(ctx, int64(store.KeepBroken/time.Second))
	if err != nil {
		return err
	}
	b.keep = l.id
	return nil
}
