package storetest

import "github.com/leasehold-dev/leasehold/store"

// waitAt starts a Wait in the place p.
func (t *trial) waitAt(s *store.Store, p unclaimed) *waiting {
	w := t.wait(s, p.next)
	w.start = p.start
	return w
}

// checkRejoin: ReleaseAndRejoin hands the lock on, and takes a place behind the other
// waiters.
func checkRejoin(t *trial) {
	holder := t.request(t.name(), t.long)
	last := t.acquire(t.first, holder).Token
	queue := t.queue(t.applicant(holder.Name, t.long), t.applicant(holder.Name, t.long))
	for range 6 {
		p := t.rejoin(t.first, holder)
		first := queue[0]
		t.gets("the first in the queue gets the lock that was released", first)
		if st := t.heldBy(first.Lease); st.Token != first.grant.Token || first.grant.Token <= last {
			t.Fatalf("granted token %v, want more than %v; inspect shows %v, want the same", first.grant.Token, last, st.Token)
		}
		queue = append(queue[1:], t.waitAt(t.first, p))
		t.queued("the place of ReleaseAndRejoin is behind the others", holder.Name, queue...)
		t.waits(queue...)
		last, holder = first.grant.Token, first.Lease
	}
	for _, w := range queue {
		t.release(t.other(), holder)
		t.gets("the next one gets the lock", w)
		holder = w.Lease
	}
	t.release(t.first, holder)
	t.vacant("nothing is left of a queue that has ended", holder.Name)
}

// checkRejoinFree: ReleaseAndRejoin takes no place for a lock that nobody else wants.
func checkRejoinFree(t *trial) {
	for range 3 {
		holder := t.request(t.name(), t.long)
		t.acquire(t.first, holder)
		next := t.applicant(holder.Name, t.long)
		queued, err := t.first.ReleaseAndRejoin(t.Context(), store.ReleaseRequest{Lease: holder}, next)
		if err != nil || queued {
			t.Fatalf("rejoin of a lock that nobody waits for: queued %v, error %v, want neither", queued, err)
		}
		t.vacant("a lock is free after a rejoin that took no place", holder.Name)
		w := t.wait(t.first, next)
		t.gets("Wait after ReleaseAndRejoin gets a free lock", w)
		t.release(t.other(), w.Lease)
	}
}

// checkRejoinGivenUp: Release abandons an unclaimed place, whether or not it was
// granted the lock.
func checkRejoinGivenUp(t *trial) {
	for _, granted := range []bool{false, true} {
		holder := t.request(t.name(), t.long)
		t.acquire(t.first, holder)
		w := t.queue(t.applicant(holder.Name, t.long))[0]
		p := t.rejoin(t.first, holder)
		t.gets("the first in the queue gets the lock that was released", w)
		if granted {
			t.release(t.other(), w.Lease)
			t.heldBy(p.next.Lease)
		}
		t.notHeld("release by an owner that has not rejoined", t.first.Release(t.Context(), store.ReleaseRequest{Lease: p.next.Lease}))
		if !granted {
			t.queued("a place that was given up is gone", holder.Name)
			t.release(t.other(), w.Lease)
		}
		t.vacant("an abandoned place leaves nothing behind", holder.Name)
		t.notHeld("release by an owner that has not rejoined, again", t.first.Release(t.Context(), store.ReleaseRequest{Lease: p.next.Lease}))
	}
}

// checkRejoinGranted: a place that was granted the lock before it was claimed is
// granted to Wait at once.
func checkRejoinGranted(t *trial) {
	holder := t.request(t.name(), t.long)
	t.acquire(t.first, holder)
	w := t.queue(t.applicant(holder.Name, t.long))[0]
	p := t.rejoin(t.first, holder)
	t.gets("the first in the queue gets the lock that was released", w)
	t.release(t.other(), w.Lease)
	t.heldBy(p.next.Lease)
	back := t.waitAt(t.first, p)
	t.gets("a late Wait gets the lock that its place was granted", back)
	if back.grant.Token <= w.grant.Token {
		t.Fatalf("a late Wait has token %v, want more than %v", back.grant.Token, w.grant.Token)
	}
	t.release(t.first, back.Lease)
	t.vacant("nothing is left of a place that was waited in late", holder.Name)
}

// checkRejoinByOwnerOnly: ReleaseAndRejoin by an owner that does not hold the lock fails
// and takes no place.
func checkRejoinByOwnerOnly(t *trial) {
	holder := t.request(t.name(), t.long)
	t.acquire(t.first, holder)
	queue := t.queue(t.applicant(holder.Name, t.long)) // a place is only taken behind others
	for _, s := range t.handles() {
		queued, err := s.ReleaseAndRejoin(t.Context(), store.ReleaseRequest{Lease: t.request(holder.Name, t.long)}, t.applicant(holder.Name, t.long))
		t.notHeld("rejoin by an owner without the lock", err)
		if queued {
			t.Fatalf("rejoin by an owner without the lock: a place was taken, want none")
		}
	}
	t.heldBy(holder)
	t.queued("a rejoin by an owner without the lock changes no queue", holder.Name, queue...)
	t.release(t.first, holder)
	t.gets("the waiter gets the lock", queue[0])
	t.release(t.first, queue[0].Lease)
	t.vacant("a lock is free after a rejoin by an owner without it", holder.Name)
}

// checkRejoinClosed: closing the store abandons unclaimed places.
func checkRejoinClosed(t *trial) {
	a, b := t.reopen()
	if b == nil {
		return // no handle is left to inspect the lock
	}
	holder := t.request(t.name(), t.long)
	t.acquire(a, holder)
	w := t.wait(b, t.applicant(holder.Name, t.long))
	t.eventually("a waiter gets a reason to wait", func() bool { return len(w.reports()) > 0 })
	t.rejoin(a, holder)
	t.eventually("the first in the queue gets the lock that was released", w.over)
	if err := a.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	t.eventually("nobody is in the queue after the store was closed", func() bool { return len(t.inspect(b, holder.Name).Queue) == 0 })
	t.release(b, w.Lease)
	if st := t.inspect(b, holder.Name); st.Held {
		t.Fatalf("inspect: held by %v, whose store was closed, want it free", st.Holder)
	}
}
