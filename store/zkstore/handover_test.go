package zkstore

import (
	"errors"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/store"
)

// next is the next waiter for a lock, which watches the holder's place and its own.
func next(t *testing.T, s *engine, l store.Lease) *waiting {
	t.Helper()
	w := &waiting{s: s, r: store.WaitRequest{Lease: l}, start: s.clock.Now()}
	p, err := s.enqueue(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	w.place = p
	if g, err := w.look(t.Context()); g != nil || !w.paused || err != nil {
		t.Fatalf("the first look: %+v, paused %v, %v, want to wait", g, w.paused, err)
	}
	if p.own == nil {
		t.Fatal("the next waiter does not watch its own place")
	}
	return w
}

// mustChange waits for a change of what is watched.
func mustChange(t *testing.T, what string, over <-chan struct{}) {
	t.Helper()
	select {
	case <-over:
	case <-time.After(patience):
		t.Fatalf("no change is announced: %s", what)
	}
}

// The end of the lease before hands the lock over to the next waiter, which lists nothing.
func TestHandOver(t *testing.T) {
	t.Parallel() // it mostly waits
	s := mustOpen(t, &Options{servers: []string{shared.Addr}})
	held, l := request("handed over", 20*time.Second), request("handed over", 20*time.Second)
	first := mustAcquire(t, s, held)
	w := next(t, s, l)
	mustRelease(t, s, held)
	if err := w.pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p := w.place; p.early == nil || len(p.early.queue) != 1 || p.early.queue[0].name != p.name {
		t.Fatalf("the queue is %+v, want the waiter's own place", p.early)
	}
	g, err := w.look(t.Context())
	if err != nil || g == nil || g.Token <= first.Token {
		t.Fatalf("a lock that was handed over: %+v, %v, want a token after %v", g, err, first.Token)
	}
	mustRelease(t, s, l)
}

// A lease that moves to another session is not over: the next waiter is told, and waits behind
// its new place.
func TestMoveBeforeTheNextWaiter(t *testing.T) {
	t.Parallel() // it mostly waits
	a, b := mustOpen(t, &Options{servers: []string{shared.Addr}}), mustOpen(t, &Options{servers: []string{shared.Addr}})
	held := request("moves before the next", 5*time.Second)
	mustAcquire(t, a, held)
	w := next(t, b, request(held.Name, 20*time.Second))
	for i := range 4 {
		s := []*engine{b, a}[i%2]
		longer := held
		longer.TTL += time.Duration(i) * time.Second
		before := w.place.before
		if err := s.Renew(t.Context(), []store.Lease{longer})[0]; err != nil {
			t.Fatalf("renew through another handle: %v", err)
		}
		mustChange(t, "the move", w.place.set.Over)
		if err := w.pause(t.Context()); err != nil {
			t.Fatal(err)
		}
		if g, err := w.look(t.Context()); g != nil || !w.paused || err != nil || w.place.before == before {
			t.Fatalf("move %d: %+v, paused %v, %v, want to wait for another place than %v", i, g, w.paused, err, before)
		}
	}
	w.place.unwatch()
	if w.place.removeNow(t.Context()) != nil {
		t.Error("the waiter's place cannot be removed")
	}
	mustRelease(t, b, held)
}

// A waiter whose connection breaks goes on waiting on the next one. What the server announces there
// hands nothing over: if a place has moved meanwhile, only its end is announced.
func TestConnectionOfTheNextWaiterBreaks(t *testing.T) {
	t.Parallel() // it mostly waits
	a, b := mustOpen(t, &Options{servers: []string{shared.Addr}}), mustOpen(t, &Options{servers: []string{shared.Addr}})
	s, proxy := proxied(t)
	held := request("next is cut off", 20*time.Second)
	mustAcquire(t, a, held)
	w := next(t, s, request(held.Name, 20*time.Second))
	cutOff := func(meanwhile func()) {
		t.Helper()
		proxy.RefuseNew()
		proxy.Cut()
		mustChange(t, "the connection is lost", w.lost)
		if err := w.pause(t.Context()); err != nil || !w.paused {
			t.Fatalf("the connection is lost: %v, paused %v, want to go on", err, w.paused)
		}
		meanwhile()
		proxy.Pass()
		if g, err := w.look(t.Context()); g != nil || !w.paused || err != nil {
			t.Fatalf("a look on the next connection: %+v, paused %v, %v, want to wait", g, w.paused, err)
		}
	}
	told := func() {
		t.Helper()
		mustChange(t, "the end of the place before", w.place.set.Over)
		if w.place.handedOver() {
			t.Error("a lock is handed over on a later connection")
		}
		if err := w.pause(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	watched := w.place.set
	cutOff(func() {})
	if w.place.set != watched {
		t.Error("another watch is set although nothing has changed")
	}
	cutOff(func() {
		longer := held
		longer.TTL += time.Second
		if err := b.Renew(t.Context(), []store.Lease{longer})[0]; err != nil {
			t.Fatalf("renew through another handle: %v", err)
		}
	})
	told()
	if g, err := w.look(t.Context()); g != nil || !w.paused || err != nil || w.place.own == nil {
		t.Fatalf("a look after the lease has moved: %+v, paused %v, %v, want to wait", g, w.paused, err)
	}
	cutOff(func() { mustRelease(t, b, held) })
	told()
	if g, err := w.look(t.Context()); g == nil || err != nil {
		t.Fatalf("a look after the release: %+v, %v, want a grant", g, err)
	}
	mustRelease(t, s, w.r.Lease)
}

// A waiter whose own place somebody has removed is not handed the lock, and notices that
// before its turn.
func TestNextWaiterIsRemoved(t *testing.T) {
	t.Parallel() // it mostly waits
	s, other := mustOpen(t, &Options{servers: []string{shared.Addr}}), mustOpen(t, &Options{servers: []string{shared.Addr}})
	held, l := request("next is removed", 20*time.Second), request("next is removed", 20*time.Second)
	mustAcquire(t, other, held)
	w := next(t, s, l)
	if err := other.Release(t.Context(), store.ReleaseRequest{Lease: l}); !errors.Is(err, store.ErrNotHeld) {
		t.Fatalf("release of a waiter: %v, want %v", err, store.ErrNotHeld)
	}
	mustChange(t, "the end of the own place", w.place.ownChanged())
	mustRelease(t, other, held)
	mustChange(t, "the end of the lease", w.place.set.Over)
	if w.place.handedOver() {
		t.Error("the lock is handed over to a place that is gone")
	}
	if err := w.pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	if g, err := w.look(t.Context()); !errors.Is(err, store.ErrNotHeld) {
		t.Fatalf("a look without a place: %+v, %v, want %v", g, err, store.ErrNotHeld)
	}
}

// A holder that was handed the lock and knows of no waiter makes a place with its release, and
// removes it again if nobody waits: the lock is free then.
func TestRejoinThatNobodyWaitsFor(t *testing.T) {
	t.Parallel() // it mostly waits
	s, other := mustOpen(t, &Options{servers: []string{shared.Addr}}), mustOpen(t, &Options{servers: []string{shared.Addr}})
	for _, waits := range []bool{false, true} {
		held, l := request("nobody waits", 20*time.Second), request("nobody waits", 20*time.Second)
		mustAcquire(t, other, held)
		w := next(t, s, l)
		mustRelease(t, other, held)
		if err := w.pause(t.Context()); err != nil {
			t.Fatal(err)
		}
		g, err := w.look(t.Context())
		if err != nil || g == nil {
			t.Fatalf("a lock that was handed over: %+v, %v, want a grant", g, err)
		}
		var third *waiting
		if waits {
			third = next(t, other, request(held.Name, 20*time.Second))
		}
		r := store.WaitRequest{Lease: request(l.Name, l.TTL)}
		queued, err := s.ReleaseAndRejoin(t.Context(), store.ReleaseRequest{Lease: l}, r)
		if err != nil || queued != waits {
			t.Fatalf("rejoin: queued %v, %v, want %v", queued, err, waits)
		}
		if !waits {
			if st, err := other.Inspect(t.Context(), l.Name); err != nil || st.Held || len(st.Queue) != 0 {
				t.Fatalf("inspect: %+v, %v, want a free lock", st, err)
			}
			continue
		}
		p, ok := s.rejoined.Take(r.Lease)
		if !ok || p.early == nil || len(p.early.queue) != 2 {
			t.Fatalf("the place knows %+v, want the whole queue", p.early)
		}
		s.rejoined.Put(r.Lease, p, func() {})
		if err := third.pause(t.Context()); err != nil {
			t.Fatal(err)
		}
		if g, err := third.look(t.Context()); err != nil || g == nil {
			t.Fatalf("the waiter: %+v, %v, want a grant", g, err)
		}
		mustRelease(t, other, third.r.Lease)
		if _, err := s.Wait(t.Context(), r, nil); err != nil {
			t.Fatal(err)
		}
		mustRelease(t, s, r.Lease)
	}
	eventually.True(t, "no place is kept", func() bool { _, ok := s.rejoined.Take(store.Lease{}); return !ok })
}

// If the holder has left before the watches are set, the list that was sent with them shows that
// the lock is free. If another client's place is first by then, it shows that as well.
func TestHolderLeavesBeforeTheWatches(t *testing.T) {
	t.Parallel() // it mostly waits
	s, other := mustOpen(t, &Options{servers: []string{shared.Addr}}), mustOpen(t, &Options{servers: []string{shared.Addr}})
	for _, free := range []bool{true, false} {
		held, between, l := request("left before", 20*time.Second), request("left before", 20*time.Second), request("left before", 20*time.Second)
		mustAcquire(t, other, held)
		left := other.leases.get(leaseKey{held.Name, held.Owner}).place.Load().name
		if !free {
			next(t, other, between)
		}
		p, err := s.enqueue(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		w := &waiting{s: s, r: store.WaitRequest{Lease: l}, start: s.clock.Now(), place: p}
		mustRelease(t, other, held)
		q := lineup{queue: queue{{name: left, spec: rule.Mutex, weight: 1}, p.numbered}}
		asOf := p.Proven()
		if again, err := p.watch(t.Context(), q, 1); !again || err != nil || p.set != nil || p.own != nil {
			t.Fatalf("watch: %v, %v, want the place to be gone, and no watch", again, err)
		}
		if p.early == nil || len(p.early.queue) == 1 != free || p.early.asOf < asOf || p.early.asOf > s.clock.Now() {
			t.Fatalf("the queue is %+v, want what was listed with the watches", p.early)
		}
		g, err := w.look(t.Context())
		if err != nil || (g != nil) != free || w.paused == free {
			t.Fatalf("a look: %+v, paused %v, %v, want a grant %v", g, w.paused, err, free)
		}
		if !free {
			if err := other.Release(t.Context(), store.ReleaseRequest{Lease: between}); !errors.Is(err, store.ErrNotHeld) && err != nil {
				t.Fatal(err)
			}
			if err := w.pause(t.Context()); err != nil {
				t.Fatal(err)
			}
			if g, err := w.look(t.Context()); g == nil || err != nil {
				t.Fatalf("the last look: %+v, %v, want a grant", g, err)
			}
		}
		mustRelease(t, s, l)
	}
}

// A waiter that is not the next one lists the queue when the place before its own is gone.
func TestListFollowsTheChange(t *testing.T) {
	t.Parallel() // it mostly waits
	s, other := mustOpen(t, &Options{servers: []string{shared.Addr}}), mustOpen(t, &Options{servers: []string{shared.Addr}})
	held, between, l := request("followed", 20*time.Second), request("followed", 20*time.Second), request("followed", 20*time.Second)
	mustAcquire(t, other, held)
	before := next(t, other, between)
	w := &waiting{s: s, r: store.WaitRequest{Lease: l}, start: s.clock.Now()}
	p, err := s.enqueue(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	w.place = p
	if g, err := w.look(t.Context()); g != nil || !w.paused || err != nil || p.own != nil || p.before != before.place.name {
		t.Fatalf("the first look: %+v, paused %v, %v, want to wait for %s", g, w.paused, err, before.place.name)
	}
	before.place.unwatch()
	if before.place.removeNow(t.Context()) != nil {
		t.Fatal("the place before cannot be removed")
	}
	mustChange(t, "the end of the place before", p.set.Over)
	if err := w.pause(t.Context()); err != nil || p.early != nil {
		t.Fatalf("%v, and the queue is %+v, want to list it", err, p.early)
	}
	if g, err := w.look(t.Context()); g != nil || !w.paused || err != nil || p.own == nil {
		t.Fatalf("the next look: %+v, paused %v, %v, want to wait as the next one", g, w.paused, err)
	}
	mustRelease(t, other, held)
	if err := w.pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	if g, err := w.look(t.Context()); g == nil || err != nil {
		t.Fatalf("the last look: %+v, %v, want a grant", g, err)
	}
	mustRelease(t, s, l)
}
