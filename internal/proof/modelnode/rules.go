package modelnode

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Rules say how a node behaves. Each switch removes one mechanism. With none set, a
// node does what the scripts do.
type Rules struct {
	// NoClock: the node's clock is not the floor of tokens, and does not limit
	// proposals. Tokens then count from 1.
	NoClock bool
	// NoTombstones: a release that finds nothing leaves nothing behind.
	NoTombstones bool
	// ConfirmAnywhere: a token is confirmed even if another owner has the lock.
	ConfirmAnywhere bool
	// ExpiryShrinks: the last extension decides when a lease ends, even if an earlier
	// one went further.
	ExpiryShrinks bool
	// ExtendCreates: extending takes the lock if nobody has it.
	ExtendCreates bool
	// HealsQuarantined: a node heals even in quarantine.
	HealsQuarantined bool
	// HandsQuarantined: a node in quarantine hands the lock to waiters.
	HandsQuarantined bool
	// PlacesStay: an owner that is released keeps its place in the queue.
	PlacesStay bool
	// HandsSame: a lock that is handed on keeps its token.
	HandsSame bool
	// StandsAlone: an owner that only wants a place behind a holder gets one even if
	// the lock is free.
	StandsAlone bool
	// ReturnsWhole: a Return releases only if the other owner gets its place.
	ReturnsWhole bool

	// MaxLead is how far a proposed token may be ahead of the node's clock.
	MaxLead time.Duration
	// CounterLife is how long the counter outlives the last grant or renewal;
	// zero: for ever.
	CounterLife time.Duration
	// CounterStep is how far apart the tokens of two grants are, rounded down to it, if
	// the second one lets the counter live longer; zero: every grant does.
	CounterStep time.Duration
}

// Shipped are the rules of the scripts.
func Shipped() Rules {
	return Rules{MaxLead: time.Second, CounterLife: 24 * time.Hour, CounterStep: time.Hour}
}

// floor returns the token that is drawn from a proposal unless the counter is in the way.
func (r Rules) floor(propose uint64, now clock.Instant) uint64 {
	if r.NoClock {
		return propose
	}
	return max(uint64(max(0, now)/1000), min(propose, r.most(now)))
}

// most returns the largest token that may be drawn from a proposal, or reserved, at
// now.
func (r Rules) most(now clock.Instant) uint64 {
	return uint64(max(0, now)/1000) + uint64(r.MaxLead.Microseconds())
}
