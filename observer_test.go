package leasehold_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/clock"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/memstore"
)

// watch collects events.
type watch struct {
	mu     sync.Mutex
	events []leasehold.Event
	who    []any // the values of whoKey in their contexts
}

type whoKey struct{}

func (w *watch) observe(ctx context.Context, e leasehold.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, e)
	w.who = append(w.who, ctx.Value(whoKey{}))
}

// kinds returns the kinds of the events since the last call of forget.
func (w *watch) kinds() (all []string) {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.events {
		all = append(all, e.Kind.String())
	}
	return all
}

func (w *watch) last() leasehold.Event {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.events[len(w.events)-1]
}

func (w *watch) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events, w.who = nil, nil
}

func observed(t *testing.T, f func(*testing.T, *queueBench, *watch)) {
	w := new(watch)
	inQueue(t, leasehold.Options{Observer: w.observe}, func(t *testing.T, b *queueBench) { f(t, b, w) })
}

func (w *watch) want(t *testing.T, kinds ...string) {
	t.Helper()
	if got := w.kinds(); !slices.Equal(got, kinds) {
		t.Errorf("events %v, want %v", got, kinds)
	}
}

// Each way to get, keep and lose a lease has an event of its own kind, with its details.
func TestObserver(t *testing.T) {
	observed(t, func(t *testing.T, b *queueBench, w *watch) {
		lock := b.c.Mutex("a")
		l := b.acquire(lock)
		w.want(t, "acquired")
		if e := w.last(); e.Name != "a" || e.Owner != l.Owner() || e.Token != l.Token() || e.Err != nil {
			t.Errorf("event %+v, want the name, owner, token, times and error of this lease or call", e)
		}
		inner, _ := lock.Try(l.Context())
		b.release(inner)
		w.want(t, "acquired") // re-entry causes no event
		w.forget()

		next := b.queue(lock)
		w.want(t, "waiting")
		call := w.last().Call
		if e := w.last(); e.Call == 0 || e.Position != 1 || !errors.Is(e.Err, leasehold.ErrBusy) || e.Name != "a" {
			t.Errorf("event %+v, want the name, owner, token, times and error of this lease or call", e)
		}
		w.forget()
		time.Sleep(5 * time.Second)
		b.release(l)
		first := next.got()
		if got := w.kinds(); len(got) != 2 || !slices.Contains(got, "handed") || !slices.Contains(got, "released") {
			t.Fatalf("events %v, want handed and released", got)
		}
		for _, e := range w.events {
			switch {
			case e.Kind == leasehold.Handed && (e.Call != call || e.Waited != 5*time.Second || e.Token != first.Token() || e.Owner != first.Owner()),
				e.Kind == leasehold.Released && (e.Held != 5*time.Second || e.Token != l.Token()):
				t.Errorf("event %+v, want the name, owner, token, times and error of this lease or call", e)
			}
		}
		b.release(first)
		w.forget()

		stranger := b.acquire(b.strangers().Mutex("a"))
		next = b.queue(lock)
		time.Sleep(2 * time.Second)
		w.forget()
		b.release(stranger)
		l = next.got()
		w.want(t, "handed")
		if e := w.last(); e.Waited != 2*time.Second || e.Token != l.Token() {
			t.Errorf("event %+v, want the name, owner, token, times and error of this lease or call", e)
		}
		w.forget()

		_, err := b.c.Mutex("").Try(t.Context())
		w.want(t, "failed")
		if e := w.last(); !errors.Is(e.Err, leasehold.ErrInvalid) || e.Err != err || e.Token != 0 {
			t.Errorf("event %+v, want the name, owner, token, times and error of this lease or call", e)
		}
		w.forget()
		lock.Try(t.Context())
		w.want(t, "failed")
		w.forget()
		b.queue(lock).gaveUp()
		w.want(t, "waiting", "failed")
		w.forget()

		time.Sleep(time.Second)
		trouble := errors.New("no route")
		b.store.onRenew(all(trouble))
		l.Extend(t.Context())
		w.want(t, "renewal failed")
		if e := w.last(); e.Err != trouble || e.Held < time.Second || e.Owner != l.Owner() || e.Token != l.Token() || e.Call != 0 {
			t.Errorf("event %+v, want the name, owner, token, times and error of this lease or call", e)
		}
		w.forget()
		b.store.onRenew(all(store.ErrNotHeld))
		<-l.Done()
		w.want(t, "lost")
		if e := w.last(); !errors.Is(e.Err, leasehold.ErrLost) || e.Held < time.Second || e.Token != l.Token() {
			t.Errorf("event %+v, want the name, owner, token, times and error of this lease or call", e)
		}
		l.Release(t.Context())
		l.Release(t.Context())
		w.want(t, "lost", "released")
		if e := w.last(); !errors.Is(e.Err, leasehold.ErrLost) {
			t.Errorf("event %+v, want the name, owner, token, times and error of this lease or call", e)
		}
	})
}

// slowClock is a clock one of whose readings takes long.
type slowClock struct {
	*virtual
	readings, slow atomic.Int32
	takes          time.Duration
}

func (c *slowClock) Now() clock.Instant {
	if c.readings.Add(1) == c.slow.Load() {
		time.Sleep(c.takes)
	}
	return c.virtual.Now()
}

// The observer is told of a grant before it is told what became of it, however long the goroutine
// that was granted the lock stands still before it tells.
func TestGrantIsToldBeforeItsLoss(t *testing.T) {
	o := leasehold.LockOptions{TTL: time.Minute, NoRenew: true}
	for what, get := range map[string]func(context.Context, *leasehold.Client) (*leasehold.Lease, error){
		"acquire": func(ctx context.Context, c *leasehold.Client) (*leasehold.Lease, error) {
			return c.Mutex("a").With(o).Acquire(ctx)
		},
		"try": func(ctx context.Context, c *leasehold.Client) (*leasehold.Lease, error) {
			return c.Mutex("a").With(o).Try(ctx)
		},
		"downgrade": func(ctx context.Context, c *leasehold.Client) (*leasehold.Lease, error) {
			writer, err := c.RW("a").Write().With(o).Acquire(ctx)
			if err != nil {
				return nil, err
			}
			return writer.Downgrade(ctx)
		},
	} {
		t.Run(what, func(t *testing.T) {
			var slow int32
			for range 2 { // first to count the readings: the last of them is for the event of the grant
				synctest.Test(t, func(t *testing.T) {
					w, v := new(watch), &slowClock{virtual: newVirtual(), takes: 2 * o.TTL}
					m := memstore.New(&memstore.Options{Clock: v.virtual})
					defer m.Close()
					v.slow.Store(slow)
					l, err := get(t.Context(), leasehold.New(m, &leasehold.Options{Clock: v, Observer: w.observe}))
					if err != nil {
						t.Fatal(err)
					}
					slow = v.readings.Load()
					<-l.Done()
					l.Release(t.Context())
					kinds := w.kinds()
					if n := len(kinds); n < 3 || !slices.Equal(kinds[n-3:], []string{"acquired", "lost", "released"}) {
						t.Errorf("events %v, want the last grant acquired, lost and released", kinds)
					}
				})
			}
		})
	}
}

// The observer is called with the context of the call that the event is about.
func TestObserverHasTheCallersContext(t *testing.T) {
	observed(t, func(t *testing.T, b *queueBench, w *watch) {
		ctx := context.WithValue(t.Context(), whoKey{}, "me")
		lock := b.c.Mutex("a").With(short)
		lock.Do(ctx, func(ctx context.Context, l *leasehold.Lease) error {
			b.store.onRenew(all(store.ErrNotHeld))
			<-ctx.Done()
			return nil
		})
		w.want(t, "acquired", "lost", "released")
		for _, who := range w.who {
			if who != "me" {
				t.Errorf("the contexts carry %v, want the caller's value me in all", w.who)
			}
		}
	})
}

// quarantined is the error of a quorum in quarantine. As with real servers, a different node
// is still pending at each try, and the quarantine is a second shorter.
func quarantined(try int) error {
	nodes := make([]store.NodeOutcome, 3)
	for i := range nodes {
		nodes[i] = store.NodeOutcome{Outcome: store.Quarantined, ExpiresIn: time.Minute - time.Duration(try)*time.Second}
	}
	nodes[try%3] = store.NodeOutcome{Outcome: store.Pending}
	return &store.QuorumError{Op: "wait", Need: 2, Nodes: nodes}
}

// Many goroutines wait out a quarantine. Each gets one event, however often the store
// gives the same reason, and another event for each new reason.
func TestWaitingIsObservedWhenItsCauseChanges(t *testing.T) {
	observed(t, func(t *testing.T, b *queueBench, w *watch) {
		const waiters = 20
		var says atomic.Value // func(try int) error
		says.Store(quarantined)
		b.waiter.onWait(func(ctx context.Context, r store.WaitRequest, reason func(error)) (store.Grant, error) {
			for try := 0; ctx.Err() == nil; try++ {
				reason(says.Load().(func(int) error)(try))
				pause(ctx, 250*time.Millisecond)
			}
			return store.Grant{}, ctx.Err()
		})
		b.store.onAcquire(func(context.Context, store.AcquireRequest) (store.Grant, error) {
			return store.Grant{}, quarantined(0)
		})
		var turns []*turn
		for range waiters {
			turns = append(turns, b.queue(b.c.Mutex("a")))
		}
		waiting := func(when string, want int) {
			t.Helper()
			time.Sleep(5 * time.Second)
			kinds := w.kinds()
			if n := len(kinds); n != want {
				t.Errorf("%s: %d events, want %d: %v", when, n, want, kinds[:min(n, 10)])
			}
			w.forget()
		}
		waiting("in quarantine", waiters)
		says.Store(func(int) error {
			return &store.QuorumError{Op: "wait", Need: 2, Nodes: []store.NodeOutcome{{Outcome: store.Unreachable}, {Outcome: store.TimedOut}, {Outcome: store.Granted}}}
		})
		waiting("nodes are unreachable", waiters)
		says.Store(func(try int) error {
			return &store.BusyError{Name: "a", Holder: store.Holder{Owner: "somebody"}, Position: 1, ExpiresIn: time.Duration(try+1) * time.Second}
		})
		waiting("one owner holds the lock", waiters)
		says.Store(func(int) error {
			return &store.BusyError{Name: "a", Holder: store.Holder{Owner: "another"}, Position: 1}
		})
		waiting("another owner holds the lock", waiters)
		for _, turn := range turns {
			turn.gaveUp()
		}
	})
}

// Attempts that are repeated without a queue cause one waiting event as long as the reason
// to wait stays the same.
func TestObserverOfPolling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, w := newBench(t), new(watch)
		c := leasehold.New(store.New(b.store), &leasehold.Options{Clock: b.clock, Observer: w.observe})
		first := b.acquire(b.other().Mutex("a"))
		c.Mutex("a").With(leasehold.LockOptions{Tries: 5}).Acquire(t.Context())
		w.want(t, "waiting", "failed")
		b.release(first)
	})
}

// The observer may use the client: no lock is held while it runs.
func TestObserverMayUseTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *leasehold.Client
		var b *queueBench
		var kinds sync.Map
		b = newQueueBench(t, leasehold.Options{Observer: func(ctx context.Context, e leasehold.Event) {
			if _, known := kinds.LoadOrStore(e.Kind, true); known || e.Name != "a" {
				return
			}
			other := c.Mutex(fmt.Sprint("from ", e.Kind))
			if err := other.Do(context.Background(), func(context.Context, *leasehold.Lease) error { return nil }); err != nil {
				t.Error(err)
			}
			if l, err := c.Mutex("a").Try(context.Background()); err == nil {
				l.Release(context.Background())
			}
		}})
		c = b.c
		lock := c.Mutex("a").With(short)
		l := b.acquire(lock)
		w := b.queue(lock)
		b.release(l)
		l = w.got()
		b.store.onRenew(func(_ context.Context, rs []store.Lease) []error {
			errs := make([]error, len(rs))
			for i, r := range rs {
				if r.Owner == l.Owner() {
					errs[i] = errors.New("no answer")
				}
			}
			return errs
		})
		<-l.Done()
		l.Release(t.Context())
		synctest.Wait() // a goroutine of the package reports the loss
		for _, k := range []leasehold.EventKind{leasehold.Acquired, leasehold.Waiting, leasehold.Handed, leasehold.Lost, leasehold.Released, leasehold.Failed} {
			if _, seen := kinds.Load(k); !seen {
				t.Errorf("no event of kind %v", k)
			}
		}
	})
}
