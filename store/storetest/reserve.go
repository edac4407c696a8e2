package storetest

import (
	"errors"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/store"
)

// checkSpareTokens: tokens reserved with a grant are granted to no other owner,
// however the next owner gets the lock.
func checkSpareTokens(t *trial) {
	holder := t.request(t.name(), t.long)
	g := t.acquireSpare(t.first, store.AcquireRequest{Lease: holder, Spare: 7})
	last := g.Token + fence.Token(g.Spare)
	queue := t.queue(spare(t.applicant(holder.Name, t.long), 3), spare(t.applicant(holder.Name, t.long), 0), spare(t.applicant(holder.Name, t.long), store.MaxSpare))
	for _, w := range queue {
		t.release(t.first, holder)
		t.gets("the first in the queue gets the lock", w)
		if w.grant.Token <= last {
			t.Fatalf("token %v was granted after %v was reserved", w.grant.Token, last)
		}
		if st := t.heldBy(w.Lease); st.Token < w.grant.Token || st.Token > w.last() {
			t.Errorf("inspect: token %v, want one of %v to %v as granted", st.Token, w.grant.Token, w.last())
		}
		holder, last = w.Lease, w.last()
	}
	t.release(t.first, holder)
	for _, s := range t.handles() {
		r := store.AcquireRequest{Lease: t.request(holder.Name, t.long), Spare: 2}
		g := t.acquireSpare(s, r)
		if g.Token <= last {
			t.Fatalf("token %v was granted after %v was reserved", g.Token, last)
		}
		// A repeated acquire reserves no new tokens and keeps the old ones.
		again, err := s.Acquire(t.Context(), r)
		if err != nil {
			t.Fatalf("acquire by the owner again: %v", err)
		}
		t.spares("acquire by the owner again", again.Spare, r.Spare)
		reserved := g.Token + fence.Token(g.Spare)
		if end := again.Token + fence.Token(again.Spare); again.Token < g.Token || end > reserved {
			t.sameToken("acquire by the owner again", end, reserved)
		}
		last = reserved
		t.release(s, r.Lease)
	}
	if !t.canReserve() {
		return
	}
	// The same holds if the lease expires.
	l := t.acquireShort(t.first)
	above := l.Token
	if st, err := t.first.Inspect(t.Context(), l.Name); err == nil {
		above = st.Token
	}
	d, err := t.first.(store.Waiter).ReserveTokens(t.Context(), store.ReserveRequest{Lease: l.Lease, Above: above, Count: 6})
	if err != nil {
		if errors.Is(err, store.ErrNotHeld) && t.overdue(l) {
			return // the machine was too slow: the lease has expired
		}
		t.Fatalf("reserve tokens: %v", err)
	}
	w := t.wait(t.other(), t.applicant(l.Name, t.long))
	t.gets("the waiter gets a lock whose lease expired", w)
	if w.grant.Token <= lastOf(d) {
		t.Fatalf("token %v was granted after %d from %v were reserved", w.grant.Token, d.Count, d.Token)
	}
}

// checkTokensStayNearTheClock: if a store's tokens follow its clock, it reserves them at most a
// second ahead, however many are asked for and how often. Each grant and reservation still
// gets at least one token.
func checkTokensStayNearTheClock(t *trial) {
	holder := t.request(t.name(), t.long)
	g := t.acquire(t.first, holder)
	if int64(g.Token) < time.Now().Add(-time.Minute).UnixMicro() {
		return // the tokens of this store follow no clock
	}
	last := g.Token
	near := func(what string, token fence.Token, spare int) {
		if token <= last {
			t.Fatalf("%s: token %v, want more than %v", what, token, last)
		}
		last = token + fence.Token(spare)
		if lead := time.Until(time.UnixMicro(int64(last))); lead > time.Second {
			t.Fatalf("%s: token %v is %v ahead of the clock, want 1s at most", what, last, lead)
		}
	}
	if t.canReserve() {
		for range 40 { // 2.6 seconds of tokens
			d, err := t.first.(store.Waiter).ReserveTokens(t.Context(), store.ReserveRequest{Lease: holder, Above: last, Count: store.MaxSpare + 1})
			if err != nil {
				t.Fatalf("reserve tokens by the holder: %v", err)
			}
			near("reserve tokens", d.Token, d.Count-1)
		}
	}
	for range 20 {
		t.release(t.first, holder)
		holder = t.request(holder.Name, t.long)
		g := t.acquireSpare(t.other(), store.AcquireRequest{Lease: holder, Spare: store.MaxSpare})
		near("acquire", g.Token, g.Spare)
	}
	for range 20 {
		w := t.queue(spare(t.applicant(holder.Name, t.long), store.MaxSpare))[0]
		t.release(t.first, holder)
		t.gets("the waiter gets the lock", w)
		holder = w.Lease
		near("wait", w.grant.Token, w.grant.Spare)
	}
}

// checkReserveTokens: a holder reserves at least one token, and no more than it asks for, all
// larger than any before. Nothing else changes about its lease.
func checkReserveTokens(t *trial) {
	if !t.canReserve() {
		return
	}
	start := t.now()
	r := t.request(t.name(), t.long)
	g := t.acquireSpare(t.first, store.AcquireRequest{Lease: r, Spare: 4})
	last := g.Token + fence.Token(g.Spare)
	for _, n := range []int{1, 10, 1, store.MaxSpare + 1, 2} {
		for _, s := range t.handles() {
			d := t.reserve(s, r, n)
			if d.Token <= last {
				t.Fatalf("reserved %d tokens from %v, want them to be larger than %v", d.Count, d.Token, last)
			}
			if d.Waiting {
				t.Fatalf("reserve tokens: a waiter is reported, want none")
			}
			last = lastOf(d)
		}
	}
	if last >= 1<<53 {
		t.Errorf("token %v does not survive JSON: it is 2^53 or more", last)
	}
	t.lasts("after tokens were reserved", r, t.long, start)
	t.refuse(t.other(), t.request(r.Name, t.long))
	t.release(t.first, r)
	for range 2 {
		next := t.request(r.Name, t.long)
		g := t.acquire(t.other(), next)
		if g.Token <= last {
			t.Fatalf("token %v was granted after %v was reserved", g.Token, last)
		}
		last = g.Token
		t.release(t.first, next)
	}
}

// checkReserveTokensWaiting: ReserveTokens reports whether anybody waits for the
// lock.
func checkReserveTokensWaiting(t *trial) {
	if !t.canReserve() {
		return
	}
	r := t.request(t.name(), t.long)
	t.acquire(t.first, r)
	waiting := func(want bool) func() bool {
		return func() bool {
			for _, s := range t.handles() {
				if t.reserve(s, r, 1).Waiting != want {
					return false
				}
			}
			return true
		}
	}
	for i := range t.handles() {
		w := t.wait(t.handles()[i], t.applicant(r.Name, t.long))
		t.eventually("ReserveTokens reports a waiter", waiting(true))
		t.waits(w)
		w.cancel()
		t.eventually("a Wait that gives up returns", w.over)
		t.eventually("ReserveTokens reports that nobody waits any more", waiting(false))
	}
	queue := t.queue(t.applicant(r.Name, t.long), t.applicant(r.Name, t.long))
	last := lastOf(t.reserve(t.first, r, 7))
	t.release(t.first, r)
	t.gets("the first in the queue gets the lock", queue[0])
	if queue[0].grant.Token <= last {
		t.Fatalf("token %v was granted after %v was reserved", queue[0].grant.Token, last)
	}
	if d := t.reserve(t.other(), queue[0].Lease, 1); !d.Waiting || d.Token <= queue[0].last() {
		t.Fatalf("reserved %+v with one waiter in the queue, want tokens larger than %v and the waiter reported", d, queue[0].last())
	}
}

// checkReserveTokensByOwnerOnly: only the holder can reserve tokens for its lease.
func checkReserveTokensByOwnerOnly(t *trial) {
	if !t.canReserve() {
		return
	}
	above := func(r store.Lease) store.ReserveRequest {
		return store.ReserveRequest{Lease: r, Above: 1, Count: 1}
	}
	r := t.request(t.name(), t.long)
	for _, s := range t.handles() {
		_, err := s.(store.Waiter).ReserveTokens(t.Context(), above(r))
		t.notHeld("reserve tokens for a lock nobody ever had", err)
	}
	t.free(r.Name)
	g := t.acquire(t.first, r)
	next := t.applicant(r.Name, t.long)
	w := t.queue(next)[0]
	for _, s := range t.handles() {
		_, err := s.(store.Waiter).ReserveTokens(t.Context(), above(t.request(r.Name, t.long)))
		t.notHeld("reserve tokens by another owner", err)
		_, err = s.(store.Waiter).ReserveTokens(t.Context(), above(next.Lease))
		t.notHeld("reserve tokens by a waiter", err)
	}
	if st := t.heldBy(r); st.Token != g.Token {
		t.Errorf("inspect: token %v after others tried to reserve tokens, want %v as granted", st.Token, g.Token)
	}
	t.release(t.first, r)
	t.gets("the waiter gets the lock", w)
	_, err := t.first.(store.Waiter).ReserveTokens(t.Context(), above(r))
	t.notHeld("reserve tokens by the holder before", err)
}

// reserve reserves tokens larger than the one that Inspect shows. A store that shows the
// smallest of several reserved tokens knows the largest itself.
func (t *actor) reserve(s store.Store, r store.Lease, count int) store.Reserved {
	t.Helper()
	d, err := s.(store.Waiter).ReserveTokens(t.Context(), store.ReserveRequest{Lease: r, Above: t.heldBy(r).Token, Count: count})
	if err != nil {
		t.Fatalf("reserve tokens by the holder: %v", err)
	}
	if d.Token == 0 {
		t.Fatalf("reserve tokens by the holder: got token 0")
	}
	if d.Count < 1 || d.Count > count {
		t.Fatalf("reserve tokens by the holder: asked for %d tokens, got %d", count, d.Count)
	}
	return d
}

// canReserve reports whether the store can reserve tokens after a grant. If it cannot, it
// must leave the lease as it is.
func (t *actor) canReserve() bool {
	t.Helper()
	r := t.request(t.name(), t.long)
	g := t.acquire(t.first, r)
	_, err := t.first.(store.Waiter).ReserveTokens(t.Context(), store.ReserveRequest{Lease: r, Above: g.Token, Count: 1})
	if errors.Is(err, store.ErrUnsupported) {
		t.heldBy(r)
	}
	t.release(t.first, r)
	return !errors.Is(err, store.ErrUnsupported)
}

// lastOf returns the last of the tokens that were reserved.
func lastOf(d store.Reserved) fence.Token { return d.Token + fence.Token(d.Count) - 1 }

func spare(r store.WaitRequest, n int) store.WaitRequest {
	r.Spare = n
	return r
}
