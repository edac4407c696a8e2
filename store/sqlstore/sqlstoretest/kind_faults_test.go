package sqlstoretest

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/validity"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/sqlstore"
)

// leaseOf returns a lease of a lock of another kind.
func leaseOf(kind store.Kind, weight int64, name string) store.Lease {
	l := lease(name)
	l.Kind, l.Weight = kind, weight
	return l
}

// sharedContest is a contest for a lock of another kind. It checks that the weights of the
// leases that are valid fit into the limit, that their slots differ, and that the token of a
// lease that is alone is larger than all before it.
type sharedContest struct {
	kind store.Kind

	mu     sync.Mutex
	held   []sharedHold
	last   fence.Token
	grants int
	most   int
	wrong  []string
}

type sharedHold struct {
	slot, weight int64
	until        clock.Instant
}

func (c *sharedContest) run(ctx context.Context, s *store.Store, weight func() int64) {
	for ctx.Err() == nil {
		l := leaseOf(c.kind, weight(), "x")
		l.TTL = 2 * time.Second
		start := clock.System().Now()
		g, err := s.Wait(ctx, store.WaitRequest{Lease: l}, nil)
		if err != nil {
			continue
		}
		h := sharedHold{slot: g.Slot, weight: l.Weight, until: validity.Until(start.Add(g.Since), l.TTL)}
		c.enter(h, g.Token)
		time.Sleep(rand.N(2 * time.Millisecond))
		c.leave(h)
		for tries := 0; tries < 10; tries++ {
			err := s.Release(context.WithoutCancel(ctx), store.ReleaseRequest{Lease: g.Lease})
			if err == nil || errors.Is(err, store.ErrNotHeld) {
				break
			}
		}
	}
}

func (c *sharedContest) enter(h sharedHold, token fence.Token) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := clock.System().Now()
	if now >= h.until {
		return
	}
	c.held = slices.DeleteFunc(c.held, func(o sharedHold) bool { return o.until <= now })
	sum := h.weight
	for _, o := range c.held {
		sum += o.weight
		if o.slot == h.slot {
			c.wrong = append(c.wrong, "two leases have one slot")
		}
	}
	if sum > c.kind.Limit {
		c.wrong = append(c.wrong, "the limit is exceeded")
	}
	if h.weight == c.kind.Limit && token <= c.last {
		c.wrong = append(c.wrong, "a token went back")
	}
	c.last = max(c.last, token)
	c.held = append(c.held, h)
	c.grants++
	c.most = max(c.most, len(c.held))
}

func (c *sharedContest) leave(h sharedHold) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = slices.DeleteFunc(c.held, func(o sharedHold) bool { return o == h })
}

// enough reports whether there were many grants, and several leases at once.
func (c *sharedContest) enough() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.grants >= 20 && c.most > 1
}

// With connections killed at any moment, the holders of a semaphore stay within its limit, a writer
// holds alone, and the lock can be acquired in the end.
func TestKindsWhileConnectionsAreKilled(t *testing.T) {
	everywhere(t, func(t *testing.T, on *bed) {
		for _, kind := range []store.Kind{store.Semaphore(3), store.ReadWrite} {
			t.Run(kind.String(), func(t *testing.T) {
				t.Parallel()
				_, schema := on.newStore(t)
				ctx, stop := context.WithTimeout(t.Context(), patience)
				defer stop()
				c := &sharedContest{kind: kind}
				weight := func() int64 {
					if rand.N(3) == 0 {
						return kind.Limit
					}
					return 1
				}
				var all sync.WaitGroup
				for range 6 {
					s := on.open(t, schema, sqlstore.Options{}, on.named(schema))
					all.Go(func() { c.run(ctx, s, weight) })
				}
				db := on.handle(t)
				for ctx.Err() == nil && !c.enough() {
					if err := on.kill(db, schema); err != nil {
						t.Fatal(err)
					}
					time.Sleep(rand.N(200 * time.Millisecond))
				}
				stop()
				all.Wait()
				if len(c.wrong) > 0 || !c.enough() {
					t.Errorf("%d grants, want at least 20 and several leases at once; %d violations: %q", c.grants, len(c.wrong), c.wrong)
				}
				t.Logf("%d grants, at most %d leases at once", c.grants, c.most)
				s := on.open(t, schema, sqlstore.Options{})
				w := wait(t, s, leaseOf(kind, kind.Limit, "x"))
				w.granted(t)
				mustRelease(t, s, w.r.Lease)
			})
		}
	})
}

// Semaphore(1) is a mutex. Its lease stays when it is resized, and the waits for the old number of
// permits end. A semaphore that was resized to a mutex is handed on as a mutex.
func TestResizedMutex(t *testing.T) {
	everywhere(t, func(t *testing.T, on *bed) {
		t.Parallel()
		s, _ := on.newStore(t)
		one, three := store.Semaphore(1), store.Semaphore(3)
		mutex := leaseOf(one, 0, "x")
		mustAcquire(t, s, mutex)
		w := wait(t, s, leaseOf(one, 0, "x"))
		eventually.True(t, "the waiter has its place", func() bool { return len(inspect(t, s, "x").Queue) == 1 })
		if err := s.Resize(t.Context(), "x", one, three); err != nil {
			t.Fatal(err)
		}
		<-w.done
		if !errors.Is(w.err, store.ErrKindMismatch) {
			t.Errorf("the wait for a mutex ended with %v, want %v", w.err, store.ErrKindMismatch)
		}
		second := leaseOf(three, 2, "x")
		mustAcquire(t, s, second)
		for _, err := range s.Renew(t.Context(), []store.Lease{second, mutex}) {
			if err != nil {
				t.Errorf("renew: %v", err)
			}
		}
		if err := s.Resize(t.Context(), "x", three, one); err != nil {
			t.Fatal(err)
		}
		next := wait(t, s, leaseOf(one, 0, "x"))
		eventually.True(t, "the next waiter has its place", func() bool { return len(inspect(t, s, "x").Queue) == 1 })
		given := wait(t, s, leaseOf(one, 0, "x"))
		eventually.True(t, "another waiter has its place", func() bool { return len(inspect(t, s, "x").Queue) == 2 })
		given.cancel()
		<-given.done
		eventually.True(t, "its place is gone", func() bool { return len(inspect(t, s, "x").Queue) == 1 })
		mustRelease(t, s, mutex)
		mustRelease(t, s, second)
		next.granted(t)
		if st := inspect(t, s, "x"); !st.Held || !st.Kind.IsMutex() || st.Holder.Owner != next.r.Owner {
			t.Errorf("inspect after the resize: %+v, want a mutex held by %s", st, next.r.Owner)
		}
		if err := s.Renew(t.Context(), []store.Lease{next.r.Lease})[0]; err != nil {
			t.Errorf("renew: %v", err)
		}
		mustRelease(t, s, next.r.Lease)
	})
}

// Hold refuses the lease of another kind than a mutex.
func TestHoldOfAKind(t *testing.T) {
	everywhere(t, func(t *testing.T, on *bed) {
		t.Parallel()
		s, _ := on.newStore(t)
		l := leaseOf(store.ReadWrite, store.ReadWriteLimit, "x")
		mustAcquire(t, s, l)
		tx := begin(t, on.handle(t), 0)
		defer tx.Rollback()
		if err := sqlstore.Hold(t.Context(), s, tx, aLease{Lease: l}); !errors.Is(err, store.ErrUnsupported) || !strings.Contains(err.Error(), "mutex") {
			t.Errorf("hold: %v, want %v and a word on mutexes", err, store.ErrUnsupported)
		}
	})
}
