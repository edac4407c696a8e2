package leasehold_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/lab/load"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/memstore"
)

// crowd has n goroutines wait for a lock that somebody holds. It returns the processor time in which
// they leave when their contexts end at once, or have the lock one after the other.
func crowd(t *testing.T, n int, leave bool, o *leasehold.Options) time.Duration {
	t.Helper()
	st := memstore.New(nil)
	defer st.Close()
	c := leasehold.New(st, o)
	other, err := c.Mutex("other").With(leasehold.LockOptions{TTL: time.Second}).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lock := c.Mutex("a")
	held, err := lock.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			l, err := lock.Acquire(ctx)
			if err == nil {
				err = l.Release(t.Context())
			}
			if leave != errors.Is(err, context.Canceled) {
				t.Errorf("one of the waiters: %v", err)
			}
		})
	}
	eventually.True(t, "all to wait", func() bool { return c.Waiting() == n })
	start := load.CPUTime()
	if leave {
		cancel()
	} else if err := held.Release(t.Context()); err != nil {
		t.Error(err)
	}
	all.Wait()
	took := load.CPUTime() - start
	if err := other.Err(); err != nil {
		t.Errorf("the lease of another lock: %v", err)
	}
	if leave {
		held.Release(t.Context())
	}
	other.Release(t.Context())
	return took
}

// grows checks that a crowd of n does not take much longer, for each of its waiters, than a
// twentieth of it.
func grows(t *testing.T, n int, leave bool, o *leasehold.Options) {
	t.Helper()
	few, many := time.Hour, time.Hour
	for range 3 {
		few = min(few, crowd(t, n/20, leave, o))
		many = min(many, crowd(t, n, leave, o))
	}
	t.Logf("%d waiters: %v, %d waiters: %v", n/20, few, n, many)
	if times := float64(many) / float64(few); times > 80 {
		t.Errorf("twenty times as many waiters take %.0f times the processor time, want about 20", times)
	}
}

// To leave costs a waiter the same, however many others there are.
func TestManyWaitersLeaveAtOnce(t *testing.T) {
	grows(t, manyWaiters, true, nil)
}

// A turn costs a waiter the same, however many others there are, also if an Observer wants to
// know why they wait.
func TestManyWaitersAreObserved(t *testing.T) {
	var waiting, granted atomic.Int64
	o := &leasehold.Options{Observer: func(_ context.Context, e leasehold.Event) {
		switch e.Kind {
		case leasehold.Waiting:
			waiting.Add(1)
		case leasehold.Acquired, leasehold.Handed:
			granted.Add(1)
		}
	}}
	grows(t, 3000, false, o)
	t.Logf("%d events in %d turns", waiting.Load(), granted.Load())
	if waiting.Load() == 0 {
		t.Error("no event of a wait")
	}
}

// A lease is renewed, and its holder is told of its loss, while the queues are busy.
func TestRenewalsNeedNoQueue(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		lease := b.acquire(b.c.Mutex("a").With(short))
		letGo := b.c.HoldQueues()
		defer letGo()
		time.Sleep(10 * short.TTL)
		if err := lease.Err(); err != nil {
			t.Errorf("after ten TTLs: %v, want the lease renewed", err)
		}
		b.store.onRenew(all(store.ErrNotHeld))
		<-lease.Done()
		if err := lease.Err(); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("the lease is over: %v, want ErrLost", err)
		}
	})
}
