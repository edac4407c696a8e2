package leasehold_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/memstore"
)

var short = leasehold.LockOptions{TTL: 3 * time.Second}

func TestRenewalKeepsALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		l := b.acquire(b.c.Mutex("a").With(short))
		token := l.Token()
		for range 100 {
			time.Sleep(time.Second)
			if err := l.Err(); err != nil || !b.held("a") {
				t.Fatalf("the lease: %v, want it held; held in the store: %v, want true", err, b.held("a"))
			}
			if left := time.Until(l.Deadline()); left <= 0 || left > short.TTL {
				t.Fatalf("the deadline is in %v, want within %v", left, short.TTL)
			}
		}
		if l.Token() != token {
			t.Errorf("token %v after renewals, want %v as before", l.Token(), token)
		}
		if n := b.store.called("renew"); n < 99 || n > 101 {
			t.Errorf("%d renewals in 100 s of a lease of 3 s, want one a second", n)
		}
		b.release(l)
	})
}

func TestNoRenewLetsItEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		o := short
		o.NoRenew = true
		l := b.acquire(b.c.Mutex("a").With(o))
		<-l.Done()
		if !errors.Is(l.Err(), leasehold.ErrLost) || b.store.called("renew") != 0 {
			t.Errorf("the lease ended with %v after %d renewals, want ErrLost without any", l.Err(), b.store.called("renew"))
		}
		if err := l.Release(t.Context()); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("release of a lost lease: %v, want ErrLost", err)
		}
		if b.held("a") {
			t.Error("release of a lost lease left it in the store")
		}
	})
}

// The holder is notified of a loss while validity remains and the store still excludes
// all others: Notice before the end of validity.
func TestHolderIsNotifiedBeforeOthersCanHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		o := short
		o.Notice = 400 * time.Millisecond
		l := b.acquire(b.c.Mutex("a").With(o))
		unreachable := &store.QuorumError{Op: "renew", Need: 1, Nodes: []store.NodeOutcome{{Outcome: store.Unreachable}}}
		b.store.onRenew(all(unreachable))
		<-l.Context().Done()
		if cause := context.Cause(l.Context()); !errors.Is(cause, leasehold.ErrLost) || !errors.Is(cause, leasehold.ErrQuorum) {
			t.Errorf("cause %v, want ErrLost with the store's last answer", cause)
		}
		if left := time.Until(l.Deadline()); left != o.Notice {
			t.Errorf("notified %v before the end of validity, want %v", left, o.Notice)
		}
		if !b.held("a") {
			t.Error("the lock was free in the store when the holder was notified")
		}
		if n := b.store.called("renew"); n < 3 {
			t.Errorf("%d renewals were tried before the loss, want 3 at least", n)
		}
	})
}

func TestJeopardyHeals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		l := b.acquire(b.c.Mutex("a").With(short))
		b.store.onRenew(all(errors.New("no answer")))
		time.Sleep(1800 * time.Millisecond)
		if err := l.Err(); err != nil {
			t.Fatalf("lost although validity remains: %v", err)
		}
		b.store.onRenew(nil)
		time.Sleep(10 * time.Second)
		if err := l.Err(); err != nil {
			t.Fatalf("lost although the store is back: %v", err)
		}
		b.release(l)
	})
}

// The validity of a renewed lease counts from when the renewal was sent, since nobody knows
// when the store executed it.
func TestRenewalCountsFromItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		began := time.Now()
		l := b.acquire(b.c.Mutex("a").With(short))
		validity := l.Deadline().Sub(began)
		var sent time.Time
		b.store.onRenew(func(ctx context.Context, rs []store.Lease) []error {
			sent = time.Now()
			errs := b.store.Engine.Renew(ctx, rs)
			time.Sleep(300 * time.Millisecond)
			return errs
		})
		time.Sleep(short.TTL / 2)
		synctest.Wait() // orders what onRenew wrote before what is read here
		if want := sent.Add(validity); sent.IsZero() || !l.Deadline().Equal(want) {
			t.Errorf("after a renewal that took 300 ms the lease ends %v too late: it counts from the request", l.Deadline().Sub(want))
		}
		b.release(l)
	})
}

// A renewal whose reply arrives after the old validity has ended is ignored, even if the
// store renewed the lease.
func TestLateRenewalDoesNotResurrect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		l := b.acquire(b.c.Mutex("a").With(short))
		b.store.onRenew(func(ctx context.Context, rs []store.Lease) []error {
			time.Sleep(2 * short.TTL)
			return make([]error, len(rs))
		})
		<-l.Done()
		time.Sleep(10 * time.Second)
		if err := l.Err(); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("the lease: %v, want ErrLost", err)
		}
	})
}

// The timers of a suspended machine stand still, but its boot-time clock does not. After it
// resumes, Err reports the loss at once, and Done within a quarter of a second.
func TestSuspendIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		l := b.acquire(b.c.Mutex("a").With(leasehold.LockOptions{TTL: time.Minute, NoRenew: true}))
		b.clock.suspend(2 * time.Minute)
		if err := l.Err(); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("Err right after the machine resumed: %v, want ErrLost", err)
		}
		l = b.acquire(b.c.Mutex("b").With(leasehold.LockOptions{TTL: time.Minute, NoRenew: true}))
		b.clock.suspend(2 * time.Minute)
		resumed := time.Now()
		<-l.Done()
		if took := time.Since(resumed); took > 250*time.Millisecond {
			t.Errorf("Done %v after the machine resumed, want 250ms at most", took)
		}
	})
}

func TestReleaseTwiceAndWithEndedContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		l := b.acquire(b.c.Mutex("a"))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 2 {
			if err := l.Release(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if n := b.store.called("release"); n != 1 || b.held("a") {
			t.Errorf("%d releases, want 1; held %v, want free", n, b.held("a"))
		}
		if err := l.Extend(t.Context()); !errors.Is(err, leasehold.ErrReleased) {
			t.Errorf("extend after the release: %v, want ErrReleased", err)
		}
		if cause := context.Cause(l.Context()); !errors.Is(cause, leasehold.ErrReleased) {
			t.Errorf("context after the release: cause %v, want ErrReleased", cause)
		}
	})
}

// A release whose reply was lost is sent again. If the lease is gone by then, the first
// request has released it, so that is no error.
func TestLostReleaseReplyIsNoError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		l := b.acquire(b.c.Mutex("a"))
		b.store.onRelease(func(ctx context.Context, r store.ReleaseRequest) error {
			err := b.store.Engine.Release(ctx, r)
			if b.store.called("release") == 1 {
				return store.ErrAmbiguous
			}
			return err
		})
		b.release(l)
	})
}

func TestReleaseOfAnEndedLeaseIsALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		l := b.acquire(b.c.Mutex("a"))
		b.store.onRelease(func(context.Context, store.ReleaseRequest) error { return store.ErrNotHeld })
		if err := l.Release(t.Context()); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("release: %v, want ErrLost", err)
		}
	})
}

func TestReleaseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		l := b.acquire(b.c.Mutex("a"))
		b.store.onRelease(func(ctx context.Context, r store.ReleaseRequest) error {
			<-ctx.Done()
			return ctx.Err()
		})
		start := time.Now()
		if err := l.Release(t.Context()); err == nil {
			t.Error("release of unknown outcome: nil, want an error")
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("release took %v, want 5s at most", took)
		}
		b.store.onRelease(nil)
		b.release(l) // it can be tried again
		if b.held("a") {
			t.Error("still held after the second release")
		}
	})
}

func TestMaxHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		o := short
		o.MaxHold = 20 * time.Second
		start := time.Now()
		l := b.acquire(b.c.Mutex("a").With(o))
		<-l.Done()
		if held := time.Since(start); held > o.MaxHold || held < o.MaxHold-time.Second {
			t.Errorf("held for %v, want just under %v", held, o.MaxHold)
		}
		if err := l.Err(); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("the lease: %v, want ErrLost", err)
		}
	})
}

func TestMinHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		o := short
		o.MinHold = 20 * time.Second
		start := time.Now()
		b.release(b.acquire(b.c.Mutex("a").With(o)))
		if held := time.Since(start); held < o.MinHold {
			t.Errorf("released after %v, want %v at least", held, o.MinHold)
		}
		// If the release is cut short, the lock stays taken until MinHold is over.
		start = time.Now()
		l := b.acquire(b.c.Mutex("a").With(o))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := l.Release(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("release with an ended context: %v, want Canceled", err)
		}
		if !b.held("a") {
			t.Error("free before MinHold was over")
		}
		for b.held("a") {
			time.Sleep(time.Second)
		}
		if held := time.Since(start); held < o.MinHold || held > o.MinHold+2*time.Second {
			t.Errorf("free after %v, want %v", held, o.MinHold)
		}
		// If MinHold is waived, the lock is free at once.
		start = time.Now()
		l = b.acquire(b.c.Mutex("a").With(o))
		l.WaiveMinHold()
		if b.release(l); b.held("a") || time.Since(start) > time.Second {
			t.Errorf("held %v after %v, want free at once: MinHold was waived", b.held("a"), time.Since(start))
		}
	})
}

// Each call of Release waits for MinHold as long as its own context lasts, and leaves the lock to
// its TTL only if no other call waits on.
func TestMinHoldBoundsEachRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, firstGivesUp := range []bool{false, true} {
			b := newBench(t)
			o := short
			o.MinHold = 20 * time.Second
			start := time.Now()
			l := b.acquire(b.c.Mutex("a").With(o))
			first, cancel := context.WithCancel(t.Context())
			defer cancel()
			released := make(chan error, 1)
			go func() { released <- l.Release(first) }()
			synctest.Wait()
			brief, stop := context.WithTimeout(t.Context(), time.Second)
			defer stop()
			if err := l.Release(brief); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 2*time.Second {
				t.Errorf("a second release: %v after %v, want DeadlineExceeded after 1s", err, time.Since(start))
			}
			if l.Err() != nil {
				t.Errorf("the lease while the first release waits: %v, want it held", l.Err())
			}
			if firstGivesUp {
				cancel()
			}
			if err := <-released; firstGivesUp != errors.Is(err, context.Canceled) || !firstGivesUp && err != nil {
				t.Errorf("the first release: %v, want Canceled: %v", err, firstGivesUp)
			}
			for b.held("a") {
				time.Sleep(100 * time.Millisecond)
			}
			if held := time.Since(start); held < o.MinHold || held > o.MinHold+time.Second {
				t.Errorf("free after %v, want %v", held, o.MinHold)
			}
		}
	})
}

// WaiveMinHold ends a Release that waits.
func TestWaiveMinHoldEndsAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		o := short
		o.MinHold = time.Hour
		l := b.acquire(b.c.Mutex("a").With(o))
		released := make(chan error, 1)
		go func() { released <- l.Release(t.Context()) }()
		time.Sleep(time.Second)
		start := time.Now()
		l.WaiveMinHold()
		l.WaiveMinHold()
		if err := <-released; err != nil || time.Since(start) > time.Second || b.held("a") {
			t.Errorf("release: %v %v after MinHold was waived; held %v, want it free at once", err, time.Since(start), b.held("a"))
		}
	})
}

// A panic in the function of Do does not wait for MinHold. The lock stays taken for the rest.
func TestPanicDoesNotWaitForMinHold(t *testing.T) {
	for how, end := range ends {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			o := short
			o.MinHold = time.Hour
			lock, start := b.c.Mutex("a").With(o), time.Now()
			for what, do := range map[string]func(){
				"Do": func() { lock.Do(t.Context(), func(context.Context, *leasehold.Lease) error { end(); return nil }) },
				"All.Do": func() {
					b.c.All(lock).Do(t.Context(), func(context.Context, *leasehold.Leases) error { end(); return nil })
				},
			} {
				if calling(do); time.Since(start) > time.Second {
					t.Errorf("%s: %s came out after %v, want at once", what, how, time.Since(start))
				}
				for b.held("a") {
					time.Sleep(time.Second)
				}
				if held := time.Since(start); held < o.MinHold || held > o.MinHold+o.TTL {
					t.Errorf("%s: free after %v, want about %v", what, held, o.MinHold)
				}
				start = time.Now()
			}
		})
	}
}

// MinHold counts from when the grant arrived, however long before that the request was
// sent: for an attempt that is answered late, for a grant in the queue, and for one at a
// place that was taken with the previous release.
func TestMinHoldCountsFromTheGrant(t *testing.T) {
	const slow = time.Second
	least := short
	least.MinHold = 20 * time.Second
	heldFor := func(t *testing.T, b *bench, l *leasehold.Lease) {
		t.Helper()
		start := time.Now()
		b.release(l)
		if held := time.Since(start); held != least.MinHold {
			t.Errorf("released %v after the grant arrived, want %v", held, least.MinHold)
		}
	}
	t.Run("slow attempt", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			b.store.onAcquire(func(ctx context.Context, r store.AcquireRequest) (store.Grant, error) {
				defer time.Sleep(slow)
				return b.store.Engine.Acquire(ctx, r)
			})
			heldFor(t, b, b.acquire(b.c.Mutex("a").With(least)))
		})
	})
	t.Run("waited for", func(t *testing.T) {
		inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
			b.waiter.onWait(func(ctx context.Context, r store.WaitRequest, reason func(error)) (store.Grant, error) {
				defer time.Sleep(slow)
				return b.waiter.under.Wait(ctx, r, reason)
			})
			first := b.acquire(b.strangers().Mutex("a"))
			w := b.queue(b.c.Mutex("a").With(least))
			b.release(first)
			heldFor(t, b.bench, w.got())
		})
	})
	t.Run("place taken with a release", func(t *testing.T) {
		rejoins(t, func(t *testing.T, b *queueBench, s *returner) {
			theirs := b.takeTurns(10, time.Millisecond)
			s.returned = func() { time.Sleep(slow) } // the release is answered late, too
			w := b.queue(b.c.Mutex("job"))
			if err := theirs.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			l := w.got()
			if err := l.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			taken, _, _ := s.count()
			o := leasehold.LockOptions{MinHold: least.MinHold}
			l = b.acquire(b.c.Mutex("job").With(o))
			if _, waited, _ := s.count(); taken == 0 || waited != taken {
				t.Errorf("waited at %d of %d places that were taken with a release, want all, and one at least", waited, taken)
			}
			s.returned = nil
			heldFor(t, b.bench, l)
			b.lapse()
		})
	})
}

// However many leases of one grant are released at the same moment, the last of them to be
// released waits for MinHold.
func TestMinHoldOfLeasesReleasedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		lock := b.c.Mutex("a").With(leasehold.LockOptions{MinHold: time.Minute})
		for round := range 1000 {
			start := time.Now()
			leases := []*leasehold.Lease{b.acquire(lock)}
			for range 15 {
				inner, err := lock.Try(leases[0].Context())
				if err != nil {
					t.Fatal(err)
				}
				leases = append(leases, inner)
			}
			var all sync.WaitGroup
			for _, l := range leases {
				all.Go(func() { b.release(l) })
			}
			all.Wait()
			if held := time.Since(start); held < time.Minute {
				t.Fatalf("round %d: free after %v, want 1m0s at least", round, held)
			}
		}
	})
}

// If a lease ends before its MinHold, by its MaxHold or since it is not renewed, the lock
// stays taken for the rest of MinHold, whether the holder releases it afterwards or was
// already waiting in Release.
func TestMinHoldOutlastsTheLease(t *testing.T) {
	for name, o := range map[string]leasehold.LockOptions{
		"MaxHold": {TTL: 3 * time.Second, MaxHold: 20 * time.Second, Notice: time.Second, MinHold: 20 * time.Second},
		"NoRenew": {TTL: 30 * time.Second, NoRenew: true, Notice: 2 * time.Second, MinHold: 27 * time.Second},
	} {
		for _, waits := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/waits in Release=%t", name, waits), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newBench(t)
					var arrived time.Time
					b.store.onAcquire(func(ctx context.Context, r store.AcquireRequest) (store.Grant, error) {
						defer func() { time.Sleep(time.Second); arrived = time.Now() }()
						return b.store.Engine.Acquire(ctx, r)
					})
					l := b.acquire(b.c.Mutex("a").With(o))
					if !waits {
						<-l.Done()
					}
					if err := l.Release(t.Context()); !waits && !errors.Is(err, leasehold.ErrLost) {
						t.Errorf("release after the loss: %v, want ErrLost", err)
					}
					for b.held("a") {
						time.Sleep(10 * time.Millisecond)
					}
					if held := time.Since(arrived); held < o.MinHold || held > o.MinHold+time.Second {
						t.Errorf("free %v after the grant arrived, want %v", held, o.MinHold)
					}
				})
			})
		}
	}
}

// MinHold does not keep a lost lease of a fixed owner, since another process may have a lease
// of the same owner by now.
func TestMinHoldKeepsNoLeaseOfAFixedOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		o := leasehold.LockOptions{TTL: 3 * time.Second, MaxHold: 10 * time.Second, MinHold: 10 * time.Second, Owner: "nightly"}
		l, err := b.c.Mutex("a").With(o).Try(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		<-l.Done()
		if err := l.Release(t.Context()); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("release after the loss: %v, want ErrLost", err)
		}
		if b.held("a") {
			t.Error("the lost lease of a fixed owner still holds the lock")
		}
	})
}

// If a lease is re-entered while its release waits for MinHold, the inner lease keeps the
// lock, also if the context of that release ends.
func TestReentryDuringMinHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, cutShort := range []bool{false, true} {
			b := newBench(t)
			lock := b.c.Mutex("a").With(leasehold.LockOptions{MinHold: time.Minute})
			start := time.Now()
			outer := b.acquire(lock)
			ctx, cancel := context.WithCancel(t.Context())
			released := make(chan error, 1)
			go func() { released <- outer.Release(ctx) }()
			time.Sleep(time.Second)
			inner, err := lock.Try(outer.Context())
			if err != nil {
				t.Fatal(err)
			}
			if cutShort {
				cancel()
			}
			if err := <-released; err != nil {
				t.Errorf("the first release: %v, want no error, since another lease keeps the lock", err)
			}
			if inner.Err() != nil || !b.held("a") {
				t.Errorf("the inner lease: %v, want it held; held in the store: %v, want true", inner.Err(), b.held("a"))
			}
			b.release(inner)
			if held := time.Since(start); held < time.Minute {
				t.Errorf("free after %v, want 1m0s at least", held)
			}
			cancel()
		}
	})
}

func TestExtend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		o := short
		o.NoRenew = true
		l := b.acquire(b.c.Mutex("a").With(o))
		for range 10 {
			time.Sleep(2 * time.Second)
			before := l.Deadline()
			if err := l.Extend(t.Context()); err != nil {
				t.Fatal(err)
			}
			if !l.Deadline().After(before) {
				t.Fatalf("the deadline is %v after Extend, want it later than %v", l.Deadline(), before)
			}
		}
		b.store.onRenew(all(store.ErrAmbiguous))
		before := l.Deadline()
		if err := l.Extend(t.Context()); !errors.Is(err, leasehold.ErrAmbiguous) || l.Err() != nil {
			t.Errorf("extend of unknown outcome: %v, want ErrAmbiguous; the lease: %v, want it held", err, l.Err())
		}
		if l.Deadline().After(before) {
			t.Errorf("a renewal of unknown outcome moved the deadline from %v to %v", before, l.Deadline())
		}
		b.store.onRenew(all(store.ErrNotHeld))
		if err := l.Extend(t.Context()); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("extend of a lease that is gone: %v, want ErrLost", err)
		}
	})
}

// A caller that does not wait for the outcome of Extend says nothing about the store: that is no
// failed renewal, and the next renewal comes when it is due.
func TestExtendWithAnEndedContext(t *testing.T) {
	observed(t, func(t *testing.T, b *queueBench, w *watch) {
		l := b.acquire(b.c.Mutex("a").With(short))
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := l.Extend(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("extend with an ended context: %v, want Canceled", err)
		}
		if n := b.store.called("renew"); n != 0 {
			t.Errorf("%d renewals with an ended context, want none", n)
		}
		b.store.onRenew(func(ctx context.Context, rs []store.Lease) []error {
			<-ctx.Done()
			return []error{ctx.Err()}
		})
		brief, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := l.Extend(brief); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("extend whose context ends: %v, want DeadlineExceeded", err)
		}
		b.store.onRenew(nil)
		time.Sleep(time.Minute)
		if l.Err() != nil {
			t.Errorf("a minute later: %v, want the lease held", l.Err())
		}
		b.release(l)
		w.want(t, "acquired", "released")
	})
}

// Calls of Extend that do not wait for their answers do not hold up the renewals that are due.
func TestExtendBesideRenewals(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		l := b.acquire(b.c.Mutex("a").With(short))
		b.store.onRenew(func(ctx context.Context, rs []store.Lease) []error {
			if !clock.Sleep(ctx, short.TTL/10) {
				return []error{ctx.Err()}
			}
			return b.store.Engine.Renew(ctx, rs)
		})
		for start := time.Now(); time.Since(start) < 5*short.TTL; {
			brief, cancel := context.WithTimeout(t.Context(), short.TTL/20)
			l.Extend(brief)
			cancel()
		}
		if err := l.Err(); err != nil {
			t.Errorf("after five TTLs: %v, want the lease held", err)
		}
		b.release(l)
		time.Sleep(short.TTL) // until the last renewal is over
	})
}

func TestAcquiredLeaseOutlivesItsContext(t *testing.T) {
	type key struct{}
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
		l, err := b.c.Mutex("a").Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if l.Context().Err() != nil || l.Context().Value(key{}) != "value" {
			t.Errorf("context of the lease: %v, value %v, want it alive, with the caller's value", l.Context().Err(), l.Context().Value(key{}))
		}
		b.release(l)
	})
}

// A grant that arrives after its validity has ended is released, and Try returns ErrLost.
func TestGrantThatCameTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.store.onAcquire(func(ctx context.Context, r store.AcquireRequest) (store.Grant, error) {
			g, err := b.store.Engine.Acquire(ctx, r)
			time.Sleep(r.TTL - time.Millisecond)
			return g, err
		})
		if _, err := b.c.Mutex("a").With(short).Try(t.Context()); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("try: %v, want ErrLost", err)
		}
		if b.held("a") {
			t.Error("the late grant still holds the lock in the store")
		}
	})
}

// Deadline reads two clocks. A process that is stopped between the two readings must not
// get a later deadline.
func TestDeadlineIsNotLateAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, paused := newVirtual(), time.Duration(0)
		c := leasehold.New(memstore.New(&memstore.Options{Clock: v}), &leasehold.Options{Clock: clock.Func(func() clock.Instant {
			now := v.Now()
			time.Sleep(paused)
			return now
		})})
		l, err := c.Mutex("a").With(leasehold.LockOptions{TTL: time.Hour, NoRenew: true}).Try(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		before := l.Deadline()
		paused = 10 * time.Millisecond // too short for the client to renew or check the lease meanwhile
		if after := l.Deadline(); after.After(before) {
			t.Errorf("a pause of %v moved the deadline by %v, want no later", paused, after.Sub(before))
		}
		paused = 0
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
