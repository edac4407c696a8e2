package storetest

import (
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

func spare(r store.WaitRequest, n int) store.WaitRequest {
	r.Spare = n
	return r
}
