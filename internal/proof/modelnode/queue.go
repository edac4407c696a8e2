package modelnode

import (
	"slices"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Place is a waiter's place in the queue for the lock: its Acquire, kept until the lock
// can be granted. A place has a TTL like the lock, so a dead waiter's place disappears.
type Place[O comparable] struct {
	Owner O
	// Ticket orders the queue. Of equal tickets, the one that came earlier is first.
	Ticket uint64
	Expiry clock.Instant
	// Stamp is the waiter's own mark of its last request that arrived. A grant carries
	// it, and tells the waiter from when its validity counts.
	Stamp uint64
	// Barge: the waiter wants to be notified when the lock is free, and not to be
	// handed it.
	Barge bool
}

// Push is a push of the node to a waiter.
type Push[O comparable] struct {
	Owner O
	// Granted: the waiter has the lock, with that token, since its request of that
	// stamp. Otherwise the lock is free at this moment, and the place is gone.
	Granted bool
	Token   uint64
	Stamp   uint64
}

// Reach reports whether a waiter can receive a push, that is, whether its connection is
// open. Nil: all can.
type Reach[O comparable] func(O) bool

// Queue is a queue of waiters, the next one first.
type Queue[O comparable] []Place[O]

// place returns the index of the owner's place, or -1.
func (l Queue[O]) place(o O) int {
	return slices.IndexFunc(l, func(p Place[O]) bool { return p.Owner == o })
}

// leave removes the owner's place from the queue.
func (l Lock[O]) leave(o O) Lock[O] {
	if i := l.Queue.place(o); i >= 0 {
		l.Queue = slices.Delete(slices.Clone(l.Queue), i, i+1)
	}
	return l
}

// stand answers a request that is not granted the lock, and gives it a place if it
// wants one.
func (l Lock[O]) stand(r Rules, a Ask[O], now clock.Instant) (Lock[O], Answer[O]) {
	ans := l.taken(now)
	if a.Wait && l.buried(a.Owner, now) && !r.NoTombstones {
		return l, Answer[O]{Verdict: Buried}
	}
	if a.Wait && (ans.Holder != *new(O) || !a.Behind || r.StandsAlone) {
		l.Queue, ans.Position = l.Queue.wait(r, a, now)
	}
	return l, ans
}

// wait gives the request a place or refreshes the one it has, and returns its position.
func (l Queue[O]) wait(r Rules, a Ask[O], now clock.Instant) (Queue[O], int) {
	p := Place[O]{Owner: a.Owner, Ticket: a.ticket(r, now), Expiry: now.Add(a.TTL), Stamp: a.Stamp, Barge: a.Barge}
	l = slices.DeleteFunc(slices.Clone(l), func(q Place[O]) bool { return now >= q.Expiry })
	if i := l.place(a.Owner); i >= 0 {
		p.Ticket, p.Expiry = l[i].Ticket, max(p.Expiry, l[i].Expiry)
		l[i] = p
		return l, i + 1
	}
	i := slices.IndexFunc(l, func(q Place[O]) bool { return q.Ticket > p.Ticket })
	if i < 0 {
		i = len(l)
	}
	return slices.Insert(l, i, p), i + 1
}

// ticket returns the ticket of a place. A newcomer's time is believed only if it is
// near this node's clock. A waiter that asks again keeps its ticket, even if the node
// lost its place meanwhile.
func (a Ask[O]) ticket(r Rules, now clock.Instant) uint64 {
	if r.NoClock || a.Again {
		return a.Ticket
	}
	micros, lead := uint64(max(0, now)/1000), uint64(r.MaxLead.Microseconds())
	return max(micros-min(micros, lead), min(a.Ticket, micros+lead))
}

// prefer makes the owner first in the queue, and reports whether it waits.
func (l Queue[O]) prefer(o O, now clock.Instant) (Queue[O], bool) {
	i := l.place(o)
	if i < 0 || now >= l[i].Expiry {
		return l, false
	}
	return slices.Insert(slices.Delete(slices.Clone(l), i, i+1), 0, l[i]), true
}

// hand gives a free lock to the first waiter that can be reached. Like every grant it
// waits for the end of a quarantine.
func (l Lock[O]) hand(r Rules, propose uint64, reach Reach[O], now clock.Instant) (Lock[O], []Push[O]) {
	if l.holder(now) != *new(O) || now < l.QuarantinedUntil && !r.HandsQuarantined {
		return l, nil
	}
	for len(l.Queue) > 0 {
		p := l.Queue[0]
		l.Queue = l.Queue[1:]
		if now >= p.Expiry || reach != nil && !reach(p.Owner) {
			continue
		}
		if p.Barge {
			return l, []Push[O]{{Owner: p.Owner, Stamp: p.Stamp}}
		}
		token := l.draw(r, propose, now)
		if r.HandsSame {
			token = max(l.last(now), 1)
		}
		l = l.count(r, token, now)
		l.Owner, l.Expiry = p.Owner, p.Expiry
		return l, []Push[O]{{Owner: p.Owner, Granted: true, Token: token, Stamp: p.Stamp}}
	}
	l.Queue = nil
	return l, nil
}

// Waiting returns the number of waiters at now.
func (l Lock[O]) Waiting(now clock.Instant) (n int) {
	for _, p := range l.Queue {
		if now < p.Expiry {
			n++
		}
	}
	return n
}
