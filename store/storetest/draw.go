package storetest

import (
	"errors"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/store"
)

// checkSpareTokens: tokens reserved with a grant are granted to no other owner,
// however the next owner gets the lock.
func checkSpareTokens(t *trial) {
	holder := t.request(t.name(), t.long)
	holder.Spare = 7
	g := t.acquire(t.first, holder)
	last := g.Token + fence.Token(g.Spare)
	line := t.queue(spare(t.applicant(holder.Name, t.long), 3), spare(t.applicant(holder.Name, t.long), 0), spare(t.applicant(holder.Name, t.long), store.MaxSpare))
	for _, w := range line {
		t.release(t.first, holder)
		t.gets("the first in line gets the lock", w)
		if w.grant.Token <= last {
			t.Fatalf("token %v was granted after %v was reserved", w.grant.Token, last)
		}
		if st := t.heldBy(w.Request); st.Token < w.grant.Token || st.Token > w.last() {
			t.Errorf("inspect: token %v, granted were %v to %v", st.Token, w.grant.Token, w.last())
		}
		holder, last = w.Request, w.last()
	}
	t.release(t.first, holder)
	for _, s := range t.handles() {
		r := spare(t.request(holder.Name, t.long), 2)
		g := t.acquire(s, r)
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
		t.release(s, r)
	}
	// The same holds if the lease expires.
	l := t.acquireShort(t.first)
	r := spare(l.Request, 5)
	if st, err := t.first.Inspect(t.Context(), l.Name); err == nil {
		r.Above = st.Token
	}
	d, err := t.first.(store.Waiter).Draw(t.Context(), r)
	if err != nil {
		if errors.Is(err, store.ErrNotHeld) && t.overdue(l) {
			return // the machine was too slow
		}
		t.Fatalf("draw: %v", err)
	}
	w := t.wait(t.other(), t.applicant(l.Name, t.long))
	t.gets("the waiter gets a lock whose lease expired", w)
	if w.grant.Token <= d.Token+fence.Token(d.Spare) {
		t.Fatalf("token %v was granted after %v and %d more were drawn", w.grant.Token, d.Token, d.Spare)
	}
}

// checkDraw: a holder draws at least one token, and no more than it asks for, all
// larger than any before. Nothing else about its lease changes.
func checkDraw(t *trial) {
	start := t.now()
	r := spare(t.request(t.name(), t.long), 4)
	g := t.acquire(t.first, r)
	last := g.Token + fence.Token(g.Spare)
	for _, n := range []int{0, 9, 0, store.MaxSpare, 1} {
		for _, s := range t.handles() {
			d := t.draw(s, spare(r, n))
			if d.Token <= last {
				t.Fatalf("drew %v and %d more after %v", d.Token, n, last)
			}
			if d.Waiting {
				t.Fatalf("draw: a waiter is reported")
			}
			last = d.Token + fence.Token(d.Spare)
		}
	}
	if last >= 1<<53 {
		t.Errorf("token %v does not survive JSON: it is 2^53 or more", last)
	}
	t.lasts("after tokens were drawn", r, t.long, start)
	t.refuse(t.other(), t.request(r.Name, t.long))
	t.release(t.first, r)
	for range 2 {
		next := t.request(r.Name, t.long)
		g := t.acquire(t.other(), next)
		if g.Token <= last {
			t.Fatalf("token %v was granted after %v was drawn", g.Token, last)
		}
		last = g.Token
		t.release(t.first, next)
	}
}

// checkDrawWaiting: Draw reports whether anybody waits for the lock.
func checkDrawWaiting(t *trial) {
	r := t.request(t.name(), t.long)
	t.acquire(t.first, r)
	waiting := func(want bool) func() bool {
		return func() bool {
			for _, s := range t.handles() {
				if t.draw(s, r).Waiting != want {
					return false
				}
			}
			return true
		}
	}
	for i := range t.handles() {
		w := t.wait(t.handles()[i], t.applicant(r.Name, t.long))
		t.eventually("Draw reports a waiter", waiting(true))
		t.waits(w)
		w.cancel()
		t.eventually("a Wait that gives up returns", w.over)
		t.eventually("Draw reports that nobody waits any more", waiting(false))
	}
	line := t.queue(t.applicant(r.Name, t.long), t.applicant(r.Name, t.long))
	d := t.draw(t.first, spare(r, 6))
	last := d.Token + fence.Token(d.Spare)
	t.release(t.first, r)
	t.gets("the first in line gets the lock", line[0])
	if line[0].grant.Token <= last {
		t.Fatalf("token %v was granted after %v was drawn", line[0].grant.Token, last)
	}
	if d := t.draw(t.other(), line[0].Request); !d.Waiting || d.Token <= line[0].last() {
		t.Fatalf("drew %+v after %v with one in line", d, line[0].last())
	}
}

// checkDrawByOwnerOnly: only the holder can draw tokens for its lease.
func checkDrawByOwnerOnly(t *trial) {
	above := func(r store.Request) store.Request {
		r.Above = 1
		return r
	}
	r := t.request(t.name(), t.long)
	for _, s := range t.handles() {
		_, err := s.(store.Waiter).Draw(t.Context(), above(r))
		t.notHeld("draw for a lock nobody ever had", err)
	}
	t.free(r.Name)
	g := t.acquire(t.first, r)
	next := t.applicant(r.Name, t.long)
	w := t.queue(next)[0]
	for _, s := range t.handles() {
		_, err := s.(store.Waiter).Draw(t.Context(), above(t.request(r.Name, t.long)))
		t.notHeld("draw by somebody else", err)
		_, err = s.(store.Waiter).Draw(t.Context(), above(next))
		t.notHeld("draw by a waiter", err)
	}
	if st := t.heldBy(r); st.Token != g.Token {
		t.Errorf("token %v after others tried to draw, granted was %v", st.Token, g.Token)
	}
	t.release(t.first, r)
	t.gets("the waiter gets the lock", w)
	_, err := t.first.(store.Waiter).Draw(t.Context(), above(r))
	t.notHeld("draw by the holder before", err)
}

// draw draws above all that the lease has had, as far as the store shows it; one
// that shows the smallest of a range knows the largest by itself.
func (t *trial) draw(s store.Store, r store.Request) store.Drawn {
	t.Helper()
	r.Above = t.heldBy(r).Token
	d, err := s.(store.Waiter).Draw(t.Context(), r)
	if err != nil {
		t.Fatalf("draw by the holder: %v", err)
	}
	if d.Token == 0 {
		t.Fatalf("draw by the holder: no token")
	}
	t.spares("draw by the holder", d.Spare, r.Spare)
	return d
}

func spare(r store.Request, n int) store.Request {
	r.Spare = n
	return r
}
