// Package modelnode is a node of the quorum as a pure function. It does to one lock, as
// a value, what the scripts in store/redisstore/internal/script/lua do, step by step. Checkers and
// simulators run the production protocol against it.
//
// Every mechanism that the scripts rely on can be switched off, to show what it is for.
package modelnode

import (
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Lock is everything that one node keeps about one lock. It is a value: a step returns
// a new one and does not change the old. The zero Lock was never used. O names an
// owner; its zero value is nobody.
//
// Instants are of the node's own clock, which counts TTLs and, in microseconds, is the
// floor of tokens. A lease that ends at an instant is gone at that instant.
type Lock[O comparable] struct {
	// Owner has the lock while now < Expiry.
	Owner  O
	Expiry clock.Instant
	// Counter is the token of the last grant, or a larger one confirmed since;
	// zero: none. It is forgotten at CounterExpiry, unless that is zero.
	Counter       uint64
	CounterExpiry clock.Instant
	// Tombstones has the owners that may not acquire any more, in no order.
	Tombstones []Tombstone[O]
	// QuarantinedUntil is the end of a quarantine: nothing is granted before it.
	QuarantinedUntil clock.Instant
	// Queue has the waiters, the next one first.
	Queue Queue[O]
}

// Tombstone keeps an owner from acquiring before Expiry.
type Tombstone[O comparable] struct {
	Owner  O
	Expiry clock.Instant
}

// Verdict is a node's answer to an operation.
type Verdict uint8

// The verdicts.
const (
	// Done: the command was executed.
	Done Verdict = iota
	// Taken: another owner has the lock; for all operations but Acquire, perhaps nobody
	// has it.
	Taken
	// Buried: this owner was released before its acquire arrived.
	Buried
	// Quarantined: the node is in quarantine.
	Quarantined
)

// Answer is a node's answer, with its evidence.
type Answer[O comparable] struct {
	Verdict Verdict
	// Token is the value of the counter after an Acquire or Confirm that was executed.
	Token uint64
	// If Verdict is Taken, Holder has the lock for another ExpiresIn. If it is Quarantined,
	// the quarantine lasts for another ExpiresIn.
	Holder    O
	ExpiresIn time.Duration
	// Position in the queue of an Acquire that waits; 1 is the next.
	Position int
	// Pushes has the pushes that the step led to.
	Pushes []Push[O]
}

// Ask has the arguments of an Acquire.
type Ask[O comparable] struct {
	Owner O
	TTL   time.Duration
	// Propose is the token that the client proposes; usually all nodes accept it.
	Propose uint64

	// Wait takes a place in the queue if the lock is taken, or refreshes it. The other
	// fields are about that place. Again: this owner has asked here before. Stand: it
	// only wants its place, and does not take a free lock. Behind: the same, but if the
	// lock is free it gets no place either.
	Wait, Again, Stand, Behind, Barge bool
	Ticket, Stamp                     uint64
}

// holder returns the owner that has the lock at now.
func (l Lock[O]) holder(now clock.Instant) (o O) {
	if now < l.Expiry {
		return l.Owner
	}
	return o
}

// last returns the value of the counter at now, zero if there is none.
func (l Lock[O]) last(now clock.Instant) uint64 {
	if l.CounterExpiry != 0 && now >= l.CounterExpiry {
		return 0
	}
	return l.Counter
}

// Token returns the value of the counter at now, zero if there is none.
func (l Lock[O]) Token(now clock.Instant) uint64 { return l.last(now) }

// Holder returns the owner that has the lock at now, and for how long; false if nobody
// has it.
func (l Lock[O]) Holder(now clock.Instant) (o O, left time.Duration, held bool) {
	if o = l.holder(now); o == *new(O) {
		return o, 0, false
	}
	return o, l.Expiry.Sub(now), true
}

func (l Lock[O]) taken(now clock.Instant) Answer[O] {
	a := Answer[O]{Verdict: Taken, Holder: l.holder(now)}
	if a.Holder != *new(O) {
		a.ExpiresIn = l.Expiry.Sub(now)
	}
	return a
}

func (l Lock[O]) quarantined(now clock.Instant) Answer[O] {
	return Answer[O]{Verdict: Quarantined, ExpiresIn: l.QuarantinedUntil.Sub(now)}
}

func (l Lock[O]) buried(o O, now clock.Instant) bool {
	return slices.ContainsFunc(l.Tombstones, func(t Tombstone[O]) bool { return t.Owner == o && now < t.Expiry })
}

// countGrant sets the counter to the token of a grant. The next one after the counter may lead
// the clock by any time, so it lets the counter live longer.
func (l Lock[O]) countGrant(r Rules, token uint64, now clock.Instant) Lock[O] {
	if step := uint64(r.CounterStep.Microseconds()); step > 0 && l.CounterExpiry != 0 {
		if last := l.last(now); last != 0 && last+1 < token && last >= token-token%step {
			l.Counter = token
			return l
		}
	}
	return l.count(r, token, now)
}

// count sets the counter to token.
func (l Lock[O]) count(r Rules, token uint64, now clock.Instant) Lock[O] {
	l.Counter, l.CounterExpiry = token, 0
	if r.CounterLife > 0 {
		l.CounterExpiry = now.Add(r.CounterLife)
	}
	return l
}
