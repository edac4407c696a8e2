package etcdstore

import (
	"context"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
)

// Renew implements store.Store. It keeps all leases alive with one stream of requests,
// and then reads that the locks still belong to their owners: a server may answer a
// keep-alive for a lease that was revoked.
func (s *Store) Renew(ctx context.Context, leases []store.Lease) []error {
	errs := make([]error, len(leases))
	caps := s.Caps()
	var good []store.Lease
	for i, l := range leases {
		if errs[i] = l.Check(caps); errs[i] == nil {
			good = append(good, l)
		}
	}
	fill := func(results []error) []error {
		n := 0
		for i := range errs {
			if errs[i] == nil {
				errs[i] = results[n]
				n++
			}
		}
		return errs
	}
	if err := s.gate.Enter(nil); err != nil {
		return fill(same(err, len(good)))
	}
	defer s.gate.Leave()
	if err := ctx.Err(); err != nil {
		return fill(same(s.failed(ctx, "renew", "", false, err), len(good)))
	}
	if len(good) == 0 {
		return errs
	}
	s.examineAgain(ctx)
	results := s.renew(ctx, good)
	for i, err := range results {
		if err != nil {
			name := ""
			if len(leases) == 1 {
				name = good[i].Name
			}
			results[i] = s.refused(ctx, "renew", name, !faultOf(err).certain, err)
		}
	}
	return fill(results)
}

func same(err error, n int) []error {
	all := make([]error, n)
	for i := range all {
		all[i] = err
	}
	return all
}

// renewal is the renewal of one lease.
type renewal struct {
	of   store.Lease
	hold *hold
	err  error
}

// renew renews leases that are valid requests.
func (s *core) renew(ctx context.Context, leases []store.Lease) []error {
	all := make([]*renewal, len(leases))
	term := s.replaced.inTerm()
	prepare := func(r *renewal) { s.prepare(ctx, r) }
	var unprepared []*renewal
	for i, l := range leases {
		all[i] = &renewal{of: l, hold: s.holds.get(l.Name, l.Owner)}
		if h := all[i].hold; h == nil || l.TTL > h.lease.lasts || !h.lease.isOf(term) || h.suspect.Swap(false) {
			unprepared = append(unprepared, all[i])
		}
	}
	several(unprepared, prepare)
	s.confirm(ctx, all)
	for range 3 {
		var again []*renewal
		for _, r := range all {
			if r.err == errNewTerm || r.err == errMoved {
				again = append(again, r)
			}
		}
		several(again, prepare)
		s.confirm(ctx, again)
	}
	errs := make([]error, len(all))
	for i, r := range all {
		errs[i] = r.err
	}
	return errs
}

// several calls f for all, for some of them at once.
func several(all []*renewal, f func(*renewal)) {
	var group sync.WaitGroup
	slots := make(chan struct{}, 32)
	for _, r := range all {
		slots <- struct{}{}
		group.Go(func() { f(r); <-slots })
	}
	group.Wait()
}

// prepare reads a hold, and lets it have a lease that is long enough and of the present term.
func (s *core) prepare(ctx context.Context, r *renewal) {
	was := r.hold
	has, err := s.find(ctx, r.of)
	if err != nil {
		if r.err = err; err == store.ErrNotHeld && was != nil {
			s.holds.drop(r.of.Name, r.of.Owner, was)
		}
		return
	}
	r.err = nil
	if was == nil || was.create != has.create || was.lease.id != has.lease {
		r.hold = &hold{key: has.key, create: has.create, slot: has.slotKey(), lease: adopted(has)}
	}
	if r.of.TTL > r.hold.lease.lasts || !r.hold.lease.isOf(s.replaced.inTerm()) {
		r.err = s.move(ctx, r, has)
	}
	if r.err == nil && r.hold != was && was != nil && was.create == r.hold.create {
		r.hold.named = was.named
		if r.hold.named == nil {
			r.hold.named = was.lease
		}
		s.holds.put(r.of.Name, r.of.Owner, r.hold, s.clock.Now())
	}
}

// adopted is the lease of a place that another handle made. This one cannot use it again.
func adopted(e entry) *lease {
	return &lease{id: e.lease, lasts: max(0, e.lasts()), term: e.Term}
}

// move attaches a place to another lease, which is no shorter than its own: the owner may still count
// on that. Its token goes with it.
func (s *core) move(ctx context.Context, r *renewal, has entry) error {
	l, err := s.pool.leaseFor(ctx, max(r.of.TTL, has.lasts()-secondsMore*time.Second))
	if err != nil {
		return err
	}
	moved := has.record
	moved.Seconds, moved.Term, moved.Token = int64(l.lasts/time.Second), l.term, has.token(s.floor)
	t := txn{
		ifs:  []condition{created(has.key, has.create), modified(has.key, has.mod)},
		then: []operation{put(has.key, moved.encode(), l.id)},
		els:  []operation{get(has.key)},
	}
	if has.slotKey() != "" {
		t.then = append(t.then, s.layout.take(r.of.Name, has.slot.number, has.slot.successor, l.id))
	}
	answer, _, err := s.batches.commit(ctx, s.layout.lock(r.of.Name), t)
	if err != nil {
		return err // the lease ends by itself; the place may be attached to it
	}
	l.answered(s.replaced.inTerm())
	if !answer.Succeeded {
		kvs := answer.Responses[0].GetResponseRange().Kvs
		switch {
		case len(kvs) == 0 || kvs[0].CreateRevision != has.create:
			s.pool.done(l)
			return store.ErrNotHeld
		case clientv3.LeaseID(kvs[0].Lease) != l.id: // else an earlier try did it
			s.pool.done(l)
			return errMoved
		}
	}
	r.hold = &hold{key: has.key, create: has.create, slot: has.slotKey(), lease: l}
	return nil
}

// errMoved means that the place was changed by another handle at the same time.
var errMoved = constError("the lease was changed by another process at the same time")

// errNewTerm means that the leader of the cluster has changed, so that the keep-alive does not count.
var errNewTerm = constError("the leader of the cluster has just changed")

type constError string

func (e constError) Error() string { return string(e) }

// mostOps is how many operations a transaction can have by default.
const mostOps = 128

// confirm keeps leases alive and then reads that their places are still there.
func (s *core) confirm(ctx context.Context, all []*renewal) {
	var alive []*renewal
	var ids []clientv3.LeaseID
	for _, r := range all {
		if r.err == nil {
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
	for len(alive) > 0 {
		n := min(len(alive), mostOps/2)
		s.confirmSome(ctx, alive[:n], left, sent)
		alive = alive[n:]
	}
}

// confirmSome is confirm for as many renewals as fit into one transaction: each reads a
// place, and the slot if it has one.
func (s *core) confirmSome(ctx context.Context, some []*renewal, left map[clientv3.LeaseID]int64, sent clock.Instant) {
	var t txn
	for _, r := range some {
		t.then = append(t.then, get(r.hold.key))
		if r.hold.slot != "" {
			t.then = append(t.then, getStat(r.hold.slot))
		}
	}
	got, _, err := s.commit(ctx, t)
	if got == nil {
		for _, r := range some {
			r.err = err
		}
		return
	}
	answers, term := got.Responses, s.replaced.inTerm()
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
		switch {
		case len(kvs) == 0 || kvs[0].CreateRevision != r.hold.create || entryOf(kvs[0]).Broken:
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
}
