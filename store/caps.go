package store

import (
	"fmt"
	"time"
)

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
	// MutexesOnly reports that the store returns ErrUnsupported for locks of another Kind.
	MutexesOnly bool
	// NoQueue reports that the store keeps no queue: Wait returns ErrUnsupported, and
	// the client asks again and again.
	NoQueue bool
	// NoBreaks reports that BreakLease returns ErrUnsupported.
	NoBreaks bool
	// NoResize reports that Resize returns ErrUnsupported.
	NoResize bool
	// Notifies reports that the store pushes broken leases; see Store.NotifyBroken.
	Notifies bool
	// Timeout bounds every call except Wait: the Store ends its context then, with ErrTimeLimit as
	// the cause. Zero means that the engine bounds its calls itself.
	Timeout time.Duration
	// EndsCalls reports that Close of the engine ends its pending calls, which then return
	// ErrClosed. Otherwise the Store ends the contexts of Waits, and of all calls if there is a
	// Timeout, with ErrClosed as the cause, and closes the engine when the calls have returned.
	EndsCalls bool
	// MaxPermits is the largest limit of a semaphore that the store keeps. Zero means no
	// bound.
	MaxPermits int64
	// Rejoins reports that ReleaseAndRejoin costs less than a release and a
	// request one after the other. The client uses it only then. It is false for a
	// store whose hand-off is faster alone.
	Rejoins bool

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
