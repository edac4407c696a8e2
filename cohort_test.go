package leasehold_test

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/store"
)

const forever = time.Duration(math.MaxInt64)

// A lease goes on to the next goroutine of the process: the store's lease stays
// the same, and each holder has a token and a Lease of its own.
func TestPassOn(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		lock := b.c.Mutex("a")
		before := b.acquire(lock)
		for range 8 {
			w := b.queue(lock)
			if n := b.waiter.now.Load(); n != 0 {
				t.Errorf("%d Waits while the process itself has the lock, want none", n)
			}
			b.release(before)
			l := w.got()
			if l.Token() <= before.Token() || l.Owner() != before.Owner() {
				t.Errorf("token %v of %s after %v of %s, want a larger token of the same owner", l.Token(), l.Owner(), before.Token(), before.Owner())
			}
			if err := before.Err(); !errors.Is(err, leasehold.ErrReleased) || l.Err() != nil {
				t.Errorf("after a pass the earlier lease has %v, want ErrReleased; the next has %v, want no error", err, l.Err())
			}
			b.release(before) // again: it does nothing
			select {
			case <-l.Done():
				t.Fatalf("the lease that was passed on is over: %v", l.Err())
			default:
			}
			before = l
		}
		if b.store.called("release") != 0 || b.store.called("acquire") != 1 || b.store.called("reserve") != 0 {
			t.Errorf("calls of the store: %v, want one acquire, no release and no reservation", b.store.calls)
		}
		b.release(before)
		if b.held("a") {
			t.Error("still held after the last release")
		}
	})
}

// contest has many goroutines of some clients take the same lock. It checks that one of
// them holds it at a time, and that tokens rise.
type contest struct {
	b        *queueBench
	finished sync.WaitGroup
	stop     chan struct{}

	mu     sync.Mutex
	inside int
	last   leasehold.Token
	turns  map[*leasehold.Client]int
	// The client that had the last turn, since when, how many turns it has had in a row,
	// and the longest time and the most turns in a row of any client.
	who     *leasehold.Client
	since   time.Time
	row     int
	longest time.Duration
	most    int
}

func newContest(b *queueBench) *contest {
	return &contest{b: b, turns: map[*leasehold.Client]int{}, stop: make(chan struct{})}
}

// contend starts goroutines that lock "a" with c, for hold each, until over is called.
func (x *contest) contend(c *leasehold.Client, goroutines int, hold time.Duration, o leasehold.LockOptions) {
	for range goroutines {
		x.finished.Go(func() {
			for {
				select {
				case <-x.stop:
					return
				default:
				}
				err := c.Mutex("a").With(o).Do(x.b.t.Context(), func(ctx context.Context, l *leasehold.Lease) error {
					x.enter(c, l)
					time.Sleep(hold)
					x.mu.Lock()
					x.inside--
					x.mu.Unlock()
					return ctx.Err()
				})
				if err != nil {
					x.b.t.Error(err)
					return
				}
			}
		})
	}
}

func (x *contest) enter(c *leasehold.Client, l *leasehold.Lease) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.inside++; x.inside != 1 {
		x.b.t.Errorf("%d holders at once, want 1", x.inside)
	}
	if l.Token() <= x.last {
		x.b.t.Errorf("token %v, want more than the last one, %v", l.Token(), x.last)
	}
	x.last = l.Token()
	x.turns[c]++
	if x.who != c {
		x.who, x.since, x.row = c, time.Now(), 0
	}
	x.row++
	x.most, x.longest = max(x.most, x.row), max(x.longest, time.Since(x.since))
}

// over ends the contest after that time, and waits until all goroutines have returned.
func (x *contest) over(after time.Duration) {
	time.Sleep(after)
	close(x.stop)
	x.finished.Wait()
}

// While others wait elsewhere, the number of passes in a row is bounded.
func TestPassesAreBounded(t *testing.T) {
	inQueue(t, leasehold.Options{Cohort: &leasehold.Cohort{Passes: 10, For: forever}}, func(t *testing.T, b *queueBench) {
		x := newContest(b)
		other := b.strangers()
		x.contend(b.c, 8, time.Millisecond, leasehold.LockOptions{})
		x.contend(other, 8, time.Millisecond, leasehold.LockOptions{})
		x.over(time.Second)
		if x.most > 11 || x.turns[other] < 400 || x.turns[b.c] < 400 {
			t.Errorf("%d turns in a row, want 11 at most; %d and %d turns of the two clients, want 400 at least", x.most, x.turns[b.c], x.turns[other])
		}
	})
}

// While others wait elsewhere, the time for passes is bounded.
func TestPassesAreBoundedInTime(t *testing.T) {
	inQueue(t, leasehold.Options{Cohort: &leasehold.Cohort{Passes: 1 << 20, For: 50 * time.Millisecond}}, func(t *testing.T, b *queueBench) {
		x := newContest(b)
		other := b.strangers()
		x.contend(b.c, 8, 3*time.Millisecond, leasehold.LockOptions{})
		x.contend(other, 1, 3*time.Millisecond, leasehold.LockOptions{})
		x.over(time.Second)
		if x.longest > 60*time.Millisecond || x.most < 15 || x.turns[other] < 15 {
			t.Errorf("%d turns in a row, want 15 at least, for %v, want 60ms at most; %d turns of the other client, want 15 at least", x.most, x.longest, x.turns[other])
		}
	})
}

// While nobody waits elsewhere, passes go on: at a bound the store is asked for more
// tokens, which continue where the last ones ended.
func TestPassesGoOnWhileNobodyElseWaits(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		x := newContest(b)
		x.contend(b.c, 3, time.Millisecond, leasehold.LockOptions{})
		time.Sleep(5 * time.Second)
		if n := b.store.called("release"); n != 0 {
			t.Errorf("released %d times, want none", n)
		}
		x.mu.Lock()
		turns := x.turns[b.c]
		x.mu.Unlock()
		if n := b.store.called("reserve"); turns < 4000 || n < turns/64-2 || n > turns/64+3 {
			t.Errorf("%d reservations of tokens in %d turns, want 4000 turns at least and a reservation each 64", n, turns)
		}
		x.over(0)
	})
}

// With cohorts switched off, every turn is a grant by the store, and processes alternate.
func TestCohortOff(t *testing.T) {
	inQueue(t, leasehold.Options{Cohort: &leasehold.Cohort{}}, func(t *testing.T, b *queueBench) {
		x := newContest(b)
		other := b.strangers()
		x.contend(b.c, 4, time.Millisecond, leasehold.LockOptions{})
		x.contend(other, 4, time.Millisecond, leasehold.LockOptions{})
		x.over(time.Second)
		if x.most > 2 || x.turns[b.c] < 450 || x.turns[other] < 450 {
			t.Errorf("%d turns in a row, want 2 at most; %d and %d turns of the two clients, want 450 at least", x.most, x.turns[b.c], x.turns[other])
		}
		if n := b.store.called("reserve"); n != 0 || b.waiter.asked.Spare != 0 {
			t.Errorf("%d reservations and %d spare tokens asked for, want none", n, b.waiter.asked.Spare)
		}
	})
}

// A holder that lost its lease passes nothing on. The waiters queue at the store as soon
// as the lease is lost, not only when it is released.
func TestLostLeaseIsNotPassedOn(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		lock := b.c.Mutex("a").With(short)
		l := b.acquire(lock)
		w := b.queue(lock)
		b.store.onRenew(all(store.ErrNotHeld))
		<-l.Done()
		if b.inQueueNow("a") != 1 {
			t.Error("no waiter queues for a lock that was lost")
		}
		b.store.onRenew(nil)
		if err := l.Release(t.Context()); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("release: %v, want ErrLost", err)
		}
		next := w.got()
		if next.Owner() == l.Owner() || next.Token() <= l.Token() {
			t.Errorf("token %v of %s after %v of %s, want a larger token of another owner", next.Token(), next.Owner(), l.Token(), l.Owner())
		}
		b.release(next)
	})
}

// A loss that is found after the pass is reported to the present holder.
func TestLossAfterAPass(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		lock := b.c.Mutex("a").With(short)
		l := b.acquire(lock)
		w := b.queue(lock)
		asked := make(chan struct{})
		b.store.onRenew(func(_ context.Context, rs []store.Lease) []error {
			close(asked)
			time.Sleep(100 * time.Millisecond)
			b.store.onRenew(nil)
			return []error{store.ErrNotHeld}
		})
		<-asked
		b.release(l)
		next := w.got()
		<-next.Done()
		if err := next.Err(); !errors.Is(err, leasehold.ErrLost) || !errors.Is(l.Err(), leasehold.ErrReleased) {
			t.Errorf("the present holder: %v, want ErrLost; the one before: %v, want ErrReleased", err, l.Err())
		}
		next.Release(t.Context())
	})
}

// A lease that is about to end is released and not passed on: the next holder gets a
// new one with the whole TTL.
func TestShortLeaseIsNotPassedOn(t *testing.T) {
	for what, c := range map[string]struct {
		o      leasehold.LockOptions
		after  time.Duration
		passed bool
	}{
		"renewed lately":  {leasehold.LockOptions{TTL: 3 * time.Second}, 2500 * time.Millisecond, true},
		"much is left":    {leasehold.LockOptions{TTL: 3 * time.Second, RenewEvery: 2700 * time.Millisecond}, 1500 * time.Millisecond, true},
		"little is left":  {leasehold.LockOptions{TTL: 3 * time.Second, RenewEvery: 2700 * time.Millisecond}, 2500 * time.Millisecond, false},
		"never renewed":   {leasehold.LockOptions{TTL: 3 * time.Second, NoRenew: true}, time.Millisecond, false},
		"a longer notice": {leasehold.LockOptions{TTL: 3 * time.Second, RenewEvery: time.Second, Notice: 1500 * time.Millisecond}, 500 * time.Millisecond, false},
	} {
		t.Run(what, func(t *testing.T) {
			inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
				lock := b.c.Mutex("a").With(c.o)
				l := b.acquire(lock)
				w := b.queue(lock)
				time.Sleep(c.after)
				b.release(l)
				next := w.got()
				if passed := next.Owner() == l.Owner(); passed != c.passed {
					t.Errorf("after %v: passed on %v, want %v", c.after, passed, c.passed)
				}
				if left := time.Until(next.Deadline()); !c.passed && left < 2900*time.Millisecond {
					t.Errorf("the next lease ends in %v, want about its TTL of %v", left, c.o.TTL)
				}
				b.release(next)
			})
		})
	}
}

// MaxHold and MinHold count for each holder from when it became the holder.
func TestHoldBoundsOfEachPass(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		lock := b.c.Mutex("a").With(leasehold.LockOptions{TTL: 3 * time.Second, MaxHold: 10 * time.Second, MinHold: 4 * time.Second})
		l := b.acquire(lock)
		x, y := b.queue(lock), b.queue(lock)
		start := time.Now()
		time.Sleep(8 * time.Second)
		b.release(l)
		next := x.got()
		if x.at.Sub(start) != 8*time.Second || next.Owner() != l.Owner() {
			t.Errorf("granted after %v to %s, want passed on by %s after 8s", x.at.Sub(start), next.Owner(), l.Owner())
		}
		if left := time.Until(l.Deadline()); left > 2*time.Second {
			t.Errorf("the released lease is valid for %v more, want 2s at most: MaxHold counts from its start", left)
		}
		b.release(next)
		last := y.got()
		if held := y.at.Sub(x.at); held != 4*time.Second || last.Owner() != l.Owner() {
			t.Errorf("held for %v, want the MinHold of 4s", held)
		}
		<-last.Done()
		if held := time.Since(y.at); held < 9*time.Second || held > 10*time.Second || !errors.Is(last.Err(), leasehold.ErrLost) {
			t.Errorf("the last lease ended after %v with %v, want ErrLost after its MaxHold of 10s", held, last.Err())
		}
		last.Release(t.Context())
	})
}

// Of the leases that re-entered a grant, only the last to be released passes it on.
func TestLastReentryPassesOn(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		lock := b.c.Mutex("a")
		outer := b.acquire(lock)
		inner, err := lock.Try(outer.Context())
		if err != nil {
			t.Fatal(err)
		}
		w := b.queue(lock)
		b.release(inner)
		if !w.waits() {
			t.Fatal("passed on while the outer lease was held")
		}
		b.release(outer)
		l := w.got()
		if _, err := lock.Try(outer.Context()); !errors.Is(err, leasehold.ErrReleased) {
			t.Errorf("re-entry into a lease that was passed on: %v, want ErrReleased", err)
		}
		again, err := lock.Try(l.Context())
		if err != nil || again.Token() != l.Token() {
			t.Fatalf("re-entry by the new holder: %v, want its token %v", err, l.Token())
		}
		b.release(again)
		b.release(l)
	})
}

// drained runs f with a holder that has no pass left, and with a waiter.
func drained(t *testing.T, f func(t *testing.T, b *queueBench, l *leasehold.Lease, w *turn)) {
	inQueue(t, leasehold.Options{Cohort: &leasehold.Cohort{Passes: 1, For: forever}}, func(t *testing.T, b *queueBench) {
		lock := b.c.Mutex("a")
		first := b.acquire(lock)
		x := b.queue(lock)
		w := b.queue(lock)
		b.release(first)
		f(t, b, x.got(), w)
	})
}

// A loss that is found when the store is asked for tokens is returned by Release, and
// the next waiter gets a lease from the store.
func TestLossFoundAtABound(t *testing.T) {
	drained(t, func(t *testing.T, b *queueBench, l *leasehold.Lease, w *turn) {
		if err := b.store.Store.Release(t.Context(), store.ReleaseRequest{Lease: store.Lease{Name: "a", Owner: l.Owner()}}); err != nil {
			t.Fatal(err)
		}
		if err := l.Release(t.Context()); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("release: %v, want ErrLost", err)
		}
		next := w.got()
		if next.Owner() == l.Owner() || next.Token() <= l.Token() {
			t.Errorf("token %v of %s after %v of %s, want a larger token of another owner", next.Token(), next.Owner(), l.Token(), l.Owner())
		}
		b.release(next)
	})
}

// Tokens that do not rise are not used, nor are those of a ReserveTokens that failed.
// The lease is released instead.
func TestBadTokensAreNotPassedOn(t *testing.T) {
	for what, answer := range map[string]func(context.Context, store.ReserveRequest, leasehold.Token) (store.Reserved, error){
		"the same token": func(_ context.Context, r store.ReserveRequest, t leasehold.Token) (store.Reserved, error) {
			return store.Reserved{Token: t, Count: r.Count}, nil
		},
		"a store that cannot": func(context.Context, store.ReserveRequest, leasehold.Token) (store.Reserved, error) {
			return store.Reserved{}, store.ErrUnsupported
		},
		"an error": func(_ context.Context, r store.ReserveRequest, t leasehold.Token) (store.Reserved, error) {
			return store.Reserved{Token: t + 1000, Count: r.Count}, errors.New("no answer")
		},
		"no answer": func(ctx context.Context, r store.ReserveRequest, t leasehold.Token) (store.Reserved, error) {
			<-ctx.Done()
			return store.Reserved{}, ctx.Err()
		},
		"an answer that came too late": func(ctx context.Context, r store.ReserveRequest, t leasehold.Token) (store.Reserved, error) {
			time.Sleep(leasehold.DefaultTTL)
			return store.Reserved{Token: t + 1000, Count: r.Count}, nil
		},
	} {
		t.Run(what, func(t *testing.T) {
			drained(t, func(t *testing.T, b *queueBench, l *leasehold.Lease, w *turn) {
				b.waiter.onReserve(func(ctx context.Context, r store.ReserveRequest) (store.Reserved, error) {
					if what == "an answer that came too late" {
						b.store.onRenew(all(store.ErrNotHeld))
						time.AfterFunc(leasehold.DefaultTTL/2, func() { b.store.onRenew(nil) })
					}
					return answer(ctx, r, l.Token())
				})
				l.Release(t.Context())
				b.waiter.onReserve(nil)
				next := w.got()
				if next.Owner() == l.Owner() || next.Token() <= l.Token() || next.Err() != nil {
					t.Errorf("token %v of %s after %v of %s, want a larger token of another owner; error %v, want none", next.Token(), next.Owner(), l.Token(), l.Owner(), next.Err())
				}
				b.release(next)
			})
		})
	}
}

// Tokens that are left when a bound is reached are used before new ones: no more are
// reserved than were used.
func TestTokensLeftAtABoundAreUsed(t *testing.T) {
	inQueue(t, leasehold.Options{Cohort: &leasehold.Cohort{Passes: 64, For: time.Millisecond}}, func(t *testing.T, b *queueBench) {
		reserved := 0
		b.waiter.onReserve(func(ctx context.Context, r store.ReserveRequest) (store.Reserved, error) {
			d, err := b.waiter.under.ReserveTokens(ctx, r)
			reserved += d.Count
			return d, err
		})
		lock := b.c.Mutex("a")
		l := b.acquire(lock)
		first := l.Token()
		const rounds = 50
		for range rounds {
			next := b.queue(lock)
			time.Sleep(2 * time.Millisecond) // the bound is reached
			b.release(l)
			l = next.got()
		}
		if used := int(l.Token() - first); used != rounds {
			t.Errorf("%d passes used %d tokens, want one each", rounds, used)
		}
		if reserved > 64+rounds {
			t.Errorf("%d tokens were reserved for %d passes, want %d at most", reserved, rounds, 64+rounds)
		}
		b.release(l)
	})
}

// If no waiter is left at a bound, the lease is released.
func TestBoundWithoutWaiters(t *testing.T) {
	drained(t, func(t *testing.T, b *queueBench, l *leasehold.Lease, w *turn) {
		b.waiter.onReserve(func(ctx context.Context, r store.ReserveRequest) (store.Reserved, error) {
			w.gaveUp()
			return b.waiter.under.ReserveTokens(ctx, r)
		})
		b.release(l)
		if b.held("a") {
			t.Error("still held after the release")
		}
	})
}

// A waiter that gave up is skipped.
func TestNothingIsPassedToAWaiterThatGaveUp(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		lock := b.c.Mutex("a")
		l := b.acquire(lock)
		x, y := b.queue(lock), b.queue(lock)
		x.cancel() // x has given up, but has not left the queue yet
		b.release(l)
		next := y.got()
		if <-x.done; !errors.Is(x.err, context.Canceled) || !errors.Is(x.err, leasehold.ErrBusy) || next.Token() != l.Token()+1 {
			t.Errorf("the waiter that gave up got %v, want Canceled and ErrBusy; the next has token %v, want %v", x.err, next.Token(), l.Token()+1)
		}
		b.release(next)
		synctest.Wait()
	})
}

// A MinHold that was cut short leaves the lock taken, and the lease is not passed on.
func TestMinHoldCutShortPassesNothingOn(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		o := short
		o.MinHold = 10 * time.Second
		lock := b.c.Mutex("a").With(o)
		l := b.acquire(lock)
		w := b.queue(lock)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := l.Release(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("release with an ended context: %v, want Canceled", err)
		}
		start := time.Now()
		next := w.got()
		if waited := w.at.Sub(start); waited < o.MinHold-time.Second || waited > o.MinHold+time.Second || next.Owner() == l.Owner() {
			t.Errorf("the next got the lock after %v from %s, want a new owner after about %v", waited, l.Owner(), o.MinHold)
		}
		b.release(next)
	})
}

// Reserved tokens may be used up before a bound is reached. Then more are reserved, and
// passes go on even if others wait elsewhere.
func TestPassesGoOnAfterTokensAreUsedUp(t *testing.T) {
	inQueue(t, leasehold.Options{Cohort: &leasehold.Cohort{Passes: 20, For: forever}}, func(t *testing.T, b *queueBench) {
		lock := b.c.Mutex("a")
		l := b.acquire(lock) // nobody waits, so few tokens are reserved
		stranger := b.queue(b.strangers().Mutex("a"))
		for range 20 {
			w := b.queue(lock)
			b.release(l)
			next := w.got()
			if next.Owner() != l.Owner() || next.Token() <= l.Token() {
				t.Fatalf("token %v of %s after %v of %s, want a larger token of the same owner", next.Token(), next.Owner(), l.Token(), l.Owner())
			}
			l = next
		}
		w := b.queue(lock)
		b.release(l)
		b.release(stranger.got())
		b.release(w.got())
	})
}

// A lease that is not renewed is not passed on, so its waiters queue at the store at
// once.
func TestLeaseWithoutRenewalIsNotPassedOn(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		lock := b.c.Mutex("a").With(leasehold.LockOptions{NoRenew: true})
		l := b.acquire(lock)
		w := b.queue(lock)
		if b.inQueueNow("a") != 1 || b.waiter.asked.Spare != 0 {
			t.Errorf("%d places, want 1; %d spare tokens, want none", b.inQueueNow("a"), b.waiter.asked.Spare)
		}
		b.release(l)
		b.release(w.got())
	})
}
