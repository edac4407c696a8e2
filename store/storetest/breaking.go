package storetest

import (
	"errors"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// breakRequest is the request to break the lease r, which was granted g.
func breakRequest(t *trial, r store.Lease) store.BreakRequest {
	t.Helper()
	return store.BreakRequest{Name: r.Name, Owner: r.Owner, Token: t.heldBy(r).Token, By: "root on host", Reason: "it hangs", At: time.Unix(1_700_000_000, 0)}
}

// breaks breaks a lease and returns for how long it can still last.
func breaks(t *trial, s store.Store, r store.BreakRequest) time.Duration {
	t.Helper()
	left, err := s.(store.Breaker).BreakLease(t.Context(), r)
	if err != nil {
		t.Fatalf("break the lease of %q: %v", r.Name, err)
	}
	return left
}

// endsBroken repeats the request until the lease is over.
func endsBroken(t *trial, s store.Store, r store.BreakRequest) {
	t.Helper()
	t.eventually("a lease that was broken and released is over", func() bool { return breaks(t, s, r) == 0 })
}

// checkBreakTold: a lease that is broken cannot be renewed, and the lock stays taken
// until the owner releases it. Nothing brings it back.
func checkBreakTold(t *trial) {
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
	next := t.request(r.Name, t.long)
	t.refuse(t.other(), next)
	_ = t.first.Release(t.Context(), store.ReleaseRequest{Lease: r, Renewed: true}) // whether it ended the lease is the store's business
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

// checkBreakNotified: the store of the holder says whose lease was broken, when the lease
// can no longer be renewed.
func checkBreakNotified(t *trial) {
	r := t.request(t.name(), t.long)
	told := make(chan struct{}, 1)
	stop := t.first.(store.BreakNotifier).NotifyBroken(func(owner string) {
		if owner != r.Owner {
			return
		}
		select {
		case told <- struct{}{}:
		default: // not for the first time
		}
	})
	defer stop()
	t.acquire(t.first, r)
	b := breakRequest(t, r)
	t.eventually("the holder's store says that a lease was broken", func() bool {
		breaks(t, t.other(), b) // again, since a message can be lost
		return len(told) > 0
	})
	t.notHeld("renew of a lease that was broken", t.renew(t.first, r))
	_ = t.first.Release(t.Context(), store.ReleaseRequest{Lease: r, Renewed: true})
	stop()
}

// checkBreakExpiry: a lease that was broken ends with its validity, whatever its owner
// does.
func checkBreakExpiry(t *trial) {
	l := t.acquireShort(t.first)
	b := store.BreakRequest{Name: l.Name, Owner: l.Lease.Owner, Token: l.Token, Reason: "it hangs"}
	if left, err := t.other().(store.Breaker).BreakLease(t.Context(), b); err != nil && !t.overdue(l) {
		t.Fatalf("break the lease of %q: left %v, error %v", l.Name, left, err)
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
				t.Fatalf("a lease that was broken ended before the end of the validity that its owner was told of")
			}
		}
		return err == nil
	})
	t.release(t.other(), next)
}

// checkBreakNow: with Now the lock is free at once, for the first waiter, and the
// owner can neither renew nor release what the next one holds.
func checkBreakNow(t *trial) {
	r := t.request(t.name(), t.long)
	last := t.acquire(t.first, r).Token
	b := breakRequest(t, r)
	b.Now = true
	next := t.request(r.Name, t.long)
	if w, waits := t.first.(store.Waiter); waits {
		line := t.queue(store.WaitRequest{Lease: next})
		if left := breaks(t, w, b); left != 0 {
			t.Fatalf("break now: the lease lasts for %v", left)
		}
		t.gets("a waiter gets a lock whose lease was broken", line[0])
		next = line[0].Lease
	} else {
		breaks(t, t.first, b)
		t.acquire(t.other(), next)
	}
	if st := t.heldBy(next); st.Token <= last {
		t.Fatalf("granted token %v after %v, whose lease was broken", st.Token, last)
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
}

// checkBreakToken: only the lease that was shown is broken.
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
			_, err := t.other().(store.Breaker).BreakLease(t.Context(), b)
			t.notHeld("break a lease "+what, err)
		}
	}
	if err := t.renew(t.first, r); err != nil {
		t.Fatalf("renew after others were broken: %v", err)
	}
	t.release(t.first, r)
	next := t.request(r.Name, t.long)
	t.acquire(t.other(), next)
	b.Now = true
	_, err := t.first.(store.Breaker).BreakLease(t.Context(), b)
	t.notHeld("break a lease that was released", err)
	t.heldBy(next)
	if err := t.renew(t.first, next); err != nil {
		t.Fatalf("renew after the lease before was broken: %v", err)
	}
	t.release(t.other(), next)
}

// checkBreakNote: by whom, why and when a lease was broken is shown, during the break
// and afterwards.
func checkBreakNote(t *trial) {
	r := t.request(t.name(), t.long)
	t.acquire(t.first, r)
	if st := t.inspect(t.first, r.Name); st.Broken != nil {
		t.Fatalf("inspect: %+v of a lease that nobody broke", st.Broken)
	}
	b := breakRequest(t, r)
	want := store.Broken{Owner: b.Owner, Token: b.Token, By: b.By, Reason: b.Reason, At: b.At}
	is := func(when string) {
		t.Helper()
		for _, s := range t.handles() {
			if st := t.inspect(s, r.Name); st.Broken == nil || *st.Broken != want {
				t.Fatalf("inspect %s: %+v, want %+v", when, st.Broken, want)
			}
		}
	}
	breaks(t, t.first, b)
	is("of a lease that was broken")
	second := b
	second.By, second.Reason = "somebody else", "so does it"
	breaks(t, t.other(), second)
	is("after a second request")
	_ = t.first.Release(t.Context(), store.ReleaseRequest{Lease: r, Renewed: true})
	endsBroken(t, t.first, b)
	is("after the lease was released")
	next := t.request(r.Name, t.long)
	t.acquire(t.other(), next)
	is("after the next grant")
	t.release(t.other(), next)
}

// checkBreakInvalid: nothing is done for an invalid request.
func checkBreakInvalid(t *trial) {
	r := t.request(t.name(), t.long)
	t.acquire(t.first, r)
	good := breakRequest(t, r)
	for what, change := range map[string]func(*store.BreakRequest){
		"no name":         func(b *store.BreakRequest) { b.Name = "" },
		"no owner":        func(b *store.BreakRequest) { b.Owner = "" },
		"no token":        func(b *store.BreakRequest) { b.Token = 0 },
		"reason too long": func(b *store.BreakRequest) { b.Reason = strings.Repeat("x", store.MaxNote+1) },
	} {
		b := good
		change(&b)
		if _, err := t.first.(store.Breaker).BreakLease(t.Context(), b); !errors.Is(err, store.ErrInvalid) {
			t.Fatalf("break a lease with %s: got error %v, want one that matches store.ErrInvalid", what, err)
		}
	}
	if err := t.renew(t.first, r); err != nil {
		t.Fatalf("renew after invalid requests: %v", err)
	}
	good.Reason = strings.Repeat("x", store.MaxNote)
	breaks(t, t.first, good)
	_ = t.first.Release(t.Context(), store.ReleaseRequest{Lease: r, Renewed: true})
	endsBroken(t, t.first, good)
}

// checkBreakOfKinds: one lease of a lock that several can hold is broken. It keeps its room
// until its owner releases it and is not renewed; the leases beside it go on. With Now, the
// first waiter has the room at once.
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
		_ = t.first.Release(t.Context(), store.ReleaseRequest{Lease: r, Renewed: true}) // whether it ended the lease is the store's business
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
		if left := breaks(t, t.other(), b); left != 0 {
			t.Fatalf("break now: the lease lasts for %v", left)
		}
		t.gets("a waiter gets a lock whose lease was broken", w)
		t.notHeld("renew of a lease that was broken", t.renew(t.first, next))
		t.holders("a lock whose lease was broken has gone to the waiter", w.Lease)
		t.release(t.other(), w.Lease)
	}
}

// breakOneRequest is the request to break r, one of several leases of its lock.
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
