package storetest

import (
	"errors"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// breakRequest returns the request to break the lease r.
func breakRequest(t *trial, r store.Lease) store.BreakRequest {
	t.Helper()
	return store.BreakRequest{Name: r.Name, Owner: r.Owner, Token: t.heldBy(r).Token, By: "root on host", Reason: "it hangs", At: time.Unix(1_700_000_000, 0)}
}

// breaks breaks a lease and returns for how long it can still last.
func breaks(t *trial, s *store.Store, r store.BreakRequest) time.Duration {
	t.Helper()
	left, err := s.BreakLease(t.Context(), r)
	if err != nil {
		t.Fatalf("break the lease of %q: %v", r.Name, err)
	}
	return left
}

// endsBroken repeats the request until the lease is over.
func endsBroken(t *trial, s *store.Store, r store.BreakRequest) {
	t.Helper()
	t.eventually("a lease that was broken and released is over", func() bool { return breaks(t, s, r) == 0 })
}

// checkBreakStopsRenewals: a lease that is broken cannot be renewed, and the lock stays
// taken until its owner releases it. No late request brings the lease back.
func checkBreakStopsRenewals(t *trial) {
	r := t.request(t.name(), t.long)
	t.acquire(t.first, r)
	b := breakRequest(t, r)
	for range 2 {
		for _, s := range t.handles() {
			t.within("a lease that was broken", breaks(t, s, b), t.long)
		}
	}
	t.heldBy(r)
	for _, s := range t.handles() {
		t.notHeld("renew of a lease that was broken", t.renew(s, r))
	}
	for _, s := range t.handles() {
		if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: r}); err == nil {
			t.Fatalf("the owner asks again for a lease that was broken: granted, want an error")
		}
	}
	next := t.request(r.Name, t.long)
	t.refuse(t.other(), next)
	_ = t.first.Release(t.Context(), store.ReleaseRequest{Lease: r, Renewed: true}) // a store may answer either way
	endsBroken(t, t.other(), b)
	t.free(r.Name)
	if _, err := t.first.Acquire(t.Context(), store.AcquireRequest{Lease: r}); err == nil {
		t.track(r)
		t.notHeld("late request to acquire of an owner whose lease was broken and released", errors.New("granted"))
	}
	t.acquire(t.other(), next)
	endsBroken(t, t.first, b)
	t.heldBy(next)
	t.release(t.first, next)
}

// checkBreakNotified: the holder's store notifies it that its lease was broken. By then the
// lease cannot be renewed any more.
func checkBreakNotified(t *trial) {
	r := t.request(t.name(), t.long)
	notified := make(chan struct{}, 1)
	stop := t.first.NotifyBroken(func(owner string) {
		if owner != r.Owner {
			return
		}
		select {
		case notified <- struct{}{}:
		default: // it has been notified before
		}
	})
	defer stop()
	t.acquire(t.first, r)
	b := breakRequest(t, r)
	t.eventually("the holder's store notifies it that its lease was broken", func() bool {
		breaks(t, t.other(), b) // again each time, since a push can be lost
		return len(notified) > 0
	})
	t.notHeld("renew of a lease that was broken", t.renew(t.first, r))
	_ = t.first.Release(t.Context(), store.ReleaseRequest{Lease: r, Renewed: true})
	stop()
}

// checkBreakExpiry: a lease that was broken ends by itself, but not before the validity that
// its owner counts on.
func checkBreakExpiry(t *trial) {
	l := t.acquireShort(t.first)
	b := store.BreakRequest{Name: l.Name, Owner: l.Lease.Owner, Token: l.Token, Reason: "it hangs"}
	if left, err := t.other().BreakLease(t.Context(), b); err != nil && !t.overdue(l) {
		t.Fatalf("break the lease of %q: got %v, error %v, want how long it still lasts", l.Name, left, err)
	}
	next := t.request(l.Name, t.long)
	t.eventually("a lease that was broken ends", func() bool {
		if err := t.renew(t.first, l.Lease); err == nil && !t.overdue(l) {
			t.notHeld("renew of a lease that was broken", err)
		}
		_, err := t.other().Acquire(t.Context(), store.AcquireRequest{Lease: next})
		if err == nil {
			t.track(next)
			if !t.overdue(l) {
				t.Fatalf("a lease that was broken ended before the validity that its owner counts on")
			}
		}
		return err == nil
	})
	t.release(t.other(), next)
}

// checkBreakNow: with Now the lock goes to the first waiter at once, or is free. The owner of
// the broken lease can neither renew it nor release that of the next holder.
func checkBreakNow(t *trial) {
	r := t.request(t.name(), t.long)
	last := t.acquire(t.first, r).Token
	b := breakRequest(t, r)
	b.Now = true
	next := t.request(r.Name, t.long)
	if w := t.first; !w.Caps().NoQueue {
		queue := t.queue(store.WaitRequest{Lease: next})
		if left := breaks(t, w, b); left != 0 {
			t.Fatalf("break now: the lease lasts for %v, want 0s", left)
		}
		t.gets("a waiter gets a lock whose lease was broken", queue[0])
		next = queue[0].Lease
	} else {
		breaks(t, t.first, b)
		t.acquire(t.other(), next)
	}
	if st := t.heldBy(next); st.Token <= last {
		t.Fatalf("granted token %v, want more than %v of the lease that was broken", st.Token, last)
	}
	for _, s := range t.handles() {
		t.notHeld("renew of a lease that was broken", t.renew(s, r))
		t.notHeld("release of a lease that was broken", s.Release(t.Context(), store.ReleaseRequest{Lease: r, Renewed: true}))
		breaks(t, s, b)
	}
	t.heldBy(next)
	t.release(t.other(), next)
	if _, err := t.first.Acquire(t.Context(), store.AcquireRequest{Lease: r}); err == nil {
		t.track(r)
		t.notHeld("late request to acquire of an owner whose lease was broken", errors.New("granted"))
	}
	t.free(r.Name)

	// A lock whose lease was broken while nobody waited does not forget its tokens.
	for range 3 {
		r := t.request(r.Name, t.long)
		g := t.acquire(t.first, r)
		if g.Token <= last {
			t.Fatalf("granted token %v after a lease was broken, want more than %v", g.Token, last)
		}
		last = g.Token
		b := breakRequest(t, r)
		b.Now = true
		breaks(t, t.other(), b)
	}
}

// checkBreakToken: a break ends only the lease whose name, owner and token it names.
func checkBreakToken(t *trial) {
	r := t.request(t.name(), t.long)
	t.acquire(t.first, r)
	b := breakRequest(t, r)
	other, later, never := b, b, b
	other.Owner = store.NewOwner()
	later.Token++
	never.Name = t.name()
	for _, now := range []bool{false, true} {
		for what, b := range map[string]store.BreakRequest{"of another owner": other, "with another token": later, "of a lock nobody ever had": never} {
			b.Now = now
			_, err := t.other().BreakLease(t.Context(), b)
			t.notHeld("break a lease "+what, err)
		}
	}
	if err := t.renew(t.first, r); err != nil {
		t.Fatalf("renew after breaks of other leases: %v", err)
	}
	t.release(t.first, r)
	next := t.request(r.Name, t.long)
	t.acquire(t.other(), next)
	b.Now = true
	_, err := t.first.BreakLease(t.Context(), b)
	t.notHeld("break a lease that was released", err)
	t.heldBy(next)
	if err := t.renew(t.first, next); err != nil {
		t.Fatalf("renew after a break of the lease before: %v", err)
	}
	t.release(t.other(), next)
}

// checkBreakNote: Inspect shows by whom, why and when a lease was broken, until it has ended
// and afterwards. The first note is kept.
func checkBreakNote(t *trial) {
	r := t.request(t.name(), t.long)
	t.acquire(t.first, r)
	if st := t.inspect(t.first, r.Name); st.Broken != nil {
		t.Fatalf("inspect: broken with %+v, want no break", st.Broken)
	}
	b := breakRequest(t, r)
	b.Reason = strings.Repeat("it hangs ", store.MaxNote)[:store.MaxNote]
	want := store.Broken{Owner: b.Owner, Token: b.Token, By: b.By, Reason: b.Reason, At: b.At}
	shown := func(when string) {
		t.Helper()
		for _, s := range t.handles() {
			if st := t.inspect(s, r.Name); st.Broken == nil || *st.Broken != want {
				t.Fatalf("inspect %s: %+v, want %+v", when, st.Broken, want)
			}
		}
	}
	breaks(t, t.first, b)
	shown("of a lease that was broken")
	second := b
	second.By, second.Reason = "somebody else", "so does it"
	breaks(t, t.other(), second)
	shown("after a second request")
	_ = t.first.Release(t.Context(), store.ReleaseRequest{Lease: r, Renewed: true})
	endsBroken(t, t.first, b)
	shown("after the lease was released")
	next := t.request(r.Name, t.long)
	t.acquire(t.other(), next)
	shown("after the next grant")
	t.release(t.other(), next)
}

// checkBreakOfKinds: one of several leases of a lock is broken. It is not renewed, and its
// permits stay taken until its owner releases it. The leases beside it go on. With Now, the
// first waiter gets the permits at once.
func checkBreakOfKinds(t *trial) {
	permit := func(name string) store.Lease { return t.of(store.Semaphore(2), 1, name, t.long) }
	for _, c := range []struct {
		held         func(name string) store.Lease
		beside, next func(name string) store.Lease // beside is nil if the lease is alone
	}{
		{held: permit, beside: permit, next: permit},
		{held: t.reader, beside: t.reader, next: t.writer},
		{held: t.writer, next: t.reader},
	} {
		name := t.name()
		r, next := c.held(name), c.next(name)
		t.acquire(t.first, r)
		held, others := []store.Lease{r}, []store.Lease(nil)
		if c.beside != nil {
			others = append(others, c.beside(name))
			t.acquire(t.other(), others[0])
			held = append(held, others[0])
		}
		b := breakOneRequest(t, r)
		for _, s := range t.handles() {
			t.within("a lease that was broken", breaks(t, s, b), t.long)
		}
		t.holders("a lease that was broken", held...)
		for _, s := range t.handles() {
			t.notHeld("renew of a lease that was broken", t.renew(s, r))
		}
		t.refuse(t.other(), next)
		_ = t.first.Release(t.Context(), store.ReleaseRequest{Lease: r, Renewed: true}) // a store may answer either way
		endsBroken(t, t.other(), b)
		if _, err := t.first.Acquire(t.Context(), store.AcquireRequest{Lease: r}); err == nil {
			t.track(r)
			t.notHeld("late request to acquire of an owner whose lease was broken and released", errors.New("granted"))
		}
		for _, o := range others {
			t.holders("a lease was broken and released", o)
			if err := t.renew(t.other(), o); err != nil {
				t.Fatalf("renew of a lease beside one that was broken: %v", err)
			}
		}
		if len(others) > 0 && r.Kind.Shared { // the writer waits for it
			t.refuse(t.first, next)
			t.release(t.other(), others[0])
			others = nil
		}
		t.acquire(t.first, next)
		w := t.queue(store.WaitRequest{Lease: t.of(next.Kind, next.Kind.Limit, name, t.long)})[0]
		for _, o := range others {
			t.release(t.other(), o)
		}
		b = breakOneRequest(t, next)
		b.Now = true
		last := b.Token
		if left := breaks(t, t.other(), b); left != 0 {
			t.Fatalf("break now: the lease lasts for %v, want 0s", left)
		}
		t.gets("a waiter gets a lock whose lease was broken", w)
		if w.grant.Token <= last && !t.several() {
			t.Fatalf("granted token %v, want more than %v of the lease that was broken", w.grant.Token, last)
		}
		t.notHeld("renew of a lease that was broken", t.renew(t.first, next))
		t.holders("a lock whose lease was broken has gone to the waiter", w.Lease)
		t.release(t.other(), w.Lease)
	}
}

// breakOneRequest returns the request to break r, one of several leases of its lock.
func breakOneRequest(t *trial, r store.Lease) store.BreakRequest {
	t.Helper()
	b := store.BreakRequest{Name: r.Name, Owner: r.Owner, Reason: "it hangs"}
	for _, h := range t.inspect(t.first, r.Name).Holdings() {
		if h.Holder.Owner == r.Owner {
			b.Token = h.Token
		}
	}
	return b
}
