package modelnode

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Rules say how a node behaves. Each switch takes one mechanism away; with
// none set, a node does what the scripts do.
type Rules struct {
	// NoClock: the node's clock is no floor for tokens, and does not bound
	// what a client proposes. Tokens then count from 1.
	NoClock bool
	// NoTombs: a release that finds nothing leaves nothing behind.
	NoTombs bool
	// ConfirmAnywhere: a token is confirmed even where the lock is not ours.
	ConfirmAnywhere bool
	// ExpiryShrinks: a lease ends when the last extension said, even if an
	// earlier one said later.
	ExpiryShrinks bool
	// ExtendCreates: extending takes the lock if nobody has it.
	ExtendCreates bool
	// HealsShut: a node gives a lock to a holder that says it has a majority,
	// even in quarantine.
	HealsShut bool
	// HandsShut: a node in quarantine hands the lock to those who wait.
	HandsShut bool
	// PlacesStay: whoever is released keeps its place in line.
	PlacesStay bool
	// HandsSame: a lock that is handed on keeps its token.
	HandsSame bool
	// StandsAlone: who wants a place only behind a holder has one also where nobody
	// has the lock.
	StandsAlone bool
	// ReturnsWhole: who releases and wants a place in line for another owner of its
	// own is released only where it gets that place.
	ReturnsWhole bool

	// MaxLead is how far a proposed token may lead the node's clock.
	MaxLead time.Duration
	// CounterLife is how long the counter outlives the last grant or renewal;
	// zero: for ever.
	CounterLife time.Duration
}

// Shipped are the rules the scripts are given.
func Shipped() Rules { return Rules{MaxLead: time.Second, CounterLife: 24 * time.Hour} }

// most is the largest token that is drawn of a proposal, or reserved, at now.
func (r Rules) most(now clock.Instant) uint64 {
	return uint64(max(0, now)/1000) + uint64(r.MaxLead.Microseconds())
}
