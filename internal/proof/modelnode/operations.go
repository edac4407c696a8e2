package modelnode

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Acquire takes the lock if it is free, and draws its token. An owner that already has
// it gets the same answer again.
func (l Lock[O]) Acquire(r Rules, a Ask[O], now clock.Instant) (Lock[O], Answer[O]) {
	held, last := l.holder(now), l.last(now)
	nobody := *new(O)
	if held != a.Owner && (held != nobody || a.Stand || a.Behind) {
		return l.stand(r, a, now)
	}
	if now < l.QuarantinedUntil {
		return l, l.quarantined(now)
	}
	if held == a.Owner && last != 0 {
		return l.leave(a.Owner).lasting(r, a.TTL, now), Answer[O]{Token: last}
	}
	if !r.NoTombstones && l.buried(a.Owner, now) {
		return l, Answer[O]{Verdict: Buried}
	}
	token := l.draw(r, a.Propose, now)
	l = l.leave(a.Owner).countGrant(r, token, now)
	l.Owner, l.Expiry = a.Owner, now.Add(a.TTL)
	return l, Answer[O]{Token: token}
}

// draw returns the token that follows from clock, proposal and counter.
func (l Lock[O]) draw(r Rules, propose uint64, now clock.Instant) uint64 {
	if r.NoClock {
		return max(propose, l.last(now)+1)
	}
	return max(r.floor(propose, now), l.last(now)+1)
}

// Confirm raises the counter to at least token, if o has the lock.
func (l Lock[O]) Confirm(r Rules, o O, token uint64, now clock.Instant) (Lock[O], Answer[O]) {
	if l.holder(now) != o && !r.ConfirmAnywhere {
		return l, l.taken(now)
	}
	if last := l.last(now); last >= token {
		return l, Answer[O]{Token: last}
	}
	return l.count(r, token, now), Answer[O]{Token: token}
}

// Extend makes o's lease last at least ttl from now, if o has it.
func (l Lock[O]) Extend(r Rules, o O, ttl time.Duration, now clock.Instant) (Lock[O], Answer[O]) {
	held := l.holder(now)
	if r.ExtendCreates && held == *new(O) {
		held, l.Owner, l.Expiry = o, o, now.Add(ttl)
	}
	if held != o {
		return l, l.taken(now)
	}
	if l.CounterExpiry != 0 && now < l.CounterExpiry {
		l.CounterExpiry = now.Add(r.CounterLife)
	}
	return l.lasting(r, ttl, now), Answer[O]{}
}

// Heal gives o the lock for ttl, if nobody has it and o was not released. It draws no
// token. A node in quarantine refuses: an attempt that is still open may count a grant
// that the node has forgotten.
func (l Lock[O]) Heal(r Rules, o O, ttl time.Duration, now clock.Instant) (Lock[O], Answer[O]) {
	if held := l.holder(now); held != *new(O) && held != o {
		return l, l.taken(now)
	} else if held == o {
		return l.lasting(r, ttl, now), Answer[O]{}
	}
	if now < l.QuarantinedUntil && !r.HealsQuarantined {
		return l, l.quarantined(now)
	}
	if !r.NoTombstones && l.buried(o, now) {
		return l, Answer[O]{Verdict: Buried}
	}
	l = l.leave(o)
	l.Owner, l.Expiry = o, now.Add(ttl)
	return l, Answer[O]{}
}

// lasting extends the present lease to ttl from now.
func (l Lock[O]) lasting(r Rules, ttl time.Duration, now clock.Instant) Lock[O] {
	if end := now.Add(ttl); end > l.Expiry || r.ExpiryShrinks {
		l.Expiry = end
	}
	return l
}

// Ending has the arguments of a Release.
type Ending[O comparable] struct {
	Owner O
	// Tombstone, if positive, is how long the owner cannot get the lock again, if it does
	// not have it or if Renewed.
	Tombstone time.Duration
	Renewed   bool
	// GivesWay: the lock is for To. If To does not wait here, the lock stays free for
	// it and is handed to nobody else.
	GivesWay bool
	To       O
	// Propose is a token for the next waiter.
	Propose uint64
	Reach   Reach[O]
}

// Release ends the owner's lease and removes its place from the queue. If the lock is
// free then, the next waiter gets it.
func (l Lock[O]) Release(r Rules, e Ending[O], now clock.Instant) (Lock[O], Answer[O]) {
	o, tombstone := e.Owner, e.Tombstone
	a, ours := l.taken(now), l.holder(now) == o
	if ours {
		a, l.Owner, l.Expiry = Answer[O]{}, *new(O), 0
	}
	if !r.PlacesStay {
		l = l.leave(o)
	}
	if tombstone > 0 && (!ours || e.Renewed) && !r.NoTombstones {
		l.Tombstones = buriedUntil(l.Tombstones, o, now.Add(tombstone), now)
	}
	hands := l.holder(now) == *new(O) && (now >= l.QuarantinedUntil || r.HandsQuarantined)
	if hands && e.GivesWay {
		l.Queue, hands = l.Queue.prefer(e.To, now)
	}
	if hands {
		l, a.Pushes = l.hand(r, e.Propose, e.Reach, now)
	}
	return l, a
}

// buriedUntil returns the tombstones that last, and one of owner until then at least.
func buriedUntil[O comparable](all []Tombstone[O], owner O, until, now clock.Instant) (alive []Tombstone[O]) {
	for _, t := range all {
		switch {
		case t.Owner == owner:
			until = max(until, t.Expiry)
		case now < t.Expiry:
			alive = append(alive, t)
		}
	}
	return append(alive, Tombstone[O]{Owner: owner, Expiry: until})
}

// Return is a Release that in the same step takes a place in the queue for another
// owner, without granting it anything yet. The release does not depend on whether that
// owner gets the place.
func (l Lock[O]) Return(r Rules, e Ending[O], a Ask[O], now clock.Instant) (after Lock[O], ended, placed Answer[O]) {
	a.Wait = true
	after, ended = l.Release(r, e, now)
	after, placed = after.stand(r, a, now)
	if r.ReturnsWhole && placed.Position == 0 {
		return l, l.taken(now), placed
	}
	return after, ended, placed
}

// Crash is a restart that loses the lock, the tombstones and, unless it is durable, the
// counter. The node grants nothing for the quarantine that follows.
func (l Lock[O]) Crash(keepCounter bool, quarantine time.Duration, now clock.Instant) Lock[O] {
	after := Lock[O]{QuarantinedUntil: now.Add(quarantine)}
	if keepCounter {
		after.Counter, after.CounterExpiry = l.Counter, l.CounterExpiry
	}
	return after
}
