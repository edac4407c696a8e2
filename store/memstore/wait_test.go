package memstore

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/testenv/virtual"
	"github.com/leasehold-dev/leasehold/store"
)

// bubbled returns a store whose clock is that of a synctest bubble.
func bubbled() *engine {
	return newEngine(&Options{Clock: virtual.Clock()})
}

func request(ttl time.Duration) store.WaitRequest {
	return store.WaitRequest{Lease: store.Lease{Name: "lock", Owner: store.NewOwnerAt(time.Now()), TTL: ttl}}
}

// waiting is a Wait under way, and its result.
type waiting struct {
	store.WaitRequest
	cancel  context.CancelFunc
	reports []store.BusyError
	done    chan struct{}
	took    time.Duration
	grant   store.Grant
	err     error
}

func wait(t *testing.T, s *engine, r store.WaitRequest) *waiting {
	w := &waiting{WaitRequest: r, done: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	w.cancel = cancel
	go func() {
		defer close(w.done)
		start := time.Now()
		w.grant, w.err = s.Wait(ctx, r, func(err error) {
			var busy *store.BusyError
			if errors.As(err, &busy) {
				w.reports = append(w.reports, *busy)
			}
		})
		w.took = time.Since(start)
	}()
	synctest.Wait()
	return w
}

func (w *waiting) ended() bool {
	synctest.Wait()
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// A released lock is handed to the next waiter at once. The new lease counts from then,
// however long the waiter waited.
func TestReleaseHandsTheLockOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bubbled()
		holder, _ := s.take(t, "lock", time.Hour)
		a, b := wait(t, s, request(time.Second)), wait(t, s, request(2*time.Second))
		time.Sleep(10 * time.Minute)
		if a.ended() || b.ended() {
			t.Fatalf("waiters of a held lock have ended: %v, %v", a.err, b.err)
		}
		if st, err := s.Inspect(t.Context(), "lock"); err != nil || len(st.Queue) != 2 || st.Queue[0].Holder.Owner != a.Owner || st.Queue[1].ExpiresIn != 2*time.Second {
			t.Fatalf("queue %+v, %v, want both waiters in order", st.Queue, err)
		}
		if err := s.Release(t.Context(), store.ReleaseRequest{Lease: holder}); err != nil {
			t.Fatal(err)
		}
		if !a.ended() || a.err != nil || a.took != 10*time.Minute || a.grant.Since != a.took || b.ended() {
			t.Fatalf("the first waiter has %v after %v: %+v, want the lock after 10m0s; the second has ended: %v, want it to wait", a.err, a.took, a.grant, b.ended())
		}
		if st, _ := s.Inspect(t.Context(), "lock"); st.Holder.Owner != a.Owner || st.ExpiresIn != time.Second || st.Token != a.grant.Token || len(st.Queue) != 1 {
			t.Fatalf("inspect: %+v, want the first waiter's lease of 1s with grant %+v", st, a.grant)
		}
		// The first waiter does not renew: the second gets the lock the moment that lease expires.
		<-b.done
		if want := 10*time.Minute + time.Second; b.err != nil || b.took != want || b.grant.Since != want || b.grant.Token <= a.grant.Token {
			t.Fatalf("the second waiter has %v after %v: %+v, want the lock after %v, with a token larger than %v", b.err, b.took, b.grant, want, a.grant.Token)
		}
		if r := b.reports; len(r) != 2 || r[0].Position != 2 || r[0].Holder.Owner != holder.Owner || r[1].Position != 1 || r[1].Holder.Owner != a.Owner {
			t.Fatalf("reports to the second waiter: %+v, want position 2 behind %s, then position 1 behind %s", r, holder.Owner, a.Owner)
		}
		if len(s.queues) != 0 || s.Release(t.Context(), store.ReleaseRequest{Lease: b.Lease}) != nil || len(s.records) != 0 {
			t.Errorf("queues %v and records %v after the last release, want none", s.queues, s.records)
		}
	})
}

// A waiter gets the lock the moment the lease expires, also if that was renewed, or ends
// sooner than the timer was set for.
func TestExpiryIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bubbled()
		holder, _ := s.take(t, "lock", time.Minute)
		w := wait(t, s, request(time.Minute))
		for range 10 {
			time.Sleep(50 * time.Second)
			if err := s.Renew(t.Context(), []store.Lease{holder})[0]; err != nil {
				t.Fatal(err)
			}
		}
		<-w.done
		if want := 560 * time.Second; w.err != nil || w.took != want {
			t.Fatalf("%v after %v, want the lock after %v", w.err, w.took, want)
		}
		// The next lease is shorter than the one that the timer was set for.
		short, long := request(time.Second), request(time.Minute)
		a, b := wait(t, s, short), wait(t, s, long)
		if err := s.Release(t.Context(), store.ReleaseRequest{Lease: w.Lease}); err != nil {
			t.Fatal(err)
		}
		<-b.done
		if b.err != nil || !a.ended() || b.took != time.Second {
			t.Fatalf("the waiter behind a lease of 1s has %v after %v, want the lock after 1s", b.err, b.took)
		}
	})
}

// A waiter that gives up leaves the queue at once, from any position, and leaves nothing
// behind. If the lock was handed to it, the lock goes on to the next waiter.
func TestGivingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bubbled()
		holder, _ := s.take(t, "lock", time.Hour)
		var queue []*waiting
		for range 4 {
			queue = append(queue, wait(t, s, request(time.Minute)))
		}
		for _, i := range []int{1, 0} {
			queue[i].cancel()
			if !queue[i].ended() || queue[i].err != context.Canceled {
				t.Fatalf("waiter %d: %v, want the error of its context", i, queue[i].err)
			}
		}
		if st, _ := s.Inspect(t.Context(), "lock"); len(st.Queue) != 2 || st.Queue[0].Holder.Owner != queue[2].Owner {
			t.Fatalf("queue %+v, want the two waiters that are left", st.Queue)
		}
		// The lock is handed to a waiter at the moment it gives up.
		go s.Release(t.Context(), store.ReleaseRequest{Lease: holder})
		queue[2].cancel()
		if !queue[2].ended() {
			t.Fatal("a waiter that gave up still waits")
		}
		if queue[2].err == nil {
			if err := s.Release(t.Context(), store.ReleaseRequest{Lease: queue[2].Lease}); err != nil {
				t.Fatal(err)
			}
		}
		if !queue[3].ended() || queue[3].err != nil {
			t.Fatalf("the last waiter did not get the lock: %v", queue[3].err)
		}
		if err := s.Release(t.Context(), store.ReleaseRequest{Lease: queue[3].Lease}); err != nil {
			t.Fatal(err)
		}
		if len(s.records) != 0 || len(s.queues) != 0 {
			t.Errorf("records %v and queues %v after the last release, want none", s.records, s.queues)
		}
	})
}

// If a waiter gives up after it was handed the lock, the lock goes to the next waiter.
func TestGivingUpAfterTheHandOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bubbled()
		holder, _ := s.take(t, "lock", time.Hour)
		w := &waiter{request: request(time.Minute), wake: make(chan struct{}, 1)}
		s.mu.Lock()
		if err := s.enqueue(w); err != nil {
			t.Fatal(err)
		}
		s.mu.Unlock()
		next := wait(t, s, request(time.Minute))
		if err := s.Release(t.Context(), store.ReleaseRequest{Lease: holder}); err != nil || w.hold.Owner != w.request.Owner {
			t.Fatalf("handed to %+v, %v, want the first waiter", w.hold, err)
		}
		if err := s.leave(w, context.Canceled); err != context.Canceled {
			t.Fatalf("leave: %v, want Canceled", err)
		}
		if !next.ended() || next.err != nil || next.grant.Token <= w.hold.Token {
			t.Fatalf("the next waiter has %+v, %v, want the lock with a token larger than %v", next.grant, next.err, w.hold.Token)
		}
	})
}

// If the timer is late, the next call of any kind hands an expired lease to the
// first waiter, not to the caller.
func TestExpiredLeaseIsHandedOn(t *testing.T) {
	for what, call := range map[string]func(s *engine, first string){
		"Acquire": func(s *engine, first string) {
			var busy *store.BusyError
			if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request(time.Minute).Lease}); !errors.As(err, &busy) || busy.Holder.Owner != first || busy.ExpiresIn != time.Minute {
				t.Errorf("acquire: got %v, want busy, held by the first waiter", err)
			}
		},
		"Inspect": func(s *engine, first string) {
			if st, err := s.Inspect(t.Context(), "lock"); err != nil || st.Holder.Owner != first || len(st.Queue) > 0 {
				t.Errorf("inspect: %+v, %v, want held by the first waiter", st, err)
			}
		},
		"Wait": func(s *engine, _ string) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if err := s.enqueue(&waiter{request: request(time.Minute), wake: make(chan struct{}, 1)}); err != nil {
				t.Error(err)
			}
		},
	} {
		s, now := stepped()
		s.take(t, "lock", time.Minute)
		w := &waiter{request: request(time.Minute), wake: make(chan struct{}, 1)}
		s.mu.Lock()
		if err := s.enqueue(w); err != nil {
			t.Fatal(err)
		}
		s.mu.Unlock()
		*now = now.Add(time.Minute)
		call(s, w.request.Owner)
		if !w.out || w.hold.Owner != w.request.Owner {
			t.Errorf("after %s: the first waiter has %+v, want the lock", what, w.hold)
		}
		s.Close()
	}
}

// While the clock stands still, the store does not read it in a tight loop.
func TestStandingClockIsNotWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		now, readings := clock.Instant(time.Hour), 0
		s := newEngine(&Options{Clock: clock.Func(func() clock.Instant {
			mu.Lock()
			defer mu.Unlock()
			readings++
			return now
		})})
		s.take(t, "lock", time.Millisecond)
		w := wait(t, s, request(time.Minute))
		time.Sleep(time.Second)
		if w.ended() {
			t.Errorf("the wait ended while the clock stood still: %v", w.err)
		}
		mu.Lock()
		if readings > 200 {
			t.Errorf("the clock was read %d times in a second, want 200 at most", readings)
		}
		now = now.Add(time.Millisecond)
		mu.Unlock()
		<-w.done
		if w.err != nil {
			t.Errorf("the wait ended with %v when the clock moved on, want the lock", w.err)
		}
	})
}

// Wait fails if its owner waits already, if its owner is released, and if the store is closed.
func TestWaitThatCannotSucceed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bubbled()
		s.take(t, "lock", time.Hour)
		w, other := wait(t, s, request(time.Minute)), wait(t, s, request(time.Minute))
		if _, err := s.Wait(t.Context(), store.WaitRequest{Lease: w.Lease}, nil); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("a second wait of one owner: %v, want ErrInvalid", err)
		}
		if err := s.Release(t.Context(), store.ReleaseRequest{Lease: w.Lease}); !errors.Is(err, store.ErrNotHeld) {
			t.Errorf("release of a waiter: %v, want ErrNotHeld", err)
		}
		if !w.ended() || !errors.Is(w.err, store.ErrNotHeld) {
			t.Errorf("the wait of a released owner: %v, want ErrNotHeld", w.err)
		}
		s.Close()
		if !other.ended() || other.err != store.ErrClosed {
			t.Errorf("the wait in a closed store: %v, want ErrClosed", other.err)
		}
	})
}

// In a long queue, each release hands the lock to one waiter, in the order of arrival.
func TestLongQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bubbled()
		holder, last := s.take(t, "lock", time.Hour)
		var mu sync.Mutex
		var order, want []string
		var wg sync.WaitGroup
		for i := range 200 {
			r := request(time.Minute)
			r.Meta = store.Holder{Purpose: fmt.Sprint(i)}.Encode()
			want = append(want, r.Owner)
			wg.Go(func() {
				g, err := s.Wait(t.Context(), r, nil)
				mu.Lock()
				defer mu.Unlock()
				if err != nil || g.Token <= last {
					t.Errorf("granted token %v, %v, want more than %v", g.Token, err, last)
				}
				order, last = append(order, r.Owner), g.Token
				go s.Release(t.Context(), store.ReleaseRequest{Lease: r.Lease})
			})
			synctest.Wait()
		}
		if st, err := s.Inspect(t.Context(), "lock"); err != nil || len(st.Queue) != store.MaxQueue || st.Queue[7].Holder.Purpose != "7" {
			t.Errorf("Inspect shows %d places, %v, want %d, described in order", len(st.Queue), err, store.MaxQueue)
		}
		if err := s.Release(t.Context(), store.ReleaseRequest{Lease: holder}); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		if !slices.Equal(order, want) {
			t.Errorf("granted in the order %v, want %v", order, want)
		}
	})
}

// A reason function that ends the goroutine of its Wait leaves no place in the queue.
func TestReasonEndsTheWait(t *testing.T) {
	for how, end := range map[string]func(){"panic": func() { panic("from reason") }, "Goexit": runtime.Goexit} {
		s := newEngine(nil)
		first := store.Lease{Name: "a", Owner: "first", TTL: time.Hour}
		if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: first}); err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer func() { recover() }()
			s.Wait(t.Context(), store.WaitRequest{Lease: store.Lease{Name: "a", Owner: "second", TTL: time.Hour}}, func(error) { end() })
		}()
		<-done
		if st, err := s.Inspect(t.Context(), "a"); err != nil || len(st.Queue) != 0 {
			t.Errorf("%s: %d places are left, %v, want none", how, len(st.Queue), err)
		}
		if err := s.Release(t.Context(), store.ReleaseRequest{Lease: first}); err != nil {
			t.Error(err)
		}
		if st, err := s.Inspect(t.Context(), "a"); err != nil || st.Held {
			t.Errorf("%s: the lock was handed to a Wait that has ended: %v", how, err)
		}
		s.Close()
	}
}
