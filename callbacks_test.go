package leasehold_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/store"
)

// ends are the two ways in which a function ends its caller.
var ends = map[string]func(){
	"panic":  func() { panic("from a callback") },
	"Goexit": runtime.Goexit,
}

// calling runs f on a goroutine of its own and returns the value of its panic, or nil
// if f returned or ended its goroutine.
func calling(f func()) (panicked any) {
	done := make(chan any)
	go func() {
		defer func() { done <- recover() }()
		f()
	}()
	return <-done
}

// records collects what a client logs.
type records struct {
	mu   sync.Mutex
	text strings.Builder
}

func (r *records) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(p)
}

func (r *records) logger() *slog.Logger { return slog.New(slog.NewTextHandler(r, nil)) }

func (r *records) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

// unharmed fails the test unless the lock is free for both processes and the store's
// queue is empty. The argument what says after which event.
func (b *queueBench) unharmed(what, name string) {
	b.t.Helper()
	synctest.Wait()
	if n := b.inQueueNow(name); n != 0 {
		b.t.Errorf("%s: %d places are left in the store's queue, want none", what, n)
	}
	for _, c := range []*leasehold.Client{b.c, b.strangers()} {
		l, err := c.Mutex(name).Try(context.Background())
		if err != nil {
			b.t.Errorf("%s: the lock is not free: %v", what, err)
			return
		}
		if err := l.Release(context.Background()); err != nil && c != b.c {
			b.t.Errorf("%s: release of the lock: %v", what, err)
		}
	}
}

// A waiter whose OnWait or Observer ends its goroutine leaves no place in the queue, and no
// lock held if it is granted one at that moment, whether or not other waiters of its client
// are behind it. The observer is notified that its call failed.
func TestWaiterEndedByACallback(t *testing.T) {
	for how, end := range ends {
		for _, from := range []string{"OnWait", "Observer"} {
			for _, granted := range []bool{false, true} {
				for _, behind := range []bool{false, true} {
					what := fmt.Sprintf("%s in %s, granted meanwhile %v, others behind %v", how, from, granted, behind)
					synctest.Test(t, func(t *testing.T) {
						proceed := make(chan struct{})
						fails := func(name string) {
							if name == from {
								<-proceed
								end()
							}
						}
						var outcomes []leasehold.EventKind
						o := leasehold.Options{Observer: func(ctx context.Context, e leasehold.Event) {
							switch {
							case ctx.Value(whoKey{}) != "fails":
							case e.Kind == leasehold.Waiting:
								fails("Observer")
							case e.Call != 0: // not the release of a lease that nobody got
								outcomes = append(outcomes, e.Kind)
							}
						}}
						b := newQueueBench(t, o)
						first := b.acquire(b.strangers().Mutex("a"))
						lock := b.c.Mutex("a").With(leasehold.LockOptions{OnWait: func(error) { fails("OnWait") }})
						panicked := make(chan any, 1)
						go func() {
							panicked <- calling(func() { lock.Acquire(context.WithValue(context.Background(), whoKey{}, "fails")) })
						}()
						synctest.Wait()
						var next *turn
						if behind {
							next = b.queue(b.c.Mutex("a"))
						}
						if granted {
							b.release(first)
							synctest.Wait()
						}
						close(proceed)
						if p := <-panicked; (p != nil) != (how == "panic") {
							t.Errorf("%s: the caller panicked with %v, want a panic: %v", what, p, how == "panic")
						}
						if !slices.Equal(outcomes, []leasehold.EventKind{leasehold.Failed}) {
							t.Errorf("%s: the observer saw the outcomes %v, want one, failed", what, outcomes)
						}
						if !granted {
							b.release(first)
						}
						if behind {
							b.release(next.got())
						}
						b.unharmed(what, "a")
					})
				}
			}
		}
	}
}

// If the Observer ends the caller's goroutine at the event that reports the outcome, the
// caller gets no lease, so the lock is released. A panic reaches the caller.
func TestOutcomeEndedByAnObserver(t *testing.T) {
	for how, end := range ends {
		for _, kind := range []leasehold.EventKind{leasehold.Acquired, leasehold.Handed, leasehold.Failed, leasehold.Released} {
			what := fmt.Sprintf("%s in %v", how, kind)
			synctest.Test(t, func(t *testing.T) {
				var armed atomic.Bool
				b := newQueueBench(t, leasehold.Options{Observer: func(_ context.Context, e leasehold.Event) {
					if e.Kind == kind && armed.CompareAndSwap(true, false) {
						end()
					}
				}})
				lock := b.c.Mutex("a").With(leasehold.LockOptions{MinHold: time.Hour})
				var first *leasehold.Lease
				switch kind {
				case leasehold.Handed:
					first = b.acquire(b.strangers().Mutex("a"))
				case leasehold.Failed:
					first = b.acquire(b.c.Mutex("a"))
				}
				armed.Store(true)
				began := time.Now()
				ended := make(chan any, 1)
				go func() {
					ended <- calling(func() {
						switch kind {
						case leasehold.Failed:
							lock.Try(t.Context())
						case leasehold.Released:
							b.c.Mutex("a").Do(t.Context(), func(context.Context, *leasehold.Lease) error { return nil })
						default:
							lock.Acquire(t.Context())
						}
					})
				}()
				synctest.Wait()
				if first != nil {
					b.release(first)
				}
				if p := <-ended; (p != nil) != (how == "panic") {
					t.Errorf("%s: the caller panicked with %v, want a panic: %v", what, p, how == "panic")
				}
				if armed.Load() {
					t.Errorf("%s: the observer was not called with that event", what)
				}
				if waited := time.Since(began); waited >= time.Hour {
					t.Errorf("%s: free after %v: MinHold was waited for, though no work was done", what, waited)
				}
				b.unharmed(what, "a")
			})
		}
	}
}

// The package's own goroutines find a loss. An Observer that ends them harms no other
// lease, and the log has its stack.
func TestObserverOfALossEndsItsGoroutine(t *testing.T) {
	for how, end := range ends {
		synctest.Test(t, func(t *testing.T) {
			log, losses := new(records), 0
			b := newQueueBench(t, leasehold.Options{Logger: log.logger(), Observer: func(_ context.Context, e leasehold.Event) {
				if e.Kind == leasehold.Lost {
					losses++
					end()
				}
			}})
			kept := b.acquire(b.c.Mutex("kept").With(short))
			const others = 20 // more than there are goroutines that renew
			var lost []*leasehold.Lease
			for i := range others {
				lost = append(lost, b.acquire(b.c.Mutex(fmt.Sprint("lost ", i)).With(short)))
				time.Sleep(100 * time.Millisecond)
			}
			b.store.onRenew(func(ctx context.Context, rs []store.Lease) []error {
				errs := b.store.Engine.Renew(ctx, rs)
				for i, r := range rs {
					if r.Name != "kept" {
						errs[i] = store.ErrNotHeld
					}
				}
				return errs
			})
			for _, l := range lost {
				<-l.Done()
			}
			time.Sleep(10 * short.TTL)
			if err := kept.Err(); err != nil {
				t.Errorf("%s: another lease is lost: %v", how, err)
			}
			b.release(kept)
			for _, l := range lost {
				l.Release(t.Context())
			}
			synctest.Wait()
			if losses != others {
				t.Errorf("%s: %d losses were observed, want %d", how, losses, others)
			}
			if text := log.String(); strings.Count(text, "callbacks_test.go") < others {
				t.Errorf("%s: the log names callbacks_test.go in %d stacks, want %d: %.300s", how, strings.Count(text, "callbacks_test.go"), others, text)
			}
		})
	}
}

// An Observer may release the lease whose loss it observes, however the loss was found,
// and may block: neither the release nor other leases wait for it.
func TestObserverReleasesAndBlocks(t *testing.T) {
	observing := map[string]func(t *testing.T, l *leasehold.Lease, blocked chan struct{}){
		"releases": func(t *testing.T, l *leasehold.Lease, _ chan struct{}) { l.Release(t.Context()) },
		"blocks":   func(_ *testing.T, _ *leasehold.Lease, blocked chan struct{}) { <-blocked },
	}
	for does, f := range observing {
		for _, found := range []string{"by a renewal", "by the timer", "by Release", "by Err"} {
			synctest.Test(t, func(t *testing.T) {
				var l *leasehold.Lease
				var mu sync.Mutex
				var kinds []leasehold.EventKind
				blocked := make(chan struct{})
				b := newQueueBench(t, leasehold.Options{Observer: func(_ context.Context, e leasehold.Event) {
					if e.Name == "a" && e.Kind != leasehold.Acquired {
						mu.Lock()
						kinds = append(kinds, e.Kind)
						mu.Unlock()
					}
					if e.Kind == leasehold.Lost {
						f(t, l, blocked)
					}
				}})
				o := short
				o.NoRenew = found != "by a renewal"
				l = b.acquire(b.c.Mutex("a").With(o))
				other := b.acquire(b.c.Mutex("other").With(short))
				switch found {
				case "by a renewal":
					b.store.onRenew(all(store.ErrNotHeld))
					<-l.Done()
					b.store.onRenew(nil)
				case "by the timer":
					<-l.Done()
				default:
					b.clock.suspend(short.TTL)
					if found == "by Err" {
						l.Err()
					}
				}
				if err := l.Release(t.Context()); !errors.Is(err, leasehold.ErrLost) {
					t.Errorf("%s, loss found %s: release returned %v, want ErrLost", does, found, err)
				}
				time.Sleep(time.Second)
				other.Release(t.Context())
				close(blocked)
				synctest.Wait()
				if len(kinds) != 2 || kinds[0] != leasehold.Lost || kinds[1] != leasehold.Released {
					t.Errorf("%s, loss found %s: events %v, want the loss and then the release", does, found, kinds)
				}
			})
		}
	}
}

// While OnWait blocks, the end of the context takes the waiter out of the queue.
func TestBlockingOnWaitKeepsNoPlace(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		first := b.acquire(b.strangers().Mutex("a"))
		unblock := make(chan struct{})
		x := b.queue(b.c.Mutex("a").With(leasehold.LockOptions{OnWait: func(error) { <-unblock }}))
		if n := b.inQueueNow("a"); n != 1 {
			t.Fatalf("%d places while OnWait blocks, want 1", n)
		}
		x.cancel()
		synctest.Wait()
		if n := b.inQueueNow("a"); n != 0 {
			t.Errorf("%d places are left after the cancellation while OnWait blocks, want none", n)
		}
		b.release(first)
		b.unharmed("OnWait blocks", "a")
		close(unblock)
		if err := x.gaveUp(); !errors.Is(err, context.Canceled) || !errors.Is(err, leasehold.ErrBusy) {
			t.Errorf("gave up with %v, want Canceled and ErrBusy", err)
		}
	})
}

// A RetryDelay that ends the goroutine it runs on, the caller's or one of the package's
// own, leaves nothing behind. If it was one of the package's own, the waiters get an error.
func TestRetryDelayEndsItsGoroutine(t *testing.T) {
	for how, end := range ends {
		for _, where := range []string{"alone in the queue", "in the queue for several", "asking again", "releasing"} {
			what := how + " " + where
			synctest.Test(t, func(t *testing.T) {
				log := new(records)
				b := newQueueBench(t, leasehold.Options{Logger: log.logger(), RetryDelay: func(int) time.Duration { end(); return 0 }})
				away := &store.QuorumError{Op: "wait", Need: 1, Nodes: []store.NodeOutcome{{Outcome: store.Unreachable}}}
				b.waiter.onWait(func(context.Context, store.WaitRequest, func(error)) (store.Grant, error) {
					time.Sleep(time.Second)
					return store.Grant{}, away
				})
				if where == "releasing" {
					l := b.acquire(b.c.Mutex("a"))
					b.store.onRelease(func(ctx context.Context, r store.ReleaseRequest) error {
						if b.store.called("release") == 1 {
							return store.ErrAmbiguous
						}
						return b.store.Engine.Release(ctx, r)
					})
					if p := calling(func() { l.Release(t.Context()) }); (p != nil) != (how == "panic") {
						t.Errorf("%s: the caller panicked with %v, want a panic: %v", what, p, how == "panic")
					}
					b.waiter.onWait(nil)
					b.unharmed(what, "a")
					return
				}
				first := b.acquire(b.strangers().Mutex("a"))
				lock := b.c.Mutex("a")
				if where == "asking again" {
					lock = lock.With(leasehold.LockOptions{Tries: 5})
				}
				waiters := 1
				if where == "in the queue for several" {
					waiters = 3
					lock = lock.With(leasehold.LockOptions{OnWait: func(error) {}})
				}
				var all sync.WaitGroup
				for range waiters {
					all.Go(func() {
						var err error
						returned := false
						p := calling(func() {
							_, err = lock.Acquire(t.Context())
							returned = true
						})
						switch {
						case waiters > 1 && (err == nil || p != nil):
							t.Errorf("%s: Acquire returned %v, and panicked with %v, want an error and no panic", what, err, p)
						case waiters == 1 && (returned || (p != nil) != (how == "panic")):
							t.Errorf("%s: Acquire returned: %v (%v), and panicked with %v; want no return, and a panic: %v", what, returned, err, p, how == "panic")
						}
					})
				}
				all.Wait()
				b.waiter.onWait(nil)
				b.release(first)
				b.unharmed(what, "a")
				if waiters > 1 && !strings.Contains(log.String(), "callbacks_test.go") {
					t.Errorf("%s: the log has no stack that names callbacks_test.go: %s", what, log)
				}
			})
		}
	}
}

// A log handler may use the client, and may end the goroutine it runs on.
func TestLoggerEndsItsGoroutine(t *testing.T) {
	for how, end := range ends {
		synctest.Test(t, func(t *testing.T) {
			h := &failingHandler{Handler: slog.NewTextHandler(new(records), nil), end: end}
			b := newQueueBench(t, leasehold.Options{Logger: slog.New(h)})
			h.c = b.c
			l := b.acquire(b.c.Mutex("a").With(short))
			b.store.onRenew(all(store.ErrNotHeld))
			<-l.Done()
			b.store.onRenew(nil)
			l.Release(t.Context())
			b.unharmed(how, "a")
			if h.called == 0 {
				t.Errorf("%s: nothing was logged", how)
			}
		})
	}
}

type failingHandler struct {
	slog.Handler
	c      *leasehold.Client
	end    func()
	called int
}

func (h *failingHandler) Handle(ctx context.Context, r slog.Record) error {
	h.called++
	h.c.Mutex("from the logger").Do(context.Background(), func(context.Context, *leasehold.Lease) error { return nil })
	h.end()
	return nil
}

// Without a Logger, a panic that the package recovers is logged all the same.
func TestRecoveredPanicIsLoggedWithoutALogger(t *testing.T) {
	log, before := new(records), slog.Default()
	slog.SetDefault(log.logger())
	defer slog.SetDefault(before)
	inQueue(t, leasehold.Options{Observer: func(_ context.Context, e leasehold.Event) {
		if e.Kind == leasehold.Lost {
			panic("from the observer of a loss")
		}
	}}, func(t *testing.T, b *queueBench) {
		l := b.acquire(b.c.Mutex("a").With(short))
		b.store.onRenew(all(store.ErrNotHeld))
		<-l.Done()
		l.Release(t.Context())
		synctest.Wait()
		if text := log.String(); !strings.Contains(text, "from the observer of a loss") || !strings.Contains(text, "callbacks_test.go") {
			t.Errorf("logged %q, want the panic and a stack that names callbacks_test.go", text)
		}
	})
}

// A function that ends its goroutine within Do leaves the lock free.
func TestDoReleasesOnGoexit(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		for how, end := range ends {
			p := calling(func() {
				b.c.Mutex("a").Do(t.Context(), func(context.Context, *leasehold.Lease) error { end(); return nil })
			})
			if (p != nil) != (how == "panic") {
				t.Errorf("%s: the caller panicked with %v, want a panic: %v", how, p, how == "panic")
			}
			b.unharmed(how, "a")
		}
	})
}

// A lease that its function releases ends Do without an error.
func TestReleaseWithinDo(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		err := b.c.Mutex("a").Do(t.Context(), func(_ context.Context, l *leasehold.Lease) error { return l.Release(t.Context()) })
		if err != nil {
			t.Error(err)
		}
		b.unharmed("released within Do", "a")
	})
}
