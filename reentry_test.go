package leasehold_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// A context whose lease is over is as one without a lease: it neither makes a free lock fail
// nor enters a lease again that somebody else has by now. Where leases are nested, the innermost
// that is still held is entered.
func TestContextOfALeaseThatIsOver(t *testing.T) {
	observed(t, func(t *testing.T, b *queueBench, w *watch) {
		lock := b.c.Mutex("a")
		over := b.acquire(lock)
		old := context.WithoutCancel(over.Context())
		b.release(over)
		for _, again := range []func(context.Context) (*leasehold.Lease, error){lock.Try, lock.Acquire} {
			l, err := again(old)
			if err != nil {
				t.Fatalf("a free lock, with an old context: %v, want the lock", err)
			}
			if l.Token() <= over.Token() {
				t.Errorf("token %v, want a new grant after %v", l.Token(), over.Token())
			}
			if _, err := lock.Try(old); !errors.Is(err, leasehold.ErrBusy) {
				t.Errorf("a lock that is held, with an old context: %v, want ErrBusy", err)
			}
			b.release(l)
		}
		w.want(t, "acquired", "released", "acquired", "failed", "released", "acquired", "failed", "released")

		outer := b.acquire(lock)
		inner, err := lock.Try(outer.Context())
		if err != nil {
			t.Fatal(err)
		}
		old = context.WithoutCancel(inner.Context())
		b.release(inner)
		if inner, err = lock.Try(old); err != nil || inner.Token() != outer.Token() {
			t.Fatalf("within a lease that is held, with the context of one that was nested in it: %v, want the token of the outer lease", err)
		}
		b.release(inner)
		b.release(outer)
	})
}

// Each lease of a semaphore takes permits of its own, whatever its context carries.
func TestSemaphoreIsNotReentered(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		for _, n := range []int{1, 3} {
			pool := b.c.Semaphore("pool", n)
			var holders, most atomic.Int32
			first := b.acquire(pool)
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() {
					err := pool.Do(first.Context(), func(context.Context, *leasehold.Lease) error {
						defer holders.Add(-1)
						most.Store(max(most.Load(), holders.Add(1)))
						time.Sleep(time.Second)
						return nil
					})
					if err != nil && n > 1 {
						t.Error(err)
					}
				})
			}
			synctest.Wait()
			if n == 1 { // they wait for the lease whose context they have, which ends first
				b.release(first)
			}
			if wg.Wait(); int(most.Load()) != n-1 {
				t.Errorf("%d holders beside the first, want %d", most.Load(), n-1)
			}
			b.release(first)
		}
	})
}

// A candidate with the context of a term could not be elected before that term is over, so it
// is refused.
func TestElectionWithinATerm(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		e := b.c.Election("a")
		never := func(context.Context, *leasehold.Lease) error { t.Error("a second leader"); return nil }
		err := e.Run(t.Context(), func(ctx context.Context, term *leasehold.Lease) error {
			if err := e.Run(ctx, never); !errors.Is(err, leasehold.ErrInvalid) {
				t.Errorf("Run with the context of a term: %v, want ErrInvalid", err)
			}
			return b.c.Mutex("a").Do(ctx, func(ctx context.Context, l *leasehold.Lease) error {
				if l.Token() != term.Token() {
					t.Errorf("the mutex of the election, within a term: token %v, want %v of the term", l.Token(), term.Token())
				}
				return nil
			})
		})
		if err != nil {
			t.Error(err)
		}
		err = b.c.Mutex("a").Do(t.Context(), func(ctx context.Context, _ *leasehold.Lease) error { return e.Run(ctx, never) })
		if !errors.Is(err, leasehold.ErrInvalid) {
			t.Errorf("Run while the caller holds the lock: %v, want ErrInvalid", err)
		}
	})
}

// Runs of a job do not overlap, also if one is started from within another.
func TestOnceWithinOnce(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		tick := leasehold.Tick{Every: time.Hour}
		never := func(context.Context, *leasehold.Lease) error { t.Error("two runs overlap"); return nil }
		ran, err := b.c.Once(t.Context(), "job", tick, func(ctx context.Context, l *leasehold.Lease) error {
			if ran, err := b.c.Once(ctx, "job", tick, never); ran || err != nil {
				t.Errorf("the same tick: ran %v, %v, want neither a run nor an error", ran, err)
			}
			time.Sleep(time.Hour)
			if ran, err := b.c.Once(ctx, "job", tick, never); ran || !errors.Is(err, leasehold.ErrBusy) {
				t.Errorf("the next tick: ran %v, %v, want ErrBusy", ran, err)
			}
			return nil
		})
		if !ran || err != nil {
			t.Errorf("ran %v, %v, want a run", ran, err)
		}
		b.c.Mutex("job").Do(t.Context(), func(ctx context.Context, _ *leasehold.Lease) error {
			if ran, err := b.c.Once(ctx, "job", tick, never); ran || !errors.Is(err, leasehold.ErrBusy) {
				t.Errorf("while the caller holds the mutex of the job: ran %v, %v, want ErrBusy", ran, err)
			}
			return nil
		})
	})
}

// A fixed owner other than that of the lease in the context is another holder.
func TestReentryByAnotherOwner(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		l := b.acquire(b.c.Mutex("a"))
		if _, err := b.c.Mutex("a").With(leasehold.LockOptions{Owner: "other"}).Try(l.Context()); !errors.Is(err, leasehold.ErrBusy) {
			t.Errorf("try as another owner: %v, want ErrBusy", err)
		}
		b.release(l)
	})
}

// A lease that has entered a grant leaves the MinHold of that grant alone: when it is released,
// and when it was to be one of several locks of which another could not be acquired.
func TestReentrySparesMinHold(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		other := b.acquire(b.strangers().Mutex("b"))
		defer b.release(other)
		lock := b.c.Mutex("a").With(leasehold.LockOptions{MinHold: time.Minute})
		for name, enter := range map[string]func(context.Context){
			"WaiveMinHold after Release": func(ctx context.Context) {
				inner, err := lock.Acquire(ctx)
				if err != nil {
					t.Fatal(err)
				}
				b.release(inner)
				inner.WaiveMinHold()
			},
			"a set that is not acquired": func(ctx context.Context) {
				if _, err := b.c.All(lock, b.c.Mutex("b")).Try(ctx); !errors.Is(err, leasehold.ErrBusy) {
					t.Errorf("Try of both locks: %v, want ErrBusy", err)
				}
			},
		} {
			start := time.Now()
			outer := b.acquire(lock)
			enter(outer.Context())
			b.release(outer)
			if held := time.Since(start); held < time.Minute {
				t.Errorf("%s: held for %v, want the MinHold of 1m0s", name, held)
			}
		}
	})
}
