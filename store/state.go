package store

import (
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
)

// State is what a store knows about one lock.
type State struct {
	// Name is the name of the lock.
	Name string
	// Held reports whether the lock is held now. If it is not, Kind, Holder, Token,
	// OtherTokens, ExpiresIn, HeldFor and Holders are zero. Only Free says that nobody holds it.
	Held bool
	// Kind is the kind of lock that is in use. It is zero for a mutex.
	Kind Kind
	// Holder describes the holder. Its Owner is always set. The other fields are
	// as the holder gave them, and empty for another kind of client.
	Holder Holder
	// Token is the token of the holder's grant, or zero if the store has none.
	Token fence.Token
	// OtherTokens are further tokens that nodes have of the same lease; see Holding.HasToken.
	OtherTokens []fence.Token
	// ExpiresIn is the longest that the lease can last unless it is renewed, by the
	// store's clock. The lease may end earlier: a store that cannot see how much of
	// it is left returns its TTL. ExpiresIn is negative if the lease never ends by
	// itself, as for another client's key without a TTL.
	ExpiresIn time.Duration
	// HeldFor is how long ago the grant was made, by the store's clock. It is zero if
	// the store cannot tell. Holder.Since is earlier if the holder had to wait.
	HeldFor time.Duration
	// Holders are all holders, in order of their grants. Holder, Token, OtherTokens,
	// ExpiresIn and HeldFor are those of the first. It may be nil for a mutex with one holder; a
	// semaphore that Store.Resize has made a mutex can have more. See Holdings.
	Holders []Holding
	// Undecided are further leases that may be held, in order of their grants: whether a
	// majority of the nodes has them depends on nodes that do not answer; see Silent. It is
	// empty while all nodes answer, and in stores whose locks are on one node. One owner can
	// have several: nodes may have granted it different permits.
	Undecided []Holding
	// Queue has the waiters in order, at most the first MaxQueue of them.
	// Only Inspect sets it, and only in a store that keeps a queue.
	Queue []Place
	// Broken says who broke a lease of this lock last, for about a day; nil if nobody
	// did. See Store.BreakLease. Only Inspect sets it.
	Broken *Broken
	// Nodes has one outcome for each node of a quorum store; nil in other stores.
	Nodes []NodeOutcome
}

// Holdings returns all leases of the lock, whatever its kind: Holders, or the one
// lease of a mutex without.
func (s State) Holdings() []Holding {
	if s.Held && len(s.Holders) == 0 {
		return []Holding{{Holder: s.Holder, Token: s.Token, OtherTokens: s.OtherTokens, ExpiresIn: s.ExpiresIn, HeldFor: s.HeldFor, Weight: 1}}
	}
	return s.Holders
}

// Free reports whether nobody holds the lock. If the lock is neither held nor free, it has
// leases that are Undecided.
func (s State) Free() bool { return !s.Held && len(s.Undecided) == 0 }

// Leases returns Holdings and then Undecided, each with its Kind.
func (s State) Leases() []Holding {
	all := slices.Clone(s.Holdings())
	for i := range all {
		all[i].Kind = s.Kind
	}
	return append(all, s.Undecided...)
}

// InUse returns the error that names the first holder of a lock that is held, or the first
// that may hold one that is undecided. It returns nil if the lock is free.
func (s State) InUse() *BusyError {
	if s.Free() {
		return nil
	}
	first := s.Leases()[0]
	return &BusyError{Name: s.Name, Holder: first.Holder, Undecided: !s.Held, ExpiresIn: first.ExpiresIn, Nodes: s.Nodes}
}

// Holding is one lease of a lock that several owners can hold together.
type Holding struct {
	// Holder, Token, OtherTokens, ExpiresIn and HeldFor are as in State.
	Holder      Holder
	Token       fence.Token
	OtherTokens []fence.Token
	ExpiresIn   time.Duration
	HeldFor     time.Duration
	// Weight is how much of Kind.Limit the holder has. Slot is as in Grant.
	Weight, Slot int64
	// Kind is the kind of the lock. Only State.Undecided has it, and the result of
	// State.Leases; otherwise it is zero, and State.Kind is meant.
	Kind Kind
}

// HasToken reports whether a node has token of the lease. Nodes can have different tokens of one
// lease, and which of them is Token depends on the nodes that answer.
func (h Holding) HasToken(token fence.Token) bool {
	return h.Token == token || slices.Contains(h.OtherTokens, token)
}
