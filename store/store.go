// Package store defines what the lock client needs from an engine that keeps
// locks, such as Redis, a file or memory. It contains the interfaces, the types
// they exchange and their errors, and no implementation.
//
// A Store performs single atomic steps: acquire, renew, release, inspect. A
// Waiter can also queue for a lock until it is granted, and a Rejoiner can
// rejoin that queue with a release. No store renews a lease by itself or judges
// whether it is still valid: the client does both, in one place for all stores.
// The client never passes an absolute time to a store. TTLs are relative, and
// the store counts them by its own clock.
//
// Each method has a request of its own, with only the fields that it reads. What
// identifies and describes a lease is a Lease, which is part of each of them.
//
// Every implementation must pass the suite in store/storetest.
package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
)

// Store keeps locks. All methods are safe for concurrent use and send nothing if
// the request is invalid. A method that takes a context blocks until the outcome
// is known, the store's own time limits pass, or the context ends. After
// Close it fails with ErrClosed, or with ErrInvalid if the request is invalid.
type Store interface {
	// Acquire makes one attempt to acquire the lock r.Name for r.Owner. It does
	// not wait for the lock to become free.
	//
	// If the lock is granted, the error is nil, and the caller counts the validity
	// of the lease from just before the call. If r.Owner already holds the lock,
	// Acquire confirms that grant: the lease lasts at least as long as before, and
	// the token is the same. Over several nodes the token may be larger, if the call
	// gained a node.
	//
	// Otherwise the error matches
	//   - ErrBusy (as *BusyError) if another owner holds the lock;
	//   - ErrQuorum (as *QuorumError) if too few nodes gave an answer;
	//   - ErrInvalid if the request was refused before anything was sent;
	//   - ErrUnsupported if the store cannot give r.Require or keep r.Kind;
	//   - ErrKindMismatch (as *KindError) if the lock is in use as another kind;
	//   - ErrClosed if the store was closed;
	//   - ctx.Err() if the caller gave up;
	// or it is an error of the engine.
	//
	// On every error the store itself makes sure that nothing of the attempt
	// remains, on a context of its own and if necessary in the background: a
	// request still in flight cannot acquire the lock afterwards.
	Acquire(ctx context.Context, r AcquireRequest) (Grant, error)

	// Renew makes each lease last at least its TTL from now, and never shortens
	// one. It never creates a lease that is gone. The result has one entry for
	// each lease, in the same order. An entry is nil if the lease was renewed, and
	// matches ErrNotHeld if the owner certainly no longer holds the lock and
	// ErrInvalid if the request was refused. After any other error the renewal may
	// or may not have been applied, and calling again is safe.
	Renew(ctx context.Context, leases []Lease) []error

	// Release ends the lease of r.Owner and changes no other owner's lease. It
	// returns nil if it ended the lease. The error matches ErrNotHeld if r.Owner
	// certainly had no lease, as in a second call. After any other error the lease
	// may or may not remain, and calling again is safe.
	Release(ctx context.Context, r ReleaseRequest) error

	// Inspect returns the state of one lock without changing it. A free lock is
	// not an error. If too few nodes answer, the error matches ErrQuorum, and the
	// state has what the others know, which may be nothing.
	Inspect(ctx context.Context, name string) (State, error)

	// List returns the locks that are held, or may be held (State.Undecided), and whose
	// names start with prefix, sorted by name. It is meant for people: it may be slow, and
	// locks that are acquired or released meanwhile may or may not appear. If the store
	// gives up early, it returns the locks it found and an error that matches
	// ErrIncomplete. If too few nodes answer, the error matches ErrQuorum, and the locks
	// are those that the others know.
	List(ctx context.Context, prefix string) ([]State, error)

	// Caps describes the store. It does not block and may be called after Close.
	// Class may change while the store is open, for example when servers join or
	// are upgraded; the other fields stay the same.
	Caps() Caps

	// Close frees the resources of the store. It waits for clean-up that is still
	// under way, for a bounded time. It releases no lease: each ends when its TTL
	// has passed. Calling it twice is harmless.
	Close() error
}

// Grant is the result of a successful Acquire or Wait.
type Grant struct {
	// Token is larger than the token of every earlier grant of the same lock.
	Token fence.Token
	// Slot is a number that no other holder of the lock has, from 0 to
	// Kind.Limit - 1. The lease keeps it while it lasts. For a mutex it is 0, and over
	// several nodes also for a read-write lock.
	Slot int64
	// Slots are all numbers that the lease has, of a semaphore over several nodes, where
	// each permit is a lock of its own. The caller sets Lease.Slots to them in every
	// renewal. Slot is the smallest. Otherwise they are empty.
	Slots string
	// Owner, if not empty, is the owner to use for renewals and the release: Wait
	// had to replace Lease.Owner by another owner of the same rank.
	Owner string
	// Since is when the granted request was sent, as the time since just before
	// the call. Validity counts from then. It is zero for Acquire, which sends its
	// request once.
	Since time.Duration
	// Repeated reports that the request was sent more than once, and that one may
	// still be in flight. The caller sets ReleaseRequest.Renewed.
	Repeated bool
}

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
	// semaphore that Changer.Resize has made a mutex can have more. See Holdings.
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
	// did. See Breaker. Only Inspect sets it.
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

// Caps describes a store and its limits.
type Caps struct {
	// Engine names the engine in one word, such as "memory", "files" or "redis".
	Engine string
	// Nodes is the number of independent servers. Quorum is how many of them must
	// agree.
	Nodes, Quorum int
	// MinTTL and MaxTTL are the shortest and the longest TTL that the store
	// accepts. A MinTTL below the package's own, or zero, means that one. A
	// MaxTTL of zero means no limit. See CheckTTL.
	MinTTL, MaxTTL time.Duration
	// Resolution is the unit to which the store rounds TTLs up, plus what it adds
	// to them: a lease may last longer than its TTL by that much. Zero means less
	// than a millisecond.
	Resolution time.Duration
	// Kinds reports that the store keeps locks of every Kind. Without it, the store
	// keeps mutexes and returns ErrUnsupported for all others.
	Kinds bool
	// MaxPermits is the largest limit of a semaphore that the store keeps. Zero means no
	// bound.
	MaxPermits int64
	// Bound reports that a lease belongs to the handle that acquired it, such as
	// to the session behind it. Through another handle it can be released but not
	// renewed: Renew then returns ErrNotHeld or ErrUnsupported.
	Bound bool
	// Rejoins reports that ReleaseAndRejoin costs less than a release and a
	// request one after the other. The client uses it only then. It is false for a
	// store that is not a Rejoiner, and for one whose hand-off is faster alone.
	Rejoins bool

	// Breaks reports that leases can be broken; see Breaker.
	Breaks bool
	// Reach is the range within which a lock excludes others: "process",
	// "machine" or "network".
	Reach string
	// Clock names the clock that counts TTLs, for people to read.
	Clock string
	// Class is the strongest guarantee that a lock can require; see Lease.Require.
	// It may change with the settings of the servers.
	Class Class
}

// CheckTTL returns nil if the store accepts ttl, and otherwise an error that
// matches ErrInvalid and names the bound.
func (c Caps) CheckTTL(ttl time.Duration) error {
	if least := max(c.MinTTL, MinTTL); ttl < least {
		return fmt.Errorf("%w: TTL %v is too short: the minimum is %v", ErrInvalid, ttl, least)
	}
	if c.MaxTTL > 0 && ttl > c.MaxTTL {
		return fmt.Errorf("%w: TTL %v is longer than the store's maximum of %v: ask for less, or raise the maximum (max_ttl in the URL) for every client of this store", ErrInvalid, ttl, c.MaxTTL)
	}
	return nil
}
