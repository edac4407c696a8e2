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

// line is a scripted store that keeps a queue.
type line struct {
	*script
	under   store.Waiter
	wait    func(context.Context, store.WaitRequest, func(error)) (store.Grant, error)
	reserve func(context.Context, store.ReserveRequest) (store.Reserved, error)
	look    func(context.Context, string) (store.State, error)
	now     atomic.Int32 // Waits under way
	asked   store.WaitRequest
	gaveUp  store.ReleaseRequest // the last request that was released
}

func (s *line) onWait(f func(context.Context, store.WaitRequest, func(error)) (store.Grant, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wait = f
}

func (s *line) onReserve(f func(context.Context, store.ReserveRequest) (store.Reserved, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reserve = f
}

func (s *line) onInspect(f func(context.Context, string) (store.State, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.look = f
}

func (s *line) Inspect(ctx context.Context, name string) (store.State, error) {
	if f := called(s.script, "inspect", &s.look); f != nil {
		return f(ctx, name)
	}
	return s.under.Inspect(ctx, name)
}

func (s *line) Wait(ctx context.Context, r store.WaitRequest, reason func(error)) (store.Grant, error) {
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

func (s *line) ReserveTokens(ctx context.Context, r store.ReserveRequest) (store.Reserved, error) {
	if f := called(s.script, "reserve", &s.reserve); f != nil {
		return f(ctx, r)
	}
	return s.under.ReserveTokens(ctx, r)
}

func (s *line) Release(ctx context.Context, r store.ReleaseRequest) error {
	s.mu.Lock()
	s.gaveUp = r
	s.mu.Unlock()
	return s.script.Release(ctx, r)
}

// lineBench is a bench whose store keeps a queue.
type lineBench struct {
	*bench
	line *line
	o    leasehold.Options
}

func newLineBench(t *testing.T, o leasehold.Options) *lineBench {
	v := newVirtual()
	m := memstore.New(&memstore.Options{Clock: v})
	t.Cleanup(func() { m.Close() })
	s := &line{script: scripted(m), under: m}
	o.Clock = v
	b := &lineBench{bench: &bench{t: t, clock: v, store: s.script}, line: s, o: o}
	b.c = leasehold.New(s, &o)
	t.Cleanup(func() {
		synctest.Wait()
		if n := b.c.Queues(); n != 0 {
			t.Errorf("%d queues are left", n)
		}
		if n := s.now.Load(); n != 0 {
			t.Errorf("%d Waits are left", n)
		}
	})
	return b
}

// inLine runs f in a bubble, with a client whose store keeps a queue.
func inLine(t *testing.T, o leasehold.Options, f func(*testing.T, *lineBench)) {
	synctest.Test(t, func(t *testing.T) { f(t, newLineBench(t, o)) })
}

// turn is one goroutine's wait for a lock, and what came of it.
type turn struct {
	b      *lineBench
	lease  *leasehold.Lease
	err    error
	at     time.Time
	cancel context.CancelFunc
	done   chan struct{}
}

// queue begins to wait for l, and returns when it does. The lease is kept.
func (b *lineBench) queue(l *leasehold.Lock) *turn { return b.queueWith(b.t.Context(), l) }

// queueWith is queue with a context.
func (b *lineBench) queueWith(ctx context.Context, l *leasehold.Lock) *turn {
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

// got is the lease that the wait ended with.
func (w *turn) got() *leasehold.Lease {
	w.b.t.Helper()
	<-w.done
	if w.err != nil {
		w.b.t.Fatal(w.err)
	}
	return w.lease
}

// waits says whether it still does.
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
		w.b.t.Fatal("a wait whose context ended gave a lease")
	}
	return w.err
}

// grantedTooLate has each Wait end with a grant of what first held, when its context
// has ended.
func (b *lineBench) grantedTooLate(first *leasehold.Lease) {
	b.line.onWait(func(ctx context.Context, r store.WaitRequest, reason func(error)) (store.Grant, error) {
		reason(&leasehold.BusyError{Name: r.Name})
		<-ctx.Done()
		b.release(first)
		return b.store.Store.Acquire(context.WithoutCancel(ctx), store.AcquireRequest{Lease: r.Lease, Spare: r.Spare})
	})
}

// strangers is another process over the same locks.
func (b *lineBench) strangers() *leasehold.Client {
	o := b.o
	o.Observer = nil
	return leasehold.New(b.line.under, &o)
}

// inLineNow is how many places the store's queue has.
func (b *lineBench) inLineNow(name string) int {
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
	inLine(t, leasehold.Options{}, func(t *testing.T, b *lineBench) {
		first := b.acquire(b.strangers().Mutex("a"))
		var turns []*turn
		for range 10 {
			turns = append(turns, b.queue(b.c.Mutex("a")))
		}
		if n, places := b.line.now.Load(), b.inLineNow("a"); n != 1 || places != 1 {
			t.Errorf("%d Waits under way and %d places for 10 goroutines, want one", n, places)
		}
		last := first.Token()
		b.release(first)
		for i, w := range turns {
			l := w.got()
			for j, other := range turns[i+1:] {
				if !other.waits() {
					t.Fatalf("number %d was served with number %d", i+1+j+1, i+1)
				}
			}
			if l.Token() <= last {
				t.Errorf("token %v after %v", l.Token(), last)
			}
			last = l.Token()
			b.release(l)
		}
		if n := b.store.called("acquire"); n != 1 {
			t.Errorf("%d attempts besides, want the first one's only", n)
		}
	})
}

// When the goroutine leaves for which the place was taken, the place is kept for those
// behind it, unless that goroutine waited there itself.
func TestPlaceOutlastsItsWaiter(t *testing.T) {
	inLine(t, leasehold.Options{}, func(t *testing.T, b *lineBench) {
		first := b.acquire(b.strangers().Mutex("a"))
		ours := b.queue(b.c.Mutex("a").With(leasehold.LockOptions{OnWait: func(error) {}}))
		behind := b.queue(b.c.Mutex("a"))
		stranger := b.queue(b.strangers().Mutex("a"))
		if err := ours.gaveUp(); !errors.Is(err, context.Canceled) || !errors.Is(err, leasehold.ErrBusy) {
			t.Errorf("cancelled wait: %v, want both Canceled and ErrBusy", err)
		}
		b.release(first)
		if !stranger.waits() {
			t.Fatal("a later waiter was served first")
		}
		b.release(behind.got())
		b.release(stranger.got())
		if n := b.store.called("wait"); n != 1 {
			t.Errorf("%d Waits, want one", n)
		}
	})
}

// When the last one leaves, the place is given up before its wait returns.
func TestLastWaiterGivesThePlaceUp(t *testing.T) {
	inLine(t, leasehold.Options{}, func(t *testing.T, b *lineBench) {
		first := b.acquire(b.strangers().Mutex("a"))
		x, y := b.queue(b.c.Mutex("a")), b.queue(b.c.Mutex("a"))
		y.gaveUp()
		if n := b.inLineNow("a"); n != 1 {
			t.Errorf("%d places while one goroutine waits", n)
		}
		x.gaveUp()
		if st, _ := b.store.Inspect(t.Context(), "a"); len(st.Queue) != 0 {
			t.Errorf("the queue is %v when all have left", st.Queue)
		}
		z := b.queue(b.c.Mutex("a"))
		b.release(first)
		b.release(z.got())
		if b.held("a") {
			t.Error("somebody still has it")
		}
	})
}

// A grant that arrives when no waiter is left is released.
func TestUnwantedGrantIsReleased(t *testing.T) {
	inLine(t, leasehold.Options{}, func(t *testing.T, b *lineBench) {
		first := b.acquire(b.strangers().Mutex("a"))
		b.grantedTooLate(first)
		w := b.queue(b.c.Mutex("a"))
		w.gaveUp()
		if b.held("a") {
			t.Error("a lock that nobody wants is still held")
		}
	})
}

// Validity counts from when the granted request was sent, however long the grant was on
// the way.
func TestGrantCountsFromItsRequest(t *testing.T) {
	inLine(t, leasehold.Options{}, func(t *testing.T, b *lineBench) {
		first := b.acquire(b.strangers().Mutex("a"))
		b.line.onWait(func(ctx context.Context, r store.WaitRequest, reason func(error)) (store.Grant, error) {
			reason(&leasehold.BusyError{Name: r.Name})
			time.Sleep(10 * time.Second)
			b.release(first)
			g, err := b.store.Store.Acquire(ctx, store.AcquireRequest{Lease: r.Lease, Spare: r.Spare})
			time.Sleep(time.Second)
			g.Since, g.Repeated = 10*time.Second, true
			return g, err
		})
		l := b.acquire(b.c.Mutex("a").With(leasehold.LockOptions{TTL: short.TTL, NoRenew: true}))
		if left := time.Until(l.Deadline()); left > 2*time.Second || left < 1900*time.Millisecond {
			t.Errorf("valid for %v more of 3 s, a second after the request", left)
		}
		b.release(l)
		if !b.line.gaveUp.Renewed {
			t.Error("the release does not say that requests were repeated")
		}
	})
}

// A grant whose validity was over when it arrived is released, and the lock is asked for
// again.
func TestGrantThatCameTooLateIsAskedForAgain(t *testing.T) {
	inLine(t, leasehold.Options{}, func(t *testing.T, b *lineBench) {
		first := b.acquire(b.strangers().Mutex("a"))
		var late store.WaitRequest
		b.line.onWait(func(ctx context.Context, r store.WaitRequest, reason func(error)) (store.Grant, error) {
			late = r
			b.line.onWait(nil)
			b.release(first)
			g, err := b.store.Store.Acquire(ctx, store.AcquireRequest{Lease: r.Lease, Spare: r.Spare})
			time.Sleep(2900 * time.Millisecond)
			return g, err
		})
		var reasons []error
		o := short
		o.OnWait = func(reason error) { reasons = append(reasons, reason) }
		l := b.acquire(b.c.Mutex("a").With(o))
		if l.Owner() == late.Owner || b.line.gaveUp.Owner != late.Owner || len(reasons) == 0 || !errors.Is(reasons[len(reasons)-1], leasehold.ErrLost) {
			t.Errorf("owner %v after %v, released %v, waited because of %v", l.Owner(), late.Owner, b.line.gaveUp.Owner, reasons)
		}
		b.release(l)
	})
}

// A goroutine that wants the lock on other terms has a place and a lease of its own.
func TestOtherTermsAreNotShared(t *testing.T) {
	inLine(t, leasehold.Options{}, func(t *testing.T, b *lineBench) {
		first := b.acquire(b.strangers().Mutex("a"))
		lock := b.c.Mutex("a")
		var turns []*turn
		for i, o := range []leasehold.LockOptions{
			{}, {TTL: time.Minute}, {Notice: time.Second}, {MaxHold: time.Hour}, {NoRenew: true}, {Require: store.CrashSafe}, {Purpose: "x"}, {},
		} {
			w := b.queue(lock.With(o))
			turns = append(turns, w)
			if n := int(b.line.now.Load()); n != min(i+1, 7) {
				t.Errorf("%d Waits with %+v", n, o)
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
		if len(owners) != 7 {
			t.Errorf("%d owners for 7 kinds of request", len(owners))
		}
	})
}

// Each waiter is told its own position, among the waiters of this process and of others.
func TestOnWaitReportsThePosition(t *testing.T) {
	inLine(t, leasehold.Options{}, func(t *testing.T, b *lineBench) {
		positions := make([]int, 3)
		lock := func(i int) *leasehold.Lock {
			return b.c.Mutex("a").With(leasehold.LockOptions{OnWait: func(reason error) {
				var busy *leasehold.BusyError
				if !errors.As(reason, &busy) || busy.ExpiresIn <= 0 || busy.Holder.PID == 0 {
					t.Errorf("waiting because %#v", reason)
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
			t.Errorf("positions %v behind a stranger, want 2 3 4", positions)
		}
		b.release(first)
		synctest.Wait()
		if positions[0] != 1 || positions[1] != 2 || positions[2] != 3 {
			t.Errorf("positions %v when he has got it, want 1 2 3", positions)
		}
		b.release(stranger.got())
		synctest.Wait()
		if positions[1] != 1 || positions[2] != 2 {
			t.Errorf("positions %v when the first has got it, want 1 and 2 for the others", positions)
		}
		for _, w := range turns {
			b.release(w.got())
		}
	})
}

// Each waiter waits for unreachable nodes for its TTL, and for nodes in quarantine for as
// long as the quarantine lasts.
func TestTroubleWhileWaiting(t *testing.T) {
	inLine(t, leasehold.Options{}, func(t *testing.T, b *lineBench) {
		trouble := func(reason error) {
			b.store.onAcquire(func(context.Context, store.AcquireRequest) (store.Grant, error) { return store.Grant{}, reason })
			b.line.onWait(func(ctx context.Context, r store.WaitRequest, tell func(error)) (store.Grant, error) {
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
			t.Errorf("a store that stays away: %v after %v", x.err, waited)
		}
		<-y.done
		if waited := y.at.Sub(start); !errors.Is(y.err, leasehold.ErrQuorum) || waited < short.TTL*3/2 || waited > short.TTL*3/2+time.Second {
			t.Errorf("for a later waiter: %v after %v", y.err, waited)
		}
		trouble(&store.QuorumError{Op: "wait", Need: 1, Nodes: []store.NodeOutcome{{Node: "n1", Outcome: store.Quarantined, ExpiresIn: time.Minute}}})
		x = b.queue(b.c.Mutex("a").With(short))
		time.Sleep(10 * short.TTL)
		if !x.waits() {
			t.Errorf("a quarantine was not waited out: %v", x.err)
		}
		x.gaveUp()
		if !errors.Is(x.err, leasehold.ErrQuorum) || !errors.Is(x.err, context.Canceled) {
			t.Errorf("cancelled in quarantine: %v", x.err)
		}
	})
}

// After trouble that has passed, patience with the next trouble starts anew.
func TestTroubleWhileWaitingHeals(t *testing.T) {
	inLine(t, leasehold.Options{}, func(t *testing.T, b *lineBench) {
		first := b.acquire(b.strangers().Mutex("a"))
		b.line.onWait(func(ctx context.Context, r store.WaitRequest, reason func(error)) (store.Grant, error) {
			start := time.Now()
			for range 5 {
				reason(errNodesAway)
				time.Sleep(short.TTL * 2 / 3)
				reason(&leasehold.BusyError{Name: r.Name})
				time.Sleep(short.TTL)
			}
			before := time.Since(start)
			g, err := b.line.under.Wait(ctx, r, reason)
			g.Since += before
			return g, err
		})
		w := b.queue(b.c.Mutex("a").With(short))
		time.Sleep(10 * short.TTL)
		if !w.waits() {
			t.Fatal(w.err)
		}
		b.release(first)
		b.release(w.got())
	})
}

// An error that waiting cannot mend is returned to every waiter.
func TestErrorEndsAllWaits(t *testing.T) {
	inLine(t, leasehold.Options{}, func(t *testing.T, b *lineBench) {
		first := b.acquire(b.strangers().Mutex("a"))
		broken := errors.New("disk is full")
		b.line.onWait(func(ctx context.Context, r store.WaitRequest, reason func(error)) (store.Grant, error) {
			time.Sleep(time.Second)
			return store.Grant{}, broken
		})
		x, y := b.queue(b.c.Mutex("a")), b.queue(b.c.Mutex("a"))
		<-x.done
		<-y.done
		if !errors.Is(x.err, broken) || !errors.Is(y.err, broken) {
			t.Errorf("%v, and %v", x.err, y.err)
		}
		b.release(first)
	})
}

// If the lock was busy the last time, the next waiter queues without asking first; if it
// was free, the waiter asks.
func TestTriesOnceWithoutContention(t *testing.T) {
	inLine(t, leasehold.Options{}, func(t *testing.T, b *lineBench) {
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
	inLine(t, leasehold.Options{}, func(t *testing.T, b *lineBench) {
		first := b.acquire(b.c.Mutex("a"))
		lock := b.c.Mutex("a")
		lock.Try(t.Context())
		lock.With(leasehold.LockOptions{Tries: 3}).Acquire(t.Context())
		lock.With(leasehold.LockOptions{Tries: 1, Owner: "me"}).Acquire(t.Context())
		if n := b.store.called("wait"); n != 0 {
			t.Errorf("%d Waits", n)
		}
		b.release(first)
	})
}

// Barge reaches the store, and does not change the order within the client.
func TestBarge(t *testing.T) {
	inLine(t, leasehold.Options{}, func(t *testing.T, b *lineBench) {
		first := b.acquire(b.strangers().Mutex("a"))
		fair := b.queue(b.c.Mutex("a"))
		if b.line.asked.Barge {
			t.Error("it barges without being told to")
		}
		lock := b.c.Mutex("a").With(leasehold.LockOptions{Barge: true})
		x, y := b.queue(lock), b.queue(lock)
		if !b.line.asked.Barge {
			t.Error("the store was not told to barge")
		}
		b.release(first)
		b.release(fair.got())
		l := x.got()
		if !y.waits() {
			t.Error("a later waiter overtook")
		}
		b.release(l)
		b.release(y.got())
	})
}
