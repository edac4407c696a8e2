//go:build unix

package filestore

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// rejoin releases a lease that somebody waits for, and requires that next has a place.
func rejoin(t *testing.T, s *Store, r, next store.Lease) {
	t.Helper()
	queued, err := s.ReleaseAndRejoin(t.Context(), store.ReleaseRequest{Lease: r}, store.WaitRequest{Lease: next})
	if err != nil || !queued {
		t.Fatalf("release and rejoin: queued %v, %v, want a place", queued, err)
	}
}

// A turn is one transaction, also if the lock comes back before the place is claimed.
func TestRejoinIsOneTransaction(t *testing.T) {
	f, s, sound := openFaulty(t, nil, SQLite())
	holder := request("a")
	mustAcquire(t, s, holder)
	for range 3 {
		other, next := request("a"), request("a")
		done := waitFor(t, sound, other)
		begun := f.begun.Load()
		rejoin(t, s, holder, next)
		if n := f.begun.Load() - begun; n != 1 {
			t.Errorf("%d transactions to release and rejoin, want 1", n)
		}
		last := (<-done).Token
		mustRelease(t, sound, other)
		g, err := s.Wait(t.Context(), store.WaitRequest{Lease: next}, nil)
		if err != nil || g.Token <= last {
			t.Fatalf("wait: %+v, %v, want a token above %v", g, err, last)
		}
		holder = next
	}
}

// The message for a place that nobody has claimed yet is kept for its Wait, which then asks for
// nothing.
func TestMessageForAnUnclaimedPlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	s, other := mustOpen(t, path, nil), mustOpen(t, path, nil)
	needsSockets(t, s)
	holder, waiter, next := request("a"), request("a"), request("a")
	mustAcquire(t, s, holder)
	done := waitFor(t, other, waiter)
	rejoin(t, s, holder, next)
	<-done
	mustRelease(t, other, waiter)
	s.bells.mu.Lock()
	one := s.bells.of["a"][0]
	s.bells.mu.Unlock()
	poll(t, "the message arrives", func() bool {
		s.bells.mu.Lock()
		defer s.bells.mu.Unlock()
		return one.handed.Token > 0
	})
	s.writers <- struct{}{} // no request can run
	defer func() { <-s.writers }()
	if g, err := s.Wait(t.Context(), store.WaitRequest{Lease: next}, nil); err != nil {
		t.Fatalf("wait: %+v, %v, want the lease of the message", g, err)
	}
}

// A place that nobody claims is given up after its TTL.
func TestUnclaimedPlaceEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	s, other := mustOpen(t, path, nil), mustOpen(t, path, nil)
	holder, waiter, next := request("a"), request("a"), request("a")
	next.TTL = 50 * time.Millisecond
	mustAcquire(t, s, holder)
	done := waitFor(t, other, waiter)
	rejoin(t, s, holder, next)
	<-done
	poll(t, "the place is gone", func() bool { return len(queueOf(t, other, "a")) == 0 })
	poll(t, "its bell is gone", func() bool {
		s.bells.mu.Lock()
		defer s.bells.mu.Unlock()
		return len(s.bells.of) == 0
	})
	mustRelease(t, other, waiter)
	mustAcquire(t, other, request("a"))
}

// An unknown outcome leaves no place, whatever has become of the lease.
func TestRejoinWithUnknownOutcome(t *testing.T) {
	for what, committed := range map[string]bool{"committed": true, "not committed": false} {
		t.Run(what, func(t *testing.T) {
			f, s, sound := openFaulty(t, nil, SQLite())
			holder, waiter, next := request("a"), request("a"), request("a")
			mustAcquire(t, s, holder)
			done := waitFor(t, sound, waiter)
			f.onCommit(func(commit func() error) error {
				if committed {
					return errors.Join(errCut, commit())
				}
				return errCut
			})
			queued, err := s.ReleaseAndRejoin(t.Context(), store.ReleaseRequest{Lease: holder}, store.WaitRequest{Lease: next})
			if queued || !errors.Is(err, store.ErrAmbiguous) {
				t.Fatalf("release and rejoin: queued %v, %v, want an ambiguous error", queued, err)
			}
			poll(t, "the place is gone", func() bool { return !slices.Contains(queueOf(t, sound, "a"), next.Owner) })
			want := error(nil)
			if committed {
				want = store.ErrNotHeld
			}
			if err := s.Release(t.Context(), store.ReleaseRequest{Lease: holder}); !errors.Is(err, want) {
				t.Fatalf("release again: %v, want %v", err, want)
			}
			<-done
			mustRelease(t, sound, waiter)
			mustAcquire(t, sound, request("a"))
		})
	}
}

// Only a mutex has places that are taken with a release, and only for waiters that do not barge.
func TestNoPlaceWithARelease(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "locks.db"), nil)
	for what, c := range map[string]struct {
		kind  store.Kind
		barge bool
	}{"a semaphore": {store.Semaphore(2), false}, "barges": {store.Kind{}, true}} {
		holder, waiter, next := request(what), request(what), request(what)
		holder.Kind, waiter.Kind, next.Kind = c.kind, c.kind, c.kind
		if !c.kind.IsMutex() {
			holder.Weight, waiter.Weight, next.Weight = 2, 2, 2
		}
		mustAcquire(t, s, holder)
		done := waitFor(t, s, waiter)
		queued, err := s.ReleaseAndRejoin(t.Context(), store.ReleaseRequest{Lease: holder}, store.WaitRequest{Lease: next, Barge: c.barge})
		if err != nil || queued {
			t.Errorf("%s: queued %v, %v, want no place", what, queued, err)
		}
		<-done
		mustRelease(t, s, waiter)
	}
}
