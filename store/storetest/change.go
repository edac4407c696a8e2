package storetest

import (
	"errors"
	"strings"

	"github.com/leasehold-dev/leasehold/store"
)

// checkDowngrade: the writer becomes a reader, and no other writer gets in between. The
// readers' token is larger than that of the writer and smaller than those of later writers.
func checkDowngrade(t *trial) {
	c, name := t.first, t.name()
	writer := t.writer(name)
	g := t.acquire(t.first, writer)
	readers := t.queue(store.WaitRequest{Lease: t.reader(name)}, store.WaitRequest{Lease: t.reader(name)})
	next := t.queue(store.WaitRequest{Lease: t.writer(name)})[0]
	late := t.queue(store.WaitRequest{Lease: t.reader(name)})[0]
	start := t.now()
	down, err := c.Downgrade(t.Context(), writer)
	if err != nil || down.Token <= g.Token {
		t.Fatalf("downgrade: token %v, error %v, want more than the writer has, %v", down.Token, err, g.Token)
	}
	reader := writer
	reader.Weight = 1
	t.lasts("a downgrade renews", reader, reader.TTL, start)
	for _, r := range readers {
		t.gets("readers get the lock with the writer that became one", r)
		if r.grant.Token != down.Token && !t.several() || r.grant.Token <= g.Token {
			t.Fatalf("downgrade: a reader has token %v, want that of the other readers, %v, which is more than %v", r.grant.Token, down.Token, g.Token)
		}
	}
	t.waits(next, late)
	t.holders("a downgrade", reader, readers[0].Lease, readers[1].Lease)
	again, err := c.Downgrade(t.Context(), writer)
	if err != nil || again.Token != down.Token && !t.several() || again.Token < down.Token {
		t.Fatalf("downgrade again: token %v, error %v, want %v as the first time", again.Token, err, down.Token)
	}
	if err := t.renew(t.first, reader); err != nil {
		t.Fatalf("downgrade: renew afterwards: %v", err)
	}
	for _, r := range []store.Lease{reader, readers[0].Lease, readers[1].Lease} {
		t.release(t.other(), r)
	}
	t.gets("the next writer gets the lock after the readers", next)
	if next.grant.Token <= down.Token {
		t.Fatalf("downgrade: the next writer has token %v, want more than %v", next.grant.Token, down.Token)
	}
	t.release(t.first, next.Lease)
	t.gets("the last reader gets the lock", late)

	_, err = c.Downgrade(t.Context(), writer)
	t.notHeld("downgrade of a lease that is over", err)
	if !t.first.Caps().NoBreaks {
		checkDowngradeBroken(t, t.first)
	}
}

// checkDowngradeBroken: a lease that was broken is not downgraded, since that would renew
// it. The break goes on as if there had been no downgrade.
func checkDowngradeBroken(t *trial, s *store.Store) {
	t.Helper()
	for _, reads := range []bool{false, true} {
		writer := t.writer(t.name())
		t.acquire(t.first, writer)
		if reads {
			if _, err := s.Downgrade(t.Context(), writer); err != nil {
				t.Fatalf("downgrade before the lease is broken: %v", err)
			}
		}
		b := breakRequest(t, writer)
		breaks(t, s, b)
		_, err := s.Downgrade(t.Context(), writer)
		t.notHeld("downgrade of a lease that was broken", err)
		t.within("downgrade of a lease that was broken", breaks(t, s, b), t.long)
		_ = t.first.Release(t.Context(), store.ReleaseRequest{Lease: writer, Renewed: true})
		endsBroken(t, s, b)
	}
}

// checkResize: the number of permits can change while some are held. No permit above the new
// number is granted, and waits for the earlier number end. Over several nodes it cannot change,
// and some other stores keep it, too: then the error says so.
func checkResize(t *trial) {
	c, name := t.first, t.name()
	three, one, two := store.Semaphore(3), store.Semaphore(1), store.Semaphore(2)
	resize := func(from, to store.Kind) {
		t.Helper()
		if err := c.Resize(t.Context(), name, from, to); err != nil {
			t.Fatalf("resize from a %v to a %v: %v", from, to, err)
		}
	}
	if t.several() || c.Caps().NoResize {
		if err := c.Resize(t.Context(), name, three, two); !errors.Is(err, store.ErrUnsupported) || !strings.Contains(err.Error(), "another name") {
			t.Fatalf("resize of a semaphore that keeps its number: got error %v, want one that matches %v and names a way", err, store.ErrUnsupported)
		}
		return
	}
	resize(three, two) // of a lock that nobody uses
	var held []store.Lease
	for range 3 {
		r := t.of(three, 1, name, t.long)
		t.acquire(t.other(), r)
		held = append(held, r)
	}
	w := t.queue(store.WaitRequest{Lease: t.of(three, 1, name, t.long)})[0]
	resize(three, one)
	resize(three, one)
	t.eventually("resize: a wait for the earlier number ends", w.over)
	var kind *store.KindError
	if !errors.As(w.err, &kind) || kind.InUse != one.Normal() || kind.Asked != three || !strings.Contains(w.err.Error(), three.String()) {
		t.Fatalf("resize: the wait for the earlier number ended with %v, want a *store.KindError that names a %v and a %v", w.err, three, one)
	}
	if err := c.Resize(t.Context(), name, three, two); !errors.As(err, &kind) || kind.InUse.Normal() != one.Normal() {
		t.Fatalf("resize from another number than the one in use: got error %v, want a *store.KindError", err)
	}
	for i, r := range held {
		if err := t.renew(t.other(), r); err != nil {
			t.Fatalf("resize: renew of a lease: %v", err)
		}
		t.refuse(t.first, t.of(one, 1, name, t.long))
		if i == 1 {
			resize(one, two) // one permit more than there are leases
			break
		}
		t.release(t.first, r)
	}
	t.refuse(t.first, t.of(two, 1, name, t.long)) // two leases hold both
	t.release(t.first, held[2])
	g := t.acquire(t.first, t.of(two, 1, name, t.long))
	if g.Slot < 0 || g.Slot >= 2 {
		t.Fatalf("resize: granted slot %d, want 0 or 1", g.Slot)
	}
	t.refuse(t.other(), t.of(two, 1, name, t.long))
	checkResizedToOne(t, c)
}

// checkResizedToOne: Inspect shows all holders of a semaphore that has become a mutex until
// they have left, and the lease of each can be broken.
func checkResizedToOne(t *trial, c *store.Store) {
	t.Helper()
	two, name := store.Semaphore(2), t.name()
	held := []store.Lease{t.of(two, 1, name, t.long), t.of(two, 1, name, t.long)}
	for _, r := range held {
		t.acquire(t.other(), r)
	}
	if err := c.Resize(t.Context(), name, two, store.Semaphore(1)); err != nil {
		t.Fatalf("resize to one permit: %v", err)
	}
	b := store.BreakRequest{Name: name, Owner: held[1].Owner, Reason: "it hangs"}
	for _, s := range t.handles() {
		st := t.inspect(s, name)
		if all := st.Holdings(); !st.Kind.IsMutex() || len(all) != 2 || all[0].Holder.Owner != held[0].Owner || all[1].Holder.Owner != held[1].Owner {
			t.Fatalf("resize to one permit: inspect: %+v, want both holders of a mutex", st)
		}
		b.Token = st.Holdings()[1].Token
	}
	if !t.first.Caps().NoBreaks {
		t.within("a lease that was broken", breaks(t, t.first, b), t.long)
		t.notHeld("renew of a lease that was broken", t.renew(t.other(), held[1]))
		b.Now = true
		if left := breaks(t, t.other(), b); left != 0 {
			t.Fatalf("resize to one permit: a lease that was broken at once lasts for %v, want 0s", left)
		}
	} else {
		t.release(t.first, held[1])
	}
	t.heldBy(held[0])
	t.release(t.first, held[0])
	t.free(name)
}
