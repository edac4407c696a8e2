package zkstore

import (
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// A renewal with a longer TTL does not undo that another attempt of the owner has joined the lease
// meanwhile: to undo the first attempt leaves the lease to the other one.
func TestAttemptJoinsDuringARenewal(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, &Options{servers: []string{shared.Addr}})
	for range 200 {
		first := request("joining", s.limits.Tick/2)
		first.Attempt = "first"
		g := mustAcquire(t, s, first)
		longer, second := first, first
		longer.TTL += time.Millisecond
		second.Attempt = "second"
		var both sync.WaitGroup
		both.Go(func() {
			if err := s.Renew(t.Context(), []store.Lease{longer})[0]; err != nil {
				t.Errorf("renew: %v", err)
			}
		})
		both.Go(func() {
			if joined, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: second}); err != nil || joined.Token != g.Token {
				t.Errorf("join: token %v (%v), want %v", joined.Token, err, g.Token)
			}
		})
		both.Wait()
		s.Release(t.Context(), store.ReleaseRequest{Lease: first, Undo: true})
		if err := s.Renew(t.Context(), []store.Lease{second})[0]; err != nil {
			t.Fatalf("the lease ended with the attempt that was undone: %v", err)
		}
		mustRelease(t, s, second)
	}
}

// An undo of an attempt ends no lease that another attempt has joined meanwhile.
func TestAttemptJoinsDuringAnUndo(t *testing.T) {
	t.Parallel()
	s, other := mustOpen(t, &Options{servers: []string{shared.Addr}}), mustOpen(t, &Options{servers: []string{shared.Addr}})
	for i := range 200 {
		first := request("joining during an undo", s.limits.Tick)
		first.Attempt = "first"
		mustAcquire(t, s, first)
		second := first
		second.Attempt = "second"
		joins, undoes := s, []*engine{s, other}[i%2]
		var both sync.WaitGroup
		both.Go(func() {
			if _, err := joins.Acquire(t.Context(), store.AcquireRequest{Lease: second}); err != nil {
				t.Errorf("join: %v", err)
			}
		})
		both.Go(func() { undoes.Release(t.Context(), store.ReleaseRequest{Lease: first, Undo: true}) })
		both.Wait()
		if err := s.Renew(t.Context(), []store.Lease{second})[0]; err != nil {
			t.Fatalf("the lease ended under the attempt that had joined it: %v", err)
		}
		mustRelease(t, s, second)
	}
}

// Of two moves of a lease at once, the earlier one may be noted later. The store keeps the place that is
// there: the other one would end nothing when nobody renews the lease.
func TestLeaseIsKeptWhereItMovedLast(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, &Options{servers: []string{shared.Addr}})
	l := request("moving", s.limits.Tick)
	mustAcquire(t, s, l)
	tr, err := s.tree(t.Context(), l.TTL)
	if err != nil {
		t.Fatal(err)
	}
	var kept []*place
	for range 2 {
		f, ok, err := tr.find(t.Context(), l.Name, l.Owner)
		if err != nil || !ok {
			t.Fatalf("found %v, error %v", ok, err)
		}
		if moved, err := s.move(t.Context(), tr, f, l, s.clock.Now(), change{}); err != nil || !moved {
			t.Fatalf("moved %v, error %v", moved, err)
		}
		kept = append(kept, s.leases.get(leaseKey{l.Name, l.Owner}).place.Load())
	}
	s.keep(l, kept[0])
	if p := s.leases.get(leaseKey{l.Name, l.Owner}).place.Load(); p.name != kept[1].name {
		t.Errorf("the store keeps the place %s, and the lease is at %s", p.name, kept[1].name)
	}
	mustRelease(t, s, l)
}

// Two downgrades at once, and a renewal that is under way meanwhile, all succeed: the owner has its lease
// all the time.
func TestDowngradesBesideEachOther(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, &Options{servers: []string{shared.Addr}})
	for range 100 {
		writer := request("downgraded twice", s.limits.Tick)
		writer.Kind, writer.Weight = store.ReadWrite, store.ReadWrite.Limit
		mustAcquire(t, s, writer)
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				if _, err := s.Downgrade(t.Context(), writer); err != nil {
					t.Errorf("downgrade beside another one: %v", err)
				}
			})
			all.Go(func() {
				if err := s.Renew(t.Context(), []store.Lease{writer})[0]; err != nil {
					t.Errorf("renew beside a downgrade: %v", err)
				}
			})
		}
		all.Wait()
		if t.Failed() {
			return
		}
		mustRelease(t, s, writer)
	}
}
