package storetest

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/store"
)

// checkOneWinner: if many owners ask at the same moment, one of them is granted the lock. In a
// quorum store it may be none.
func checkOneWinner(t *trial) {
	const contenders, rounds = 8, 10
	for range rounds {
		name := t.name()
		var won atomic.Int32
		var wg sync.WaitGroup
		start := make(chan struct{})
		for i := range contenders {
			s := t.handles()[i%len(t.handles())]
			r := t.request(name, t.long)
			wg.Go(func() {
				<-start
				switch _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: r}); {
				case err == nil:
					t.track(r)
					won.Add(1)
				case !refused(err):
					t.Errorf("acquire with others: %v", err)
				}
			})
		}
		close(start)
		wg.Wait()
		if n := won.Load(); n > 1 || n == 0 && t.first.Caps().Nodes == 1 {
			t.Fatalf("%d of %d contenders got the lock, want 1", n, contenders)
		}
	}
}

// checkMutualExclusion: the lock has one holder at a time, and tokens rise from one to the
// next.
func checkMutualExclusion(t *trial) {
	const workers, rounds = 6, 15
	name := t.name()
	// The race detector does not see the order that a lock on a server creates, so loads
	// and stores are atomic. Increments are not: only the lock separates them.
	var inside, counter atomic.Int64
	var last atomic.Uint64
	deadline := t.now().Add(crowdPatience(t))
	var wg sync.WaitGroup
	for w := range workers {
		s := t.handles()[w%len(t.handles())]
		wg.Go(func() {
			for done := 0; done < rounds; {
				if t.now() > deadline {
					t.Errorf("a contender got the lock %d times, want %d", done, rounds)
					return
				}
				r := t.request(name, t.long)
				g, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: r})
				if err != nil {
					if !refused(err) {
						t.Errorf("acquire with others: %v", err)
						return
					}
					t.pause()
					continue
				}
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d holders at once, want 1", n)
				}
				v := counter.Load()
				if before := fence.Token(last.Swap(uint64(g.Token))); g.Token <= before {
					t.Errorf("token %v was granted after %v", g.Token, before)
				}
				runtime.Gosched()
				counter.Store(v + 1)
				inside.Add(-1)
				if err := s.Release(t.Context(), store.ReleaseRequest{Lease: r}); err != nil {
					t.Errorf("release of what was granted: %v", err)
				}
				done++
			}
		})
	}
	wg.Wait()
	if n := counter.Load(); n != workers*rounds {
		t.Errorf("counted to %d under the lock, want %d", n, workers*rounds)
	}
	t.free(name)
}

// crowdPatience bounds what many owners do with one lock. On a loaded machine it takes more than
// ten times as long as on an idle one.
func crowdPatience(t *trial) time.Duration { return max(12*t.patience, time.Second) }

// turns checks that successive holders of one lock do not overlap and have rising
// tokens.
type turns struct {
	inside atomic.Int64
	last   atomic.Uint64 // the largest token so far
	// quitters has, by owner, the cancel function of each waiter that gives up as
	// it is handed the lock.
	quitters sync.Map
}

// turn holds a granted lease for a moment, and releases it.
func (all *turns) turn(t *trial, s *store.Store, r store.Lease, g store.Grant) {
	if n := all.inside.Add(1); n != 1 {
		t.Errorf("%d holders at once, want 1", n)
	}
	if before := fence.Token(all.last.Swap(uint64(g.Token))); g.Token <= before {
		t.Errorf("token %v was granted after %v", g.Token, before)
	}
	quit := func() {}
	func() {
		defer all.inside.Add(-1) // also if the inspection ends this goroutine
		runtime.Gosched()
		quit = all.nextQuits(t, s, r.Name)
	}()
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: r}); err != nil {
		t.Errorf("release of what was granted: %v", err)
	}
	quit()
}

// nextQuits returns the function that makes the first in the queue give up, if it is one of
// the quitters.
func (all *turns) nextQuits(t *trial, s *store.Store, name string) func() {
	queue := t.inspect(s, name).Queue
	if len(queue) > 0 {
		if cancel, ok := all.quitters.LoadAndDelete(queue[0].Holder.Owner); ok {
			return cancel.(func())
		}
	}
	return func() {}
}

// checkWaitMany: of many concurrent waiters each is granted the lock, one at a
// time and in the order of the tokens.
func checkWaitMany(t *trial) {
	const waiters = 50
	name := t.name()
	var got atomic.Int64
	var all turns
	ctx, cancel := context.WithTimeout(t.Context(), crowdPatience(t))
	defer cancel()
	var wg sync.WaitGroup
	for i := range waiters {
		s := t.handles()[i%len(t.handles())]
		wg.Go(func() {
			r := t.applicant(name, t.long)
			g, err := s.Wait(ctx, r, func(error) {})
			if err != nil {
				t.Errorf("wait with others: %v", err)
				return
			}
			r = named(r, g)
			t.track(r.Lease)
			got.Add(1)
			all.turn(t, s, r.Lease, g)
		})
	}
	wg.Wait()
	if n := got.Load(); n != waiters {
		t.Errorf("%d waiters got the lock, want %d", n, waiters)
	}
	t.vacant("nothing is left of a queue that has ended", name)
}

// checkWaitComeAndGo: owners that give up at any moment (even as they are handed the lock)
// or try without waiting never hold the lock beside others, nor keep them from it.
func checkWaitComeAndGo(t *trial) {
	const workers, rounds = 20, 8
	name := t.name()
	var all turns
	ctx, cancel := context.WithTimeout(t.Context(), crowdPatience(t))
	defer cancel()
	var wg sync.WaitGroup
	for i := range workers {
		s := t.handles()[i%len(t.handles())]
		wg.Go(func() {
			for round := range rounds {
				ctx, cancel := ctx, func() {}
				r := t.applicant(name, t.long)
				take := func() (store.Grant, error) { return s.Wait(ctx, r, func(error) {}) }
				expected := func(error) bool { return false }
				switch (i + round) % 8 {
				case 0:
					ctx, cancel = context.WithTimeout(ctx, rand.N(20*time.Millisecond))
					expected = func(err error) bool { return errors.Is(err, context.DeadlineExceeded) }
				case 4:
					ctx, cancel = context.WithCancel(ctx)
					all.quitters.Store(r.Owner, cancel)
					expected = func(err error) bool { return errors.Is(err, context.Canceled) }
				case 1, 5:
					take = func() (store.Grant, error) {
						return s.Acquire(ctx, store.AcquireRequest(r))
					}
					expected = refused
				}
				g, err := take()
				all.quitters.Delete(r.Owner)
				cancel()
				if err != nil {
					if !expected(err) {
						t.Errorf("one of many owners that come and go: got error %v, want the lock", err)
					}
					continue
				}
				r = named(r, g)
				t.track(r.Lease)
				all.turn(t, s, r.Lease, g)
			}
		})
	}
	wg.Wait()
	t.vacant("nothing is left when all have come and gone", name)
}
