// Package quorum is the protocol over N independent nodes: one attempt to
// acquire, and one vote to renew or to release, as pure state machines.
//
// A machine is a plain value: it is told events and the present instant, and
// answers with messages to send. It has no goroutines, no clock and no network,
// so the store that ships and the checker that searches all its interleavings
// drive the same code. One node is the case N = 1.
//
// Whoever drives a machine sees to two things: messages to one node are sent
// in the order given, and every Send is answered by exactly one event for that
// node, however late.
package quorum

import (
	"math/bits"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// MaxNodes is the largest number of nodes. More than nine only costs.
const MaxNodes = 16

// Config is what does not change during an attempt or a vote.
type Config struct {
	// Nodes is N, 1 to MaxNodes.
	Nodes int
	// NodeTimeout is how long a node's answer is waited for. It is far below
	// the TTL, so that a dead node costs little of the validity.
	NodeTimeout time.Duration
	// Sets of nodes of each of which a majority is needed, while one list of
	// nodes is being replaced by another. Empty: all nodes are one set.
	Sets [2]Set
}

// Set is a set of nodes.
type Set uint16

func (s Set) with(node int) Set { return s | 1<<node }

// Has says whether node is in the set.
func (s Set) Has(node int) bool { return s&(1<<node) != 0 }

// Size is how many nodes are.
func (s Set) Size() int { return bits.OnesCount16(uint16(s)) }

// SetOf these nodes.
func SetOf(nodes ...int) (s Set) {
	for _, n := range nodes {
		s = s.with(n)
	}
	return s
}

// all nodes there are.
func (c *Config) all() Set { return 1<<c.Nodes - 1 }

// Lists are the sets of which majorities are needed, one or two.
func (c *Config) JointSets() []Set {
	switch {
	case c.Sets[0] == 0:
		return []Set{c.all()}
	case c.Sets[1] == 0:
		return []Set{c.Sets[0]}
	}
	return []Set{c.Sets[0], c.Sets[1]}
}

// Enough says whether s has a majority of every set: then it shares a node with
// everything else that is enough, for this client or for one that asks only one
// of the sets.
func (c *Config) HasQuorum(s Set) bool {
	for _, set := range c.JointSets() {
		if (s & set).Size() < Majority(set.Size()) {
			return false
		}
	}
	return true
}

// Majority of n nodes: any two majorities share a node.
func Majority(n int) int {
	if !overHalf {
		return max(n/2, 1)
	}
	return n/2 + 1
}

// Op is what a node is asked to do.
type Op uint8

// The operations.
const (
	// Acquire: take the lock if it is free.
	Acquire Op = iota
	// Confirm: raise the token counter to at least Token, if the lock is ours.
	Confirm
	// Extend: make the lease last at least its TTL from now, if it is ours.
	Extend
	// Release: remove the lease if it is ours; with Tomb, and if it is not
	// there, keep it from arriving later.
	Release
	// Heal: give the node our lease, if nobody has the lock there. Nobody waits
	// for the answer.
	Heal
)

var opNames = [...]string{"acquire", "confirm", "renew", "release", "heal"}

func (o Op) String() string { return opNames[o] }

// Send is a message to one node.
type Send struct {
	Node  int
	Op    Op
	Token uint64 // of Confirm
	Tomb  bool   // of Release
	// Of Release: leave the tombstone even where the lock was ours.
	AlwaysTomb bool
	// Of Release: GivesWay leaves the lock there to come for, and hands it to
	// nobody in line but, with ToSenior, to the first of those before us.
	GivesWay, ToSenior bool
	// Of Acquire: the node was asked before; refresh the place only, and do not
	// take a lock that nobody has.
	Again, QueueOnly bool
}

// Kind is what an event reports.
type Kind uint8

// The kinds of event. The first five are a node's; Op says which message they
// answer.
const (
	// Yes: the node did it. For Acquire, Token is the node's answer; for
	// Confirm, the value confirmed.
	Yes Kind = iota
	// No: the node looked and did not do it: somebody else has the lock, or, for
	// Release, this lease is not there.
	No
	// Absent: it did not do it, because nobody has the lock there. Only for
	// Extend is that more than a No.
	Absent
	// Unsent: the message never left, or the node would not look at the lock:
	// nothing was done, and nothing is known.
	Unsent
	// Unknown: it left, and may have been applied.
	Unknown
	// Tick: time has passed.
	Tick
	// Cancel: the caller gave up.
	Cancel
	// PushGranted: a node says, unasked, that it has granted the lock to us.
	PushGranted
	// PushLost: what the node says unasked may have been missed.
	PushLost
	// PushFree: a node says, unasked, that the lock is free there.
	PushFree
	// Discounted: a node has granted the lock, and what it grants does not count at
	// present.
	Discounted
)

// Event is what happened.
type Event struct {
	Kind  Kind
	Node  int
	Op    Op
	Token uint64
	// Reserved is how many tokens below that are the grant's, too, of a Yes to Acquire
	// or a PushGranted.
	Reserved uint64
	// From is when the request left that PushGranted reports.
	From clock.Instant
	// Of an answer to Acquire that left us in line: who has the lock there, for how
	// long (negative: for ever), and whether that one comes before us.
	// Came is since when it is known to, at least; zero: since now.
	Holder      string
	ExpiresIn   time.Duration
	Senior      bool
	HolderSince clock.Instant
	// Pause is how soon it is of use to ask again.
	RetryAfter time.Duration
}

// Verdict is how an attempt or a vote stands.
type Verdict uint8

// The verdicts. All but Open are final.
const (
	Open Verdict = iota
	// Won: a majority did it, in time.
	Won
	// Lost: a majority did not, or can not any more.
	Lost
)

// Phase is how one node stands in one attempt or vote.
type Phase uint8

// The phases.
const (
	Asked      Phase = iota // no answer yet
	Held                    // it granted, or voted yes
	Refused                 // it certainly did not do it
	Missing                 // not reached: it did nothing and said nothing
	Doubtful                // may have done it
	Relinquish              // told to release
)
