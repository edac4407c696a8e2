package explore

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/leasefsm"
	"github.com/leasehold-dev/leasehold/internal/proof/modelnode"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/internal/validity"
)

// Limits of a Model, which depend on the size of a state.
const (
	maxNodes = 5
	maxSlots = 4
)

// unlimited is so many asks that there is no limit.
const unlimited = 1<<8 - 1

// tick is the unit in which time passes. It is long beside the drift allowance,
// so a lease of n ticks is valid when n-1 have passed, and not when n have.
const tick = time.Second

// epoch is where the time axis of every machine begins, and where every node's
// clock stands at present: states know only differences of time.
const epoch = clock.Instant(1000 * time.Second)

// Model is a world to search: its size, what can go wrong in it, and what must
// hold nevertheless. The zero value of every field but the first four is a
// world with less in it.
type Model struct {
	Nodes    int
	Clients  int // how many may be attempting or holding at the same time
	Attempts int // how many attempts are made in all
	TTL      int // ticks

	// NoTime: no clock ticks and nothing expires; instead a node may lose the
	// lock at any moment. Tokens must rise without the help of time.
	NoTime bool
	// Renewals is the largest number of renewals of each lease.
	Renewals int
	// Extends is how many times a holder extends its lease, besides renewals. ReleaseVote: a
	// holder that releases waits for the answers.
	Extends     int
	ReleaseVote bool
	// MaxHold is the longest that a lease is held, in ticks; zero: as long as it is renewed.
	MaxHold int
	// ShortRenewals: a renewal may ask for one tick instead of the TTL.
	ShortRenewals bool
	// Spread: counters start anywhere from 0 to this, as earlier attempts that
	// failed may have left them.
	Spread int
	// Proposals are the tokens that a client may propose, besides none.
	Proposals []int

	// Crashes is the number of crashes of all nodes together. A node that crashes forgets the lock and its
	// tombstones, and its counter unless KeepCounter. It grants nothing for
	// Quarantine ticks.
	Crashes     int
	KeepCounter bool
	Quarantine  int
	// Reread: after a crash the counter is read back from the other nodes.
	Reread Reread
	// Losses is how often a node loses the lock unnoticed. With NoTime
	// zero is: as often as it likes.
	Losses int
	// Jumps is how many times a node's clock jumps ahead by the TTL.
	Jumps int
	// Floor: no token is below the clock of the node that draws it; the nodes'
	// clocks are up to ClockError ticks apart.
	Floor      bool
	ClockError int
	// Twice is how many requests arrive twice.
	Twice int
	// MaxDelay is how many ticks after it was sent an acquire can still arrive; zero: any
	// number. An acquire for certain slots counts as sent with the first.
	MaxDelay int
	// Crossed: at the beginning the second attempt has a lease of the first slot of a
	// semaphore, and another slot at the first node, where the first attempt, which is
	// over, was in its way.
	Crossed bool
	// Full: at the beginning two attempts have the permits of a semaphore of two.
	Full bool
	// Wrote: at the beginning a writer's lease is over. It had token 1 on all nodes but the
	// second.
	Wrote bool
	// Writers is the largest number of attempts that are writers'; zero: any, -1: none.
	Writers int
	// ReuseOwner: a client uses one owner value for all its attempts.
	ReuseOwner bool
	// InOrder: the messages of one attempt reach a node in the order they were
	// sent in, as on one connection.
	InOrder bool

	// Lists: one list of nodes is replaced by another; see role. SwitchWait is
	// how many ticks the operator waits in between; with AnyList nodes do not
	// look at the list of a client.
	Lists      bool
	SwitchWait int
	AnyList    bool

	// Waits: attempts wait in a queue. Each asks a node at most Asks times, and leaves
	// after Patience ticks. Doubts is how many requests are given up while they are
	// under way (with EveryEvent, any number). Skips is how many times a node takes a live
	// waiter for dead. Polls: a waiter may ask earlier than it has to.
	Waits                         bool
	Asks, Patience, Doubts, Skips int
	Polls                         bool
	// Returns: a client that releases may take a place for its next attempt in the same
	// message; see return.go.
	Returns bool
	// Begun: at the beginning one attempt has the lock, and another waits at all nodes.
	Begun bool
	// AnyRank: a new waiter may come before all others.
	AnyRank bool
	// KeepQueue: a node that crashes loses the lock and keeps the queue, as of a
	// moment at which the lock was another's.
	KeepQueue bool
	// CountFromPush: a waiter that is handed the lock counts validity from when it
	// learns of that.
	CountFromPush bool

	// EveryEvent: machines get every possible event. Otherwise events that lead to
	// nothing new are left out: see reduce.go.
	EveryEvent bool
	// Plain: states count as different even if they differ only in what cannot matter
	// any more, or in the names of nodes and attempts. This takes much more time, and
	// must not change a verdict.
	Plain bool

	// Kind, if several can hold the lock; the zero value is a mutex. See kinds.go.
	Kind rule.Spec

	// Breaks: the operator may break each lease once; see break.go. ShortTombstones: the
	// tombstones last as long as a lease and no longer.
	Breaks, ShortTombstones bool

	// Rules of the nodes, and those of nodes with a Kind.
	Rules     modelnode.Rules
	KindRules modelnode.KindRules
	// Check is what must hold.
	Check Property
}

// Reread is when a node that lost its counter reads it from the others.
type Reread uint8

// When counters are read back.
const (
	NeverReread Reread = iota
	RereadDuring
	RereadAfter
)

// Property is a set of things that must hold in every state.
type Property uint16

// The properties.
const (
	// Mutex: no two leases are valid at the same instant.
	Mutex Property = 1 << iota
	// Tokens: a later grant has a larger token.
	Tokens
	// Renewals: no lease is renewed after a larger token was granted.
	Renewals
	// Orphans: a lost attempt releases every lock that it may get, and no owner gets a
	// key at a node after its release there.
	Orphans
	// Served: every waiter gets the lock once nothing goes wrong any more.
	Served
	// Freed: a release that is said to have worked leaves no majority to the lease.
	Freed
	// Bounded: no lease is valid for longer than MaxHold.
	Bounded
	// Whole: no slot of a semaphore stays split between two owners.
	Whole
	// Revived: no renewal of a lease begins after a majority has broken it, and succeeds.
	Revived

	Safety = Mutex | Tokens | Renewals
)

var propertyNames = map[Property]string{
	Mutex:    "MUTUAL EXCLUSION broken",
	Tokens:   "TOKEN goes back",
	Renewals: "STALE RENEWAL",
	Orphans:  "ORPHAN KEY",
	Served:   "WAITS FOR EVER",
	Freed:    "SAID TO BE FREE",
	Bounded:  "HELD TOO LONG",
	Whole:    "SPLIT FOR GOOD",
	Revived:  "RENEWED AFTER THE BREAK",
}

// String names the violation of a single property; none is "OK".
func (p Property) String() string {
	if p == 0 {
		return "OK"
	}
	return propertyNames[p]
}

func ticks(n int) time.Duration { return time.Duration(n) * tick }

// quorum is the configuration of attempts and votes. The node timeout is one
// tick: from then on a machine may be notified that time has passed, or not.
func (m *Model) quorum() quorum.Config {
	return quorum.Config{Nodes: m.Nodes, NodeTimeout: tick}
}

// lease is the configuration of a lease's life: no notice, so that what is
// checked is the whole validity.
func (m *Model) lease() leasefsm.Config {
	return leasefsm.Config{TTL: ticks(m.TTL), Renew: validity.RenewAfter(ticks(m.TTL)), MaxHold: ticks(m.MaxHold)}
}

// keyOwner is the slot in whose cells node keys of slot i's owner are: its own,
// unless several attempts share an owner.
func (m *Model) keyOwner(i uint8) uint8 {
	if m.ReuseOwner {
		return i % uint8(m.Clients)
	}
	return i
}
