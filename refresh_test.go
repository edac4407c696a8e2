package leasehold_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// taciturn makes each Wait report only its first reason, as a store does that seldom asks
// its servers.
func (b *queueBench) taciturn() {
	b.waiter.onWait(func(ctx context.Context, r store.WaitRequest, reason func(error)) (store.Grant, error) {
		told := false
		return b.waiter.under.Wait(ctx, r, func(err error) {
			if !told {
				told = true
				reason(err)
			}
		})
	})
}

// queueApart queues with a client of another process, a moment later.
func (b *queueBench) queueApart() *turn {
	time.Sleep(time.Millisecond) // so that the place has a rank of its own
	defer time.Sleep(time.Millisecond)
	return b.queue(b.strangers().Mutex("a"))
}

// busyOf returns the BusyError of a wait that was cancelled.
func busyOf(t *testing.T, err error) *leasehold.BusyError {
	t.Helper()
	var busy *leasehold.BusyError
	if !errors.Is(err, context.Canceled) || !errors.As(err, &busy) {
		t.Fatalf("the wait ended with %v, want Canceled and a BusyError", err)
	}
	return busy
}

// The error of a waiter that gives up names the present holder and the waiters before it,
// even if the store has not reported them for long.
func TestWaitEndsWithTheLatestHolder(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		b.taciturn()
		first := b.acquire(b.strangers().Mutex("a"))
		next := b.queueApart()
		second := b.queueApart()
		x := b.queue(b.c.Mutex("a"))
		y := b.queue(b.c.Mutex("a"))
		last := b.queueApart()
		time.Sleep(time.Second)
		b.release(first)
		holds := next.got()
		time.Sleep(2 * time.Second)
		for _, gave := range []struct {
			who      *turn
			position int
		}{{y, 3}, {x, 2}} { // a process with a place in the queue, and one without
			busy := busyOf(t, gave.who.gaveUp())
			if busy.Holder.Owner != holds.Owner() || busy.Position != gave.position || busy.ExpiresIn <= leasehold.DefaultTTL/2 {
				t.Errorf("%v names the holder %s and position %d, want %s and %d", busy, busy.Holder.Owner, busy.Position, holds.Owner(), gave.position)
			}
			time.Sleep(time.Second)
		}
		b.release(holds)
		b.release(second.got())
		b.release(last.got())
	})
}

// A recent report of the holder is not refreshed, and one refresh serves all waiters that
// give up at the same time.
func TestOneRefreshServesAllWaiters(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		b.taciturn()
		first := b.acquire(b.strangers().Mutex("a"))
		busyOf(t, b.queue(b.c.Mutex("a")).gaveUp())
		if n := b.store.called("inspect"); n != 0 {
			t.Errorf("%d refreshes right after a report of the holder, want none", n)
		}
		var turns []*turn
		for range 20 {
			turns = append(turns, b.queue(b.c.Mutex("a")))
		}
		time.Sleep(2 * time.Second)
		for _, w := range turns {
			w.cancel()
		}
		for _, w := range turns {
			busyOf(t, w.gaveUp())
		}
		// There is none if the place of one that gave up passed to another, which was told anew.
		if n := b.store.called("inspect"); n > 1 {
			t.Errorf("%d refreshes for 20 waiters that gave up together, want at most 1", n)
		}
		b.release(first)
	})
}

// If a refresh hangs or fails, or finds the lock held for the waiter itself, the error keeps
// the last report of the holder. The waiter is not delayed for long.
func TestFailedRefreshOfTheHolder(t *testing.T) {
	for what, look := range map[string]func(context.Context, *queueBench) (store.State, error){
		"hangs": func(ctx context.Context, b *queueBench) (store.State, error) {
			<-ctx.Done()
			return store.State{}, ctx.Err()
		},
		"fails": func(context.Context, *queueBench) (store.State, error) { return store.State{}, errNodesAway },
		"ours": func(_ context.Context, b *queueBench) (store.State, error) {
			return store.State{Name: "a", Held: true, Holder: store.Holder{Owner: b.waiter.asked.Owner}, ExpiresIn: time.Minute}, nil
		},
	} {
		t.Run(what, func(t *testing.T) {
			inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
				b.taciturn()
				b.waiter.onInspect(func(ctx context.Context, _ string) (store.State, error) { return look(ctx, b) })
				first := b.acquire(b.strangers().Mutex("a"))
				x := b.queue(b.c.Mutex("a"))
				time.Sleep(2 * time.Second)
				began := time.Now()
				busy := busyOf(t, x.gaveUp())
				if busy.Holder.Owner != first.Owner() || busy.Position != 1 || busy.ExpiresIn <= 0 || busy.ExpiresIn > leasehold.DefaultTTL {
					t.Errorf("%v names the holder %s and position %d, want %s and 1, with an expiry", busy, busy.Holder.Owner, busy.Position, first.Owner())
				}
				if n, took := b.store.called("inspect"), time.Since(began); n != 1 || took > time.Second {
					t.Errorf("%d refreshes, which took %v, want one within a second", n, took)
				}
				b.release(first)
			})
		})
	}
}

// If a refresh finds the lock free, the error has the last holder, without an expiry.
func TestRefreshFindsAFreeLock(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		b.taciturn()
		b.waiter.onInspect(func(context.Context, string) (store.State, error) { return store.State{Name: "a"}, nil })
		first := b.acquire(b.strangers().Mutex("a"))
		x := b.queue(b.c.Mutex("a"))
		time.Sleep(2 * time.Second)
		if busy := busyOf(t, x.gaveUp()); busy.Holder.Owner != first.Owner() || busy.Position != 1 || busy.ExpiresIn != 0 {
			t.Errorf("%v names the holder %s, position %d and expiry %v, want %s, 1 and 0", busy, busy.Holder.Owner, busy.Position, busy.ExpiresIn, first.Owner())
		}
		b.release(first)
	})
}

// The error of a goroutine that polls seldom names the present holder, too.
func TestPollingEndsWithTheLatestHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		seldom := leasehold.LockOptions{RetryDelay: func(int) time.Duration { return time.Hour }, Tries: 5}
		first := b.acquire(b.other().Mutex("a"))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := b.c.Mutex("a").With(seldom).Acquire(ctx)
			done <- err
		}()
		time.Sleep(time.Second)
		b.release(first)
		second := b.acquire(b.other().Mutex("a"))
		time.Sleep(time.Second)
		cancel()
		if busy := busyOf(t, <-done); busy.Holder.Owner != second.Owner() || busy.Position != 0 {
			t.Errorf("%v names the holder %s and position %d, want %s and none", busy, busy.Holder.Owner, busy.Position, second.Owner())
		}
		b.release(second)
	})
}

// The same holds over several servers, where a waiter gets no report between two
// refreshes of its place.
func TestWaitOverServersEndsWithTheLatestHolder(t *testing.T) {
	t.Parallel() // it mostly waits
	for _, nodes := range []int{1, 3} {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			servers := redistest.StartN(t, nodes)
			url := "redis://"
			for i, s := range servers {
				if i > 0 {
					url += ","
				}
				url += s.Addr()
			}
			lock := func() *leasehold.Lock {
				st, err := redisstore.Open(t.Context(), url, patient())
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { st.Close() })
				return leasehold.New(st, nil).Mutex("a").With(leasehold.LockOptions{TTL: time.Minute})
			}
			type end struct {
				lease *leasehold.Lease
				err   error
			}
			wait := func(ctx context.Context) (<-chan end, time.Time) {
				done, stands := make(chan end, 1), make(chan time.Time, 1)
				l := lock().With(leasehold.LockOptions{OnWait: func(err error) {
					var busy *leasehold.BusyError
					if errors.As(err, &busy) && busy.Position > 0 {
						select {
						case stands <- time.Now():
						default:
						}
					}
				}})
				go func() {
					lease, err := l.Acquire(ctx)
					done <- end{lease, err}
				}()
				return done, <-stands
			}
			first, err := lock().Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			next, _ := wait(t.Context())
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			gaveUp, told := wait(ctx)
			last, _ := wait(t.Context())
			if err := first.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			second := <-next
			if second.err != nil {
				t.Fatal(second.err)
			}
			time.Sleep(time.Until(told.Add(1200 * time.Millisecond))) // the report is then too old, and the place is not due for a refresh
			cancel()
			if busy := busyOf(t, (<-gaveUp).err); busy.Holder.Owner != second.lease.Owner() || busy.Position != 1 {
				t.Errorf("%v names the holder %s and position %d, want %s and 1", busy, busy.Holder.Owner, busy.Position, second.lease.Owner())
			}
			if err := second.lease.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			third := <-last
			if third.err != nil {
				t.Fatal(third.err)
			}
			if err := third.lease.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	}
}
