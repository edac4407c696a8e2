package zkstore

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

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

// A holder that releases makes no place behind a waiter that has left since the holder read
// the queue: that place would get the lock at once.
func TestRejoinBehindAWaiterThatHasLeft(t *testing.T) {
	t.Parallel() // it mostly waits
	s := mustOpen(t, &Options{servers: []string{shared.Addr}})
	other := mustOpen(t, &Options{servers: []string{shared.Addr}})
	r := newRejoiner(t, s, other, "left")
	h := s.places.leases.get(leaseKey{r.held.Name, r.held.Owner})
	p := *h.place.Load()
	if _, _, err := p.queue(t.Context()); err != nil || len(p.behind) == 0 {
		t.Fatalf("the waiter is not in the queue: %v", err)
	}
	h.place.Store(&p) // as if the waiter had been there at the grant
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
	p, ok := s.places.rejoined.Take(r.next.Lease)
	if !ok {
		t.Fatal("the place is not kept")
	}
	soon := r.next.Lease
	soon.TTL = time.Millisecond
	s.places.rejoined.Put(soon, p, func() { s.places.expired(p.place) })
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
	p, ok := s.places.rejoined.Take(r.next.Lease)
	if !ok {
		t.Fatal("the place is not kept")
	}
	// The place is watched once its session has answered. If the waiter left before, the place
	// would be granted as of then, and the next renewal would find that it is gone.
	if _, ok, err := p.Get(t.Context(), p.path()); err != nil || !ok {
		t.Fatalf("the place is there: %v, %v, want true", ok, err)
	}
	mustRelease(t, other, r.waiter.Lease)
	s.places.rejoined.Put(r.next.Lease, p, func() {})
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
	p, ok := s.places.rejoined.Take(r.next.Lease)
	if !ok {
		t.Fatal("the place is not kept")
	}
	if p.early == nil || p.early.partial || len(p.early.queue) != 2 || p.early.queue[1].name != p.name {
		t.Fatalf("the place knows %+v, want the waiter's place and its own", p.early)
	}
	s.places.rejoined.Put(r.next.Lease, p, func() {})
	<-r.has
	mustRelease(t, other, r.waiter.Lease)
	if _, err := s.Wait(t.Context(), r.next, nil); err != nil {
		t.Fatalf("wait: %v", err)
	}
	mustRelease(t, s, r.next.Lease)
}

// A place that was made with a release and of which others were known watches the last of
// them, without a list of the queue. If that is gone, it looks: places may be missing in what
// it knows, so that the lock is not its own when the only other place that it knows is gone.
func TestRejoinKnowsTheQueueInPart(t *testing.T) {
	t.Parallel() // it mostly waits
	s := mustOpen(t, &Options{servers: []string{shared.Addr}})
	other := mustOpen(t, &Options{servers: []string{shared.Addr}})
	held := request("known in part", 20*time.Second)
	mustAcquire(t, s, held)
	second, third := request(held.Name, held.TTL), request(held.Name, held.TTL)
	for _, l := range []store.Lease{second, third} {
		if _, err := other.places.enqueue(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	h := s.places.leases.get(leaseKey{held.Name, held.Owner})
	p := *h.place.Load()
	if _, _, err := p.queue(t.Context()); err != nil || len(p.behind) != 2 {
		t.Fatalf("behind the holder: %+v, %v, want two waiters", p.behind, err)
	}
	p.behind, p.unlisted = p.behind[:1], true // as if the third had come after the lock was handed over
	h.place.Store(&p)
	rejoin := store.WaitRequest{Lease: request(held.Name, held.TTL)}
	if queued, err := s.ReleaseAndRejoin(t.Context(), store.ReleaseRequest{Lease: held}, rejoin); err != nil || !queued {
		t.Fatalf("rejoin: queued %v, %v, want true", queued, err)
	}
	last, ok := s.places.rejoined.Take(rejoin.Lease)
	if !ok || last.set == nil || last.early == nil || !last.early.partial || len(last.early.queue) != 2 {
		t.Fatalf("the place watches %q and knows %+v, want the second place and its own", last.before.name, last.early)
	}
	w := &waiting{s: s, r: rejoin, start: last.start, place: last.place}
	looks := func(what string) {
		t.Helper()
		if g, pause, err := w.look(t.Context()); g != nil || !pause || err != nil {
			t.Fatalf("%s: %+v, pause %v, %v, want to wait", what, g, pause, err)
		}
	}
	looks("with what is known in part")
	if w.place.own != nil {
		t.Error("the own place is watched, as if nobody else was before it")
	}
	if err := other.Release(t.Context(), store.ReleaseRequest{Lease: second}); err != nil {
		t.Fatal(err)
	}
	if err := w.pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	looks("behind the third place")
	if err := other.Release(t.Context(), store.ReleaseRequest{Lease: third}); err != nil {
		t.Fatal(err)
	}
	if err := w.pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	if g, _, err := w.look(t.Context()); g == nil || err != nil {
		t.Fatalf("when the third place is gone: %+v, %v, want a grant", g, err)
	}
	mustRelease(t, s, rejoin.Lease)
}

// endsAfterTheWait is a context that ends once somebody has waited for it.
type endsAfterTheWait struct {
	context.Context
	waits atomic.Int64
}

func (c *endsAfterTheWait) Done() <-chan struct{} {
	if c.waits.Add(1) == 1 {
		return nil
	}
	ended := make(chan struct{})
	close(ended)
	return ended
}

func (c *endsAfterTheWait) Err() error {
	if c.waits.Load() > 1 {
		return context.Canceled
	}
	return nil
}

// If the answer to a release that queues again is lost and the caller gives up in the same
// moment, the place that was made is found and removed all the same: no waiter is held up.
func TestRejoinGivenUpWhenItsAnswerIsLost(t *testing.T) {
	t.Parallel() // it mostly waits
	p := faultproxy.New(t, shared.Addr)
	s := mustOpen(t, &Options{servers: []string{p.Addr()}, Timeout: patience})
	other := mustOpen(t, &Options{servers: []string{shared.Addr}})
	for range 5 {
		r := newRejoiner(t, s, other, "lost and given up")
		held := s.places.leases.get(leaseKey{r.held.Name, r.held.Owner}).place.Load()
		if _, _, err := held.queue(t.Context()); err != nil || len(held.behind) != 1 { // so that nothing is listed before the release
			t.Fatalf("the holder sees %v behind its place, %v, want the waiter", held.behind, err)
		}
		p.CutReplyTo(r.next.Meta, 0)
		j := &rejoining{s: s.places, owner: r.held.Owner, next: r.next, start: s.clock.Now()}
		if done, err := j.of(&endsAfterTheWait{Context: t.Context()}, store.ReleaseRequest{Lease: r.held}); done || !errors.Is(err, context.Canceled) {
			t.Fatalf("rejoin: %v, %v, want %v", done, err, context.Canceled)
		}
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
	if _, err := connect(t).SetACL(dir, zk.WorldACL(zk.PermAll&^zk.PermCreate), -1); err != nil {
		t.Fatal(err)
	}
	if queued, err := s.ReleaseAndRejoin(t.Context(), store.ReleaseRequest{Lease: r.held}, r.next); queued || err != nil {
		t.Errorf("rejoin: queued %v, %v, want a release", queued, err)
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
	h := s.places.leases.get(leaseKey{l.Name, l.Owner})
	s.places.expired(h.place.Load())
	j := &rejoining{s: s.places, owner: l.Owner, next: store.WaitRequest{Lease: l}, start: s.clock.Now()}
	old, err := j.held(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	if old != nil {
		old.leave()
	}
}
