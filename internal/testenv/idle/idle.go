// Package idle measures what a lock costs that one client holds and another one waits for.
package idle

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/store"
)

// Cost has holder hold a lock and waiter wait for it, until the lock was renewed for two TTLs. It
// returns what count has said at the beginning and at the end, and the time in between.
func Cost[N any](t *testing.T, holder, waiter *store.Store, ttl time.Duration, count func() N) (before, after N, passed time.Duration) {
	t.Helper()
	held, err := leasehold.New(holder, nil).Mutex("a").With(leasehold.LockOptions{TTL: ttl}).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	queued, ended := make(chan struct{}), make(chan struct{})
	var once sync.Once
	go func() {
		defer close(ended)
		l := store.Lease{Name: "a", Owner: store.NewOwner(), TTL: ttl}
		_, _ = waiter.Wait(ctx, store.WaitRequest{Lease: l}, func(error) { once.Do(func() { close(queued) }) })
	}()
	defer func() {
		cancel()
		<-ended
	}()
	select {
	case <-queued:
	case <-ended:
		t.Fatal("the waiter has ended before it had a place in the queue")
	}
	began := time.Now()
	before = count()
	for first := held.Deadline(); held.Deadline().Sub(first) < 2*ttl; {
		if time.Sleep(20 * time.Millisecond); held.Err() != nil {
			t.Fatal(held.Err())
		}
	}
	return before, count(), time.Since(began)
}
