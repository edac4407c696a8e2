package leasehold_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// twoHolders runs f with the lease of a holder that has released it, and that of the next, which
// waited in another goroutine of the same client.
func twoHolders(t *testing.T, o leasehold.LockOptions, f func(t *testing.T, b *queueBench, former, next *leasehold.Lease)) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		lock := b.c.Mutex("a").With(o)
		former := b.acquire(lock)
		w := b.queue(lock)
		b.release(former)
		next := w.got()
		f(t, b, former, next)
		b.release(next)
	})
}

// has fails the test if l is over, or the store does not have it.
func (b *queueBench) has(l *leasehold.Lease) {
	b.t.Helper()
	st, err := b.store.Inspect(b.t.Context(), "a")
	if err != nil || l.Err() != nil || st.Holder.Owner != l.Owner() || st.Token != l.Token() {
		b.t.Errorf("the lease %v of %s: %v; the store has %v of %s (%v), want it unharmed", l.Token(), l.Owner(), l.Err(), st.Token, st.Holder.Owner, err)
	}
}

// The next goroutine of a process has an owner and a token of its own, and the store knows both.
func TestNextHolderIsKnownToTheStore(t *testing.T) {
	twoHolders(t, leasehold.LockOptions{}, func(t *testing.T, b *queueBench, former, next *leasehold.Lease) {
		if next.Owner() == former.Owner() || next.Token() <= former.Token() {
			t.Errorf("token %v of %s after %v of %s, want a larger token of another owner", next.Token(), next.Owner(), former.Token(), former.Owner())
		}
		b.has(next)
	})
}

// What an operator knows of a former holder ends nothing of the next, and what is shown of the
// next ends its lease.
func TestOperatorMeansOneHolder(t *testing.T) {
	t.Run("by owner", func(t *testing.T) {
		twoHolders(t, leasehold.LockOptions{}, func(t *testing.T, b *queueBench, former, next *leasehold.Lease) {
			if err := b.strangers().Operator().ReleaseOwner(t.Context(), "a", former.Owner()); !errors.Is(err, leasehold.ErrLost) {
				t.Errorf("ReleaseOwner of the former holder: %v, want ErrLost", err)
			}
			b.has(next)
		})
	})
	t.Run("by the former token", func(t *testing.T) {
		twoHolders(t, leasehold.LockOptions{}, func(t *testing.T, b *queueBench, former, next *leasehold.Lease) {
			b.strangers().Operator().Break(t.Context(), leasehold.BreakRequest{Name: "a", Token: former.Token(), Now: true})
			b.has(next)
		})
	})
	t.Run("by the present token", func(t *testing.T) {
		inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
			lock := b.c.Mutex("a")
			former := b.acquire(lock)
			w := b.queue(lock)
			b.release(former)
			next := w.got()
			if err := b.strangers().Operator().Break(t.Context(), leasehold.BreakRequest{Name: "a", Token: next.Token(), Now: true}); err != nil || b.held("a") {
				t.Errorf("Break by the holder's token: %v; held: %v, want free", err, b.held("a"))
			}
			next.Release(t.Context())
		})
	})
}

// WaiveMinHold of a lease that was released does not waive the MinHold of the next holder.
func TestWaiveMinHoldAfterRelease(t *testing.T) {
	const least = 4 * time.Second
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		lock := b.c.Mutex("a").With(leasehold.LockOptions{MinHold: least})
		former := b.acquire(lock)
		w := b.queue(lock)
		b.release(former)
		next := w.got()
		former.WaiveMinHold()
		start := time.Now()
		b.release(next)
		if held := time.Since(start); held < least {
			t.Errorf("the next holder kept the lock for %v, want its MinHold of %v", held, least)
		}
	})
}

// A hand-off within a process costs one round trip: the next goroutine has its place before the
// holder releases the lock.
func TestNextHolderCostsOneRoundTrip(t *testing.T) {
	server := redistest.Start(t)
	far := faultproxy.New(t, server.Addr())
	s, err := redisstore.Open(t.Context(), "redis://"+far.Addr(), patient())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	lock := leasehold.New(s, nil).Mutex("a")
	far.Delay(25 * time.Millisecond)
	first, err := lock.Acquire(t.Context()) // the scripts are loaded, too
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if _, err := s.Inspect(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	roundTrip := time.Since(began)
	const goroutines = 20
	var all sync.WaitGroup
	waits := make(chan struct{}, goroutines)
	for range goroutines {
		var once sync.Once
		waiting := lock.With(leasehold.LockOptions{OnWait: func(error) { once.Do(func() { waits <- struct{}{} }) }})
		all.Go(func() {
			l, err := waiting.Acquire(t.Context())
			if err == nil {
				err = l.Release(t.Context())
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	for range goroutines {
		<-waits
	}
	began = time.Now()
	if err := first.Release(t.Context()); err != nil {
		t.Error(err)
	}
	all.Wait()
	// The last release is one more, and two for each would be forty.
	if trips := time.Since(began).Seconds() / roundTrip.Seconds(); trips > 1.6*goroutines {
		t.Errorf("%d hand-offs took %.1f round trips of %v, want about one each", goroutines, trips, roundTrip)
	} else {
		t.Logf("%d hand-offs took %.1f round trips of %v", goroutines, trips, roundTrip)
	}
}
