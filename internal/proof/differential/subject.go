package differential

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Subject is an engine that is held to the rule. An error of a method is the
// engine's own failure, which no answer ever is.
type Subject interface {
	Traits() Traits
	// Begin starts over with no locks at all. Where the subject's clock can be
	// set, it stands at now.
	Begin(now clock.Instant) error
	// Pass lets time go by.
	Pass(d time.Duration) error
	// Clock is the engine's present time.
	Clock() (clock.Instant, error)
	// Do carries out a command.
	Do(Command) (Answer, error)
	// Look tells what there is of the lock.
	Look(lock string) (State, error)
}

// Traits are what distinguishes one engine's answers from another's.
type Traits struct {
	// Node: it is a node of a quorum, and knows the operations that only those
	// know. Its tokens come of its clock, the proposal and a counter. Others
	// draw any token that is above all before.
	Node bool
	// Tombs: it can be told to bury.
	Tombs bool
	// Resolution of TTLs, which are rounded up to it.
	Resolution time.Duration
	// Live: its clock can not be set. Passing time is made by taking it away
	// from what is left of each key, the clock that tokens come of does not
	// move with it, and what is left is exact only to a fraction of a unit.
	Live bool
}

func (t Traits) takes(o Op) bool {
	return (t.Node || !o.node()) && (t.Tombs || o != Bury)
}

// ttl is d as the engine keeps it.
func (t Traits) ttl(d time.Duration) time.Duration {
	if r := t.Resolution; r > 0 {
		return (d + r - 1) / r * r
	}
	return d
}

// Command is a step with all it means in numbers.
type Command struct {
	Op    Op
	Lock  string
	Owner Owner
	// TTL is that of Acquire, Extend, Heal and StrangerSets (zero: for ever), or how
	// long Bury's tombstone is kept.
	TTL time.Duration
	// Token is what Acquire proposes and Confirm confirms.
	Token uint64
}

// Verdict is what an engine says to a command.
type Verdict uint8

// The verdicts. The zero Verdict is none of them.
const (
	_ Verdict = iota
	// Done: it did what was asked.
	Done
	// Taken: somebody else has the lock.
	Taken
	// Nobody has the lock, and it was not asked for.
	Nobody
	// NotHeld is what engines that are no nodes say for both when they are to
	// extend or release.
	NotHeld
	// Buried: the owner was released before it asked.
	Buried
)

// Answer is a verdict and its evidence.
type Answer struct {
	Verdict Verdict
	// Token of an Acquire or Confirm that was done.
	Token uint64
	// Holder is whose the lock is, and Left for how long, if Taken.
	Holder string
	Left   time.Duration
	// Before and After are the engine's clock on both sides of an Acquire. They
	// are the same where it can be set.
	Before, After clock.Instant
}

// Never is what is left of a key that does not expire.
const Never = time.Duration(-1)

// State is what there is of a lock.
type State struct {
	Holder string // empty: nobody
	Left   time.Duration
	// Token is where the counter stands, zero if nowhere; engines that are no
	// nodes need to tell it only of a lock that is held.
	Token     uint64
	TokenLeft time.Duration // of nodes
	// Tombs are the owners that are buried, and for how long.
	Tombs map[string]time.Duration
}

// left is the time until expiry.
func left(expiry, now clock.Instant) time.Duration {
	if expiry == forever {
		return Never
	}
	return expiry.Sub(now)
}

// forever is the expiry of what has none.
const forever = clock.Instant(math.MaxInt64)

// near rounds what is left to what the engine can be held to.
func (t Traits) near(d time.Duration) time.Duration {
	if t.Live && d > 0 {
		return d.Round(unit)
	}
	return d
}

func (t Traits) nearAnswer(a Answer) Answer {
	a.Left, a.Before, a.After = t.near(a.Left), 0, 0
	return a
}

// nearState is s with no more in it than the engine tells.
func (t Traits) nearState(s State) State {
	s.Left, s.TokenLeft = t.near(s.Left), t.near(s.TokenLeft)
	if !t.Node {
		s.TokenLeft = 0
		if s.Holder == "" {
			s.Token = 0
		}
	}
	tombs := map[string]time.Duration{}
	for o, d := range s.Tombs {
		tombs[o] = t.near(d)
	}
	s.Tombs = tombs
	return s
}

func (s State) equal(o State) bool {
	return s.Holder == o.Holder && s.Left == o.Left && s.Token == o.Token && s.TokenLeft == o.TokenLeft && maps.Equal(s.Tombs, o.Tombs)
}

var verdictNames = [...]string{"no verdict", "done", "taken", "nobody has it", "not held", "buried"}

func (v Verdict) String() string { return verdictNames[v] }

func (a Answer) String() string {
	switch {
	case a.Verdict == Taken && a.Holder != "":
		return fmt.Sprintf("%v by %s for %v", a.Verdict, a.Holder, a.Left)
	case a.Token != 0:
		return fmt.Sprintf("%v, token %d", a.Verdict, a.Token)
	}
	return a.Verdict.String()
}

func (s State) String() string {
	var b strings.Builder
	if s.Holder == "" {
		b.WriteString("free")
	} else {
		fmt.Fprintf(&b, "held by %s for %v", s.Holder, s.Left)
	}
	fmt.Fprintf(&b, ", counter %d for %v", s.Token, s.TokenLeft)
	for _, o := range slices.Sorted(maps.Keys(s.Tombs)) {
		fmt.Fprintf(&b, ", %s buried for %v", o, s.Tombs[o])
	}
	return b.String()
}
