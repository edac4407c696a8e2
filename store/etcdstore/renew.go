package etcdstore

import (
	"context"
	"sync"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
)

// Renew implements driver.Engine. It keeps all leases alive with one stream of requests,
// and then reads that the locks still belong to their owners: a server may answer a
// keep-alive for a lease that was revoked.
func (s *engine) Renew(ctx context.Context, leases []store.Lease) []error {
	s.examineAgain(ctx)
	if err := s.raise(ctx, "renew", leases...); err != nil {
		return same(err, len(leases))
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

func same(err error, n int) []error {
	all := make([]error, n)
	for i := range all {
		all[i] = err
	}
	return all
}

// renew renews leases that are valid requests.
func (s *core) renew(ctx context.Context, leases []store.Lease) []error {
	all := s.renewals(ctx, leases)
	errs := make([]error, len(all))
	for i, r := range all {
		errs[i] = r.err
	}
	return errs
}

// renewals is renew with what it has found.
func (s *core) renewals(ctx context.Context, leases []store.Lease) []*renewal {
	m := mover{s}
	all := make([]*renewal, len(leases))
	var unknown []*renewal
	for i, l := range leases {
		all[i] = &renewal{of: l, hold: s.holds.get(l.Name, l.Owner)}
		if h := all[i].hold; h == nil || h.suspect.Swap(false) {
			unknown = append(unknown, all[i])
		}
	}
	m.lookUp(ctx, unknown)
	var ready, rest []*renewal
	for _, r := range all {
		switch {
		case r.err != nil:
		case m.needs(r):
			rest = append(rest, r)
		default:
			ready = append(ready, r)
		}
	}
	s.confirm(ctx, ready)
	for range 4 {
		for _, r := range ready {
			if r.err == errNewTerm || r.err == errMoved {
				rest = append(rest, r)
			}
		}
		// A part of them is renewed if there is no time for all.
		inParts(&s.ops, 2, rest, func(some []*renewal) error {
			err := m.move(ctx, some)
			s.confirm(ctx, some)
			return err
		})
		ready, rest = rest, nil
	}
	return all
}

// lookUp reads holds of which nothing is known here, or whose lease may have been broken.
func (s mover) lookUp(ctx context.Context, all []*renewal) {
	var group sync.WaitGroup
	slots := make(chan struct{}, mostAtOnce)
	for _, r := range all {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			has, err := s.find(ctx, r.of)
			switch {
			case err != nil:
				if r.err = err; err == store.ErrNotHeld && r.hold != nil {
					s.holds.drop(r.of.Name, r.of.Owner, r.hold)
				}
			case r.hold == nil || r.hold.create != has.create:
				r.hold = &hold{key: has.key, create: has.create, slot: has.slotKey(), lease: adopted(has)}
			}
		})
	}
	group.Wait()
}

// confirm keeps leases alive and then reads that their places are still there.
func (s *core) confirm(ctx context.Context, all []*renewal) {
	var alive []*renewal
	var ids []clientv3.LeaseID
	for _, r := range all {
		if r.err == nil && !r.moved {
			alive, ids = append(alive, r), append(ids, r.hold.lease.id)
		}
	}
	if len(alive) == 0 {
		return
	}
	sent := s.clock.Now()
	left, err := s.keepAlive(ctx, ids)
	if err != nil {
		for _, r := range alive {
			r.err = err
		}
		return
	}
	inParts(&s.ops, 2, alive, func(some []*renewal) error { return s.confirmSome(ctx, some, left, sent) })
}

// inParts calls f for parts of all, each for one transaction with so many operations for each, and one
// more. If the cluster refuses as many, it calls f again with fewer.
func inParts[T any](o *operations, each int, all []T, f func(some []T) error) {
	for len(all) > 0 {
		n := min(len(all), (o.most()-1)/each)
		if err := f(all[:n]); isTooMany(err) && (o.most()-1)/each < n {
			continue
		}
		all = all[n:]
	}
}

// owner reads the place of a lease that several can hold, and otherwise the one that owns the lock.
func (l layout) owner(r *renewal) operation {
	if r.hold.slot != "" {
		return get(r.hold.key)
	}
	return byAge(l.lock(r.of.Name), 1)
}

// confirmSome is confirm for as many renewals as fit into one transaction: each reads a
// place, and the slot if it has one.
func (s *core) confirmSome(ctx context.Context, some []*renewal, left map[clientv3.LeaseID]int64, sent clock.Instant) error {
	var t txn
	for _, r := range some {
		t.then = append(t.then, s.layout.owner(r))
		if r.hold.slot != "" {
			t.then = append(t.then, getStat(r.hold.slot))
		}
	}
	t.then = append(t.then, logged(some[0].hold.key))
	got, _, err := s.commit(ctx, t)
	if got == nil {
		for _, r := range some {
			r.err = err
		}
		return err
	}
	answers, term := got.Responses, got.Header.RaftTerm
	next := func() (kvs []*mvccpb.KeyValue) {
		kvs, answers = answers[0].GetResponseRange().Kvs, answers[1:]
		return kvs
	}
	// In other data than before, a place that is there still belongs to its owner.
	for _, r := range some {
		l, kvs := r.hold.lease, next()
		hasSlot := true
		if r.hold.slot != "" {
			slots := next()
			hasSlot = len(slots) == 1 && clientv3.LeaseID(slots[0].Lease) == l.id
		}
		switch r.err = nil; {
		case len(kvs) == 0 || !r.hold.at(kvs[0]) || entryOf(kvs[0]).Broken:
			r.err = store.ErrNotHeld
			s.holds.drop(r.of.Name, r.of.Owner, r.hold)
		case clientv3.LeaseID(kvs[0].Lease) != l.id || left[l.id] == 0:
			r.err = errMoved
		case !hasSlot: // somebody has deleted it, and another may take it
			r.err = store.ErrNotHeld
			s.holds.drop(r.of.Name, r.of.Owner, r.hold)
		case !l.keptAlive(sent, term):
			r.err = errNewTerm
		}
	}
	return nil
}
