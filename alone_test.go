package leasehold_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// goroutine returns the name of the calling goroutine.
func goroutine() string {
	buf := make([]byte, 64)
	name, _, _ := strings.Cut(string(buf[:runtime.Stack(buf, false)]), " [")
	return name
}

// A lone waiter calls the store's Wait in its own goroutine, and starts no other, whether
// it has asked for the lock before or the lock is known to be contended. A waiter with
// OnWait needs its own goroutine for that callback, so another one calls Wait.
func TestLoneWaiterNeedsNoOtherGoroutine(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		var told string
		for i, c := range []struct {
			o     leasehold.LockOptions
			alone bool
		}{
			{leasehold.LockOptions{}, true}, // after an attempt
			{leasehold.LockOptions{}, true}, // without one
			{leasehold.LockOptions{OnWait: func(error) { told = goroutine() }}, false},
		} {
			first := b.acquire(b.strangers().Mutex("a"))
			before, more, stands := runtime.NumGoroutine(), 0, ""
			b.waiter.onWait(func(ctx context.Context, r store.WaitRequest, reason func(error)) (store.Grant, error) {
				more, stands = runtime.NumGoroutine()-before, goroutine()
				reason(&leasehold.BusyError{Name: r.Name})
				synctest.Wait()
				b.release(first)
				return b.waiter.under.Wait(ctx, r, reason)
			})
			l := b.acquire(b.c.Mutex("a").With(c.o))
			if alone := more <= 0 && stands == goroutine(); alone != c.alone || more > 1 {
				t.Errorf("wait %d: %d goroutines more; %s called Wait for the waiter in %s, want the waiter itself: %v", i, more, stands, goroutine(), c.alone)
			}
			b.release(l)
			if a, w := b.store.called("acquire"), b.store.called("wait"); a != 1 || w != i+1 {
				t.Errorf("wait %d: %d attempts and %d Waits so far, want 1 and %d", i, a, w, i+1)
			}
		}
		if told != goroutine() {
			t.Errorf("OnWait was called in %s, want the waiter's %s", told, goroutine())
		}
	})
}

// If others have arrived while the first waiter asked, another goroutine waits for all
// of them, so that they keep the place when the first one leaves.
func TestWaiterWithFollowersUsesAnotherGoroutine(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		first := b.acquire(b.strangers().Mutex("a"))
		b.store.onAcquire(func(ctx context.Context, r store.AcquireRequest) (store.Grant, error) {
			time.Sleep(time.Second)
			return b.store.Engine.Acquire(ctx, r)
		})
		x := b.queue(b.c.Mutex("a"))
		behind := b.queue(b.c.Mutex("a"))
		time.Sleep(2 * time.Second)
		x.gaveUp()
		b.release(first)
		b.release(behind.got())
		if n := b.store.called("wait"); n != 1 {
			t.Errorf("%d Waits, want one", n)
		}
	})
}

// The place of a lone waiter ends at once when its context does, and the store is
// called with that context.
func TestPlaceEndsWithItsLoneWaiter(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		type key struct{}
		first := b.acquire(b.strangers().Mutex("a"))
		reason := errors.New("the user went home")
		var said any
		b.waiter.onWait(func(ctx context.Context, r store.WaitRequest, reason func(error)) (store.Grant, error) {
			said = ctx.Value(key{})
			return b.waiter.under.Wait(ctx, r, reason)
		})
		for range 2 { // after an attempt, and without one
			ctx, cancel := context.WithTimeoutCause(context.WithValue(t.Context(), key{}, "x"), time.Second, reason)
			start := time.Now()
			_, err := b.c.Mutex("a").Acquire(ctx)
			if waited := time.Since(start); waited != time.Second {
				t.Errorf("waited for %v, want 1s", waited)
			}
			if st, _ := b.store.Inspect(t.Context(), "a"); len(st.Queue) != 0 {
				t.Errorf("places left in the queue: %v, want none", st.Queue)
			}
			var busy *leasehold.BusyError
			if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, reason) || !errors.As(err, &busy) || busy.Holder.Owner != first.Owner() || busy.Position != 1 {
				t.Errorf("gave up with %#v, want the deadline, its cause, and a BusyError with holder %s and position 1", err, first.Owner())
			}
			if said != "x" {
				t.Errorf("the store's context has the value %v, want that of the waiter's context, x", said)
			}
			cancel()
		}
		if n := b.store.called("wait"); n != 2 {
			t.Errorf("%d Waits, want 2", n)
		}
		b.release(first)
	})
}

// If the first waiter waited in its own goroutine and leaves, the waiters behind it keep
// its rank in a new place. A waiter that arrives when no other is left has a rank of its
// own, and so has one that arrives after a grant.
func TestRankOutlastsItsWaiter(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		rank := func() uint64 { return store.Rank(b.waiter.asked.Owner) }
		lock := b.c.Mutex("a")
		first := b.acquire(b.strangers().Mutex("a"))
		came := uint64(time.Now().UnixMicro())
		x := b.queue(lock)
		owner := b.waiter.asked.Owner
		time.Sleep(time.Second)
		y := b.queue(lock)
		time.Sleep(time.Second)
		x.gaveUp()
		if n := b.inQueueNow("a"); n != 1 || rank() != came || b.waiter.asked.Owner == owner {
			t.Errorf("%d places, want 1; the last one of %s with rank %d, want rank %d and another owner than %s", n, b.waiter.asked.Owner, rank(), came, owner)
		}
		z := b.queue(lock)
		y.gaveUp() // now another goroutine waits, and the place itself stays
		if n := b.store.called("wait"); n != 2 {
			t.Errorf("%d Waits, want 2", n)
		}
		z.gaveUp()
		came = uint64(time.Now().UnixMicro())
		x = b.queue(lock)
		if rank() != came {
			t.Errorf("a waiter that arrived when none was left has rank %d, want %d, when it arrived", rank(), came)
		}
		time.Sleep(time.Second)
		y = b.queue(lock)
		b.release(first)
		l := x.got()
		time.Sleep(time.Millisecond) // so that y's next place comes before the stranger's
		stranger := b.queue(b.strangers().Mutex("a"))
		if err := b.store.Engine.Release(t.Context(), store.ReleaseRequest{Lease: store.Lease{Name: "a", Owner: l.Owner(), TTL: time.Second}}); err != nil {
			t.Fatal(err)
		}
		<-l.Done() // at its next renewal
		if synctest.Wait(); rank() <= came {
			t.Errorf("after a grant the place has rank %d, want more than the earlier %d", rank(), came)
		}
		l.Release(t.Context())
		b.release(y.got())
		b.release(stranger.got())
	})
}

// On Redis, a place with an inherited rank is served before places that were taken later,
// by up to a second.
func TestRankKeepsTheTurn(t *testing.T) {
	server := redistest.Start(t)
	open := func() (*store.Store, *leasehold.Client) {
		st, err := redisstore.Open(t.Context(), server.URL(), patient())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { st.Close() })
		return st, leasehold.New(st, nil)
	}
	_, ours := open()
	_, theirs := open()
	st, holder := open()
	until := func(what string, happened func(queue []store.Place) bool) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
			state, err := st.Inspect(t.Context(), "a")
			if err == nil && happened(state.Queue) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s did not happen: %+v, %v", what, state, err)
			}
		}
	}
	trial := func() (firstServed string, lasted time.Duration) {
		first, err := holder.Mutex("a").Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan string, 3)
		wait := func(who string, c *leasehold.Client, ctx context.Context) {
			l, err := c.Mutex("a").Acquire(ctx)
			if err == nil {
				served <- who
				err = l.Release(t.Context())
			} else if ctx.Err() != nil {
				served <- ""
				return
			}
			if err != nil {
				t.Error(err)
			}
		}
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		var waiting sync.WaitGroup
		var place string
		waiting.Go(func() { wait("the one that left", ours, ctx) })
		until("waiting in the queue", func(queue []store.Place) bool {
			if len(queue) == 1 {
				place = queue[0].Holder.Owner
			}
			return len(queue) == 1
		})
		waiting.Go(func() { wait("ours", ours, t.Context()) })
		until("queueing", func([]store.Place) bool { return ours.Waiting() == 2 })
		began := time.Now()
		waiting.Go(func() { wait("theirs", theirs, t.Context()) })
		until("standing behind", func(queue []store.Place) bool { return len(queue) == 2 })
		leave()
		until("waiting in the queue again", func(queue []store.Place) bool {
			return len(queue) == 2 && queue[0].Holder.Owner != place && queue[1].Holder.Owner != place
		})
		lasted = time.Since(began)
		if who := <-served; who != "" {
			t.Fatalf("%q was served before the release, want only the waiter that left to return", who)
		}
		if err := first.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		firstServed = <-served
		waiting.Wait() // the stores must not be closed while a lease is released
		until("the last release", func(queue []store.Place) bool { return ours.Queues()+theirs.Queues() == 0 && len(queue) == 0 })
		return firstServed, lasted
	}
	for range 10 {
		who, lasted := trial()
		if who == "ours" {
			return
		}
		if lasted < 900*time.Millisecond {
			t.Fatalf("%q was served first, want ours, which has the earlier rank", who)
		}
	}
	t.Fatal("in ten trials, none took less than 900 ms: this machine is too slow to compare ranks")
}

// A store in memory ignores the rank: a waiter that queues again has come last.
func TestRankIsIgnoredInMemory(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		first := b.acquire(b.strangers().Mutex("a"))
		left, behind := b.queue(b.c.Mutex("a")), b.queue(b.c.Mutex("a"))
		stranger := b.queue(b.strangers().Mutex("a"))
		left.gaveUp()
		if n := b.inQueueNow("a"); n != 2 {
			t.Errorf("%d places, want 2: one for each process", n)
		}
		b.release(first)
		if !behind.waits() {
			t.Error("the waiter with the new place was served before a place that was taken earlier")
		}
		b.release(stranger.got())
		b.release(behind.got())
	})
}

// A waiter keeps its place through short troubles of the store, so that no later waiter
// overtakes it.
func TestTroubleCostsNoPlace(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		trouble := true
		b.waiter.onWait(func(ctx context.Context, r store.WaitRequest, reason func(error)) (store.Grant, error) {
			for ctx.Err() == nil {
				reason(&leasehold.BusyError{Name: r.Name})
				for range 20 {
					if trouble {
						reason(errNodesAway)
					}
					pause(ctx, short.TTL/25)
				}
			}
			return store.Grant{}, ctx.Err()
		})
		first := b.acquire(b.strangers().Mutex("a"))
		x := b.queue(b.c.Mutex("a").With(short))
		time.Sleep(5 * short.TTL)
		y := b.queue(b.c.Mutex("a").With(short))
		time.Sleep(5 * short.TTL)
		if n := b.store.called("wait"); !x.waits() || !y.waits() || n != 1 {
			t.Errorf("after short troubles: %d Waits, want 1; the waits ended with %v and %v, want them to go on", n, x.err, y.err)
		}
		b.waiter.onWait(nil)
		trouble = false
		x.gaveUp()
		if n := b.inQueueNow("a"); n != 1 {
			t.Errorf("%d places for the one waiter that is left, want 1", n)
		}
		b.release(first)
		b.release(y.got())
	})
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// A grant that arrives as the context of the first waiter ends goes to the next waiter.
func TestGrantAtTheEndOfAWaitIsNotLost(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		first := b.acquire(b.strangers().Mutex("a"))
		b.grantedTooLate(first)
		x, y := b.queue(b.c.Mutex("a")), b.queue(b.c.Mutex("a"))
		if err := x.gaveUp(); !errors.Is(err, context.Canceled) || !errors.Is(err, leasehold.ErrBusy) {
			t.Errorf("the waiter that left: %v, want Canceled and ErrBusy", err)
		}
		b.release(y.got())
		if w, r := b.store.called("wait"), b.store.called("release"); w != 1 || r != 1 {
			t.Errorf("%d Waits, %d releases, want one of each", w, r)
		}
		if b.held("a") {
			t.Error("still held after the last release")
		}
	})
}
