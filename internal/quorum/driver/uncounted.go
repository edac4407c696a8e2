package driver

import (
	"sync"
	"sync/atomic"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
)

// uncounted are the leases that nodes may have granted after their clocks had jumped. Such a node
// may have dropped another owner's lease too early, and that owner may still count on the node's
// old answer. So renewals of these leases do not count on the node either, until it takes part
// again. A lease that the node had before the jump, and still has, harms no other owner.
//
// A node grants such a lease while it is discounted, or when it is asked to heal one: only the
// reply to the next renewal shows whether its clock had jumped before.
type uncounted struct {
	some atomic.Bool // seldom: only after a jump, or when a node has lost a lease

	mu     sync.Mutex
	leases map[uncountedLease]clock.Instant // until when they do not count
}

type uncountedLease struct {
	node        int
	name, owner string
}

// add notes that the node may grant l from now on. It forgets that at until.
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

// countsRenewal reports whether the renewal of l that the node made, by a reply that arrived then,
// counts.
func (k *Driver[P]) countsRenewal(node int, l store.Lease, at clock.Instant) bool {
	u := &k.uncounted
	if !u.some.Load() || !uncountedRenewals {
		return true
	}
	counts := at >= k.Clocks.until(node)
	u.mu.Lock()
	defer u.mu.Unlock()
	key := uncountedLease{node, l.Name, l.Owner}
	if counts { // the node has l, and its clock had not jumped
		delete(u.leases, key)
		u.some.Store(len(u.leases) > 0)
	}
	return counts || at >= u.leases[key]
}
