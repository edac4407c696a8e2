package driver

import (
	"sync"
	"sync/atomic"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
)

// uncounted are the leases that nodes granted while their clocks were discounted. Such a node
// may have dropped another owner's lease too early, and that owner may still count on its old
// answer. So the renewals of these leases do not count there either, until the node takes
// part again. A lease that the node had before the jump, and still has, was in nobody's way.
type uncounted struct {
	some atomic.Bool // seldom: only after a jump

	mu     sync.Mutex
	leases map[uncountedLease]clock.Instant // until when they do not count
}

type uncountedLease struct {
	node        int
	name, owner string
}

// add notes that the node has granted l, and takes part again at until.
func (u *uncounted) add(node int, l store.Lease, now, until clock.Instant) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.leases == nil {
		u.leases = map[uncountedLease]clock.Instant{}
	}
	for k, end := range u.leases {
		if end <= now {
			delete(u.leases, k)
		}
	}
	u.leases[uncountedLease{node, l.Name, l.Owner}] = until
	u.some.Store(true)
}

// has reports whether a renewal of l by the node does not count at now.
func (u *uncounted) has(node int, l store.Lease, now clock.Instant) bool {
	if !u.some.Load() || !uncountedRenewals {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return now < u.leases[uncountedLease{node, l.Name, l.Owner}]
}
