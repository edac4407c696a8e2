package leasehold_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/store"
)

// Locks of several kinds are acquired together, in the order of their names, each with
// a token. Their context carries all of them, and ends with the first.
func TestAll(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		var order []string
		b.store.onAcquire(func(ctx context.Context, r store.AcquireRequest) (store.Grant, error) {
			order = append(order, r.Name)
			return b.store.Engine.Acquire(ctx, r)
		})
		all := b.c.All(b.c.Semaphore("b", 2), b.c.Mutex("c"), b.c.RW("a").Read())
		err := all.Do(t.Context(), func(ctx context.Context, ls *leasehold.Leases) error {
			if fmt.Sprint(order) != "[a b c]" {
				t.Errorf("acquired in the order %v, want [a b c]", order)
			}
			earliest := ls.Of("a").Deadline()
			for i, l := range ls.Each() {
				if l.Name() != order[i] || l.Token() == 0 || ls.Of(l.Name()) != l {
					t.Errorf("lease %d is of %q with token %v, want one of %q with a token, found by its name", i, l.Name(), l.Token(), order[i])
				}
				if l.Deadline().Before(earliest) {
					earliest = l.Deadline()
				}
			}
			if !ls.Deadline().Equal(earliest) || ls.Of("d") != nil || ls.Err() != nil {
				t.Errorf("deadline %v, want the earliest, %v; lease of a name outside the set: %v; error %v, want none", ls.Deadline(), earliest, ls.Of("d"), ls.Err())
			}
			again, err := b.c.Mutex("c").Try(ctx)
			if err != nil {
				t.Errorf("re-entry: %v", err)
			} else {
				b.release(again)
			}
			b.release(ls.Of("b"))
			<-ctx.Done()
			if cause := context.Cause(ctx); !errors.Is(cause, leasehold.ErrReleased) || !errors.Is(ls.Err(), leasehold.ErrReleased) {
				t.Errorf("after the release of one of three leases: cause %v, error %v, want ErrReleased as both", cause, ls.Err())
			}
			return nil
		})
		if err != nil || b.held("a") || b.held("b") || b.held("c") {
			t.Errorf("Do: %v; a, b and c held: %v, %v, %v, want none", err, b.held("a"), b.held("b"), b.held("c"))
		}
	})
}

// If one of the locks cannot be acquired, none is held.
func TestAllOrNothing(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		first := b.acquire(b.strangers().Mutex("b"))
		all := b.c.All(b.c.Mutex("a"), b.c.Mutex("b"), b.c.Mutex("c"))
		var busy *leasehold.BusyError
		if _, err := all.Try(t.Context()); !errors.As(err, &busy) || busy.Name != "b" || b.held("a") || b.held("c") {
			t.Errorf("Try with b busy: %v, want a BusyError for b; a and c held: %v, %v, want neither", err, b.held("a"), b.held("c"))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := all.Acquire(ctx); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, leasehold.ErrBusy) || b.held("a") {
			t.Errorf("Acquire past its deadline: %v, want DeadlineExceeded and ErrBusy; a held: %v, want free", err, b.held("a"))
		}

		// While Acquire waits for the second lock, the lease of the first is renewed.
		got := make(chan error, 1)
		go func() {
			ls, err := all.Acquire(t.Context())
			if err == nil {
				err = ls.Release(t.Context())
			}
			got <- err
		}()
		time.Sleep(time.Hour)
		if !b.held("a") || b.held("c") {
			t.Errorf("while Acquire waits for b: a held %v, want true; c held %v, want false", b.held("a"), b.held("c"))
		}
		b.release(first)
		if err := <-got; err != nil {
			t.Error(err)
		}

		// A panic in a callback leaves no lock held.
		failing := b.c.All(b.c.Mutex("a"), b.c.Mutex("b").With(leasehold.LockOptions{OnWait: func(error) { panic("failed") }}))
		first = b.acquire(b.strangers().Mutex("b"))
		func() {
			defer func() {
				if recover() == nil {
					t.Error("Acquire did not pass on the panic of OnWait")
				}
			}()
			failing.Acquire(t.Context())
		}()
		b.release(first)
		if b.held("a") || b.held("b") {
			t.Errorf("after a panic: a held %v, b held %v, want neither", b.held("a"), b.held("b"))
		}
	})
}

// A lock that is lost while another is waited for is acquired anew. A lock that is lost
// later ends the context.
func TestAllAfterALoss(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		first := b.acquire(b.strangers().Mutex("b"))
		both := b.c.All(b.c.Mutex("a"), b.c.Mutex("b"))
		got := make(chan *leasehold.Leases)
		go func() {
			ls, err := both.Acquire(t.Context())
			if err != nil {
				t.Error(err)
			}
			got <- ls
		}()
		synctest.Wait()
		st, err := b.store.Inspect(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		b.store.onRenew(all(store.ErrNotHeld))
		time.Sleep(time.Minute)
		b.store.onRenew(nil)
		b.release(first)
		ls := <-got
		if ls.Of("a").Token() <= st.Token || ls.Err() != nil {
			t.Errorf("a has token %v, want more than the lost lease's %v; error %v, want none", ls.Of("a").Token(), st.Token, ls.Err())
		}
		b.store.onRenew(all(store.ErrNotHeld))
		<-ls.Context().Done()
		if !errors.Is(context.Cause(ls.Context()), leasehold.ErrLost) {
			t.Errorf("the context ended with %v, want ErrLost", context.Cause(ls.Context()))
		}
		if err := ls.Release(t.Context()); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("release after a loss: %v, want ErrLost", err)
		}
	})
}

// What bounds a hold counts from when all locks are held: a set is acquired however long one of its
// locks is waited for, and is held for as long as was asked.
func TestBoundsOfASetCountFromItsLastLock(t *testing.T) {
	for what, o := range map[string]leasehold.LockOptions{
		"MaxHold": {MaxHold: 2 * time.Second, Notice: 100 * time.Millisecond},
		"NoRenew": {NoRenew: true, TTL: 3 * time.Second},
	} {
		t.Run(what, func(t *testing.T) {
			inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				var others sync.WaitGroup
				for range 5 { // so that each turn is waited for longer than the bound
					lock := b.strangers().Mutex("b")
					others.Go(func() {
						for ctx.Err() == nil {
							lock.Do(ctx, func(context.Context, *leasehold.Lease) error {
								time.Sleep(time.Second)
								return nil
							})
						}
					})
				}
				time.Sleep(time.Minute)
				ls, err := b.c.All(b.c.Mutex("a"), b.c.Mutex("b")).With(o).Acquire(ctx)
				if cancel(); err != nil {
					t.Fatal(err)
				}
				got := time.Now()
				<-ls.Context().Done()
				if lasted := time.Since(got); lasted < 1500*time.Millisecond || lasted > 3*time.Second {
					t.Errorf("held for %v, want about what %+v allows", lasted, o)
				}
				for _, l := range ls.Each() {
					<-l.Done()
				}
				if lasted := time.Since(got); lasted > 3*time.Second {
					t.Errorf("the last lease ended after %v, want it bounded", lasted)
				}
				ls.Release(t.Context())
				others.Wait()

				// A lease that is re-entered keeps the bounds with which it was acquired.
				outer := b.acquire(b.c.Mutex("a"))
				ls, err = b.c.All(b.c.Mutex("a"), b.c.Mutex("b")).With(o).Acquire(outer.Context())
				if err != nil {
					t.Fatal(err)
				}
				<-ls.Of("b").Done()
				if time.Sleep(time.Hour); outer.Err() != nil {
					t.Errorf("the lease around the set: %v, want it held", outer.Err())
				}
				ls.Release(t.Context())
				b.release(outer)
			})
		})
	}
}

// The leases of a set with NoRenew are described as leases that nobody renews, although they are
// renewed until the set is complete, so that others may release them.
func TestUnrenewedSetIsDescribed(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		holder := b.acquire(b.strangers().Mutex("b"))
		set := make(chan *leasehold.Leases)
		go func() {
			ls, err := b.c.All(b.c.Mutex("a"), b.c.Mutex("b")).With(leasehold.LockOptions{NoRenew: true}).Acquire(t.Context())
			if err != nil {
				t.Error(err)
			}
			set <- ls
		}()
		time.Sleep(time.Second)
		b.release(holder) // the lock is granted to a place in the queue, and the other one was free
		ls := <-set
		for _, name := range []string{"a", "b"} {
			state, err := b.waiter.Inspect(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			if len(state.Leases()) != 1 || !state.Leases()[0].Holder.Unrenewed {
				t.Errorf("the holders of %s are %+v, want one that does not renew its lease", name, state.Leases())
			}
		}
		ls.Release(t.Context())
	})
}

// Locks that do not go together are refused before anything is sent.
func TestAllIsChecked(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		for what, all := range map[string]*leasehold.All{
			"none":                       b.c.All(),
			"one name twice":             b.c.All(b.c.Mutex("a"), b.c.Mutex("b"), b.c.Mutex("a")),
			"readers and writers of one": b.c.All(b.c.RW("a").Read(), b.c.RW("a").Write()),
			"another client's":           b.c.All(b.c.Mutex("a"), b.strangers().Mutex("b")),
			"options that do not fit":    b.c.All(b.c.Mutex("a")).With(leasehold.LockOptions{TTL: -1}),
			"bounds that do not fit":     b.c.All(b.c.Mutex("a"), b.c.Mutex("b").With(leasehold.LockOptions{MaxHold: 1})),
		} {
			if _, err := all.Acquire(t.Context()); !errors.Is(err, leasehold.ErrInvalid) {
				t.Errorf("%s: %v, want ErrInvalid", what, err)
			}
		}
		if n := b.store.called("acquire"); n != 0 {
			t.Errorf("%d requests were sent, want none", n)
		}
	})
}

// Clients acquire random sets of locks of all kinds that overlap, some with a bounded
// wait. All of them go on for minutes, and no lock has more holders than it may.
func TestOverlappingSets(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		const permits = 3
		names := []string{"m1", "m2", "s1", "s2", "w1", "w2"}
		var mu sync.Mutex
		used := make(map[string]int) // by name, the weight in use
		enter := func(by map[string]int, sign int) {
			mu.Lock()
			defer mu.Unlock()
			for name, w := range by {
				if used[name] += sign * w; used[name] > permits {
					t.Errorf("%q is held with weight %d, want at most %d", name, used[name], permits)
				}
			}
		}
		var got, gaveUp int
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		var wg sync.WaitGroup
		for n, c := range []*leasehold.Client{b.c, b.c, b.strangers(), b.strangers()} {
			for m := range 4 {
				rng := rand.New(rand.NewPCG(uint64(n), uint64(m)))
				wg.Go(func() {
					for ctx.Err() == nil {
						var locks []*leasehold.Lock
						by := make(map[string]int)
						for _, i := range rng.Perm(len(names))[:1+rng.IntN(4)] {
							name := names[i]
							lock, w := c.Mutex(name), permits
							switch name[0] {
							case 's':
								w = 1 + rng.IntN(permits)
								lock = c.Semaphore(name, permits).With(leasehold.LockOptions{Weight: w})
							case 'w':
								if lock = c.RW(name).Write(); rng.IntN(2) == 0 {
									lock, w = c.RW(name).Read(), 0
								}
							}
							locks, by[name] = append(locks, lock), w
						}
						wait, stop := context.WithTimeout(ctx, forever)
						if rng.IntN(4) == 0 {
							wait, stop = context.WithTimeout(ctx, time.Duration(1+rng.IntN(5000))*time.Millisecond)
						}
						ls, err := c.All(locks...).Acquire(wait)
						stop()
						mu.Lock()
						if err != nil {
							gaveUp++
						} else {
							got++
						}
						mu.Unlock()
						if err != nil {
							if !errors.Is(err, context.DeadlineExceeded) {
								t.Error(err)
							}
							continue
						}
						enter(by, 1)
						time.Sleep(time.Duration(rng.IntN(200)) * time.Millisecond)
						enter(by, -1)
						if err := ls.Release(t.Context()); err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
		wg.Wait()
		synctest.Wait()
		if got < 1500 || gaveUp == 0 {
			t.Errorf("%d sets were acquired, want 1500 at least; %d were given up, want some", got, gaveUp)
		}
		for _, name := range names {
			if b.held(name) {
				t.Errorf("%q is held at the end", name)
			}
		}
	})
}
