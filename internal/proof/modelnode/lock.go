// Package modelnode is a node of the quorum as a pure function: what the
// scripts in store/redisstore/scripts do to one lock, step by step, on a value.
// Checkers and simulators drive the production protocol against it.
//
// Every mechanism the scripts rely on can be left out, to show what it is for.
package modelnode

import (
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Lock is all one node keeps about one lock. It is a value: a step returns a
// new one and leaves the old as it was. The zero Lock was never asked for. O
// names an owner; its zero value is nobody.
//
// Instants are those of the node's own clock, which is both what counts TTLs
// and, in microseconds, the floor of tokens. What ends at an instant is gone at
// that instant.
type Lock[O comparable] struct {
	// Owner has the lock while now < Expiry.
	Owner  O
	Expiry clock.Instant
	// Counter is the token of the last grant, or a larger one confirmed since;
	// zero: none. It is forgotten at CounterExpiry, unless that is zero.
	Counter       uint64
	CounterExpiry clock.Instant
	// Tombs are the owners that may not acquire any more, in no order.
	Tombs []Tomb[O]
	// ShutUntil is the end of a quarantine: nothing is granted before it.
	ShutUntil clock.Instant
	// Line are those who wait, the next to come first.
	Line []Place[O]
}

// Tomb keeps an owner from acquiring before Expiry.
type Tomb[O comparable] struct {
	Owner  O
	Expiry clock.Instant
}

// Verdict is what a node says to an operation.
type Verdict uint8

// The verdicts.
const (
	// Done: it did what was asked.
	Done Verdict = iota
	// Taken: somebody else has the lock; for all but Acquire, perhaps nobody.
	Taken
	// Buried: this owner was released before its acquire arrived.
	Buried
	// Shut: the node is in quarantine.
	Shut
)

// Answer is what a node says.
type Answer[O comparable] struct {
	Verdict Verdict
	// Token is where the counter stands, after an Acquire or Confirm was done.
	Token uint64
	// Reserved is how many tokens below that are the grant's as well, after an Acquire
	// was done that found the lock free.
	Reserved uint64
	// Holder has the lock, for another ExpiresIn, if Verdict is Taken; if it is
	// Shut, the quarantine lasts for as long.
	Holder    O
	ExpiresIn time.Duration
	// Position in the line, of an Acquire that waits; 1 is the next to come.
	Position int
	// Told are those who hear of the step besides who asked for it.
	Told []Told[O]
}

// Ask is what an Acquire brings along.
type Ask[O comparable] struct {
	Owner O
	TTL   time.Duration
	// Propose is the token the client would like; usually all nodes take it.
	Propose uint64
	// Spare is how many tokens below the one that is answered are the grant's, too.
	Spare uint64

	// Wait leaves a place in the line if the lock is taken, or refreshes it. The
	// rest is about that place; Again: this owner has asked here before; Stand: it
	// wants its place only, and does not take the lock even if nobody has it; Behind:
	// the same, but where nobody has it there is no place either.
	Wait, Again, Stand, Behind, Barge bool
	Ticket, Stamp                     uint64
}

// holder is who has the lock at now.
func (l Lock[O]) holder(now clock.Instant) (o O) {
	if now < l.Expiry {
		return l.Owner
	}
	return o
}

// last is where the counter stands at now; zero: nowhere.
func (l Lock[O]) last(now clock.Instant) uint64 {
	if l.CounterExpiry != 0 && now >= l.CounterExpiry {
		return 0
	}
	return l.Counter
}

// Token is where the counter stands at now; zero: nowhere.
func (l Lock[O]) Token(now clock.Instant) uint64 { return l.last(now) }

// Holder is who has the lock at now, and for how long; nobody: false.
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

func (l Lock[O]) shut(now clock.Instant) Answer[O] {
	return Answer[O]{Verdict: Shut, ExpiresIn: l.ShutUntil.Sub(now)}
}

func (l Lock[O]) buried(o O, now clock.Instant) bool {
	return slices.ContainsFunc(l.Tombs, func(t Tomb[O]) bool { return t.Owner == o && now < t.Expiry })
}

// count puts the counter at token.
func (l Lock[O]) count(r Rules, token uint64, now clock.Instant) Lock[O] {
	l.Counter, l.CounterExpiry = token, 0
	if r.CounterLife > 0 {
		l.CounterExpiry = now.Add(r.CounterLife)
	}
	return l
}
