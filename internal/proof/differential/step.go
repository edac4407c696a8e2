package differential

import (
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"
)

// Op is the operation of a step.
type Op uint8

// The operations.
const (
	// Acquire: an owner asks for the lock, or asks again.
	Acquire Op = iota
	// Confirm: an owner raises the token counter. Nodes only.
	Confirm
	// Extend: an owner prolongs its lease.
	Extend
	// Release: an owner gives up its lease.
	Release
	// Bury: the same, and the owner gets a tombstone if it has none.
	Bury
	// Pass: time passes.
	Pass
	// StrangerSets: another program takes the lock with a plain SET NX. Nodes only.
	StrangerSets
	// StrangerDeletes: another program deletes the lock of any holder. Nodes only.
	StrangerDeletes
	// LoseCounter: the lock's token counter is lost. Nodes only.
	LoseCounter
	// LoseAll: all data is lost. Nodes only.
	LoseAll
	// BuryRenewed: as Bury, but the owner gets the tombstone in any case. Nodes only.
	BuryRenewed
	// Heal: an owner is given the lock if nobody has it. Nodes only.
	Heal
)

// node reports whether only nodes know the operation.
func (o Op) node() bool {
	return o == Confirm || o >= StrangerSets
}

// Step is one command or event. Its times and tokens are relative to the present clock
// and counter, so that any part of a list of steps makes sense by itself.
type Step struct {
	Op Op
	// Lock and Owner are indices into Locks and Owners.
	Lock, Owner int
	// TTL of Acquire, Extend and StrangerSets, where zero is a key for ever;
	// how much time passes.
	TTL time.Duration
	// Ahead is how far the token that Acquire proposes is ahead of the clock, in
	// microseconds, or of the counter if Onward; and how far Confirm's token is ahead
	// of the counter.
	Ahead  int64
	Onward bool
}

// Locks and Owners are those that steps use. One name has bytes that need care, one
// owner is a prefix of another, and one has no description.
var (
	Locks  = []string{"stock", "a {b}:\x00\xff*"}
	Owners = []Owner{
		{ID: "ann", Meta: `{"host":"h","pid":1}`},
		{ID: "an"},
		{ID: "bob", Meta: `{"purpose":"a \"b\" {c}"}`},
	}
)

// Owner is one attempt to acquire.
type Owner struct{ ID, Meta string }

// Stranger is the value that other programs write.
const Stranger = "c3RyYW5nZXI="

const (
	unit = 10 * time.Minute
	day  = 24 * time.Hour
)

// tombstoneLife is how long tombstones of an owner are kept. All releases of one owner have
// the TTL of its one request, so a later tombstone never ends before an earlier one.
// The behaviour is undefined if it did.
func tombstoneLife(owner int) time.Duration { return time.Duration(owner+1) * unit }

// steps generates lists of steps. Times are multiples of a large unit, which allows
// engines with a clock that cannot be set. With exact, some times are a little shorter
// or longer.
func steps(exact bool) *rapid.Generator[[]Step] {
	one := rapid.Custom(func(t *rapid.T) Step { return step(t, exact) })
	return rapid.Custom(func(t *rapid.T) (list []Step) {
		t.Repeat(map[string]func(*rapid.T){
			"step": func(t *rapid.T) { list = append(list, one.Draw(t, "step")) },
		})
		return list
	})
}

// often has each operation as often as it should be drawn.
var often = slices.Concat(
	slices.Repeat([]Op{Acquire}, 9),
	slices.Repeat([]Op{Extend, Pass}, 4),
	slices.Repeat([]Op{Confirm, Release, Bury, Heal}, 3),
	slices.Repeat([]Op{BuryRenewed}, 2),
	slices.Repeat([]Op{StrangerSets}, 3),
	[]Op{StrangerDeletes, LoseCounter, LoseAll},
)

func step(t *rapid.T, exact bool) Step {
	s := Step{Op: rapid.SampledFrom(often).Draw(t, "op")}
	if s.Op != LoseAll && s.Op != Pass {
		s.Lock = rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "lock")
	}
	if s.Op <= Bury || s.Op >= BuryRenewed {
		s.Owner = rapid.IntRange(0, len(Owners)-1).Draw(t, "owner")
	}
	switch s.Op {
	case Acquire:
		s.TTL = rapid.SampledFrom([]time.Duration{unit, 2 * unit, 3 * unit, 30 * unit}).Draw(t, "ttl")
		if s.Onward = rapid.SampledFrom([]bool{false, false, true}).Draw(t, "onward"); s.Onward {
			s.Ahead = rapid.SampledFrom([]int64{1, 0, -1, 1000}).Draw(t, "ahead")
		} else {
			s.Ahead = rapid.SampledFrom([]int64{500_000, 0, -5_000_000, 999_999, 2_000_000, -farBack}).Draw(t, "ahead")
		}
	case Confirm:
		s.Ahead = rapid.SampledFrom([]int64{1, 0, -1, 1000, 700_000, -700_000}).Draw(t, "ahead")
	case Extend, Heal:
		s.TTL = rapid.SampledFrom([]time.Duration{unit, 2 * unit, 4 * unit, 30 * unit}).Draw(t, "ttl")
	case Pass:
		s.TTL = rapid.SampledFrom([]time.Duration{unit, unit, 2 * unit, 3 * unit, 6 * unit, day}).Draw(t, "time")
	case StrangerSets:
		s.TTL = rapid.SampledFrom([]time.Duration{unit, 2 * unit, 0}).Draw(t, "ttl")
	}
	if exact && s.TTL > 0 {
		odd := []time.Duration{0, 0, -time.Millisecond, time.Millisecond, 1 - time.Millisecond}
		if s.Op == Pass { // a clock that counts in milliseconds
			odd = odd[:4]
		}
		s.TTL += rapid.SampledFrom(odd).Draw(t, "odd")
	}
	return s
}

// farBack makes every proposal zero or less.
const farBack = 1 << 60

var opNames = [...]string{
	"acquire", "confirm", "extend", "release", "bury", "pass",
	"a stranger sets", "a stranger deletes", "lose the counter of", "lose everything",
	"bury in any case", "heal",
}

func (o Op) String() string { return opNames[o] }

func (s Step) String() string {
	lock := fmt.Sprintf("%q", Locks[s.Lock])
	owner := Owners[s.Owner].ID
	switch s.Op {
	case Acquire:
		base := "clock"
		if s.Onward {
			base = "counter"
		}
		return fmt.Sprintf("%v %s for %s, TTL %v, proposing the %s %+d", s.Op, lock, owner, s.TTL, base, s.Ahead)
	case Confirm:
		return fmt.Sprintf("%v %s for %s, at the counter %+d", s.Op, lock, owner, s.Ahead)
	case Extend, Heal:
		return fmt.Sprintf("%v %s for %s, TTL %v", s.Op, lock, owner, s.TTL)
	case Release:
		return fmt.Sprintf("%v %s for %s", s.Op, lock, owner)
	case BuryRenewed:
		return fmt.Sprintf("release %s for %s, and leave a tombstone for %v", lock, owner, tombstoneLife(s.Owner))
	case Bury:
		return fmt.Sprintf("release %s for %s, else a tombstone for %v", lock, owner, tombstoneLife(s.Owner))
	case Pass:
		return fmt.Sprintf("%v passes", s.TTL)
	case StrangerSets:
		return fmt.Sprintf("%v %s, TTL %v", s.Op, lock, s.TTL)
	case LoseAll:
		return s.Op.String()
	}
	return fmt.Sprintf("%v %s", s.Op, lock)
}
