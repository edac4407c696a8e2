package storetest

import (
	"errors"
	"slices"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/validity"
	"github.com/leasehold-dev/leasehold/store"
)

// checkWaitFree: Wait is granted a free lock at once, with or without a reason
// function, as Acquire is.
func checkWaitFree(t *trial) {
	var last fence.Token
	name := t.name()
	for _, s := range t.handles() {
		w := t.wait(s, t.applicant(name, t.long))
		t.gets("wait for a free lock", w)
		if w.grant.Token <= last {
			t.Fatalf("token %v after a release, want more than %v", w.grant.Token, last)
		}
		t.sameHolder("inspect", t.heldBy(w.Lease).Holder, w.Lease)
		t.release(s, w.Lease)
		r := t.applicant(name, t.long)
		g, err := s.Wait(t.Context(), r, nil)
		if err != nil {
			t.Fatalf("wait for a free lock: %v", err)
		}
		r = named(r, g)
		t.track(r.Lease)
		if st := t.heldBy(r.Lease); st.Token != g.Token || g.Token <= w.grant.Token {
			t.Fatalf("granted token %v, want more than %v; inspect shows %v, want the same", g.Token, w.grant.Token, st.Token)
		}
		last = g.Token
		t.release(s, r.Lease)
	}
	t.vacant("a lock that was waited for and released is free", name)
}

// checkWaitInOrder: a release hands the lock to the first waiter and to no other. The new
// lease lasts until its validity ends.
func checkWaitInOrder(t *trial) {
	holder := t.request(t.name(), t.long)
	last := t.acquire(t.first, holder).Token
	queue := t.queue(t.applicant(holder.Name, t.long), t.applicant(holder.Name, t.long), t.applicant(holder.Name, t.long), t.applicant(holder.Name, t.long))
	t.heldBy(holder)
	for i, w := range queue {
		t.waits(queue[i:]...)
		t.release(t.handles()[i%len(t.handles())], holder)
		t.eventually("a waiter gets the lock that was released", func() bool { return slices.ContainsFunc(queue[i:], (*waiting).over) })
		t.waits(queue[i+1:]...)
		t.gets("the first in the queue gets the lock that was released", w)
		t.waits(queue[i+1:]...)
		if st := t.heldBy(w.Lease); st.Token != w.grant.Token || w.grant.Token <= last {
			t.Fatalf("granted token %v, want more than %v; inspect shows %v, want the same", w.grant.Token, last, st.Token)
		}
		t.sameHolder("inspect", t.heldBy(w.Lease).Holder, w.Lease)
		last, holder = w.grant.Token, w.Lease
	}
	renewer := t.other()
	if err := t.renew(renewer, holder); err != nil {
		t.Fatalf("renew of a lease that was waited for: %v", err)
	}
	t.release(t.other(), holder)
	t.vacant("nothing is left of a queue that has ended", holder.Name)
	t.acquire(t.first, t.request(holder.Name, t.long))
}

// checkWaitAndTry: Acquire does not overtake waiters, even just after a release.
func checkWaitAndTry(t *trial) {
	for range 5 {
		holder := t.request(t.name(), t.long)
		t.acquire(t.first, holder)
		w := t.queue(t.applicant(holder.Name, t.long))[0]
		t.release(t.other(), holder)
		r := t.request(holder.Name, t.long)
		g, err := t.other().Acquire(t.Context(), store.AcquireRequest{Lease: r})
		if err == nil {
			t.track(r)
			t.Fatalf("acquire %q: granted (token %v) before a waiter, want a refusal", r.Name, g.Token)
		}
		if !refused(err) {
			t.Fatalf("acquire %q after it was handed on: got error %v, want a refusal", r.Name, err)
		}
		t.gets("the waiter gets the lock", w)
		t.release(t.first, w.Lease)
	}
}

// checkWaitReleased: an owner that gave up has no lease to release, and its place is gone, so
// the lock goes to the next waiter.
func checkWaitReleased(t *trial) {
	holder := t.request(t.name(), t.long)
	t.acquire(t.first, holder)
	queue := t.queue(t.applicant(holder.Name, t.long), t.applicant(holder.Name, t.long))
	queue[0].cancel()
	t.eventually("a Wait that gives up returns", queue[0].over)
	for _, s := range t.handles() {
		t.notHeld("release by an owner that waited", s.Release(t.Context(), store.ReleaseRequest{Lease: queue[0].Lease}))
	}
	t.release(t.first, holder)
	t.gets("the next one gets the lock", queue[1])
}

// checkWaitForExpiry: an expired lease passes to the first waiter, but not before its validity
// has ended.
func checkWaitForExpiry(t *trial) {
	// If the lease expired before the waiters had queued, try another.
	var l short
	var queue []*waiting
	for t.options.ShortTTL = max(t.least, min(t.options.ShortTTL, t.long/8)); ; t.options.ShortTTL *= 2 {
		l = t.acquireShort(t.first)
		a := t.wait(t.first, t.applicant(l.Name, t.long))
		t.eventually("a waiter gets a reason to wait", func() bool { return a.over() || len(a.reports()) > 0 })
		b := t.wait(t.other(), t.applicant(l.Name, t.long))
		queue = []*waiting{a, b}
		t.eventually("a waiter gets a reason to wait", func() bool { return b.over() || len(b.reports()) > 0 })
		if !t.overdue(l) || t.options.ShortTTL > t.long {
			break
		}
		a.cancel()
		b.cancel()
	}
	t.eventually("the first in the queue gets a lock whose lease expired", func() bool {
		if t.options.AnyAfterExpiry && !queue[0].over() && queue[1].over() {
			slices.Reverse(queue)
		}
		return queue[0].over()
	})
	if until := validity.Until(l.start, l.TTL); queue[0].back < until {
		t.Fatalf("granted %v before the end of the validity of the lease before, of %v", until.Sub(queue[0].back), l.TTL)
	}
	t.gets("the first in the queue gets a lock whose lease expired", queue[0])
	if queue[0].grant.Token <= l.Token {
		t.Fatalf("token %v after an expiry, want more than %v", queue[0].grant.Token, l.Token)
	}
	t.waits(queue[1])
	t.heldBy(queue[0].Lease)
	t.notHeld("release after the expiry", t.first.Release(t.Context(), store.ReleaseRequest{Lease: l.Lease}))
	t.release(queue[0].via, queue[0].Lease)
	t.gets("the next one gets the lock", queue[1])
}

// checkWaitShown: Inspect shows the waiters in order; List does not show them.
func checkWaitShown(t *trial) {
	holder := t.request(t.name(), t.long)
	for _, s := range t.handles() {
		if queue := t.inspect(s, holder.Name).Queue; len(queue) != 0 {
			t.Fatalf("inspect of a free lock: queue %+v, want it empty", queue)
		}
	}
	t.acquire(t.first, holder)
	var all []store.WaitRequest
	for i, purpose := range []string{"first", "second", "third"} {
		r := t.applicant(holder.Name, t.long)
		r.Meta = store.Holder{Host: "waits", PID: i + 1, Purpose: purpose}.Encode()
		all = append(all, r)
	}
	queue := t.queue(all...)
	t.queued("all waiters are shown in order", holder.Name, queue...)
	for _, s := range t.handles() {
		for i, p := range t.inspect(s, holder.Name).Queue {
			t.sameHolder("place in the queue", p.Holder, all[i].Lease)
			t.within("place in the queue", p.ExpiresIn, all[i].TTL)
		}
		if list := t.list(s, holder.Name); len(list) != 1 || list[0].Holder.Owner != holder.Owner || list[0].Queue != nil {
			t.Errorf("list of a lock that is waited for: %+v, want its holder without the queue", list)
		}
	}
	t.heldBy(holder)
	t.release(t.first, holder)
	t.gets("the first in the queue gets the lock", queue[0])
	t.queued("the new holder is out of the queue", holder.Name, queue[1:]...)
	t.release(t.first, queue[0].Lease)
	t.gets("the second in the queue gets the lock", queue[1])
	queue[2].cancel()
	t.queued("the waiter that gave up is out of the queue", holder.Name)
}

// checkWaitReasons: the reason function gets the holder and the position, which counts down.
func checkWaitReasons(t *trial) {
	// A store may learn of a new position only when it refreshes the places.
	ttl := min(t.long, t.patience*3/10)
	holder := t.request(t.name(), t.long)
	t.acquire(t.first, holder)
	queue := t.queue(t.applicant(holder.Name, ttl), t.applicant(holder.Name, ttl), t.applicant(holder.Name, ttl))
	for i, w := range queue {
		t.eventually("a waiter gets the holder and its position", func() bool { busy := w.busy(); return busy != nil && busy.Position > 0 })
		for _, err := range w.reports() {
			var busy *store.BusyError
			if !errors.As(err, &busy) {
				continue // some nodes do not answer
			}
			if busy.Name != holder.Name || busy.Position > i+1 {
				t.Fatalf("number %d in the queue got the reason %+v, want one for %q with that position at most", i+1, busy, holder.Name)
			}
			t.sameHolder("reason", busy.Holder, holder)
			t.within("reason", busy.ExpiresIn, holder.TTL)
		}
		if p := w.busy().Position; p != i+1 {
			t.Fatalf("number %d in the queue got the reason with position %d, want %[1]d", i+1, p)
		}
	}
	last := queue[2]
	for i := range 2 {
		t.release(t.first, holder)
		t.gets("the first in the queue gets the lock", queue[i])
		holder = queue[i].Lease
		start := t.now()
		t.eventually("a waiter gets its new position and the new holder", func() bool {
			if now := t.now(); now.Sub(start) > ttl/4 { // the lease is due for a renewal
				_ = t.renew(t.first, holder)
				start = now
			}
			busy := last.busy()
			return busy.Position == 2-i && busy.Holder.Owner == holder.Owner
		})
	}
	least := 3
	for _, err := range last.reports() {
		if busy := new(store.BusyError); errors.As(err, &busy) && busy.Position > 0 {
			if busy.Position > least {
				t.Fatalf("position %d after %d, want it to count down", busy.Position, least)
			}
			least = busy.Position
		}
	}
}

// busy returns the last reason that names a holder, or nil.
func (w *waiting) busy() (busy *store.BusyError) {
	for _, err := range w.reports() {
		errors.As(err, &busy)
	}
	return busy
}
