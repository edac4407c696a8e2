package leasehold_test

import (
	"errors"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
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
			if err := b.strangers().ReleaseOwner(t.Context(), "a", former.Owner()); !errors.Is(err, leasehold.ErrLost) {
				t.Errorf("ReleaseOwner of the former holder: %v, want ErrLost", err)
			}
			b.has(next)
		})
	})
	t.Run("by the former token", func(t *testing.T) {
		twoHolders(t, leasehold.LockOptions{}, func(t *testing.T, b *queueBench, former, next *leasehold.Lease) {
			b.strangers().Break(t.Context(), leasehold.BreakRequest{Name: "a", Token: former.Token(), Now: true})
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
			if err := b.strangers().Break(t.Context(), leasehold.BreakRequest{Name: "a", Token: next.Token(), Now: true}); err != nil || b.held("a") {
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
