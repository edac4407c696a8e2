package leasehold_test

import (
	"context"
	"errors"
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
				t.Errorf("waiting because %v", reason)
			}
		}}))
		if second.Token() <= first.Token() {
			t.Errorf("token %v after %v", second.Token(), first.Token())
		}
		if reasons == 0 {
			t.Error("nobody was told of the wait")
		}
		b.release(second)
	})
}

// A holder that died is waited for until its TTL is over, and not much longer.
func TestAcquireAfterADeadHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		_, err := b.store.Store.Acquire(t.Context(), store.AcquireRequest{Lease: store.Lease{Name: "a", Owner: "dead", TTL: 10 * time.Second}})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		b.release(b.acquire(b.c.Mutex("a")))
		if waited := time.Since(start); waited < 10*time.Second || waited > 10*time.Second+10*time.Millisecond {
			t.Errorf("waited %v for a lease of 10 s", waited)
		}
	})
}

// A waiter is told if it is removed from the queue, for example by "leasehold release" with
// its owner. The error names the lock.
func TestRemovedWaiterIsToldSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		first := b.acquire(b.c.Mutex("a"))
		go func() {
			time.Sleep(time.Second)
			st, err := b.store.Inspect(t.Context(), "a")
			if err != nil || len(st.Queue) != 1 {
				t.Errorf("%+v, %v", st, err)
				return
			}
			of := store.Lease{Name: "a", Owner: st.Queue[0].Holder.Owner}
			if err := b.store.Release(t.Context(), store.ReleaseRequest{Lease: of}); !errors.Is(err, store.ErrNotHeld) {
				t.Errorf("released a waiter: %v", err)
			}
		}()
		_, err := b.other().Mutex("a").Acquire(t.Context())
		if !errors.Is(err, store.ErrNotHeld) || !strings.Contains(err.Error(), `wait for "a": somebody has removed this waiter from the queue`) {
			t.Errorf("the wait ended with %v", err)
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
			t.Errorf("evidence: %+v", busy)
		}
		why := errors.New("shutting down")
		ctx2, stop := context.WithCancelCause(t.Context())
		stop(why)
		_, err = b.other().Mutex("a").Acquire(ctx2)
		if !errors.Is(err, context.Canceled) || !errors.Is(err, why) {
			t.Errorf("with a cause: %v", err)
		}
		ctx3, cancel3 := context.WithTimeoutCause(t.Context(), time.Second, why)
		defer cancel3()
		_, err = b.other().Mutex("a").Acquire(ctx3)
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, why) || !errors.Is(err, leasehold.ErrBusy) || strings.Contains(err.Error(), "\n") {
			t.Errorf("after a wait, with a cause: %q, want it in one line", err)
		}
		b.release(first)
		if b.held("a") {
			t.Error("a cancelled wait left something behind")
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
			t.Errorf("err %v", err)
		}
		if n := b.store.called("acquire"); n != 6 || len(delays) != 4 || time.Since(start) != 4*time.Second {
			t.Errorf("%d requests, delays after tries %v, %v", n, delays, time.Since(start))
		}
		b.release(first)
	})
}

// Every attempt has an owner of its own: the clean-up of one attempt must
// never hit the next.
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
			t.Errorf("%d owners for 20 attempts", len(owners))
		}
		for o := range owners {
			if len(o) < 27 {
				t.Errorf("owner %q has fewer than 20 random bytes", o)
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
		if err != nil || l.Owner() != "deploy-42" {
			t.Fatalf("try: %v, owner %q", err, l.Owner())
		}
		// The same owner in another process is the same holder.
		same, err := b.other().Mutex("a").With(leasehold.LockOptions{Owner: "deploy-42"}).Try(t.Context())
		if err != nil || same.Token() != l.Token() {
			t.Fatalf("the same owner again: %v", err)
		}
		b.release(l)
	})
}

// Nodes that are away are waited for, for a TTL; what waiting cannot mend is
// returned at once.
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
			t.Errorf("a store that stays away: %v after %v", err, waited)
		}
		answer(store.Refused)
		start = time.Now()
		_, err = b.c.Mutex("a").Acquire(t.Context())
		if waited := time.Since(start); !errors.Is(err, leasehold.ErrQuorum) || waited != 0 {
			t.Errorf("a store that refuses: %v after %v", err, waited)
		}
		if !strings.Contains(err.Error(), "n1") {
			t.Errorf("%v does not name the node", err)
		}
		broken := errors.New("disk is full")
		b.store.onAcquire(func(context.Context, store.AcquireRequest) (store.Grant, error) { return store.Grant{}, broken })
		if _, err = b.c.Mutex("a").Acquire(t.Context()); !errors.Is(err, broken) {
			t.Errorf("the engine's own error: %v", err)
		}
	})
}

// Nodes in quarantine are waited for as long as it lasts, which is longer than
// a TTL; a minority of them keeps nobody waiting.
func TestWaitsOutAQuarantine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		opens := time.Now().Add(time.Minute)
		refuse := func(outcomes ...store.Outcome) {
			b.store.onAcquire(func(ctx context.Context, r store.AcquireRequest) (store.Grant, error) {
				left := time.Until(opens)
				if left <= 0 {
					return b.store.Store.Acquire(ctx, r)
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
			t.Errorf("waited for %v, want a minute", waited)
		}
		opens = time.Now().Add(time.Minute)
		refuse(store.Quarantined, store.Unreachable, store.Unreachable)
		start = time.Now()
		if _, err := b.c.Mutex("a").With(short).Acquire(t.Context()); !errors.Is(err, leasehold.ErrQuorum) || time.Since(start) > 2*short.TTL {
			t.Errorf("most nodes are away, one is in quarantine: %v after %v", err, time.Since(start))
		}
	})
}

// A lock may demand more than the store gives, and is then refused.
func TestRequire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		var asked store.AcquireRequest
		b.store.onAcquire(func(ctx context.Context, r store.AcquireRequest) (store.Grant, error) {
			asked = r
			return b.store.Store.Acquire(ctx, r)
		})
		b.release(b.acquire(b.c.Mutex("a").With(leasehold.LockOptions{Require: store.CrashSafe})))
		if asked.Require != store.CrashSafe {
			t.Errorf("the store was asked for %v", asked.Require)
		}
		n := b.store.called("acquire")
		_, err := b.c.Mutex("a").With(leasehold.LockOptions{Require: store.Consensus}).Acquire(t.Context())
		if !errors.Is(err, leasehold.ErrUnsupported) || !strings.Contains(err.Error(), "crash-safe at most") {
			t.Errorf("more than the store gives: %v", err)
		}
		if b.store.called("acquire") != n {
			t.Error("a request was sent")
		}
	})
}

// bounded is a store whose TTLs have bounds, and which leaves checking them to the client.
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
		lock := leasehold.New(bounded{b.store}, &leasehold.Options{Clock: b.clock}).Mutex("a")
		for ttl, bound := range map[time.Duration]string{5*time.Second - 1: "minimum is 5s", time.Minute + 1: "maximum of 1m0s"} {
			lock := lock.With(leasehold.LockOptions{TTL: ttl})
			for what, ask := range map[string]func(context.Context) (*leasehold.Lease, error){"acquire": lock.Acquire, "try": lock.Try} {
				if _, err := ask(t.Context()); !errors.Is(err, leasehold.ErrInvalid) || !strings.Contains(err.Error(), bound) {
					t.Errorf("%s with a TTL of %v: %v", what, ttl, err)
				}
			}
		}
		if n := b.store.called("acquire") + b.store.called("wait"); n != 0 {
			t.Errorf("%d requests were sent", n)
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
			"empty name":          b.c.Mutex(""),
			"long name":           b.c.Mutex(strings.Repeat("x", 1025)),
			"negative TTL":        b.c.Mutex("a").With(leasehold.LockOptions{TTL: -s}),
			"TTL without use":     b.c.Mutex("a").With(leasehold.LockOptions{TTL: 2 * time.Millisecond}),
			"negative tries":      b.c.Mutex("a").With(leasehold.LockOptions{Tries: -1}),
			"owner with a space":  b.c.Mutex("a").With(leasehold.LockOptions{Owner: "a b", Tries: 1}),
			"notice too long":     b.c.Mutex("a").With(leasehold.LockOptions{TTL: s, Notice: s}),
			"renewal too seldom":  b.c.Mutex("a").With(leasehold.LockOptions{TTL: s, RenewEvery: s}),
			"max hold too short":  b.c.Mutex("a").With(leasehold.LockOptions{MaxHold: time.Millisecond}),
			"min over max hold":   b.c.Mutex("a").With(leasehold.LockOptions{MinHold: 2 * s, MaxHold: s, TTL: s}),
			"min hold, told":      b.c.Mutex("a").With(leasehold.LockOptions{MinHold: 9 * s, NoRenew: true, TTL: 10 * s, Notice: 2 * s}),
			"min hold, not kept":  b.c.Mutex("a").With(leasehold.LockOptions{MinHold: 2 * s, NoRenew: true, TTL: s}),
			"negative RenewEvery": b.c.Mutex("a").With(leasehold.LockOptions{RenewEvery: -s}),
		} {
			if _, err := lock.Acquire(t.Context()); !errors.Is(err, leasehold.ErrInvalid) {
				t.Errorf("%s: %v, want ErrInvalid", what, err)
			}
		}
		if n := b.store.called("acquire"); n != 0 {
			t.Errorf("%d requests were sent", n)
		}
	})
}

func TestWithChangesACopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		var ttl time.Duration
		b.store.onAcquire(func(ctx context.Context, r store.AcquireRequest) (store.Grant, error) {
			ttl = r.TTL
			return b.store.Store.Acquire(ctx, r)
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

// Many goroutines of two clients, one lock: never two inside, tokens rise.
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
							t.Errorf("%d inside", inside)
						}
						if uint64(l.Token()) <= last {
							t.Errorf("token %v after %v", l.Token(), last)
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
