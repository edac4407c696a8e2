package etcdstore

import (
	"context"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold-dev/leasehold/store"
)

// renewal is the renewal of one lease.
type renewal struct {
	of   store.Lease
	hold *hold // nil: none is known yet
	err  error
	// moved is set if the place was attached to a new lease, which renews it.
	moved bool
}

// mostAtOnce is how many places are attached to new leases at once.
const mostAtOnce = 32

// mover attaches places to new leases.
type mover struct{ *core }

// needs reports whether the place has to be attached to a new lease.
func (s mover) needs(r *renewal) bool {
	return r.of.TTL > r.hold.lease.lasts || !r.hold.lease.isOf(s.replaced.inTerm())
}

// move reads places in one transaction, and attaches those to new leases that need them. It returns the
// error of the transaction.
func (s mover) move(ctx context.Context, some []*renewal) error {
	var t txn
	for _, r := range some {
		t.then = append(t.then, s.layout.owner(r))
		if r.hold.slot != "" {
			t.then = append(t.then, get(r.hold.slot))
		}
	}
	got, _, err := s.commit(ctx, t)
	if got == nil {
		for _, r := range some {
			r.err = err
		}
		return err
	}
	answers := got.Responses
	var group sync.WaitGroup
	places := make(chan struct{}, mostAtOnce)
	for _, r := range some {
		kvs, hasSlot := answers[0].GetResponseRange().Kvs, true
		answers = answers[1:]
		var has entry
		if len(kvs) > 0 {
			has = entryOf(kvs[0])
		}
		if r.hold.slot != "" {
			var is slot
			slots := answers[0].GetResponseRange().Kvs
			answers = answers[1:]
			if hasSlot = len(slots) == 1 && clientv3.LeaseID(slots[0].Lease) == has.lease; hasSlot {
				is, hasSlot = slotOf(s.layout.slots(r.of.Name), slots[0])
				has.slot = &is
			}
		}
		if has.key != r.hold.key || has.create != r.hold.create || has.Broken || !hasSlot {
			r.err = store.ErrNotHeld
			s.holds.drop(r.of.Name, r.of.Owner, r.hold)
			continue
		}
		if r.err = nil; has.lease != r.hold.lease.id {
			s.attached(r, adopted(has))
		}
		if s.needs(r) {
			places <- struct{}{}
			group.Go(func() { r.err = s.attach(ctx, r, has); <-places })
		}
	}
	group.Wait()
	return nil
}

// attach attaches a place to a new lease. That lasts at least as long as its own, so that a renewal
// for a shorter TTL takes nothing from what the owner counts on. The token stays.
func (s mover) attach(ctx context.Context, r *renewal, has entry) error {
	for again := false; ; again = true {
		l, err := s.pool.leaseFor(ctx, max(r.of.TTL, has.lasts()-secondsMore*time.Second))
		if err != nil {
			return err
		}
		moved := has.record
		moved.Seconds, moved.Term, moved.Token = int64(l.lasts/time.Second), l.term, has.token(s.floor)
		t := txn{
			ifs:  []condition{created(has.key, has.create), modified(has.key, has.mod)},
			then: []operation{put(has.key, encode(moved), l.id)},
			els:  []operation{get(has.key)},
		}
		if has.slotKey() != "" {
			t.then = append(t.then, takeSlot(has.slot.key, has.slot.of, l.id))
		}
		got, _, err := s.batches.commit(ctx, s.layout.lock(r.of.Name), t)
		if isGone(err) && !again {
			s.pool.forget()
			continue
		}
		if err != nil {
			return err // the lease ends by itself, also if the place is attached to it
		}
		l.answered(got.Header.RaftTerm)
		if !got.Succeeded {
			kvs := got.Responses[0].GetResponseRange().Kvs
			switch {
			case len(kvs) == 0 || kvs[0].CreateRevision != has.create:
				s.pool.done(l)
				return store.ErrNotHeld
			case clientv3.LeaseID(kvs[0].Lease) != l.id: // else an earlier try did it
				s.pool.done(l)
				return errMoved
			}
		}
		s.attached(r, l)
		if l.unconfirmed() { // it was kept alive by a leader that is not the one of its term
			return errNewTerm
		}
		r.moved = true
		return nil
	}
}

// attached notes that the place of r is attached to l.
func (s mover) attached(r *renewal, l *lease) {
	was := r.hold
	r.hold = was.attachedTo(l)
	s.holds.replace(r.of.Name, r.of.Owner, was, r.hold)
}

// adopted is the lease of a place that another handle made. This one cannot use it again.
func adopted(e entry) *lease {
	return &lease{id: e.lease, lasts: max(0, e.lasts()), term: e.Term}
}
