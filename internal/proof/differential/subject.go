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

// Subject is an engine that is compared with the rule. An error of a method is a
// failure of the engine itself, never an answer.
type Subject interface {
	Traits() Traits
	// Begin starts over without any locks. If the subject's clock can be set, it is set
	// to now.
	Begin(now clock.Instant) error
	// Pass lets time go by.
	Pass(d time.Duration) error
	// Clock is the engine's present time.
	Clock() (clock.Instant, error)
	// Do executes a command.
	Do(Command) (Answer, error)
	// Look returns the state of the lock.
	Look(lock string) (State, error)
}

// Traits describe how the answers of engines differ.
type Traits struct {
	// Node: the engine is a node of a quorum, and knows the operations that only nodes
	// know. It draws tokens from its clock, the proposal and a counter. Other engines
	// draw any token that is larger than all earlier ones.
	Node bool
	// Tombstones: the engine can leave tombstones.
	Tombstones bool
	// Resolution of TTLs, which are rounded up to it.
	Resolution time.Duration
	// Live: the engine's clock cannot be set. To let time pass, the remaining time of
	// each key is shortened. The clock that tokens are drawn from does not move then,
	// and remaining times are exact only to a fraction of a unit.
	Live bool
}

func (t Traits) takes(o Op) bool {
	return (t.Node || !o.node()) && (t.Tombstones || o != Bury)
}

// ttl returns d as the engine rounds it.
func (t Traits) ttl(d time.Duration) time.Duration {
	if r := t.Resolution; r > 0 {
		return (d + r - 1) / r * r
	}
	return d
}

// Command is a step with absolute values.
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

// Verdict is an engine's answer to a command.
type Verdict uint8

// The verdicts. The zero Verdict is none of them.
const (
	_ Verdict = iota
	// Done: the command was executed.
	Done
	// Taken: another owner has the lock.
	Taken
	// Nobody has the lock, and the command was not Acquire.
	Nobody
	// NotHeld: engines that are not nodes answer with it in both cases to Extend and
	// Release.
	NotHeld
	// Buried: the owner was released before its Acquire.
	Buried
)

// Answer is a verdict and its evidence.
type Answer struct {
	Verdict Verdict
	// Token of an Acquire or Confirm that was executed.
	Token uint64
	// Holder has the lock, for the time Left, if Taken.
	Holder string
	Left   time.Duration
	// Before and After are the engine's clock before and after an Acquire. They are
	// equal if the clock can be set.
	Before, After clock.Instant
}

// Never is what is left of a key that does not expire.
const Never = time.Duration(-1)

// State is the state of a lock.
type State struct {
	Holder string // empty: nobody
	Left   time.Duration
	// Token is the value of the counter, zero if there is none. Engines that are not
	// nodes need it only for a lock that is held.
	Token     uint64
	TokenLeft time.Duration // of nodes
	// Tombstones has the owners that are buried, and for how long.
	Tombstones map[string]time.Duration
}

// left returns the time until expiry.
func left(expiry, now clock.Instant) time.Duration {
	if expiry == forever {
		return Never
	}
	return expiry.Sub(now)
}

// forever is the expiry of a key that never expires.
const forever = clock.Instant(math.MaxInt64)

// near rounds a remaining time to the precision of the engine.
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

// nearState returns s without what the engine does not report.
func (t Traits) nearState(s State) State {
	s.Left, s.TokenLeft = t.near(s.Left), t.near(s.TokenLeft)
	if !t.Node {
		s.TokenLeft = 0
		if s.Holder == "" {
			s.Token = 0
		}
	}
	tombstones := map[string]time.Duration{}
	for o, d := range s.Tombstones {
		tombstones[o] = t.near(d)
	}
	s.Tombstones = tombstones
	return s
}

func (s State) equal(o State) bool {
	return s.Holder == o.Holder && s.Left == o.Left && s.Token == o.Token && s.TokenLeft == o.TokenLeft && maps.Equal(s.Tombstones, o.Tombstones)
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
	for _, o := range slices.Sorted(maps.Keys(s.Tombstones)) {
		fmt.Fprintf(&b, ", %s buried for %v", o, s.Tombstones[o])
	}
	return b.String()
}
