// Package store is the seam between the lock client and the engines that keep
// locks: Redis, SQL databases, memory. It says what one store must do; which
// stores exist is not its business.
//
// A store performs single atomic steps: grant, renew, release, look. It does
// not wait for a lock to become free, does not renew by itself and does not
// judge validity: the client does, in one place for all stores. A store never
// hears an absolute time; TTLs are relative and counted by the store's own
// clock.
//
// Every implementation passes the suite in store/storetest.
package store

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
)

// Store keeps locks. All methods are safe for concurrent use, block until the
// outcome is known, the store's own time limits have passed or ctx has ended,
// and send nothing when the request is invalid.
type Store interface {
	// Acquire makes one attempt to take the lock r.Name for r.Owner, and does
	// not wait for it to become free.
	//
	// Granted: the returned Grant, nil error. The caller counts the lease's
	// validity from just before it called. If r.Owner already holds the lock,
	// the same grant is confirmed: the TTL at least as long as before, and the
	// same token, or one of those that were reserved with it (a larger one where
	// a quorum gained a node by it).
	//
	// Otherwise the error matches
	//   - ErrBusy (as *BusyError): somebody else holds it;
	//   - ErrQuorum (as *QuorumError): too few nodes could answer;
	//   - ErrInvalid: the request was refused before anything was sent;
	//   - ctx.Err(): the caller gave up;
	//   - or it is the engine's own.
	// On every error the store itself sees to it, on a context of its own and
	// in the background where need be, that nothing is left of the attempt: a
	// request that may still be in flight can not take the lock afterwards.
	Acquire(ctx context.Context, r Request) (Grant, error)

	// Renew makes each lease last at least its TTL from now, and never less
	// than it did. It never creates a lock that is gone. The result has one
	// entry per lease, in order: nil when renewed; ErrNotHeld when the lock is
	// certainly no longer held by that owner; anything else means unknown: the
	// renewal may have been applied.
	Renew(ctx context.Context, leases []Request) []error

	// Release ends the lease if it is still r.Owner's, and touches nobody
	// else's. It returns nil when it removed the lease, ErrNotHeld when there
	// was certainly none of this owner; after any other error the lease may or
	// may not be there, and calling again is safe.
	Release(ctx context.Context, r Request) error

	// Inspect looks at one lock without changing it. A free lock is no error.
	Inspect(ctx context.Context, name string) (State, error)

	// List returns the locks held at present whose name starts with prefix,
	// sorted by name. It is for people: it may be slow, and locks that come or
	// go meanwhile may be missing or shown. If the store gives up before it has seen all
	// of them, it returns those it found and an error that matches ErrIncomplete.
	List(ctx context.Context, prefix string) ([]State, error)

	// Caps says what this store is.
	Caps() Caps

	// Close gives back what the store holds. It waits a bounded time for
	// clean-up that is still under way. Leases that are held stay until their
	// TTL is over. Calling it twice is harmless; other calls after it fail
	// with ErrClosed.
	Close() error
}

// Request names one lease of one lock: who wants or has it, and for how long.
// The same value that was granted is given to Renew and Release.
type Request struct {
	// Name of the lock: 1 to MaxName bytes, any bytes.
	Name string
	// Owner is unique to one attempt to acquire: 1 to MaxOwner printable
	// ASCII characters without space. See NewOwner.
	Owner string
	// Attempt names one of several attempts of the same Owner, where Owner is not new:
	// as Owner, a value of its own each time. Empty where Owner is new. What cleans up
	// after an attempt, in the store or by Undo, leaves the grants of the others alone.
	Attempt string
	// Undo says, when the lease is released, that only a grant of which no other
	// attempt knows is to be ended. Stores may pass over it where Attempt is empty.
	Undo bool
	// Meta describes the owner to other people (see Holder.Encode). Stores
	// keep it and give it back unread.
	Meta string
	// TTL is how long the store keeps the lease when nobody renews it; at
	// least one millisecond. Stores may round up to their own resolution,
	// never down.
	TTL time.Duration
	// Require is the least that the grant has to stand. Stores that can not
	// give it refuse, with ErrUnsupported; those that can at a price pay it.
	Require Class
	// Renewed says, when the lease is released, that it was renewed before, or
	// is being renewed. Over several nodes a renewal may then still be under way
	// that would give the lease to a node which had lost it.
	Renewed bool
	// Spare is how many tokens are to be reserved besides the one of the grant,
	// for a lease that its process may pass on from one goroutine to the next: at
	// most, and at most MaxSpare. A store whose clock is the floor of its tokens
	// reserves fewer rather than have them lead that clock by more than a second.
	Spare int
	// Above is for Draw: the largest token of the lease so far.
	Above fence.Token
	// Barge is for Wait: be told when the lock is free instead of being handed it,
	// so that whoever comes first takes it. Who has come too late for some time is
	// handed it all the same. Without it the lock goes to the longest waiting.
	Barge bool
}

// Grant is a store's yes.
type Grant struct {
	// Token is larger than that of every earlier grant of the same lock. The Spare
	// tokens that follow it belong to this grant as well: the next one's is larger
	// than them all. Spare is at most Request.Spare.
	Token fence.Token
	Spare int
	// Owner that it was granted to, where Wait had to take another than that of the
	// request, of the same rank: renewals and the release are then in this name.
	Owner string
	// Since is when the request that was granted left, counted from just before
	// the call: validity counts from then. Zero for Acquire, which sends once.
	Since time.Duration
	// Repeated says that the lock was asked for more than once, and a request may
	// still be on the way: Renewed is to be set when the lease is released.
	Repeated bool
}

// State is what a store knows of one lock.
type State struct {
	Name string
	// Held says whether anybody holds it now; the fields below are then set.
	Held bool
	// Holder is who. Owner is always set; the rest as far as the holder said
	// it, and empty for a holder that is not one of ours.
	Holder Holder
	// Token of the holder's grant; zero when the store has none for the holder. If the
	// holder reserved more tokens later, it may be any of those that are the holder's.
	Token fence.Token
	// ExpiresIn is the time until the lease ends by itself, by the store's
	// clock; negative when it never does (a foreign key without a TTL).
	ExpiresIn time.Duration
	// Line are those who wait for it, first come first, as far as the store keeps
	// a line; of a long one the first MaxLine. Set by Inspect only.
	Line []Place
	// Nodes has one outcome per node of a quorum store, nil elsewhere.
	Nodes []NodeOutcome
}

// Caps says what a store is and how far it goes.
type Caps struct {
	// Engine in one word: "memory", "sqlite", "redis".
	Engine string
	// Nodes is the number of independent servers, Quorum how many must agree.
	Nodes, Quorum int
	// MaxTTL is the longest TTL it accepts; zero: no limit of its own.
	MaxTTL time.Duration
	// Reach says between whom its locks hold: "process", "machine", "network".
	Reach string
	// Clock says whose clock counts TTLs, in words for people.
	Clock string
	// Class is the most that a lock can require; see Request.Require.
	Class Class
}
