package etcdstore

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
)

// Renew implements driver.Engine. It keeps all leases alive with one stream of requests,
// and then reads that the locks still belong to their owners: a server may answer a
// keep-alive for a lease that was revoked.
func (s *engine) Renew(ctx context.Context, leases []store.Lease) []error {
	if err := s.raise(ctx, "renew", leases...); err != nil {
		return slices.Repeat([]error{err}, len(leases))
	}
	errs := s.renew(ctx, leases)
	for i, err := range errs {
		if err != nil {
			name := ""
			if len(leases) == 1 {
				name = leases[i].Name
			}
			errs[i] = s.refused(ctx, "renew", name, !faultOf(err).certain, err)
		}
	}
	return errs
}

// renew renews leases that are valid requests.
func (s *engine) renew(ctx context.Context, leases []store.Lease) []error {
	all := s.renewals(ctx, leases)
	errs := make([]error, len(all))
	for i, r := range all {
		errs[i] = r.err
	}
	return errs
}

// renewal is the renewal of one lease.
type renewal struct {
	of   store.Lease
	hold *hold // nil: none is known yet
	err  error
}

// again reports whether another try may renew it.
func (r *renewal) again() bool { return r.err == errNewTerm || r.err == errMoved }

// mostTries is how often a place is looked at and attached to another lease before a renewal fails. An attempt that
// joins the lease meanwhile changes the place twice, and each change can cost a look and a try.
const mostTries = 10

// mostAtOnce is how many requests for leases are under way at once.
const mostAtOnce = 32

// atOnce calls f for each of all, at most for so many at once, and waits.
func atOnce[T any](all []T, f func(i int, one T)) {
	var group sync.WaitGroup
	slots := make(chan struct{}, mostAtOnce)
	for i, one := range all {
		slots <- struct{}{}
		group.Go(func() { f(i, one); <-slots })
	}
	group.Wait()
}

// renewals is renew with what it has found.
func (s *engine) renewals(ctx context.Context, leases []store.Lease) []*renewal {
	all := make([]*renewal, len(leases))
	var unknown, ready, rest []*renewal
	for i, l := range leases {
		all[i] = &renewal{of: l, hold: s.holds.get(l.Name, l.Owner)}
		if h := all[i].hold; h == nil || h.suspect.Swap(false) {
			unknown = append(unknown, all[i])
		}
	}
	atOnce(unknown, func(_ int, r *renewal) { s.lookUp(ctx, r) })
	for _, r := range all {
		switch {
		case r.err != nil:
		case s.moves(r):
			rest = append(rest, r)
		default:
			ready = append(ready, r)
		}
	}
	s.renewSome(ctx, ready)
	for range mostTries {
		for _, r := range ready {
			if r.again() {
				rest = append(rest, r)
			}
		}
		s.renewSome(ctx, rest)
		ready, rest = rest, nil
	}
	return all
}

// lookUp reads a hold of which nothing is known here, or whose lease may have been broken.
func (s *engine) lookUp(ctx context.Context, r *renewal) {
	has, err := s.find(ctx, r.of)
	switch {
	case err != nil:
		if r.err = err; err == store.ErrNotHeld && r.hold != nil {
			s.holds.drop(r.of.Name, r.of.Owner, r.hold)
		}
	case r.hold == nil || r.hold.create != has.create:
		r.hold = holdOf(has)
	}
}

// moves reports whether the place has to be attached to a new lease.
func (s *engine) moves(r *renewal) bool {
	return r.of.TTL > r.hold.lease.Load().lasts || !r.hold.lease.Load().isOf(s.replaced.inTerm())
}

// renewSome keeps the leases alive that places stay attached to, then reads that the places are still
// there, and attaches others to new leases. A part of them is renewed if there is no time for all.
func (s *engine) renewSome(ctx context.Context, all []*renewal) {
	var ids []clientv3.LeaseID
	for _, r := range all {
		if !s.moves(r) {
			ids = append(ids, r.hold.lease.Load().id)
		}
	}
	var left map[clientv3.LeaseID]int64
	sent := s.clock.Now()
	if len(ids) > 0 {
		var err error
		if left, err = s.keepAlive(ctx, ids); err != nil {
			for _, r := range all {
				r.err = err
			}
			return
		}
	}
	for some := range slices.Chunk(all, (mostOps-1)/2) { // what fits into one transaction
		s.confirm(ctx, some, left, sent)
	}
}

// owner reads the place of a lease that several can hold, and otherwise the one that owns the lock.
func (l layout) owner(r *renewal) operation {
	if r.hold.slot != "" {
		return get(r.hold.key)
	}
	return byAge(l.lock(r.of.Name), 1)
}

// confirm reads the places whose leases were kept alive at sent, and moves the places that have to move. left has
// what is left of each lease. One transaction has room for all of them: it reads each place, and its slot if it has one.
func (s *engine) confirm(ctx context.Context, some []*renewal, left map[clientv3.LeaseID]int64, sent clock.Instant) {
	var t txn
	for _, r := range some {
		t.then = append(t.then, s.layout.owner(r))
		if r.hold.slot != "" {
			t.then = append(t.then, get(r.hold.slot))
		}
	}
	t.then = append(t.then, logged(some[0].hold.key))
	got, _, err := s.commit(ctx, t)
	if got == nil {
		for _, r := range some {
			r.err = err
		}
		return
	}
	answers := got.Responses
	next := func() (kvs []*mvccpb.KeyValue) {
		kvs, answers = answers[0].GetResponseRange().Kvs, answers[1:]
		return kvs
	}
	type move struct {
		*renewal
		has entry
	}
	var moves []move
	// In other data than before, a place that is there still belongs to its owner.
	for _, r := range some {
		var has entry
		if kvs := next(); len(kvs) > 0 {
			has = entryOf(kvs[0])
		}
		hasSlot := true
		if r.hold.slot != "" {
			if slots := next(); len(slots) == 0 || clientv3.LeaseID(slots[0].Lease) != has.lease {
				hasSlot = false // somebody has deleted it, and another may take it
			} else {
				var is slot
				is, hasSlot = slotOf(s.layout.slots(r.of.Name), slots[0])
				has.slot = &is
			}
		}
		l := r.hold.lease.Load()
		switch r.err = nil; {
		case has.key != r.hold.key || has.create != r.hold.create || has.Broken || !hasSlot:
			r.err = store.ErrNotHeld
			s.holds.drop(r.of.Name, r.of.Owner, r.hold)
		case has.lease != l.id:
			r.err = errMoved
			if r.hold.lease.CompareAndSwap(l, adopted(has)) {
				s.pool.drop(l)
			}
		case has.Moves || s.moves(r):
			moves = append(moves, move{r, has})
		case left[l.id] == 0:
			r.err = errMoved
		case !l.keptAlive(sent, got.Header.RaftTerm):
			r.err = errNewTerm
		}
	}
	atOnce(moves, func(_ int, m move) { m.err = s.attach(ctx, m.renewal, m.has) })
}

// attach attaches a place to a new lease. That lasts at least as long as its own, so that a renewal
// for a shorter TTL takes nothing from what the owner counts on. The token stays.
//
// The cluster may do so long after the caller has given up, when the new lease has less time left than
// the present one. So the record says first, before the new lease is taken, that the place moves: a
// keep-alive of the present lease that is confirmed later does not count, and the renewal that finds this
// attaches the place anew. If the present lease is of an earlier term, no keep-alive of it counts any more.
func (s *engine) attach(ctx context.Context, r *renewal, has entry) error {
	change := func(then ...operation) (*clientv3.TxnResponse, error) {
		t := txn{ifs: []condition{created(has.key, has.create), modified(has.key, has.mod)}, then: then}
		got, _, err := s.batches.commit(ctx, s.layout.lock(r.of.Name), t)
		if err == nil && !got.Succeeded {
			err = errMoved // perhaps an earlier try did it
		}
		return got, err
	}
	has.Token = has.token(s.floor)
	if !has.Moves && has.Term >= s.replaced.inTerm() {
		has.Moves = true
		got, err := change(replace(has.key, encode(has.record)))
		if err != nil {
			return err
		}
		has.mod = got.Header.Revision
	}
	l, err := s.pool.leaseFor(ctx, max(r.of.TTL, has.lasts()-secondsMore*time.Second))
	if err != nil {
		return err
	}
	has.Seconds, has.Term, has.Moves = int64(l.lasts/time.Second), l.term, false
	then := []operation{put(has.key, encode(has.record), l.id)}
	if has.slotKey() != "" {
		then = append(then, takeSlot(has.slot.key, has.slot.of, l.id))
	}
	got, err := change(then...)
	if isGone(err) { // it was lost, perhaps with the data of the server
		s.pool.forget()
		return errMoved
	}
	if err != nil {
		return err // the lease ends by itself, also if the place is attached to it
	}
	l.answered(got.Header.RaftTerm)
	s.pool.drop(r.hold.lease.Swap(l))
	if l.unconfirmed() { // it was kept alive by a leader that is not the one of its term
		return errNewTerm
	}
	return nil
}

// adopted is the lease of a place that another handle made. This one cannot use it again.
func adopted(e entry) *lease {
	return &lease{id: e.lease, lasts: max(0, e.lasts()), term: e.Term}
}
