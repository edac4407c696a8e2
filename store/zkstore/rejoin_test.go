package zkstore

import (
	"context"
	"errors"
	"testing"
	"time"

	gozk "github.com/go-zookeeper/zk"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
	"github.com/leasehold-dev/leasehold/store"
)

// rejoiner is a holder that another client waits for, and that is about to queue for the
// lock again.
type rejoiner struct {
	*engine
	held   store.Lease
	next   store.WaitRequest
	giveUp func()           // the waiter
	has    chan store.Grant // what it is granted
	waiter store.ReleaseRequest
}

func newRejoiner(t *testing.T, s, other *engine, name string) *rejoiner {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &rejoiner{engine: s, held: request(name, 20*time.Second), giveUp: cancel, has: make(chan store.Grant, 1)}
	r.next.Lease = request(name, r.held.TTL)
	r.next.Meta = "lose this one"
	mustAcquire(t, s, r.held)
	w := store.WaitRequest{Lease: request(name, r.held.TTL)}
	r.waiter.Lease = w.Lease
	told := make(chan error, 100)
	go func() {
		g, err := other.Wait(ctx, w, func(err error) { told <- err })
		if err == nil {
			r.has <- g
		}
	}()
	<-told
	return r
}

// A holder that releases leaves no place if nobody waits any more: that place would get the lock at
// once.
func TestRejoinBehindAWaiterThatHasLeft(t *testing.T) {
	t.Parallel() // it mostly waits
	s := mustOpen(t, &Options{servers: []string{shared.Addr}})
	other := mustOpen(t, &Options{servers: []string{shared.Addr}})
	r := newRejoiner(t, s, other, "left")
	r.giveUp()
	eventually.True(t, "the waiter has left", func() bool {
		st, err := other.Inspect(t.Context(), r.held.Name)
		return err == nil && len(st.Queue) == 0
	})
	queued, err := s.ReleaseAndRejoin(t.Context(), store.ReleaseRequest{Lease: r.held}, r.next)
	if err != nil || queued {
		t.Fatalf("rejoin behind a waiter that has left: queued %v, %v, want false", queued, err)
	}
	if st, err := other.Inspect(t.Context(), r.held.Name); err != nil || st.Held {
		t.Fatalf("inspect after the release: %+v, %v, want a free lock", st, err)
	}
}

// A place that was made with a release lasts for its TTL if it is not claimed, although its
// process lives.
func TestUnclaimedPlaceEnds(t *testing.T) {
	t.Parallel() // it mostly waits
	s := mustOpen(t, &Options{servers: []string{shared.Addr}})
	other := mustOpen(t, &Options{servers: []string{shared.Addr}})
	r := newRejoiner(t, s, other, "unclaimed")
	if queued, err := s.ReleaseAndRejoin(t.Context(), store.ReleaseRequest{Lease: r.held}, r.next); err != nil || !queued {
		t.Fatalf("rejoin: queued %v, %v, want true", queued, err)
	}
	p, ok := s.rejoined.Take(r.next.Lease)
	if !ok {
		t.Fatal("the place is not kept")
	}
	soon := r.next.Lease
	soon.TTL = time.Millisecond
	s.rejoined.Put(soon, p, func() { s.expired(p.place) })
	eventually.True(t, "the place is gone", func() bool {
		st, err := other.Inspect(t.Context(), r.held.Name)
		return err == nil && len(st.Queue) == 0
	})
	<-r.has
	mustRelease(t, other, r.waiter.Lease)
}

// A place that was made with a release and has got the lock before it is claimed is
// not granted if it is gone by then.
func TestUnclaimedPlaceIsDeleted(t *testing.T) {
	t.Parallel() // it mostly waits
	s := mustOpen(t, &Options{servers: []string{shared.Addr}})
	other := mustOpen(t, &Options{servers: []string{shared.Addr}})
	r := newRejoiner(t, s, other, "unclaimed and deleted")
	if queued, err := s.ReleaseAndRejoin(t.Context(), store.ReleaseRequest{Lease: r.held}, r.next); err != nil || !queued {
		t.Fatalf("rejoin: queued %v, %v, want true", queued, err)
	}
	<-r.has
	p, ok := s.rejoined.Take(r.next.Lease)
	if !ok {
		t.Fatal("the place is not kept")
	}
	// The place is watched once its session has answered. If the waiter left before, the place
	// would be granted as of then, and the next renewal would find that it is gone.
	if _, ok, err := p.Get(t.Context(), p.path()); err != nil || !ok {
		t.Fatalf("the place is there: %v, %v, want true", ok, err)
	}
	mustRelease(t, other, r.waiter.Lease)
	s.rejoined.Put(r.next.Lease, p, func() {})
	if _, _, err := p.delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	if g, err := s.Wait(t.Context(), r.next, nil); !errors.Is(err, store.ErrNotHeld) {
		t.Fatalf("wait in a place that is gone: %+v, %v, want %v", g, err, store.ErrNotHeld)
	}
}

// A place that was made with a release of a lock that was listed knows the whole queue, and is
// told of the end of the place before it.
func TestRejoinKnowsTheQueue(t *testing.T) {
	t.Parallel() // it mostly waits
	s := mustOpen(t, &Options{servers: []string{shared.Addr}})
	other := mustOpen(t, &Options{servers: []string{shared.Addr}})
	r := newRejoiner(t, s, other, "known")
	if queued, err := s.ReleaseAndRejoin(t.Context(), store.ReleaseRequest{Lease: r.held}, r.next); err != nil || !queued {
		t.Fatalf("rejoin: queued %v, %v, want true", queued, err)
	}
	p, ok := s.rejoined.Take(r.next.Lease)
	if !ok {
		t.Fatal("the place is not kept")
	}
	if p.early == nil || len(p.early.queue) != 2 || p.early.queue[1].name != p.name {
		t.Fatalf("the place knows %+v, want the waiter's place and its own", p.early)
	}
	s.rejoined.Put(r.next.Lease, p, func() {})
	<-r.has
	mustRelease(t, other, r.waiter.Lease)
	if _, err := s.Wait(t.Context(), r.next, nil); err != nil {
		t.Fatalf("wait: %v", err)
	}
	mustRelease(t, s, r.next.Lease)
}

// A holder that has seen several waiters watches the last of them when it queues again, and lists the
// queue only if that one has left. Its caller is told who the holder is if it waits for long.
func TestRejoinBehindTheLastWaiter(t *testing.T) {
	t.Parallel() // it mostly waits
	s, other := mustOpen(t, &Options{servers: []string{shared.Addr}}), mustOpen(t, &Options{servers: []string{shared.Addr}})
	for _, left := range []bool{false, true} {
		held, r := request("behind the last", 20*time.Second), store.WaitRequest{Lease: request("behind the last", 20*time.Second)}
		p, err := s.enqueue(t.Context(), held)
		if err != nil {
			t.Fatal(err)
		}
		second := next(t, other, request(held.Name, held.TTL))
		last, err := other.enqueue(t.Context(), request(held.Name, held.TTL))
		if err != nil {
			t.Fatal(err)
		}
		p.early = nil // the two came later
		w := &waiting{s: s, r: store.WaitRequest{Lease: held}, start: s.clock.Now(), place: p}
		if g, err := w.look(t.Context()); g == nil || err != nil {
			t.Fatalf("a look: %+v, %v, want a grant", g, err)
		}
		if left && last.removeNow(t.Context()) != nil {
			t.Fatal("the last place cannot be removed")
		}
		if queued, err := s.ReleaseAndRejoin(t.Context(), store.ReleaseRequest{Lease: held}, r); err != nil || !queued {
			t.Fatalf("rejoin: queued %v, %v, want true", queued, err)
		}
		again, ok := s.rejoined.Take(r.Lease)
		if !ok {
			t.Fatal("the place is not kept")
		}
		if watches := again.set != nil && again.before == last.name; watches == left || (again.early != nil) != left {
			t.Fatalf("the last waiter has left: %v; its place is watched: %v, and the queue is %+v", left, watches, again.early)
		}
		s.rejoined.Put(r.Lease, again, func() {})
		if err := second.pause(t.Context()); err != nil {
			t.Fatal(err)
		}
		if g, err := second.look(t.Context()); g == nil || err != nil {
			t.Fatalf("the waiter: %+v, %v, want a grant", g, err)
		}
		told, has := make(chan error, 100), make(chan error, 1)
		go func() {
			_, err := s.Wait(t.Context(), r, func(err error) { told <- err })
			has <- err
		}()
		var busy *store.BusyError
		if err := <-told; !errors.As(err, &busy) || busy.Holder.Owner != second.r.Owner || (busy.Position == 1) != left {
			t.Fatalf("the caller is told %v, want to wait for %s", err, second.r.Owner)
		}
		mustRelease(t, other, second.r.Lease)
		if !left {
			if last.removeNow(t.Context()) != nil {
				t.Fatal("the last place cannot be removed")
			}
		}
		if err := <-has; err != nil {
			t.Fatal(err)
		}
		mustRelease(t, s, r.Lease)
	}
}

// If the answer to a release that queues again is lost and the caller gives up in the same
// moment, the place that was made is found and removed all the same: no waiter is held up.
func TestRejoinGivenUpWhenItsAnswerIsLost(t *testing.T) {
	t.Parallel() // it mostly waits
	p := faultproxy.New(t, shared.Addr)
	s := mustOpen(t, &Options{servers: []string{p.Addr()}, Timeout: patience})
	other := mustOpen(t, &Options{servers: []string{shared.Addr}})
	for i := range 5 {
		r := newRejoiner(t, s, other, "lost and given up")
		p.CutReplyTo(r.next.Meta, 0)
		p.RefuseNew()
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			p.Await(t, "the answer is lost", func(st faultproxy.Stats) bool { return st.Cut > int64(i) })
			cancel()
		}()
		if _, done, err := s.rejoin(ctx, store.ReleaseRequest{Lease: r.held}, r.next); done || !errors.Is(err, context.Canceled) {
			t.Fatalf("rejoin: %v, %v, want %v", done, err, context.Canceled)
		}
		p.Pass()
		<-r.has
		eventually.True(t, "the new place is removed", func() bool {
			st, err := other.Inspect(t.Context(), r.held.Name)
			return err == nil && st.Holder.Owner == r.waiter.Owner && len(st.Queue) == 0
		})
		mustRelease(t, other, r.waiter.Lease)
	}
}

// If the servers refuse the next place, the lease is released without one.
func TestRejoinThatIsRefusedAPlace(t *testing.T) {
	t.Parallel() // it mostly waits
	s, other := mustOpen(t, &Options{servers: []string{shared.Addr}}), mustOpen(t, &Options{servers: []string{shared.Addr}})
	r := newRejoiner(t, s, other, "refused a place")
	dir := DefaultBase + "/" + r.held.Name
	c := connect(t)
	if _, err := c.SetACL(dir, gozk.WorldACL(gozk.PermAll&^gozk.PermCreate), -1); err != nil {
		t.Fatal(err)
	}
	if queued, err := s.ReleaseAndRejoin(t.Context(), store.ReleaseRequest{Lease: r.held}, r.next); queued || err != nil {
		t.Errorf("rejoin: queued %v, %v, want a release", queued, err)
	}
	if _, err := c.SetACL(dir, gozk.WorldACL(gozk.PermAll), -1); err != nil { // the test may run again
		t.Fatal(err)
	}
	<-r.has
	mustRelease(t, other, r.waiter.Lease)
}

// A lease can expire while it is released and its owner queues again. The race detector sees
// whether either of them writes to what the other reads.
func TestLeaseExpiresDuringARejoin(t *testing.T) {
	t.Parallel() // it mostly waits
	s := mustOpen(t, &Options{servers: []string{shared.Addr}})
	l := request("expires during a rejoin", 20*time.Second)
	mustAcquire(t, s, l)
	h := s.leases.get(leaseKey{l.Name, l.Owner})
	s.expired(h.place.Load())
	if _, _, err := s.rejoin(t.Context(), store.ReleaseRequest{Lease: l}, store.WaitRequest{Lease: request(l.Name, l.TTL)}); err != nil {
		t.Fatal(err)
	}
}
