package leasehold_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/store"
)

func TestAcquireWaitsForTheRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		first := b.acquire(b.c.Mutex("a"))
		var reasons int
		go func() {
			time.Sleep(time.Minute)
			b.release(first)
		}()
		second := b.acquire(b.other().Mutex("a").With(leasehold.LockOptions{OnWait: func(reason error) {
			reasons++
			var busy *leasehold.BusyError
			if !errors.As(reason, &busy) || busy.Holder.Owner != first.Owner() {
				t.Errorf("the reason to wait is %v, want a BusyError with holder %s", reason, first.Owner())
			}
		}}))
		if second.Token() <= first.Token() {
			t.Errorf("token %v, want more than %v of the holder before", second.Token(), first.Token())
		}
		if reasons == 0 {
			t.Error("OnWait was not called")
		}
		b.release(second)
	})
}

// Acquire gets the lock of a dead holder when the TTL has passed, and not much later.
func TestAcquireAfterADeadHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		_, err := b.store.Engine.Acquire(t.Context(), store.AcquireRequest{Lease: store.Lease{Name: "a", Owner: "dead", TTL: 10 * time.Second}})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		b.release(b.acquire(b.c.Mutex("a")))
		if waited := time.Since(start); waited < 10*time.Second || waited > 10*time.Second+10*time.Millisecond {
			t.Errorf("waited %v for a lease of 10 s, want 10s to 10.01s", waited)
		}
	})
}

// If a waiter is removed from the queue, for example by "leasehold release" with its owner,
// the error of its wait says so and names the lock.
func TestRemovedWaiterIsToldSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		first := b.acquire(b.c.Mutex("a"))
		go func() {
			time.Sleep(time.Second)
			st, err := b.store.Inspect(t.Context(), "a")
			if err != nil || len(st.Queue) != 1 {
				t.Errorf("Inspect: %+v, %v, want one waiter", st, err)
				return
			}
			of := store.Lease{Name: "a", Owner: st.Queue[0].Holder.Owner, TTL: time.Second}
			if err := b.store.Release(t.Context(), store.ReleaseRequest{Lease: of}); !errors.Is(err, store.ErrNotHeld) {
				t.Errorf("release of a waiter: %v, want ErrNotHeld", err)
			}
		}()
		_, err := b.other().Mutex("a").Acquire(t.Context())
		if !errors.Is(err, store.ErrNotHeld) || !strings.Contains(err.Error(), `wait for "a": somebody has removed this waiter from the queue`) {
			t.Errorf("the wait ended with %v, want ErrNotHeld that says that the waiter was removed", err)
		}
		b.release(first)
	})
}

func TestCancelledWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		first := b.acquire(b.c.Mutex("a"))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := b.other().Mutex("a").Acquire(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, leasehold.ErrBusy) {
			t.Errorf("cancelled wait: %v, want both DeadlineExceeded and ErrBusy", err)
		}
		var busy *leasehold.BusyError
		if !errors.As(err, &busy) || busy.Holder.Owner != first.Owner() || busy.ExpiresIn <= 0 {
			t.Errorf("the error has %+v, want the holder %s and when its lease expires", busy, first.Owner())
		}
		why := errors.New("shutting down")
		ctx2, stop := context.WithCancelCause(t.Context())
		stop(why)
		_, err = b.other().Mutex("a").Acquire(ctx2)
		if !errors.Is(err, context.Canceled) || !errors.Is(err, why) {
			t.Errorf("cancelled with a cause: %v, want Canceled and the cause", err)
		}
		ctx3, cancel3 := context.WithTimeoutCause(t.Context(), time.Second, why)
		defer cancel3()
		_, err = b.other().Mutex("a").Acquire(ctx3)
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, why) || !errors.Is(err, leasehold.ErrBusy) || strings.Contains(err.Error(), "\n") {
			t.Errorf("a wait that timed out with a cause: %q, want DeadlineExceeded, the cause and ErrBusy, in one line", err)
		}
		b.release(first)
		if b.held("a") {
			t.Error("still held after the release: a cancelled wait has left a place")
		}
	})
}

func TestTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		first := b.acquire(b.c.Mutex("a"))
		var delays []int
		o := leasehold.LockOptions{Tries: 5, RetryDelay: func(try int) time.Duration {
			delays = append(delays, try)
			return time.Second
		}}
		start := time.Now()
		_, err := b.c.Mutex("a").With(o).Acquire(t.Context())
		if !errors.Is(err, leasehold.ErrBusy) {
			t.Errorf("after 5 tries: %v, want ErrBusy", err)
		}
		if n := b.store.called("acquire"); n != 6 || len(delays) != 4 || time.Since(start) != 4*time.Second {
			t.Errorf("%d requests, want 6; delays after tries %v, want 4; %v in all, want 4s", n, delays, time.Since(start))
		}
		b.release(first)
	})
}

// Every attempt has an owner of its own, so that the clean-up of one attempt cannot end the
// lease of the next.
func TestOwnerIsNewForEveryAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		owners := map[string]bool{}
		b.store.onAcquire(func(ctx context.Context, r store.AcquireRequest) (store.Grant, error) {
			owners[r.Owner] = true
			return store.Grant{}, &store.BusyError{Name: r.Name}
		})
		b.c.Mutex("a").With(leasehold.LockOptions{Tries: 20}).Acquire(t.Context())
		if len(owners) != 20 {
			t.Errorf("%d owners for 20 attempts, want 20", len(owners))
		}
		for o := range owners {
			if len(o) < 27 {
				t.Errorf("owner %q has %d characters, want 27 at least for 20 random bytes", o, len(o))
			}
		}
	})
}

func TestFixedOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		lock := b.c.Mutex("a").With(leasehold.LockOptions{Owner: "deploy-42"})
		if _, err := lock.Acquire(t.Context()); !errors.Is(err, leasehold.ErrInvalid) {
			t.Errorf("waiting with a fixed owner: %v, want ErrInvalid", err)
		}
		l, err := lock.Try(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if l.Owner() != "deploy-42" {
			t.Errorf("the lease has the owner %q, want deploy-42", l.Owner())
		}
		// A process with the same owner is the same holder.
		same, err := b.other().Mutex("a").With(leasehold.LockOptions{Owner: "deploy-42"}).Try(t.Context())
		if err != nil || same.Token() != l.Token() {
			t.Fatalf("try with the same owner in another process: %v, want the same token %v", err, l.Token())
		}
		b.release(l)
	})
}

// Acquire waits for unreachable nodes for a TTL. It returns errors that waiting cannot mend at
// once.
func TestTroubleWithTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		answer := func(o store.Outcome) {
			b.store.onAcquire(func(context.Context, store.AcquireRequest) (store.Grant, error) {
				return store.Grant{}, &store.QuorumError{Op: "acquire", Need: 1, Nodes: []store.NodeOutcome{{Node: "n1", Outcome: o}}}
			})
		}
		answer(store.Unreachable)
		time.AfterFunc(10*time.Second, func() { b.store.onAcquire(nil) })
		b.release(b.acquire(b.c.Mutex("a")))

		answer(store.Unreachable)
		start := time.Now()
		_, err := b.c.Mutex("a").With(short).Acquire(t.Context())
		if waited := time.Since(start); !errors.Is(err, leasehold.ErrQuorum) || waited < short.TTL || waited > 2*short.TTL {
			t.Errorf("a store that stays unreachable: %v after %v, want ErrQuorum after one or two TTLs of %v", err, waited, short.TTL)
		}
		answer(store.Refused)
		start = time.Now()
		_, err = b.c.Mutex("a").Acquire(t.Context())
		if waited := time.Since(start); !errors.Is(err, leasehold.ErrQuorum) || waited != 0 {
			t.Errorf("a store that refuses: %v after %v, want ErrQuorum at once", err, waited)
		}
		if !strings.Contains(err.Error(), "n1") {
			t.Errorf("%v does not name the node n1", err)
		}
		broken := errors.New("disk is full")
		b.store.onAcquire(func(context.Context, store.AcquireRequest) (store.Grant, error) { return store.Grant{}, broken })
		if _, err = b.c.Mutex("a").Acquire(t.Context()); !errors.Is(err, broken) {
			t.Errorf("an error of the engine: %v, want it returned", err)
		}
	})
}

// Acquire waits for as long as a quarantine of most nodes lasts, even if that is longer than a
// TTL. It does not wait for a minority of nodes in quarantine while the others are away.
func TestWaitsOutAQuarantine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		opens := time.Now().Add(time.Minute)
		refuse := func(outcomes ...store.Outcome) {
			b.store.onAcquire(func(ctx context.Context, r store.AcquireRequest) (store.Grant, error) {
				left := time.Until(opens)
				if left <= 0 {
					return b.store.Engine.Acquire(ctx, r)
				}
				nodes := make([]store.NodeOutcome, len(outcomes))
				for i, o := range outcomes {
					nodes[i] = store.NodeOutcome{Outcome: o, ExpiresIn: left}
				}
				return store.Grant{}, &store.QuorumError{Op: "acquire", Need: 2, Nodes: nodes}
			})
		}
		refuse(store.Quarantined, store.Quarantined, store.Unreachable)
		start := time.Now()
		b.release(b.acquire(b.c.Mutex("a").With(short)))
		if waited := time.Since(start); waited < time.Minute || waited > time.Minute+time.Second {
			t.Errorf("waited for %v, want 1m0s to 1m1s", waited)
		}
		opens = time.Now().Add(time.Minute)
		refuse(store.Quarantined, store.Unreachable, store.Unreachable)
		start = time.Now()
		if _, err := b.c.Mutex("a").With(short).Acquire(t.Context()); !errors.Is(err, leasehold.ErrQuorum) || time.Since(start) > 2*short.TTL {
			t.Errorf("with two nodes unreachable and one in quarantine: %v after %v, want ErrQuorum within %v", err, time.Since(start), 2*short.TTL)
		}
	})
}

// A lock that requires a stronger class than the store has is refused before anything is sent.
func TestRequire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		var asked store.AcquireRequest
		b.store.onAcquire(func(ctx context.Context, r store.AcquireRequest) (store.Grant, error) {
			asked = r
			return b.store.Engine.Acquire(ctx, r)
		})
		b.release(b.acquire(b.c.Mutex("a").With(leasehold.LockOptions{Require: store.CrashSafe})))
		if asked.Require != store.CrashSafe {
			t.Errorf("the store was asked for %v, want %v", asked.Require, store.CrashSafe)
		}
		n := b.store.called("acquire")
		_, err := b.c.Mutex("a").With(leasehold.LockOptions{Require: store.Consensus}).Acquire(t.Context())
		if !errors.Is(err, leasehold.ErrUnsupported) || !strings.Contains(err.Error(), "crash-safe at most") {
			t.Errorf("a lock that requires consensus: %v, want ErrUnsupported that names the class of the store", err)
		}
		if b.store.called("acquire") != n {
			t.Error("a request was sent for a lock that is refused")
		}
	})
}

// bounded is a store that has bounds for TTLs, and does not check them itself.
type bounded struct{ *script }

func (s bounded) Caps() store.Caps {
	c := s.script.Caps()
	c.MinTTL, c.MaxTTL = 5*time.Second, time.Minute
	return c
}

// A TTL that the store does not accept is refused before anything is sent, and the error
// names the bound. That includes the default.
func TestTTLOutOfBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		lock := leasehold.New(store.New(bounded{b.store}), &leasehold.Options{Clock: b.clock}).Mutex("a")
		for ttl, bound := range map[time.Duration]string{5*time.Second - 1: "minimum is 5s", time.Minute + 1: "maximum of 1m0s"} {
			lock := lock.With(leasehold.LockOptions{TTL: ttl})
			for what, ask := range map[string]func(context.Context) (*leasehold.Lease, error){"acquire": lock.Acquire, "try": lock.Try} {
				if _, err := ask(t.Context()); !errors.Is(err, leasehold.ErrInvalid) || !strings.Contains(err.Error(), bound) {
					t.Errorf("%s with a TTL of %v: %v, want ErrInvalid that says %q", what, ttl, err, bound)
				}
			}
		}
		if n := b.store.called("acquire") + b.store.called("wait"); n != 0 {
			t.Errorf("%d requests were sent, want none", n)
		}
		for _, ttl := range []time.Duration{0, 5 * time.Second, time.Minute} {
			b.release(b.acquire(lock.With(leasehold.LockOptions{TTL: ttl})))
		}
	})
}

func TestBadInputIsRefusedBeforeAnythingIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		s := time.Second
		for what, lock := range map[string]*leasehold.Lock{
			"empty name":           b.c.Mutex(""),
			"long name":            b.c.Mutex(strings.Repeat("x", 1025)),
			"negative TTL":         b.c.Mutex("a").With(leasehold.LockOptions{TTL: -s}),
			"TTL too short to use": b.c.Mutex("a").With(leasehold.LockOptions{TTL: 2 * time.Millisecond}),
			"negative tries":       b.c.Mutex("a").With(leasehold.LockOptions{Tries: -1}),
			"owner with a space":   b.c.Mutex("a").With(leasehold.LockOptions{Owner: "a b", Tries: 1}),
			"notice too long":      b.c.Mutex("a").With(leasehold.LockOptions{TTL: s, Notice: s}),
			"renewal too seldom":   b.c.Mutex("a").With(leasehold.LockOptions{TTL: s, RenewEvery: s}),
			"max hold too short":   b.c.Mutex("a").With(leasehold.LockOptions{MaxHold: time.Millisecond}),
			"min over max hold":    b.c.Mutex("a").With(leasehold.LockOptions{MinHold: 2 * s, MaxHold: s, TTL: s}),
			"min hold past notice": b.c.Mutex("a").With(leasehold.LockOptions{MinHold: 9 * s, NoRenew: true, TTL: 10 * s, Notice: 2 * s}),
			"min hold past TTL":    b.c.Mutex("a").With(leasehold.LockOptions{MinHold: 2 * s, NoRenew: true, TTL: s}),
			"renewal in a unit":    b.c.Mutex("a").With(leasehold.LockOptions{RenewEvery: 5}),
			"negative RenewEvery":  b.c.Mutex("a").With(leasehold.LockOptions{RenewEvery: -s}),
		} {
			if _, err := lock.Acquire(t.Context()); !errors.Is(err, leasehold.ErrInvalid) {
				t.Errorf("%s: %v, want ErrInvalid", what, err)
			}
		}
		if n := b.store.called("acquire"); n != 0 {
			t.Errorf("%d requests were sent, want none", n)
		}
	})
}

func TestWithChangesACopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		var ttl time.Duration
		b.store.onAcquire(func(ctx context.Context, r store.AcquireRequest) (store.Grant, error) {
			ttl = r.TTL
			return b.store.Engine.Acquire(ctx, r)
		})
		lock := b.c.Mutex("a")
		minute := lock.With(leasehold.LockOptions{TTL: time.Minute})
		purposeful := minute.With(leasehold.LockOptions{Purpose: "tests"})
		for _, c := range []struct {
			lock *leasehold.Lock
			want time.Duration
		}{{lock, leasehold.DefaultTTL}, {minute, time.Minute}, {purposeful, time.Minute}} {
			if b.release(b.acquire(c.lock)); ttl != c.want {
				t.Errorf("TTL %v, want %v", ttl, c.want)
			}
		}
	})
}

func TestBackoff(t *testing.T) {
	delay := leasehold.Backoff(10*time.Millisecond, 250*time.Millisecond)
	for try, most := range map[int]time.Duration{1: 10, 2: 20, 3: 40, 5: 160, 6: 250, 7: 250, 1000: 250} {
		for range 100 {
			if d := delay(try); d < most*time.Millisecond/2 || d > most*time.Millisecond {
				t.Fatalf("try %d: %v, want between half and all of %v", try, d, most*time.Millisecond)
			}
		}
	}
}

// A delay that cannot double any further is the most that was asked for.
func TestBackoffDoesNotOverflow(t *testing.T) {
	const longest = math.MaxInt64
	for _, c := range []struct{ least, most time.Duration }{{18 * time.Second, time.Hour}, {time.Hour, longest}, {1, longest}, {longest, longest}, {time.Hour, time.Second}} {
		delay := leasehold.Backoff(c.least, c.most)
		for try := range 200 {
			if d := delay(try); d < min(c.least, c.most)/2 || d > c.most || try > 100 && d < c.most/2 {
				t.Errorf("from %v to %v, try %d: %v", c.least, c.most, try, d)
			}
		}
	}
}

// A TTL that an error advises, and any longer one, can be used.
func TestLeastTTLCanBeUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		_, err := b.c.Mutex("a").With(leasehold.LockOptions{TTL: 2 * time.Millisecond}).Try(t.Context())
		if err == nil || !strings.Contains(err.Error(), "at least 3ms") {
			t.Fatalf("a TTL of 2ms: %v, want an error that advises 3ms", err)
		}
		for ttl := 3 * time.Millisecond; ttl < 100*time.Millisecond; ttl += 100 * time.Microsecond {
			l := b.acquire(b.c.Mutex("a").With(leasehold.LockOptions{TTL: ttl}))
			if time.Sleep(10 * ttl); l.Err() != nil {
				t.Errorf("a TTL of %v: %v after a while, want it renewed", ttl, l.Err())
			}
			b.release(l)
		}
	})
}

// Many goroutines of two clients take one lock. One of them holds it at a time, and tokens
// rise.
func TestMutualExclusion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		clients := []*leasehold.Client{b.c, b.other()}
		var wg sync.WaitGroup
		var inside, total int
		var last uint64
		for g := range 8 {
			wg.Go(func() {
				for range 20 {
					err := clients[g%2].Mutex("a").Do(t.Context(), func(ctx context.Context, l *leasehold.Lease) error {
						if inside++; inside != 1 {
							t.Errorf("%d holders at once, want 1", inside)
						}
						if uint64(l.Token()) <= last {
							t.Errorf("token %v, want more than the last one, %v", l.Token(), last)
						}
						last = uint64(l.Token())
						time.Sleep(time.Millisecond)
						total++
						inside--
						return nil
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if total != 160 {
			t.Errorf("%d turns, want 160", total)
		}
	})
}

// What the store would refuse is refused at once, also behind goroutines that wait for the lock.
func TestInvalidRequestsDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		lease, err := b.c.Mutex("a").Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		waiting := make(chan error)
		go func() {
			_, err := b.c.Mutex("a").Acquire(ctx)
			waiting <- err
		}()
		synctest.Wait()
		for what, l := range map[string]*leasehold.Lock{
			"a TTL without validity":                  b.c.Mutex("a").With(leasehold.LockOptions{TTL: time.Microsecond}),
			"two permits of a semaphore that has one": b.c.Semaphore("b", 1).With(leasehold.LockOptions{Weight: 2}),
		} {
			start := time.Now()
			if _, err := l.Acquire(t.Context()); !errors.Is(err, leasehold.ErrInvalid) {
				t.Errorf("%s: %v, want ErrInvalid", what, err)
			}
			if waited := time.Since(start); waited > 0 {
				t.Errorf("%s was refused after %v, want at once", what, waited)
			}
		}
		cancel()
		<-waiting
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
