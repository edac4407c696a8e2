package leasehold_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/memstore"
)

// queueStore is a scripted store with a queue.
type queueStore struct {
	*script
	under  store.Engine
	wait   func(context.Context, store.WaitRequest, func(error)) (store.Grant, error)
	look   func(context.Context, string) (store.State, error)
	now    atomic.Int32         // Waits under way
	asked  store.WaitRequest    // the last one
	gaveUp store.ReleaseRequest // the last request that was released
}

func (s *queueStore) onWait(f func(context.Context, store.WaitRequest, func(error)) (store.Grant, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wait = f
}

func (s *queueStore) onInspect(f func(context.Context, string) (store.State, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.look = f
}

func (s *queueStore) Inspect(ctx context.Context, name string) (store.State, error) {
	if f := called(s.script, "inspect", &s.look); f != nil {
		return f(ctx, name)
	}
	return s.under.Inspect(ctx, name)
}

func (s *queueStore) Caps() store.Caps {
	c := s.script.Caps()
	c.NoQueue = false
	return c
}

func (s *queueStore) Wait(ctx context.Context, r store.WaitRequest, reason func(error)) (store.Grant, error) {
	s.now.Add(1)
	defer s.now.Add(-1)
	f := called(s.script, "wait", &s.wait)
	s.mu.Lock()
	s.asked = r
	s.mu.Unlock()
	if f != nil {
		return f(ctx, r, reason)
	}
	return s.under.Wait(ctx, r, reason)
}

func (s *queueStore) Release(ctx context.Context, r store.ReleaseRequest) error {
	s.mu.Lock()
	s.gaveUp = r
	s.mu.Unlock()
	return s.script.Release(ctx, r)
}

// queueBench is a bench whose store has a queue.
type queueBench struct {
	*bench
	waiter *queueStore
	o      leasehold.Options
}

func newQueueBench(t *testing.T, o leasehold.Options) *queueBench {
	v := newVirtual()
	m := memstore.New(&memstore.Options{Clock: v})
	t.Cleanup(func() { m.Close() })
	s := &queueStore{script: scripted(m), under: m}
	o.Clock = v
	b := &queueBench{bench: &bench{t: t, clock: v, store: s.script}, waiter: s, o: o}
	b.c = leasehold.New(store.New(s), &o)
	t.Cleanup(func() {
		synctest.Wait()
		if n := b.c.Queues(); n != 0 {
			t.Errorf("%d queues are left in the client at the end, want none", n)
		}
		if n := s.now.Load(); n != 0 {
			t.Errorf("%d Waits are under way at the end, want none", n)
		}
	})
	return b
}

// inQueue runs f in a bubble, with a client whose store has a queue.
func inQueue(t *testing.T, o leasehold.Options, f func(*testing.T, *queueBench)) {
	synctest.Test(t, func(t *testing.T) { f(t, newQueueBench(t, o)) })
}

// turn is one goroutine's call of Acquire, and its result.
type turn struct {
	b      *queueBench
	lease  *leasehold.Lease
	err    error
	at     time.Time
	cancel context.CancelFunc
	done   chan struct{}
}

// queue calls Acquire in a goroutine, and returns when that waits or has returned.
func (b *queueBench) queue(l *leasehold.Lock) *turn { return b.queueWith(b.t.Context(), l) }

// queueWith is queue with a context.
func (b *queueBench) queueWith(ctx context.Context, l *leasehold.Lock) *turn {
	w := &turn{b: b, done: make(chan struct{})}
	ctx, cancel := context.WithCancel(ctx)
	w.cancel = cancel
	go func() {
		defer close(w.done)
		w.lease, w.err = l.Acquire(ctx)
		w.at = time.Now()
	}()
	synctest.Wait()
	return w
}

// got waits for the lease. The test fails if the wait ends with an error.
func (w *turn) got() *leasehold.Lease {
	w.b.t.Helper()
	<-w.done
	if w.err != nil {
		w.b.t.Fatal(w.err)
	}
	return w.lease
}

// waits reports whether the wait goes on.
func (w *turn) waits() bool {
	synctest.Wait()
	select {
	case <-w.done:
		return false
	default:
		return true
	}
}

// gaveUp cancels the wait and returns its error.
func (w *turn) gaveUp() error {
	w.b.t.Helper()
	w.cancel()
	<-w.done
	if w.err == nil {
		w.b.t.Fatal("a wait whose context ended returned a lease, want an error")
	}
	return w.err
}

// grantedTooLate makes each Wait release first, and return a grant, after its context has
// ended.
func (b *queueBench) grantedTooLate(first *leasehold.Lease) {
	b.waiter.onWait(func(ctx context.Context, r store.WaitRequest, reason func(error)) (store.Grant, error) {
		reason(&leasehold.BusyError{Name: r.Name})
		<-ctx.Done()
		b.release(first)
		return b.store.Engine.Acquire(context.WithoutCancel(ctx), store.AcquireRequest(r))
	})
}

// strangers returns a client of the same locks, as another process has it.
func (b *queueBench) strangers() *leasehold.Client {
	o := b.o
	o.Observer = nil
	return leasehold.New(store.New(b.waiter.under), &o)
}

// inQueueNow returns how many places the store's queue has.
func (b *queueBench) inQueueNow(name string) int {
	b.t.Helper()
	synctest.Wait()
	st, err := b.store.Inspect(b.t.Context(), name)
	if err != nil {
		b.t.Fatal(err)
	}
	return len(st.Queue)
}

var errNodesAway = &store.QuorumError{Op: "wait", Need: 1, Nodes: []store.NodeOutcome{{Node: "n1", Outcome: store.Unreachable}}}

// However many goroutines wait, the process has one place in the queue, and they get the
// lock in the order of arrival.
func TestOneWaiterPerProcess(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		first := b.acquire(b.strangers().Mutex("a"))
		var turns []*turn
		for range 10 {
			turns = append(turns, b.queue(b.c.Mutex("a")))
		}
		if n, places := b.waiter.now.Load(), b.inQueueNow("a"); n != 1 || places != 1 {
			t.Errorf("%d Waits under way and %d places for 10 goroutines, want one of each", n, places)
		}
		last := first.Token()
		b.release(first)
		for i, w := range turns {
			l := w.got()
			for j, other := range turns[i+1:] {
				if !other.waits() {
					t.Fatalf("waiter %d has the lock beside waiter %d, or before its turn", i+1+j+1, i+1)
				}
			}
			if l.Token() <= last {
				t.Errorf("token %v, want more than the last one, %v", l.Token(), last)
			}
			last = l.Token()
			b.release(l)
		}
		if n := b.store.called("acquire"); n != 1 {
			t.Errorf("%d attempts besides the wait, want only that of the first waiter", n)
		}
	})
}

// If a goroutine of the package waits in the store's queue, the place is kept for the
// waiters that are left, also if the waiter leaves for which the place was taken.
func TestPlaceOutlastsItsWaiter(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		first := b.acquire(b.strangers().Mutex("a"))
		ours := b.queue(b.c.Mutex("a").With(leasehold.LockOptions{OnWait: func(error) {}}))
		behind := b.queue(b.c.Mutex("a"))
		stranger := b.queue(b.strangers().Mutex("a"))
		if err := ours.gaveUp(); !errors.Is(err, context.Canceled) || !errors.Is(err, leasehold.ErrBusy) {
			t.Errorf("cancelled wait: %v, want both Canceled and ErrBusy", err)
		}
		b.release(first)
		if !stranger.waits() {
			t.Fatal("a later waiter of another process got the lock first")
		}
		b.release(behind.got())
		b.release(stranger.got())
		if n := b.store.called("wait"); n != 1 {
			t.Errorf("%d Waits, want one", n)
		}
	})
}

// When the last waiter leaves, the place is given up before its Acquire returns.
func TestLastWaiterGivesThePlaceUp(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		first := b.acquire(b.strangers().Mutex("a"))
		x, y := b.queue(b.c.Mutex("a")), b.queue(b.c.Mutex("a"))
		y.gaveUp()
		if n := b.inQueueNow("a"); n != 1 {
			t.Errorf("%d places while one goroutine waits, want 1", n)
		}
		x.gaveUp()
		if st, _ := b.store.Inspect(t.Context(), "a"); len(st.Queue) != 0 {
			t.Errorf("the queue is %v when all waiters have left, want it empty", st.Queue)
		}
		z := b.queue(b.c.Mutex("a"))
		b.release(first)
		b.release(z.got())
		if b.held("a") {
			t.Error("still held after the last release")
		}
	})
}

// A grant that arrives when no waiter is left is released.
func TestUnwantedGrantIsReleased(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		first := b.acquire(b.strangers().Mutex("a"))
		b.grantedTooLate(first)
		w := b.queue(b.c.Mutex("a"))
		w.gaveUp()
		if b.held("a") {
			t.Error("a grant that arrived when no waiter was left still holds the lock")
		}
	})
}

// Validity counts from when the granted request was sent, however late the grant arrives.
func TestGrantCountsFromItsRequest(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		first := b.acquire(b.strangers().Mutex("a"))
		b.waiter.onWait(func(ctx context.Context, r store.WaitRequest, reason func(error)) (store.Grant, error) {
			reason(&leasehold.BusyError{Name: r.Name})
			time.Sleep(10 * time.Second)
			b.release(first)
			g, err := b.store.Engine.Acquire(ctx, store.AcquireRequest(r))
			time.Sleep(time.Second)
			g.Since, g.Lease.Repeated = 10*time.Second, true
			return g, err
		})
		l := b.acquire(b.c.Mutex("a").With(leasehold.LockOptions{TTL: short.TTL, NoRenew: true}))
		if left := time.Until(l.Deadline()); left > 2*time.Second || left < 1900*time.Millisecond {
			t.Errorf("a second after the request a lease of 3 s is valid for %v more, want just under 2s", left)
		}
		b.release(l)
		if !b.waiter.gaveUp.Renewed {
			t.Error("the release does not say that requests were repeated")
		}
	})
}

// A grant that arrives after its validity has ended is released, and the client asks for
// the lock again.
func TestLateGrantIsAskedForAgain(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		first := b.acquire(b.strangers().Mutex("a"))
		var late store.WaitRequest
		b.waiter.onWait(func(ctx context.Context, r store.WaitRequest, reason func(error)) (store.Grant, error) {
			late = r
			b.waiter.onWait(nil)
			b.release(first)
			g, err := b.store.Engine.Acquire(ctx, store.AcquireRequest(r))
			time.Sleep(2900 * time.Millisecond)
			return g, err
		})
		var reasons []error
		o := short
		o.OnWait = func(reason error) { reasons = append(reasons, reason) }
		l := b.acquire(b.c.Mutex("a").With(o))
		if l.Owner() == late.Owner || b.waiter.gaveUp.Owner != late.Owner || len(reasons) == 0 || !errors.Is(reasons[len(reasons)-1], leasehold.ErrLost) {
			t.Errorf("the lease has the owner %v, want another than %v of the late grant; released %v, want that of the late grant; reasons to wait %v, want ErrLost last", l.Owner(), late.Owner, b.waiter.gaveUp.Owner, reasons)
		}
		b.release(l)
	})
}

// Goroutines that want a lock with different options do not share a place.
func TestOtherOptionsAreNotShared(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		first := b.acquire(b.strangers().Mutex("a"))
		lock := b.c.Mutex("a")
		var turns []*turn
		for i, o := range []leasehold.LockOptions{
			{}, {TTL: time.Minute}, {Notice: time.Second}, {MaxHold: time.Hour}, {NoRenew: true}, {Require: store.CrashSafe}, {Purpose: "x"}, {},
		} {
			w := b.queue(lock.With(o))
			turns = append(turns, w)
			if n := int(b.waiter.now.Load()); n != min(i+1, 7) {
				t.Errorf("%d Waits under way with %+v, want %d", n, o, min(i+1, 7))
			}
		}
		b.release(first)
		owners := map[string]bool{}
		for range turns {
			for _, w := range turns {
				if !w.waits() && w.err == nil && w.lease.Err() == nil {
					owners[w.lease.Owner()] = true
					b.release(w.lease)
				}
			}
		}
		if len(owners) != len(turns) {
			t.Errorf("%d owners of %d leases, want one each", len(owners), len(turns))
		}
	})
}

// OnWait reports each waiter's own position, among the waiters of this process and of others.
func TestOnWaitReportsThePosition(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		positions := make([]int, 3)
		lock := func(i int) *leasehold.Lock {
			return b.c.Mutex("a").With(leasehold.LockOptions{OnWait: func(reason error) {
				var busy *leasehold.BusyError
				if !errors.As(reason, &busy) || busy.ExpiresIn <= 0 || busy.Holder.PID == 0 {
					t.Errorf("the reason to wait is %#v, want a BusyError with a holder and its expiry", reason)
					return
				}
				positions[i] = busy.Position
			}})
		}
		first := b.acquire(b.strangers().Mutex("a"))
		stranger := b.queue(b.strangers().Mutex("a"))
		turns := []*turn{b.queue(lock(0)), b.queue(lock(1)), b.queue(lock(2))}
		synctest.Wait()
		if positions[0] != 2 || positions[1] != 3 || positions[2] != 4 {
			t.Errorf("positions %v behind a waiter of another process, want 2 3 4", positions)
		}
		b.release(first)
		synctest.Wait()
		if positions[0] != 1 || positions[1] != 2 || positions[2] != 3 {
			t.Errorf("positions %v after that waiter has got the lock, want 1 2 3", positions)
		}
		b.release(stranger.got())
		synctest.Wait()
		if positions[1] != 1 || positions[2] != 2 {
			t.Errorf("positions %v after the first waiter has got the lock, want 1 and 2 for the others", positions)
		}
		for _, w := range turns {
			b.release(w.got())
		}
	})
}

// Each waiter waits for unreachable nodes for its TTL, and for nodes in quarantine for as
// long as the quarantine lasts.
func TestTroubleWhileWaiting(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		trouble := func(reason error) {
			b.store.onAcquire(func(context.Context, store.AcquireRequest) (store.Grant, error) { return store.Grant{}, reason })
			b.waiter.onWait(func(ctx context.Context, r store.WaitRequest, tell func(error)) (store.Grant, error) {
				tell(reason)
				<-ctx.Done()
				return store.Grant{}, ctx.Err()
			})
		}
		trouble(errNodesAway)
		start := time.Now()
		x := b.queue(b.c.Mutex("a").With(short))
		time.Sleep(short.TTL / 2)
		y := b.queue(b.c.Mutex("a").With(short))
		<-x.done
		if waited := x.at.Sub(start); !errors.Is(x.err, leasehold.ErrQuorum) || waited < short.TTL || waited > short.TTL+time.Second {
			t.Errorf("with the store unreachable: %v after %v, want ErrQuorum after the TTL of %v", x.err, waited, short.TTL)
		}
		<-y.done
		if waited := y.at.Sub(start); !errors.Is(y.err, leasehold.ErrQuorum) || waited < short.TTL*3/2 || waited > short.TTL*3/2+time.Second {
			t.Errorf("a waiter that came half a TTL later: %v after %v, want ErrQuorum after %v", y.err, waited, short.TTL*3/2)
		}
		trouble(&store.QuorumError{Op: "wait", Need: 1, Nodes: []store.NodeOutcome{{Node: "n1", Outcome: store.Quarantined, ExpiresIn: time.Minute}}})
		x = b.queue(b.c.Mutex("a").With(short))
		time.Sleep(10 * short.TTL)
		if !x.waits() {
			t.Errorf("the wait ended during the quarantine: %v", x.err)
		}
		x.gaveUp()
		if !errors.Is(x.err, leasehold.ErrQuorum) || !errors.Is(x.err, context.Canceled) {
			t.Errorf("cancelled during a quarantine: %v, want ErrQuorum and Canceled", x.err)
		}
	})
}

// Once a trouble of the store has passed, a waiter waits for its whole TTL for the next one
// to pass.
func TestTroubleWhileWaitingHeals(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		first := b.acquire(b.strangers().Mutex("a"))
		b.waiter.onWait(func(ctx context.Context, r store.WaitRequest, reason func(error)) (store.Grant, error) {
			start := time.Now()
			for range 5 {
				reason(errNodesAway)
				time.Sleep(short.TTL * 2 / 3)
				reason(&leasehold.BusyError{Name: r.Name})
				time.Sleep(short.TTL)
			}
			before := time.Since(start)
			g, err := b.waiter.under.Wait(ctx, r, reason)
			g.Since += before
			return g, err
		})
		w := b.queue(b.c.Mutex("a").With(short))
		time.Sleep(10 * short.TTL)
		if !w.waits() {
			t.Fatalf("the wait ended with %v, want it to outlast several short troubles", w.err)
		}
		b.release(first)
		b.release(w.got())
	})
}

// An error that waiting cannot mend is returned to every waiter.
func TestErrorEndsAllWaits(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		first := b.acquire(b.strangers().Mutex("a"))
		broken := errors.New("disk is full")
		b.waiter.onWait(func(ctx context.Context, r store.WaitRequest, reason func(error)) (store.Grant, error) {
			time.Sleep(time.Second)
			return store.Grant{}, broken
		})
		x, y := b.queue(b.c.Mutex("a")), b.queue(b.c.Mutex("a"))
		<-x.done
		<-y.done
		if !errors.Is(x.err, broken) || !errors.Is(y.err, broken) {
			t.Errorf("the waits ended with %v and %v, want the store's error for both", x.err, y.err)
		}
		b.release(first)
	})
}

// If the lock was busy the last time, the next waiter queues without an attempt. If it was
// free, the waiter tries to acquire it first.
func TestTriesOnceWithoutContention(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		asked := func(acquires, waits int) {
			t.Helper()
			if a, w := b.store.called("acquire"), b.store.called("wait"); a != acquires || w != waits {
				t.Errorf("%d acquires and %d waits, want %d and %d", a, w, acquires, waits)
			}
		}
		for range 3 {
			b.release(b.acquire(b.c.Mutex("a")))
		}
		asked(3, 0)
		for i := range 3 {
			first := b.acquire(b.strangers().Mutex("a"))
			w := b.queue(b.c.Mutex("a"))
			asked(4, i+1)
			b.release(first)
			b.release(w.got())
		}
		b.release(b.acquire(b.c.Mutex("a")))
		asked(4, 4)
		b.release(b.acquire(b.c.Mutex("a")))
		asked(5, 4)
	})
}

// Attempts with a bound do not join the queue.
func TestBoundedTriesDoNotQueue(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		first := b.acquire(b.c.Mutex("a"))
		lock := b.c.Mutex("a")
		lock.Try(t.Context())
		lock.With(leasehold.LockOptions{Tries: 3}).Acquire(t.Context())
		lock.With(leasehold.LockOptions{Tries: 1, Owner: "me"}).Acquire(t.Context())
		if n := b.store.called("wait"); n != 0 {
			t.Errorf("%d Waits, want none", n)
		}
		b.release(first)
	})
}

// Processes take turns, however many goroutines each of them has.
func TestProcessesTakeTurns(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		first := b.acquire(b.c.Mutex("a"))
		clients := []*leasehold.Client{b.c, b.strangers()}
		var waiting [2][]*turn
		for _, n := range []int{3, 2} {
			for who := range clients {
				for range n {
					waiting[who] = append(waiting[who], b.queue(clients[who].Mutex("a")))
				}
			}
		}
		b.release(first)
		for i := range 10 {
			who := i % 2
			l := waiting[who][0].got()
			synctest.Wait() // the client takes its next place
			b.release(l)
			waiting[who] = waiting[who][1:]
		}
	})
}
