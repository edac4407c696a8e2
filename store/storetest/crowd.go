package storetest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/store"
)

// checkCrowd: a store has room for many locks. All of them are listed, all are renewed in
// one batch, and none forgets its token.
func checkCrowd(t *trial) {
	const least, most = 130, 1100
	prefix := t.name() + "/"
	early := t.request(prefix+"early", t.long)
	last := t.acquire(t.first, early).Token
	t.release(t.first, early)

	start := t.now()
	all := make([]store.Lease, most)
	tokens := make([]fence.Token, most)
	got := each(t, most, func(i int) bool {
		if i >= least && (t.options.Virtual || t.now() > start.Add(150*time.Millisecond)) {
			return false // a server may be slow
		}
		all[i] = t.request(fmt.Sprintf("%s%04d", prefix, i), t.long/2)
		g, err := t.first.Acquire(t.Context(), store.AcquireRequest{Lease: all[i]})
		if err != nil {
			t.Errorf("acquire one of many free locks: %v", err)
			return false
		}
		t.track(all[i])
		tokens[i] = g.Token
		return true
	})
	for i, r := range all[got:] { // those that began before one before them was too late
		if tokens[got+i] != 0 {
			t.release(t.first, r)
		}
	}
	all = all[:got]
	held := make(map[string]store.Lease, got)
	for i := range all {
		held[all[i].Name] = all[i]
		all[i].TTL = t.long
	}
	t.listed(t.other(), prefix, held)

	start = t.now()
	for i, err := range t.first.Renew(t.Context(), all) {
		if err != nil {
			t.Fatalf("renew of many leases: lease %d of %d: %v", i+1, got, err)
		}
	}
	for _, st := range t.list(t.other(), prefix) {
		if least := t.valid(start, t.long); st.ExpiresIn < least {
			t.Fatalf("one of %d leases that were renewed together: expires in %v, want at least %v", got, st.ExpiresIn, least)
		}
	}

	each(t, got, func(i int) bool {
		if err := t.first.Release(t.Context(), store.ReleaseRequest{Lease: all[i]}); err != nil {
			t.Errorf("release one of many locks: %v", err)
		}
		return true
	})
	again := func(name string, last fence.Token) {
		t.Helper()
		r := t.request(name, t.long)
		if g := t.acquire(t.other(), r); g.Token <= last {
			t.Fatalf("token %v of a lock that others were used after, want more than %v", g.Token, last)
		}
		t.release(t.other(), r)
	}
	again(early.Name, last)
	for i := 0; i < got; i += got / 8 {
		again(all[i].Name, tokens[i])
	}
}

// each calls do with 0 to n-1 in several goroutines, until one of the calls returns false.
// It returns the number of calls, from 0 on, that returned true.
func each(t *trial, n int, do func(i int) bool) int {
	var next, stopped atomic.Int64
	stopped.Store(int64(n))
	var workers sync.WaitGroup
	for range 16 {
		workers.Go(func() {
			for {
				i := next.Add(1) - 1
				if i >= stopped.Load() {
					return
				}
				if !do(int(i)) {
					for s := stopped.Load(); i < s && !stopped.CompareAndSwap(s, i); s = stopped.Load() {
					}
				}
			}
		})
	}
	workers.Wait()
	return int(stopped.Load())
}
