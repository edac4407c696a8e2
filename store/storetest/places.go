package storetest

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// checkWaitKeepsItsPlace: a Wait refreshes its place, so the waiter does not lose it to one
// that came later.
func checkWaitKeepsItsPlace(t *trial) {
	for try := range 4 { // a machine that is busy may refresh it late
		holder := t.request(t.name(), t.long)
		t.acquire(t.first, holder)
		ttl := t.options.ShortTTL << try
		queue := t.queue(t.applicant(holder.Name, ttl), t.applicant(holder.Name, t.long))
		kept := true
		for end := t.now().Add(ttl + ttl/2); kept && t.now() < end; t.pause() {
			kept = slices.EqualFunc(t.inspect(t.other(), holder.Name).Queue, queue, func(p store.Place, w *waiting) bool { return store.Rank(p.Holder.Owner) == w.rank })
		}
		t.release(t.first, holder)
		t.eventually("a waiter gets the lock", func() bool { return slices.ContainsFunc(queue, (*waiting).over) })
		if kept && queue[0].over() {
			if queue[0].err != nil {
				t.Fatalf("a wait for longer than the TTL of its place: %v", queue[0].err)
			}
			return
		}
		for _, w := range queue {
			w.cancel()
		}
	}
	t.Fatalf("the first in the queue has lost its place when its TTL had passed, want it refreshed")
}

// checkWaitSince: a grant counts from before the hand-off, however late the waiter learns of
// it. Otherwise it counts on its lease for longer than the store keeps it.
func checkWaitSince(t *trial) {
	for range 8 {
		holder := t.request(t.name(), t.long)
		t.acquire(t.first, holder)
		r := t.applicant(holder.Name, 2*t.options.ShortTTL)
		var busy atomic.Bool
		var going sync.WaitGroup
		var g store.Grant
		var st store.State
		var err error
		start := t.now()
		queued := make(chan struct{}, 1)
		going.Go(func() {
			g, err = t.other().Wait(t.Context(), r, func(error) {
				select {
				case queued <- struct{}{}:
				default:
				}
			})
			busy.Store(false)
			if err == nil {
				r = named(r, g)
				t.track(r.Lease)
				st, err = t.other().Inspect(t.Context(), r.Name)
			}
		})
		<-queued
		if !t.options.Virtual {
			busy.Store(true)
			crowd(&busy)
		}
		t.release(t.first, holder)
		going.Wait()
		if err != nil {
			t.Fatalf("a wait on a busy machine: %v", err)
		}
		claimed := t.valid(start.Add(g.Since), r.TTL)
		if !st.Held || st.Holder.Owner != r.Owner {
			continue // it took so long that the lease is over
		}
		if st.ExpiresIn < claimed {
			t.Fatalf("granted by a request that left %v after the call: valid for %v, and expires in %v", g.Since, claimed, st.ExpiresIn)
		}
		if err := t.other().Release(t.Context(), store.ReleaseRequest{Lease: r.Lease}); err != nil && !errors.Is(err, store.ErrNotHeld) {
			t.Fatalf("release a lease that may be over: %v", err)
		}
	}
}

// crowd keeps all processors busy for a moment while busy is set, so that what becomes ready has
// to wait.
func crowd(busy *atomic.Bool) {
	end := time.Now().Add(60 * time.Millisecond)
	for range 8 * runtime.GOMAXPROCS(0) {
		go func() {
			for busy.Load() && time.Now().Before(end) {
			}
		}()
	}
}
