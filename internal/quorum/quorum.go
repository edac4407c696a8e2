// Package quorum is the protocol over N independent nodes: one attempt to
// acquire, and one vote to renew or to release, as pure state machines.
//
// A machine is a plain value: Step takes an event and the present instant, and returns
// the messages to send. It has no goroutines, no clock and no network, so the store that
// ships and the checker that searches all interleavings run the same code. A single
// node is the case N = 1. testdata has transcripts of what a machine does.
//
//   - acquire.go: Attempt, one attempt to acquire. It decides on what its parts hold: grants.go has what
//     the nodes granted, slots.go the slots of a semaphore, confirmation.go the round that confirms a
//     token, and waiting.go the places in the nodes' queues
//   - survey.go: what all nodes say to an attempt that waits, and whether it gives way; cutoff.go: that it
//     reaches no majority
//   - vote.go: Vote, to renew or to release; tally.go: what all nodes together say of a lease
//
// The driver of a machine guarantees two things: it sends the messages for one node in
// the order given, and it answers every Send by exactly one event for that node,
// however late.
package quorum

import (
	"math/bits"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// MaxNodes is the largest number of nodes. More than nine bring no benefit.
const MaxNodes = 16

// Config holds what does not change during an attempt or a vote.
type Config struct {
	// Nodes is N, 1 to MaxNodes.
	Nodes int
	// NodeTimeout is how long the machine waits for a node's answer. It is far
	// below the TTL, so that a dead node costs little of the validity.
	NodeTimeout time.Duration
	// Sets are sets of nodes: a majority of each is needed. There are two while one
	// membership is replaced by another. Empty: all nodes are one set.
	Sets [2]Set
}

// Set is a set of nodes.
type Set uint16

func (s Set) with(node int) Set { return s | 1<<node }

// Without returns the set without a node.
func (s Set) Without(node int) Set { return s &^ (1 << node) }

// Has reports whether node is in the set.
func (s Set) Has(node int) bool { return s&(1<<node) != 0 }

// First returns the smallest node of the set, which is not empty.
func (s Set) First() int { return bits.TrailingZeros16(uint16(s)) }

// Size returns the number of nodes in the set.
func (s Set) Size() int { return bits.OnesCount16(uint16(s)) }

// SetOf returns the set of these nodes.
func SetOf(nodes ...int) (s Set) {
	for _, n := range nodes {
		s = s.with(n)
	}
	return s
}

// AllOf returns the set of so many nodes.
func AllOf(nodes int) Set { return 1<<nodes - 1 }

// all returns the set of all nodes.
func (c *Config) all() Set { return AllOf(c.Nodes) }

// JointSets returns one or two sets: a majority of each is needed.
func (c *Config) JointSets() []Set {
	switch {
	case c.Sets[0] == 0:
		return []Set{c.all()}
	case c.Sets[1] == 0:
		return []Set{c.Sets[0]}
	}
	return []Set{c.Sets[0], c.Sets[1]}
}

// HasQuorum reports whether s has a majority of every set. Two such sets share a node,
// also if the other client knows only one of the memberships.
func (c *Config) HasQuorum(s Set) bool {
	for _, set := range c.JointSets() {
		if (s & set).Size() < Majority(set.Size()) {
			return false
		}
	}
	return true
}

// Majority returns how many of n nodes are a majority: any two majorities share a node.
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
	// Release: remove the lease if it is ours. With Tombstone, if it is not there, leave
	// a tombstone so that it cannot arrive later.
	Release
	// Heal: give the node the lease, if the lock is free there. The machine does not
	// wait for the answer.
	Heal
)

var opNames = [...]string{"acquire", "confirm", "renew", "release", "heal"}

func (o Op) String() string { return opNames[o] }

// Send is a message to one node.
type Send struct {
	Node      int
	Op        Op
	Token     uint64 // of Confirm
	Tombstone bool   // of Release
	// AlwaysTombstone, of Release: leave the tombstone even if the lock was ours.
	AlwaysTombstone bool
	// Of Release: GivesWay frees the lock without handing it to a waiter; with
	// ToSenior the node hands it to the most senior waiter ahead of this attempt.
	GivesWay, ToSenior bool
	// Of Acquire: Again says that the node was asked before. QueueOnly takes or
	// refreshes a place in the queue, and does not take a free lock.
	Again, QueueOnly bool
	// Slots, of Acquire and Confirm, are those that the lease must have. Another lease
	// of this owner on the node ends, even if they are taken. With Wish, of Acquire,
	// they are only preferred. Empty: any.
	Slots string
	Wish  bool
}

// Kind is what an event reports.
type Kind uint8

// The kinds of event. The first five are answers of a node; Op says to which message.
const (
	// Yes: the node did it. For Acquire, Token is the node's answer; for
	// Confirm, the value confirmed.
	Yes Kind = iota
	// No: the node did not do it: another owner has the lock or, for Release, this
	// lease is not there.
	No
	// Absent: the node did not do it, because the lock is free there. Only Extend
	// and a waiting Acquire treat it differently from No.
	Absent
	// Unsent: the message never left, or the node refused to examine the lock.
	// Nothing was done, and nothing is known.
	Unsent
	// Unknown: the message left, and may have been applied.
	Unknown
	// Tick: time has passed.
	Tick
	// Cancel: the caller gave up.
	Cancel
	// PushGranted: a node pushes that it has granted the lock to this owner.
	PushGranted
	// PushLost: pushes of the node may have been lost.
	PushLost
	// PushFree: a node pushes that the lock is free there.
	PushFree
	// Discounted: a node has granted the lock, and its grants do not count at
	// present.
	Discounted
)

// Event is what happened.
type Event struct {
	Kind  Kind
	Node  int
	Op    Op
	Token uint64
	// Slots are those of the grant, for a Yes to Acquire and PushGranted of a semaphore;
	// otherwise empty.
	Slots string
	// From, of PushGranted, is the departure of the request that was granted.
	From clock.Instant
	// Set for an answer to Acquire that left the attempt in the queue: the owner that
	// has the lock there, how long its lease lasts (negative: for ever), whether it is
	// senior to this attempt, and when it was first seen (0: now).
	Holder      string
	ExpiresIn   time.Duration
	Senior      bool
	HolderSince clock.Instant
	// RetryAfter is the pause after which asking again can help.
	RetryAfter time.Duration
	// Uncounted, of an answer to Acquire that is no grant: a grant would not count at
	// present; see Discounted.
	Uncounted bool
}

// Verdict is the outcome of an attempt or a vote.
type Verdict uint8

// The verdicts. All but Open are final.
const (
	Open Verdict = iota
	// Won: a majority did it, in time.
	Won
	// Lost: a majority did not, or no longer can.
	Lost
)

// Phase is the state of one node in an attempt or a vote.
type Phase uint8

// The phases.
const (
	Asked      Phase = iota // no answer yet
	Held                    // it granted, or voted yes
	Refused                 // it certainly did not do it
	Missing                 // not reached: it did nothing, and nothing is known of it
	Doubtful                // may have done it
	Relinquish              // told to release
)
